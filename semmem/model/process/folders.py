"""Where the platform keeps what belongs to a user. A library for it would take 3 ms of each process to import."""

from __future__ import annotations

import os
import sys
from typing import Final, Literal, TypeAlias

__all__ = ["Kind", "users_folder"]

Kind: TypeAlias = Literal["config", "data", "state"]

_USUAL: Final = {"config": "~/.config", "data": "~/.local/share", "state": "~/.local/state"}
_MACS: Final = "~/Library/Application Support"


def users_folder(kind: Kind) -> str | None:
    """Return the folder of semmem for settings, data or state, which need not exist; None for a user without a home.

    It is in XDG_CONFIG_HOME, XDG_DATA_HOME or XDG_STATE_HOME, where that is an absolute path, else where the platform
    has it. Source: XDG Base Directory Specification 0.8, and Apple's File System Programming Guide.
    """
    own = os.environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
    if os.path.isabs(own):
        return os.path.join(own, "semmem")
    if not os.path.isabs(os.environ.get("HOME", "/")):
        return None
    folder = os.path.expanduser(_MACS if sys.platform == "darwin" else _USUAL[kind])
    return os.path.join(folder, "semmem") if os.path.isabs(folder) else None
