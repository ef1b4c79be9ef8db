"""What the hooks of semmem do for a coding agent, played without one: a session, its turns, and the next session.

    python examples/coding_agent_hooks.py FOLDER

`semmem install claude-code` lets Claude Code run the same commands by itself: `session-start` and `prompt` print a
block that the client adds to what its model reads, `stop` stores what was said. FOLDER is the project; the store is
that of your settings (SEMMEM_URL).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def hook(event: str, **given: Any) -> str:
    """Run a hook as a client does, JSON on its standard input, and return what the client would add."""
    command = [sys.executable, "-m", "semmem", "hook", event, "--budget", "500"]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    if done.stderr:  # a hook never fails its client
        print(done.stderr.strip(), file=sys.stderr)
    return done.stdout.strip()


def said(transcript: Path, role: str, text: str) -> None:
    """Append a turn to a transcript, as the client writes it."""
    row = {"type": role, "uuid": f"{role}-{transcript.stat().st_size}", "message": {"role": role, "content": text}}
    with transcript.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row) + "\n")


def main(folder: str) -> None:
    """Play a session in which something is learned, and one in which it is asked for."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        transcript = Path(file.name)
        said(transcript, "user", "How are the tests of the engine run?")
        said(transcript, "assistant", "With make check, because pytest alone misses the gears.")
        hook("stop", session_id="monday", transcript_path=str(transcript), cwd=folder)
        print("monday's turns are stored")
    block = hook("prompt", session_id="tuesday", prompt="how do I run the tests of the engine?", cwd=folder)
    print(block or "nothing is remembered")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    main(sys.argv[1])
