"""Transcripts of two clients, for the tests of hooks."""

from __future__ import annotations

import json
from typing import Any

CLAUDE = [
    {"type": "summary", "summary": "Earlier."},
    {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-20T10:00:00.5Z",
     "message": {"role": "user", "content": "How are the tests run?"}},
    {"type": "assistant", "uuid": "a1", "sessionId": "s1", "timestamp": "2026-11-20T10:00:09Z",
     "message": {"role": "assistant", "content": [
         {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "With make check."},
         {"type": "tool_use", "name": "Bash", "input": {}}]}},
    {"type": "user", "uuid": "t1", "message": {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]}},
    {"type": "user", "uuid": "c1", "message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
    {"type": "user", "uuid": "m1", "isMeta": True, "message": {"role": "user", "content": "Caveat."}},
    {"type": "assistant", "uuid": "x1", "isSidechain": True, "message": {"role": "assistant", "content": "Aside."}},
]  # fmt: skip

CODEX = [
    {"type": "session_meta", "payload": {"id": "s1"}},
    {"type": "response_item", "timestamp": "2026-11-20T10:00:00Z", "payload": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]}},
    {"type": "response_item", "timestamp": "2026-11-20T10:00:01Z", "payload": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "How are the tests run?"}]}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "How are the tests run?"}},
    {"type": "response_item", "timestamp": "2026-11-20T10:00:02Z", "payload": {
        "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "With make check."}]}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
]  # fmt: skip


OLD_CODEX = [
    {"id": "s1", "timestamp": "2026-01-20T10:00:00Z", "instructions": None},
    {"record_type": "state"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "How are the tests run?"}]},
    {"type": "reasoning", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "With make check."}]},
]


def claude(*said: tuple[str, str]) -> list[dict[str, Any]]:
    """Return the lines of Claude Code for turns of (author, text)."""
    return [
        {"type": author, "uuid": f"u{at}", "sessionId": "s1", "timestamp": "2026-11-20T10:00:00Z",
         "message": {"role": author, "content": text}}
        for at, (author, text) in enumerate(said)
    ]  # fmt: skip


SESSION = claude(
    ("user", "<system-reminder>\nToday is 2026-11-20.\n</system-reminder>\nWe deploy from the branch release, never "
             "from main. Port 6543 is the pooler."),
    ("assistant", "Let me check."),
    ("assistant", "The settings are read in config.py, so the pooler goes there."),
    ("user", "<ide_selection>PORT = 5432</ide_selection>ok, do it"),
    ("assistant", "I added the pooler on port 6543 to config.py. Where should the timeout of the pooler be set?"),
    ("user", "In deploy/pooler.toml, and never above 30 seconds."),
    ("assistant", "The timeout is 30 seconds in deploy/pooler.toml."),
    ("user", "thanks"),
    ("assistant", "Shall I delete the old file pooler.ini?"),
    ("user", "yes, please"),
    ("assistant", "Done."),
    ("user", "<command-name>/compact</command-name>\n<command-args></command-args>"),
    ("user", "<local-command-stdout>Compacted.</local-command-stdout>"),
    ("user", "Why did the deployment of Tuesday fail?"),
    ("assistant", "Let me look."),
    ("assistant", "Because the certificate of the pooler had expired on Monday."),
    ("user", "👍"),
)  # fmt: skip
"""A session of an afternoon, as Claude Code writes it."""


def written(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
