"""Start Ray on this machine, or join the Ray at an address. It reports nothing to its maker and has no dashboard."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.failure import reason
from semmem.model.process.machine import processors
from semmem.model.process.telemetry import ray_on_loopback

__all__ = ["LOCAL", "cluster", "ray_of"]

LOCAL = "local"
"""The address that stands for a Ray of this machine alone, started for one call."""
_PATIENCE_S = 5.0
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}


def ray_of() -> Any:
    """Return the package ``ray``. Raises MissingExtra where it is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtra("Ray is not installed; install it with: pip install 'semmem[ray]'")
    return import_module("ray")  # where it is installed or not, a type checker takes it for anything


@contextmanager
def cluster(address: str = LOCAL) -> Iterator[Any]:
    """Yield the package ``ray``, connected: to the Ray of this process, if it has one, else as ``address`` says.

    ``local`` starts one that ends with the block and listens on 127.0.0.1 alone; ``auto`` joins the one that runs on
    this machine, HOST:PORT the one there. Raises InvalidInput where none answers, MissingExtra without the package.
    """
    if address == LOCAL:
        ray_on_loopback()
    elif address != "auto":
        _check_answers(address)
    ray = ray_of()
    if ray.is_initialized():
        yield ray
        return
    try:
        if address == LOCAL:
            ray.init(address=LOCAL, num_cpus=processors(), include_dashboard=False, **_QUIET)
        else:
            ray.init(address=address, **_QUIET)
    except Exception as error:  # Ray raises a plain Exception where the machine is too busy
        if address != LOCAL:
            raise InvalidInput(f"{_none_at(address)} ({reason(error, 200)}); {_MEND}") from error
        raise InvalidInput(
            f"Ray could not be started ({reason(error, 200)}); try again when this machine is less busy, or without "
            "--ray."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


_MEND = "start one with `ray start --head`, correct the address, or leave it out to use the processors of this machine."


def _none_at(address: str) -> str:
    return "No Ray runs on this machine" if address == "auto" else f"No Ray answers at {address}"


def _check_answers(address: str) -> None:
    """Raise InvalidInput unless something listens at HOST:PORT, for Ray itself would try for a minute."""
    host, colon, port = address.rpartition(":")
    if "//" in address or not (colon and host and port.isdecimal()):
        raise InvalidInput(
            f"{address!r} is no address of a Ray; give HOST:PORT as `ray start --head` shows it, auto for the Ray that "
            "runs on this machine, or no address; write it with =, such as --ray=auto."
        )
    try:
        with closing(socket.create_connection((host, int(port)), timeout=_PATIENCE_S)):
            pass
    except (OSError, OverflowError) as error:
        raise InvalidInput(f"{_none_at(address)} ({reason(error, 200)}); {_MEND}") from error
