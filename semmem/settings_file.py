"""The file of settings, ``semmem.toml``: where it is looked for, and its text read into values, with a line to blame.

Two files may exist beside each other: the user's own, and one in the working folder, which wins. Whoever writes the
latter need not be the one who works there (a repository that was just cloned brings one), so it may change how semmem
works and never where memories are, whom a text or a key is sent to, or which model is loaded from a path.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem import folders
from semmem.errors import InvalidInput

__all__ = ["ANYWHERE", "NAME", "SettingsFile", "read", "users_file"]

NAME = "semmem.toml"
ANYWHERE = frozenset(
    {
        "embedder", "extractor", "idle_stop_s", "language", "llm_model", "llm_timeout_s", "pool_size", "recipe",
        "start_timeout_s",
    }
)  # fmt: skip
"""What a file of the working folder may set. A setting that is not listed here has to stand elsewhere."""
_PATHS = ("home", "llm_cache", "triples")
_FOLDERS = ("embedded", "sqlite")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One file that was read: its values by name, and its text, to find the line of a name in."""

    path: Path
    values: Mapping[str, Any]
    text: str

    def line(self, name: str) -> int | None:
        """Return the line, from 1, that sets ``name``, such as ``pool_size`` or ``recipe.weights``."""
        key = re.escape(name.rpartition(".")[2])
        wanted = re.compile(rf"""\s*(?:\[+\s*(?:[\w.-]+\.)?|(?:[\w-]+\s*\.\s*)*)["']?{key}["']?\s*[\].=]""")
        return next((at for at, line in enumerate(self.text.splitlines(), 1) if wanted.match(line)), None)

    def where(self, name: str) -> str:
        """Return the file and line that set ``name``, to begin a sentence with."""
        line = self.line(name)
        return f"{self.path}, line {line}" if line else str(self.path)


def users_file() -> Path | None:
    """Return where the user's own file would be, None for a user without a home."""
    folder = folders.settings()
    return None if folder is None else folder / NAME


def read(path: Path, known: Collection[str], *, trusted: bool = True) -> SettingsFile:
    """Read the settings of ``path``; relative folders in it are taken from where it stands.

    Not ``trusted``, only what ``ANYWHERE`` lists may stand in it. Raises InvalidInput, in one sentence that names the
    file, and the line where there is one to name.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not TOML: {str(error).rstrip('.')}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}); convert it.") from None
    except OSError as error:
        raise InvalidInput(f"The file of settings {path} cannot be read: {error.strerror}.") from None
    found = SettingsFile(path, values, text)
    for name in values:
        if name not in known:
            raise InvalidInput(f"{found.where(name)}: there is no setting {name!r}; there are {', '.join(known)}.")
        if name == "config":
            raise InvalidInput(f"{found.where(name)}: config names this file and cannot stand in it; remove the line.")
        if not trusted and (name not in ANYWHERE or _sends_or_loads(name, values[name])):
            what = name if name not in ANYWHERE else f"{name} = {_sends_or_loads(name, values[name])}"
            raise InvalidInput(
                f"{found.where(name)}: {what} cannot be set by a file of the working folder, which may be anybody's; "
                f"put it into your own file of settings, or trust this one with SEMMEM_CONFIG={NAME}."
            )
    return SettingsFile(path, {name: _placed(name, value, path.parent) for name, value in values.items()}, text)


def _sends_or_loads(name: str, value: Any) -> str | None:
    """Return which value of a setting that may stand anywhere sends texts to an endpoint or loads a named model."""
    if name == "extractor" and value == "llm":
        return '"llm"'
    rerank = value.get("rerank") if name == "recipe" and isinstance(value, Mapping) else None
    return '{rerank = "cross_encoder:…"}' if isinstance(rerank, str) and rerank.startswith("cross_encoder") else None


def _placed(name: str, value: Any, folder: Path) -> Any:
    """Return a path as seen from the folder of the file; anything else as it is."""
    if not isinstance(value, str):
        return value
    if name in _PATHS:
        return str(folder / folders.expanded(value))
    scheme, colon, rest = value.strip().partition(":")
    if name == "url" and colon and scheme.lower() in _FOLDERS and rest and not rest.startswith(("/", "~", ":memory:")):
        return f"{scheme}://{(folder / rest).absolute()}"
    return value
