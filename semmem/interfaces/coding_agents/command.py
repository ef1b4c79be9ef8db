"""The commands install, uninstall and hook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.coding_agents.clients import CLIENTS, client_of
from semmem.model.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from semmem.interfaces.coding_agents.installation import Change

__all__ = ["hook", "install", "uninstall"]


Name = Annotated[
    str,
    typer.Argument(
        help=f"The client: {', '.join(CLIENTS)}.", metavar="CLIENT", show_default=False,
        autocompletion=lambda: list(CLIENTS),
    ),
]  # fmt: skip

Project = Annotated[bool, typer.Option("--project", help="Only for the project in the working folder, not everywhere.")]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")]


def install(
    cli: CommandLine,
    client: Name,
    project: Project = False,
    hooks: Annotated[
        bool, typer.Option("--hooks/--no-hooks", help="Install hooks too, if the client has them.")
    ] = True,
    replace_own: Annotated[
        bool, typer.Option("--replace", help="Also replace a server of your own that is named semmem.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Make a client start `semmem mcp` and, if it has hooks, recall before every prompt and store every turn.

    The rest of the client's files stays as it is; a server of your own that is named semmem too is an error, unless
    --replace is given. Running it again changes nothing; `semmem uninstall` undoes it. The client gets --url (or
    SEMMEM_URL, SEMMEM_HOME) and --namespace; put a password into your own settings file.
    """
    _apply(cli, client, project, dry_run, hooks=hooks, remove=False, replace_own=replace_own)


def uninstall(cli: CommandLine, client: Name, project: Project = False, dry_run: DryRun = False) -> None:
    """Remove semmem from a client's files; memories stay."""
    _apply(cli, client, project, dry_run, hooks=True, remove=True)


def _apply(
    cli: CommandLine, name: str, project: bool, dry_run: bool, *, hooks: bool, remove: bool, replace_own: bool = False
) -> None:
    from semmem.interfaces.coding_agents.installation import changes, write_all

    client = client_of(name)
    _need_extra()
    options, notes = ([], []) if remove else _options(cli)
    folder = Path.cwd() if project else None
    if folder is not None and not remove:
        notes += [_of_sharing(client.places(folder)[0], options), _of_namespace(cli, name, folder)]
    all_changes = changes(client, folder, options, hooks=hooks, remove=remove, replace=replace_own)
    needed = [change for change in all_changes if change.needed]
    if not dry_run:
        write_all(needed)
    files = [{"file": str(one.file), "changed": one.needed, "difference": one.difference()} for one in all_changes]
    report = {"client": name, "dry_run": dry_run, "removed": remove, "files": files, "notes": notes}
    then = "Restart the client; memories stay." if remove else client.then
    cli.give(report, lambda: _show(cli, needed, dry_run, [*notes, then]))


def _need_extra() -> None:
    from importlib.util import find_spec

    if missing := [name for name in ("json5", "mcp_types", "tomlkit") if find_spec(name) is None]:
        raise MissingExtra(f"The package {missing[0]} is not installed; install it with: pip install 'semmem[mcp]'")


def _of_sharing(file: Path, options: list[str]) -> str:
    """Return whether a file that a project shares names this machine."""
    from shutil import which

    if any(option.startswith(("embedded:", "sqlite:")) for option in options):
        return f"{file.name} names a store on this machine; do not share it."
    if which("semmem"):
        return f"{file.name} runs `semmem` from the PATH, so it can be shared; the client must find it there."
    return f"{file.name} holds the path of semmem on this machine, because no semmem is on the PATH; do not share it."


def _of_namespace(cli: CommandLine, client: str, folder: Path) -> str:
    """Return in which namespace the client stores the memories of a project, for the commands that look into it."""
    from semmem.interfaces.scope import WITHOUT_ROOTS, scope_of

    roots = None if client in WITHOUT_ROOTS else [folder.absolute().as_uri()]
    named = cli.namespace if cli.named else None
    namespace = scope_of(named=named, roots=roots, folder=folder, personal=None).namespace
    return f"Its memories are in the namespace {namespace}; other commands take it with: -n {quote(namespace)}"


def _options(cli: CommandLine) -> tuple[list[str], list[str]]:
    """Return the options that every start of semmem by the client gets, and what to say of them.

    A client does not see the variables of this shell, so the store that they name becomes an option.
    """
    from semmem.config import of_environment
    from semmem.stores import parse_url

    options: list[str] = []
    notes: list[str] = []
    environment = of_environment()
    url, home = environment.pop("url", None), environment.pop("home", None)
    variable, named = ("SEMMEM_URL", url) if url else ("SEMMEM_HOME", f"embedded:{home}" if home else None)
    if cli.url is None and named is not None:
        if not _holds_secret(named):
            cli = replace(cli, url=named)
            notes.append(f"The client opens the store of {variable}, {named}.")
        else:
            notes.append(
                f"{variable} holds a secret, so the client does not get it; put the URL into your own settings file."
            )
    if lost := sorted(f"SEMMEM_{name.upper()}" for name in environment if name != "config"):
        them = "it" if len(lost) == 1 else "them"
        notes.append(f"The client does not see {', '.join(lost)}; put {them} into your own settings file.")
    if cli.url is not None:
        if _holds_secret(cli.url):
            raise InvalidInput(
                "The URL holds a secret, which would stand in the client's files; put the URL into your own "
                "settings file and leave --url out."
            )
        target = parse_url(cli.url, home=None) if not cli.url.startswith(("http://", "https://")) else None
        place = cli.url if target is None or target.path is None else f"{target.kind}://{target.path}"
        options += ["--url", place]
    return ([*options, "--namespace", cli.namespace] if cli.named else options), notes


def _holds_secret(url: str) -> bool:
    """Return whether a URL holds a password, or of a server anything behind a question mark."""
    from semmem.stores import masked

    return masked(url) != url or (url.startswith(("http://", "https://")) and "?" in url)


def _show(cli: CommandLine, needed: list[Change], dry_run: bool, then: list[str]) -> None:
    from semmem.text.control_characters import visible

    if not needed:
        cli.out.print("Nothing to change: the client's files are up to date.")
        return
    for change in needed:
        if dry_run:
            cli.out.print(visible(change.difference()), markup=False, soft_wrap=True)
        else:
            what = "Removed" if change.after is None else "Changed" if change.before is not None else "Made"
            cli.out.print(f"{what} {change.file}", markup=False, soft_wrap=True)
    for line in [*then[:-1], "Nothing was written: --dry-run."] if dry_run else then:
        cli.out.print(visible(line), markup=False)


def hook(
    cli: CommandLine,
    event: Annotated[str, typer.Argument(help="session-start, prompt, pre-compact or stop.", show_default=False)],
    budget: Annotated[int, typer.Option(help="Most tokens of the block that is printed.", min=0)] = 1_000,
    agent: Annotated[str, typer.Option(help="The client, as stored with its turns.")] = "claude-code",
    detach: Annotated[bool, typer.Option("--detach", help="Store in the background; the client goes on.")] = False,
    reply_key: Annotated[
        str | None, typer.Option(help="Print the block as JSON under this key, with dots; default: as it is.")
    ] = None,
) -> None:
    """Run as a client's hook: its JSON on standard input, a block of memories on standard output.

    session-start prints what is pinned, how the last session ended, what was decided, and the latest memories; prompt
    those that the prompt recalls; pre-compact and stop store the new turns of the transcript. It never fails the
    client: errors go to standard error, the exit code is 0.
    """
    from semmem.interfaces.coding_agents.asking import EVENTS, run_hook

    if event not in EVENTS:
        cli.say(f"There is no hook {event!r}; choose one of {', '.join(EVENTS)}.")
        return
    run_hook(event, cli.url, cli.namespace if cli.named else None, budget, agent, detach, reply_key)
