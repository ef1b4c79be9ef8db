"""Draw docs/assets/demo.svg: the first two questions of a real run of `semmem demo`.

Run it as ``python docs/tools/terminal.py``. It needs the embedding model.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

__all__ = ["drawn"]

PICTURE = Path(__file__).resolve().parents[1] / "assets" / "demo.svg"
_WIDTH = 100
_THEME = TerminalTheme(
    (14, 30, 33),
    (222, 231, 229),
    [(14, 30, 33), (226, 110, 90), (125, 200, 140), (224, 164, 88), (98, 160, 214), (190, 140, 200), (94, 190, 186),
     (222, 231, 229)],
    [(110, 130, 132), (240, 130, 110), (150, 220, 165), (240, 190, 120), (130, 185, 235), (210, 165, 220),
     (130, 215, 210), (255, 255, 255)],
)  # fmt: skip


def drawn(ansi: str) -> str:
    """Return the output of a terminal as an SVG that asks for no font and no other file."""
    from rich._export_format import CONSOLE_SVG_FORMAT

    frame = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    frame = frame.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace")
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(ansi))
    svg = console.export_svg(title="$ semmem demo", theme=_THEME, code_format=frame, unique_id="demo")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> None:
    """Run the demo and write the picture of its first two questions."""
    surroundings = os.environ | {"COLUMNS": str(_WIDTH), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    done = subprocess.run(
        [sys.executable, "-m", "semmem", "demo"], env=surroundings, capture_output=True, text=True, check=True
    )
    shown = re.split(r"\n[^\n]*3\. In which pub", done.stdout)[0].strip("\n")
    PICTURE.write_text(drawn(shown), encoding="utf-8")


if __name__ == "__main__":
    main()
