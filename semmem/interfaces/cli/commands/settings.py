"""The commands `settings`: show all settings and their sources, and change the search settings of a namespace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.context import CommandLine, alone, command
from semmem.interfaces.cli.show import new_table, styled
from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.config import Settings

__all__ = ["names"]

names = typer.Typer(add_completion=False)
"""The group of commands under ``semmem settings``."""


@alone(names, "url", "namespace")
def settings(cli: CommandLine) -> None:
    """Show every setting, its value and its source; with --namespace also the search settings of that namespace.

    Arguments override environment variables, and these override semmem.toml. Keys and passwords are never shown.
    """
    from semmem.read.overrides import recipe_of

    current = cli.settings()
    recipe_of(current)  # a broken one is told here, where people look for it
    answer: dict[str, Any] = {"files": [str(file.path) for file in current.files], "settings": _rows(current)}
    if cli.named:
        with cli.connect() as mem:
            answer |= {"namespace": cli.namespace, **_searched(mem, cli.namespace)}
    cli.give(answer, lambda: _show(cli, answer))


@command(names, "set", "url", "namespace")
def set_(
    cli: CommandLine,
    name: Annotated[
        str, typer.Argument(help="Such as weights.graph, lexical.k1 or recipe; `semmem settings -n N` has all.")
    ],
    value: Annotated[str, typer.Argument(help="A number, true, false, null, a word, or JSON.")],
) -> None:
    """Change a search setting of a namespace, in every process from its next recall on."""
    from semmem.read.overrides import value_of

    with cli.connect(create=True) as mem:
        own = mem.configure(namespace=cli.namespace, **{name: value_of(value)})
    line = f"{name} is {json.dumps(own[name])} in namespace {cli.namespace}, from the next recall on."
    cli.give({"namespace": cli.namespace, "settings": own}, lambda: cli.out.print(line))


@command(names, "unset", "url", "namespace")
def unset(
    cli: CommandLine,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="The settings to remove.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every setting of the namespace.")] = False,
) -> None:
    """Remove search settings of a namespace; the program's own settings apply again."""
    if bool(keys) == everything:
        raise InvalidInput("Name the settings to unset, or give --all.")
    with cli.connect() as mem:
        rest = mem.unset_settings(*(keys or ()), namespace=cli.namespace)
    line = f"Namespace {cli.namespace} has {len(rest) or 'no'} search settings of its own."
    cli.give({"namespace": cli.namespace, "settings": rest}, lambda: cli.out.print(line))


def _rows(current: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": _masked(getattr(current, name)),
            "source": current.source(name),
            "meaning": field.description,
        }
        for name, field in type(current).model_fields.items()
    ]


def _masked(value: Any) -> Any:
    from semmem.model.setting import Secret
    from semmem.stores import masked

    if isinstance(value, Secret):
        return "***"
    return masked(value) if isinstance(value, str) else value


def _searched(mem: Semmem, namespace: str) -> dict[str, Any]:
    """Return every search setting of a namespace with its source, and what of its own cannot be used."""
    from semmem.model.recipe import RECIPES, setting
    from semmem.read.overrides import settings_in

    plan, own, wrong = mem.searched_by(namespace=namespace)
    plain = settings_in(RECIPES.get(plan.name, plan))
    whence = mem.settings.source("recipe")
    rows = []
    for name, value in settings_in(plan).items():
        source = f"namespace {namespace}" if name in own else "recipe" if value == plain.get(name) else whence
        meaning = row.meaning if (row := setting(name)) else "the name of the recipe"
        rows.append({"name": name, "value": value, "source": source, "meaning": meaning})
    return {"search": rows, "unused": wrong}


def _show(cli: CommandLine, answer: dict[str, Any]) -> None:
    for rows in (answer["settings"], answer.get("search", [])):
        if not rows:
            continue
        table = new_table(padding=(0, 2, 0, 0), header_style="dim")
        for title, style in (("name", "bold"), ("value", "cyan"), ("from", "")):
            table.add_column(title, style=style, overflow="fold", no_wrap=title == "name")
        table.add_column("meaning", style="dim")
        for row in rows:
            table.add_row(*map(styled, (row["name"], _shown(row["value"]), _short(row["source"]), row["meaning"])))
        cli.out.print(table)
        if rows is answer["settings"]:
            files = ", ".join(map(_short, answer["files"])) or "none"
            cli.out.print(f"Files read: {files}.\n", style="dim", soft_wrap=True)
    if answer.get("unused"):
        cli.out.print(answer["unused"], style="red")


def _short(source: str) -> str:
    """Return a path as seen from here or from the user's home, where it lies below one of them."""
    for place, mark in ((Path.cwd(), "."), (Path.home(), "~")):
        if source.startswith(f"{place}/"):
            return mark + source.removeprefix(str(place))
    return source


def _shown(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)
