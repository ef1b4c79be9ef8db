"""Run the official conformance suite of MCP against a real `semmem mcp --http`: `make conformance`.

    python -m tests.interfaces.mcp.conformance FOLDER

The suite is a program for node. It is installed with npm into FOLDER, at the version that is named here. Where there
is no node, or npm cannot fetch it, the suite is skipped, by name, with the exit code 0.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.interfaces.mcp.clients import environment

SUITE = "@modelcontextprotocol/conformance"
VERSION = "0.1.13"  # later ones want a newer node than 20
EXPECTED = Path(__file__).with_name("conformance-expected-failures.yml")


def installed(folder: Path) -> Path | str:
    """Return the suite's program, installed if need be, or in a sentence why there is none."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return "there is no node, or no npm, on this machine"
    home = folder / VERSION
    program = home / "node_modules" / SUITE / "dist" / "index.js"
    if not program.exists():
        home.mkdir(parents=True, exist_ok=True)
        wanted = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(home), f"{SUITE}@{VERSION}"]
        done = subprocess.run(wanted, capture_output=True, text=True, cwd=home)
        if done.returncode or not program.exists():
            return f"npm cannot install it: {(done.stderr.strip() or 'no reason given').splitlines()[-1]}"
    return program


def run(program: Path) -> int:
    """Start a server, run every scenario against it, and return the suite's exit code."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "semmem", "--json", "mcp", "--http", "--port", "0", "--namespace", "team"]
        server = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(f"sqlite:{folder}/notes.db") | {"XDG_CONFIG_HOME": folder},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            url = json.loads(server.stdout.readline())["url"]
            suite = ["node", str(program), "server", "--url", url, "--expected-failures", str(EXPECTED)]
            return subprocess.run(suite, cwd=folder).returncode
        finally:
            server.terminate()
            server.wait(timeout=60)


def main() -> int:
    """Install the suite and run it."""
    folder = Path(sys.argv[1]).absolute()
    found = installed(folder)
    if isinstance(found, str):
        print(f"skipped: {SUITE} {VERSION}: {found}.")
        return 0
    return run(found)


if __name__ == "__main__":
    sys.exit(main())
