"""Settings and recipes; the only module that reads the environment.

It also reads the settings file, ``semmem.toml``, and knows the line of each value, for errors.

There may be two such files: the user's own, and one in the working folder, which wins. The latter may come from
somebody else, for example with a cloned repository. So it may change how semmem works, but never where memories are
stored, to whom a text or a key is sent, or which model is loaded from a path.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from reprlib import repr as shown
from typing import Any, ClassVar, Literal, NoReturn

from semmem.files import expanded, settings_folder
from semmem.model.errors import InvalidInput
from semmem.model.field_kinds import MOST_DIMENSIONS
from semmem.model.setting import (
    Secret,
    Setting,
    Wrong,
    flag,
    number,
    one_of,
    optional,
    path,
    secret,
    setting,
    text,
    whole,
)

__all__ = [
    "ANYWHERE", "NAME", "Settings", "SettingsFile", "certificate_file", "of_environment", "read_settings_file",
    "unknown_variables", "users_file",
]  # fmt: skip


SESSION_PARTS = frozenset(("pinned", "last", "decided", "elsewhere", "latest"))
"""The parts of the block with which a session begins."""


def _parts(value: str) -> frozenset[str]:
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def _session_parts(value: Any) -> str:
    """Read names of parts, with commas between."""
    if not _parts(text(value)) <= SESSION_PARTS:
        raise Wrong("names of pinned, last, decided, elsewhere and latest, with commas between")
    return str(value)


def _confidence(value: Any) -> float | Literal["auto"]:
    """Read a least confidence."""
    if value == "auto":
        return "auto"
    try:
        return float(number(ge=0, le=1)(value))
    except Wrong:
        raise Wrong("auto or a number from 0 to 1") from None


def _recipe(value: Any) -> str | dict[str, Any]:
    """Read the name of a recipe, or a table of changes, which is checked where it is used."""
    if not isinstance(value, str | dict):
        raise Wrong("the name of a recipe or a table of search settings")
    return value


class Settings:
    """The settings, from lowest to highest precedence: ``semmem.toml``, environment (``SEMMEM_`` + name), arguments.

    ``files`` are the files that were read, the last one wins.
    """

    model_fields: ClassVar[Mapping[str, Setting]]
    """The rows of all settings, by name."""

    url: str | None = setting(None, optional(text), "The URL of the store; none: your own embedded server.")
    home: Path | None = setting(
        None, optional(path), "Folder of the embedded server's data; none: your platform's data folder."
    )
    embedder: str | None = setting(
        None,
        optional(text),
        "minilm, all-mpnet-base-v2, the name of a model in `semmem model list`, endpoint, hashing "
        "(deterministic, for tests) or none; not set: the embedder that filled the store, for an empty store minilm if "
        "it is installed.",
    )
    model: str | None = setting(
        None, optional(text), "For minilm: a folder of the model to use instead of the installed one."
    )
    embedder_url: str | None = setting(
        None,
        optional(text),
        "For endpoint: an OpenAI-compatible endpoint, such as http://localhost:11434/v1; the texts of "
        "memories and questions are sent to it.",
    )
    embedder_model: str | None = setting(None, optional(text), "For endpoint: the name of the model there.")
    embedder_key: Secret | None = setting(
        None, optional(secret), "For endpoint: the key of that endpoint, sent to it alone and never shown."
    )
    embedder_timeout_s: float = setting(
        30.0, number("seconds", gt=0, le=600), "For endpoint: seconds that one attempt may take."
    )
    embedder_question: str = setting("", text, 'For endpoint: text to put before questions, such as "search_query: ".')
    embedder_passage: str = setting("", text, 'For endpoint: text to put before memories, such as "search_document: ".')
    embedder_dimensions: int | None = setting(
        None,
        optional(whole(ge=1, le=MOST_DIMENSIONS)),
        "For endpoint: the dimensions to ask for; none: those of the model.",
    )
    embedder_max_tokens: int = setting(
        512, whole(ge=32, le=1_000_000), "For endpoint: longer memories are split; three bytes count as one token."
    )
    language: str = setting("english", text, "Language of stems and stop words, by its Snowball name.")
    extractor: str = setting(
        "rules", text, "The extractor that finds concepts in memories: rules, spacy, precomputed or llm."
    )
    spacy_pipeline: str | None = setting(
        None, optional(text), "For spacy: a pipeline such as en_core_web_sm, or its folder."
    )
    triples: Path | None = setting(None, optional(path), "For precomputed: a JSON file of names and relationships.")
    llm_url: str | None = setting(
        None, optional(text), "For llm: an OpenAI-compatible endpoint, such as http://localhost:11434/v1."
    )
    llm_model: str | None = setting(None, optional(text), "For llm: the name of the model at that endpoint.")
    llm_key: Secret | None = setting(
        None, optional(secret), "For llm: the key of that endpoint, sent to it alone and never shown."
    )
    llm_cache: Path | None = setting(
        None,
        optional(path),
        "For llm: a SQLite file that caches answers, which hold names of texts, also of forgotten ones; none: memory.",
    )
    llm_timeout_s: float = setting(30.0, number("seconds", gt=0, le=600), "For llm: seconds that one attempt may take.")
    reranker_url: str | None = setting(
        None,
        optional(text),
        "For the reranker endpoint: an endpoint with /rerank, such as http://localhost:8080; questions and "
        "the passages of hits are sent to it.",
    )
    reranker_model: str | None = setting(
        None, optional(text), "For the reranker endpoint: the name of the model there."
    )
    reranker_key: Secret | None = setting(
        None, optional(secret), "For the reranker endpoint: its key, sent to it alone and never shown."
    )
    reranker_timeout_s: float = setting(
        10.0, number("seconds", gt=0, le=600), "For the reranker endpoint: seconds that one attempt may take."
    )
    on_contradiction: Literal["report", "supersede", "ignore"] = setting(
        "report",
        one_of("report", "supersede", "ignore"),
        "If a new memory contradicts an older one: report links the two, supersede also ranks the newer "
        "above the older, ignore compares nothing.",
    )
    name_older: bool = setting(True, flag, "remember names up to two older memories that the new one may outdate.")
    key: Secret | None = setting(None, optional(secret), "The key for the server of an http:// URL; never shown.")
    oidc_issuer: str | None = setting(
        None,
        optional(text),
        "For servers: the URL of an identity server whose access tokens are accepted beside keys.",
    )
    oidc_audience: str | None = setting(
        None,
        optional(text),
        "For servers: the audience that a token must be for, normally the public URL of the server itself.",
    )
    oidc_resource: str | None = setting(
        None,
        optional(text),
        "For servers: the public URL of the server, if the audience is none; clients find the identity server there.",
    )
    oidc_namespaces_claim: str = setting(
        "semmem_namespaces", text, "For servers: the claim that names the namespaces of a token: a text or a list."
    )
    oidc_right_claim: str = setting(
        "scope",
        text,
        "For servers: the claim with the right of a token: semmem:read, semmem:write or semmem:admin.",
    )
    shared_rate: bool = setting(
        False, flag, "For servers: count the requests of a client at all servers of the store together, for --rate."
    )
    read_url: str | None = setting(
        None, optional(text), "The URL of a standby of the store's own server, which then answers recalls."
    )
    read_wait_s: float = setting(
        0.5,
        number("seconds", ge=0, le=60),
        "Seconds for which a recall waits until the standby has all that this process has written; then the primary "
        "answers.",
    )
    pool_size: int = setting(8, whole(ge=1, le=100), "Most connections of a process to the store.")
    resident_mb: int = setting(
        256,
        whole("megabytes", ge=0, le=1_000_000),
        "Megabytes of memory in which a process holds the namespaces asked most "
        "recently, and an eighth more for the matches of filters; 0: none.",
    )
    saved_mb: int = setting(
        1024,
        whole("megabytes", ge=0, le=1_000_000),
        "Megabytes on disk for saved models of large namespaces beside a SQLite file or the embedded server, which a "
        "process maps instead of reading these namespaces; 0: none.",
    )
    bulk_workers: int = setting(
        1, whole(ge=0, le=64), "Extra processes with which remember_many reads a long list; 0: none."
    )
    idle_stop_s: float = setting(
        3600.0, number("seconds", gt=0), "Seconds without a client after which the embedded server stops."
    )
    start_timeout_s: float = setting(
        120.0, number("seconds", gt=0), "Seconds to wait for the start of the embedded server, recovery included."
    )
    keep_forgotten_days: float = setting(
        30.0,
        number("days", ge=0, le=36_500),
        "Days in which restore_memory can bring a forgotten memory back; 0: every forget is for good.",
    )
    keep_versions: int = setting(
        100,
        whole(ge=0, le=1_000_000),
        "Earlier versions to keep of each memory, each with its vector; an update drops the oldest.",
    )
    keep_changes_days: float = setting(
        90.0, number("days", ge=1, le=36_500), "Days to keep the change log; maintain removes older changes."
    )
    recall_log: bool = setting(
        False,
        flag,
        "Log each recall: question, interface, agent, and the ids of the memories that were given, so that "
        "`semmem log` shows them and feedback can judge them.",
    )
    agent: str | None = setting(
        None,
        optional(text),
        "The agent that the log names for recalls of this process; MCP clients, hooks and keys are named.",
    )
    keep_recall_log_days: float = setting(
        30.0, number("days", ge=0, le=36_500), "Days to keep recalls that nobody judged; maintain removes older ones."
    )
    audit: bool = setting(
        False,
        flag,
        "Note each call: who, through which interface, the verb, namespace, ids and outcome, without texts; "
        "`semmem audit` exports it.",
    )
    keep_audit_days: float = setting(
        365.0, number("days", ge=1, le=36_500), "Days to keep the audit; maintain removes older entries."
    )
    keep_answers_days: float = setting(
        1.0,
        number("days", ge=0, le=365),
        "Days for which a repeated request with an Idempotency-Key gets its first answer.",
    )
    count_accesses: bool = setting(
        True, flag, "Count how often recalls return a memory, and when; written in the background after half a minute."
    )
    backup_before_migration: bool = setting(
        True, flag, "Back up a store that holds memories before its schema is migrated."
    )
    migrate: bool = setting(
        True,
        flag,
        "Migrate a store with an older schema when it is opened; false: refuse it until `semmem migrate` has run.",
    )
    credentials: Literal["warn", "redact", "refuse", "sensitive", "off"] = setting(
        "warn",
        one_of("warn", "redact", "refuse", "sensitive", "off"),
        "If a memory seems to hold a password or key: warn, redact (store it without), refuse, sensitive "
        "(store it as sensitive) or off. Hooks redact unless this is set.",
    )
    personal_namespace: str = setting(
        "personal", text, "The namespace that agents read besides that of their project; empty: none."
    )
    agent_min_confidence: float | Literal["auto"] = setting(
        "auto",
        _confidence,
        "Hooks and the tools of agents show no memory if the confidence of a recall is below this, from 0 "
        "(show every hit) to 1; auto: the floor measured for the embedder and the legs that answer.",
    )

    hook_process_s: float = setting(
        900.0,
        number("seconds", ge=0, le=86_400),
        "Seconds without a question after which the process that answers hooks ends; a hook starts it where "
        "no other process has the store open. 0: no hook starts one.",
    )
    hook_legs: Literal["all", "lexical"] = setting(
        "all",
        one_of("all", "lexical"),
        "Legs that a hook asks where no process answers it: all, or lexical, which loads no model.",
    )
    session_start: str = setting(
        "pinned,last,decided,elsewhere,latest",
        _session_parts,
        "Parts of the block with which a session begins: pinned memories; how the last session of this "
        "clone ended and what it left open (last); what was decided; how sessions in other clones ended since "
        "(elsewhere); the latest memories that are no turns. Empty: none.",
    )
    otel: bool = setting(False, flag, "Make OpenTelemetry spans and metrics; needs the extra otel.")
    log: Literal["none", "json"] = setting(
        "none", one_of("none", "json"), "json: one line of JSON for each call on standard error, without texts."
    )

    recipe: str | dict[str, Any] | None = setting(
        None,
        optional(_recipe),
        "Search settings: the name of a recipe, or a table (in the environment: JSON) with changes.",
    )
    config: Path | None = setting(
        None,
        optional(path),
        "The only settings file to read; empty: none; not set: your own, and that of the working folder.",
    )

    @property
    def session_parts(self) -> frozenset[str]:
        """The parts that ``session_start`` names."""
        return _parts(self.session_start)

    def __init__(self, **values: Any) -> None:
        given = {**_outside(values), **values}
        read = {name: _read(name, row, given, values) for name, row in self.model_fields.items()}
        vars(self).update(read, _sources={}, _files=())

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"Settings cannot be changed; load others with {name} as an argument.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and all(
            getattr(self, name) == getattr(other, name) for name in self.model_fields
        )

    __hash__ = None  # type: ignore[assignment]  # a recipe may be a table

    def __repr__(self) -> str:
        own = {name: vars(self)[name] for name, row in self.model_fields.items() if vars(self)[name] != row.default}
        return f"Settings({', '.join(f'{name}={_masked(name, value)}' for name, value in own.items())})"

    @classmethod
    def load(cls, **values: Any) -> Settings:
        """Return the settings, arguments over environment over files. Raises InvalidInput, in one sentence."""
        names = list(cls.model_fields)
        if unknown := sorted(set(values) - set(names)):
            raise InvalidInput(f"There is no setting {unknown[0]!r}; choose one of {', '.join(names)}.")
        for sentence in unknown_variables().values():
            _warn(sentence)
        environment = of_environment()
        files = _files(values.get("config", environment.get("config")), names)
        in_file = {name: file for file in files for name in file.values}
        settings = cls(**values)
        sources = {
            name: "argument" if name in values else "environment" if name in environment else str(in_file[name].path)
            for name in names
            if name in values or name in in_file or name in environment
        }
        vars(settings).update(_files=files, _sources=sources)
        return settings

    def where(self, name: str) -> str:
        """Return what set ``name``, as the beginning of a sentence: a file and line, a variable, or an argument."""
        if file := next((file for file in reversed(self.files) if str(file.path) == self.source(name)), None):
            return file.where(name)
        return f"SEMMEM_{name.upper()}" if self.source(name) == "environment" else f"The argument {name}"

    @property
    def files(self) -> tuple[SettingsFile, ...]:
        """The settings files that were read; the last one wins."""
        files: tuple[SettingsFile, ...] = vars(self)["_files"]
        return files

    def source(self, name: str) -> str:
        """Return where a setting's value came from: default, environment, a file's path, or argument."""
        return str(vars(self)["_sources"].get(name, "default"))


Settings.model_fields = {name: row for name, row in vars(Settings).items() if isinstance(row, Setting)}


def _read(name: str, row: Setting, given: Mapping[str, Any], arguments: Mapping[str, Any]) -> Any:
    """Return the value of a setting. Raises InvalidInput, which says where the value stands."""
    if name not in given:
        return row.default
    try:
        return row.read(given[name])
    except Wrong as error:
        must = str(error) if name in _SECRET else f"{error}, not {shown(given[name])}"
        raise InvalidInput(f"The setting {name}{_place(name, arguments)} must be {must}.") from None


def _place(name: str, arguments: Mapping[str, Any]) -> str:
    """Return where the value of a setting stands, in brackets; nothing for an argument."""
    environment = of_environment()
    if name in arguments:
        return ""
    if name in environment:
        return f" (SEMMEM_{name.upper()})"
    files = _files(arguments.get("config", environment.get("config")), list(Settings.model_fields))
    return next((f" ({file.where(name)})" for file in reversed(files) if name in file.values), "")


def _masked(name: str, value: Any) -> str:
    return "'***'" if name in _SECRET else shown(value)


def _outside(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what files and environment say and no argument does; each setting whole, so no two recipes are mixed."""
    environment = of_environment()
    config = arguments.get("config", environment.get("config"))
    values: dict[str, Any] = {}
    for file in _files(config, list(Settings.model_fields)):
        values |= file.values
    values |= environment
    if "config" in values:
        values["config"] = values["config"] or None
    return {name: value for name, value in values.items() if name not in arguments}


def certificate_file() -> str | None:
    """Return the file of certificates to accept that OpenSSL is told by SSL_CERT_FILE."""
    return os.environ.get("SSL_CERT_FILE") or None


def of_environment() -> dict[str, Any]:
    """Return the settings of the environment, in any case; an empty path is not set, a recipe may be JSON."""
    variables = {name.upper(): value for name, value in os.environ.items()}
    values: dict[str, Any] = {
        name: variables[f"SEMMEM_{name.upper()}"]
        for name in Settings.model_fields
        if f"SEMMEM_{name.upper()}" in variables
    }
    with suppress(KeyError, ValueError, RecursionError):  # a name of a recipe is no JSON
        values["recipe"] = json.loads(values["recipe"])
    return {name: value for name, value in values.items() if value is not None and (value or name not in PATHS)}


_OF_OTHERS = re.compile(r"SEMMEM_(?:EVAL_|TEST_|(?:\w+_)?(?:SERVICE_(?:HOST|PORT)|PORT_\d+_|PORT=(?:tcp|udp):))")
"""Variables that are no settings: those of the evaluation, the tests, and Kubernetes for services such as semmem-db."""


def unknown_variables() -> dict[str, str]:
    """Return the variables of the environment that are named as settings are and are none, each with a sentence."""
    fields = {f"SEMMEM_{name.upper()}" for name in Settings.model_fields}
    variables = {name.upper(): value for name, value in os.environ.items() if name.upper().startswith("SEMMEM_")}
    names = [one for one, value in variables.items() if one not in fields and not _OF_OTHERS.match(f"{one}={value}")]
    return {name: f"{name} is not a setting and is ignored; {_nearest(name, fields)}" for name in sorted(names)}


def _nearest(name: str, candidates: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name[7:], [one[7:] for one in candidates], 1)
    return f"did you mean SEMMEM_{near[0]}?" if near else "`semmem settings` lists the settings."


@cache
def _warn(sentence: str) -> None:
    """Warn, of each thing once a process."""
    warnings.warn(sentence, stacklevel=4)


def _files(config: Any, names: list[str]) -> tuple[SettingsFile, ...]:
    """Return the existing settings files, lowest precedence first. Raises InvalidInput where one cannot be read."""
    if config is not None:
        text = str(config)
        return (read_settings_file(expanded(text).absolute(), names),) if text else ()
    own = users_file()
    here = Path(NAME).absolute()
    files = [(path, path == own) for path in dict.fromkeys((own, here)) if path is not None and path.is_file()]
    return tuple(read_settings_file(path, names, trusted=trusted) for path, trusted in files)


_SECRET = frozenset(
    ("embedder_key", "embedder_url", "key", "llm_key", "llm_url", "read_url", "reranker_key", "reranker_url", "url")
)
"""The settings whose values stand in no error: keys, and addresses, in which a password may stand."""

NAME = "semmem.toml"

ANYWHERE = frozenset(
    {
        "embedder", "extractor", "idle_stop_s", "language", "llm_model", "llm_timeout_s",
        "on_contradiction", "pool_size", "recipe",
        "start_timeout_s",
    }
)  # fmt: skip
"""The settings that a file of the working folder may contain; all others have to be set elsewhere."""

PATHS = ("home", "llm_cache", "triples")

_FOLDERS = ("embedded", "sqlite")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file: its values by name, and its text, to find the line of a name; keys stand in no repr."""

    path: Path
    values: Mapping[str, Any] = field(repr=False)
    text: str = field(repr=False)

    def line(self, name: str) -> int | None:
        """Return the line, from 1, that sets ``name``, such as ``pool_size`` or ``recipe.weights``."""
        key = re.escape(name.rpartition(".")[2])
        pattern = re.compile(rf"""\s*(?:\[+\s*(?:[\w.-]+\.)?|(?:[\w-]+\s*\.\s*)*)["']?{key}["']?\s*[\].=]""")
        return next((number for number, line in enumerate(self.text.splitlines(), 1) if pattern.match(line)), None)

    def where(self, name: str) -> str:
        """Return the file and line that set ``name``, as the beginning of a sentence."""
        line = self.line(name)
        return f"{self.path}, line {line}" if line else str(self.path)


def users_file() -> Path | None:
    """Return the path of the user's own file, which need not exist; None for a user without a home folder."""
    folder = settings_folder()
    return None if folder is None else folder / NAME


def read_settings_file(path: Path, names: Collection[str], *, trusted: bool = True) -> SettingsFile:
    """Read the settings in ``path``; relative folders in it are relative to the file's folder.

    A file that is not ``trusted`` may contain only what ``ANYWHERE`` lists. Raises InvalidInput with the file and,
    where there is one, the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not TOML: {str(error).rstrip('.')}.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}); convert it.") from None
    except OSError as error:
        raise InvalidInput(f"The settings file {path} cannot be read: {error.strerror}.") from None
    file = SettingsFile(path, values, text)
    for name in values:
        if name not in names:
            raise InvalidInput(f"{file.where(name)}: there is no setting {name!r}; choose one of {', '.join(names)}.")
        if name == "config":
            raise InvalidInput(
                f"{file.where(name)}: config chooses the settings file, so it cannot be "
                f"set inside one; remove the line."
            )
        if not trusted and (name not in ANYWHERE or _sends_or_loads(name, values[name])):
            what = name if name not in ANYWHERE else f"{name} = {_sends_or_loads(name, values[name])}"
            raise InvalidInput(
                f"{file.where(name)}: {what} cannot be set by a settings file of the working folder, "
                f"because anyone may have written that file; "
                f"put it into your own settings file, or trust this one with SEMMEM_CONFIG={NAME}."
            )
    return SettingsFile(path, {name: _placed(name, value, path.parent) for name, value in values.items()}, text)


def _sends_or_loads(name: str, value: Any) -> str | None:
    """Return which value of an allowed setting sends texts to an endpoint or loads a named model."""
    if (name, value) in (("extractor", "llm"), ("embedder", "endpoint")):
        return f'"{value}"'
    rerank = value.get("rerank") if name == "recipe" and isinstance(value, Mapping) else None
    if not isinstance(rerank, str) or not rerank.startswith(("cross_encoder", "endpoint")):
        return None
    return f'{{rerank = "{"endpoint" if rerank.startswith("endpoint") else "cross_encoder:…"}"}}'


def _placed(name: str, value: Any, folder: Path) -> Any:
    """Return a path relative to the folder of the file; other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    if name in PATHS:
        return str(folder / expanded(value))
    scheme, colon, rest = value.strip().partition(":")
    if name == "url" and colon and scheme.lower() in _FOLDERS and rest and not rest.startswith(("/", "~", ":memory:")):
        return f"{scheme}://{(folder / rest).absolute()}"
    return value
