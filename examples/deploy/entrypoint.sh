#!/bin/sh
# Runs semmem, passes SIGTERM on, and then stops the PostgreSQL inside, so that the next start needs no recovery.
semmem "$@" &
program=$!
trap 'kill -TERM "$program" 2>/dev/null' TERM INT
wait "$program"
code=$?
while kill -0 "$program" 2>/dev/null; do # a signal ends the first wait before the program has ended
  wait "$program"
  code=$?
done
semmem server stop >/dev/null 2>&1
exit "$code"
