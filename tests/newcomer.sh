#!/usr/bin/env bash
# The path of somebody who has the wheel and nothing else, in a bare environment and an empty home, once for each Python
# from 3.11 to 3.14 that is found. It needs a package index. Usage: tests/newcomer.sh dist/semmem-*.whl
set -euo pipefail
wheel=$(realpath "$1")
constraints=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../constraints.txt")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tried=0
for python in python3.11 python3.12 python3.13 python3.14; do
  "$python" -c '' 2>/dev/null || { echo "· $python is not on this machine"; continue; }
  home="$folder/$python"
  mkdir -p "$home"
  "$python" -m venv "$home/venv"
  "$home/venv/bin/pip" --quiet --disable-pip-version-check install -c "$constraints" "$wheel[http,markdown,mcp,minilm]"
  (
    cd "$home"
    export HOME="$home" XDG_DATA_HOME="$home/data" PATH="$home/venv/bin:$PATH"
    unset SEMMEM_HOME SEMMEM_URL
    semmem --version
    semmem model get
    semmem remember "The ferry leaves at noon." --title Ferry > /dev/null
    semmem recall "when does the boat go?" | grep -q "The ferry leaves at noon."
    semmem demo > demo.txt
    semmem install claude-code --dry-run > /dev/null
    semmem server stop > /dev/null
  )
  echo "✓ $python: installed, remembered, recalled, demonstrated"
  tried=$((tried + 1))
done
if command -v uvx > /dev/null; then
  HOME="$folder" uvx --quiet --from "$wheel" semmem --version && echo "✓ uvx"
fi
[ "$tried" -gt 0 ] || { echo "no Python from 3.11 to 3.14 was found" >&2; exit 1; }
