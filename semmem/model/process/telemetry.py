"""No library that semmem loads reports to its maker: ``import semmem`` sets the variables that switch this off.

ONNX Runtime reads its variable while it is imported. With it, ONNX Runtime makes no device id and looks up no host;
``disable_telemetry_events`` comes too late for both. Child processes inherit the variables. A value set by the user
stays, and `semmem doctor` names it.
"""

from __future__ import annotations

import os

__all__ = ["LIBRARIES", "left_on", "ray_on_loopback", "switch_off"]

LIBRARIES = {
    "ORT_DISABLE_TELEMETRY": "ONNX Runtime",
    "HF_HUB_DISABLE_TELEMETRY": "huggingface_hub",
    "RAY_USAGE_STATS_ENABLED": "Ray",
}
"""The library that each variable silences."""
_ENABLES = "RAY_USAGE_STATS_ENABLED"
"""The variable that is off by 0; the others switch off by 1."""


def switch_off() -> None:
    """Set each variable that is unset or empty. Must run before one of the libraries is imported."""
    for variable in LIBRARIES:
        if not os.environ.get(variable):
            os.environ[variable] = "0" if variable == _ENABLES else "1"


def left_on() -> dict[str, str]:
    """Return the variables that the user set to a value which leaves telemetry on, each with that value."""
    values = {variable: os.environ.get(variable, "") for variable in LIBRARIES}
    off = {name: ("0",) if name == _ENABLES else ("1", "true", "yes", "on") for name in LIBRARIES}
    return {name: value for name, value in values.items() if value.lower() not in off[name]}


def ray_on_loopback() -> None:
    """Let a Ray that this process starts listen on 127.0.0.1 alone. Must run before ``ray`` is imported.

    By default it listens on every address of the machine, and looks up which one that is.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
