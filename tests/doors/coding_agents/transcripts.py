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


def written(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
