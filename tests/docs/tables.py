"""The tables of the documents that are made from the code: ``make docs`` writes them, a test compares them.

A table stands between two comments, ``<!-- NAME: made by make docs -->`` and ``<!-- end of NAME -->``.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from eval.best_leg import FEWEST
from eval.reports.verdicts import SUMMED, summed
from semmem import RECIPES, Semmem
from semmem.client.routes import ROUTES, Route
from semmem.config import Settings
from semmem.interfaces.cli.app import app
from semmem.interfaces.coding_agents.clients import CLIENTS
from semmem.interfaces.http.arguments import arguments_of, right_of
from semmem.interfaces.wire import answer
from semmem.model import errors
from semmem.model.memory_fields import FIELDS, FILTERS
from semmem.model.recipe import SETTINGS
from semmem.read.overrides import settings_in
from tests.docs import encoders, peers

__all__ = ["DOCUMENTS", "written"]

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")))


def first_line(text: str | None) -> str:
    """Return the first sentence line of a docstring as Markdown, without its full stop."""
    line = inspect.cleandoc(text or "").split("\n")[0].rstrip(".")
    return line.replace("``", "`").replace("|", "\\|")


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join([f"| {' | '.join(row)} |".replace("|  |", "| |") for row in (head, *rows)]).replace(
        "\n", f"\n|{'---|' * len(head)}\n", 1
    )


def verbs() -> str:
    """Return the verbs of a Semmem in Python, in the order of their names."""
    names = sorted(name for name in dir(Semmem) if not name.startswith("_") and callable(getattr(Semmem, name)))
    rows = ((f"`{name}({_taken(getattr(Semmem, name))})`", first_line(getattr(Semmem, name).__doc__)) for name in names)
    return table(("verb", "what it does"), rows)


def _taken(verb: Callable[..., Any]) -> str:
    """Return the arguments that may stand without a name, and dots for the others."""
    own = [p for p in inspect.signature(verb).parameters.values() if p.name != "self"]
    plain = [p.name if p.kind != p.VAR_POSITIONAL else f"*{p.name}" for p in own if p.kind in (1, 2)]
    return ", ".join(plain + ["…"] * any(p.kind in (3, 4) for p in own))


def signatures() -> str:
    """Return every verb of a Semmem with its arguments and its whole docstring, in the order of their names."""
    names = sorted(name for name in dir(Semmem) if not name.startswith("_") and callable(getattr(Semmem, name)))
    return "\n\n".join(_signature(name, getattr(Semmem, name)) for name in names)


def _signature(name: str, verb: Callable[..., Any]) -> str:
    """Return one verb as a heading, its arguments and its docstring."""
    own = [p for p in inspect.signature(verb).parameters.values() if p.name != "self"]
    words = inspect.cleandoc(verb.__doc__ or "").replace("``", "`")
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in own]
    return f"### {name}\n\n```text\n{_wrapped(f'mem.{name}', plain)}\n```\n\n{words}"


def _wrapped(name: str, arguments: Sequence[inspect.Parameter]) -> str:
    """Return a call with its arguments, broken into lines of at most 100 characters."""
    keyword = next((n for n, p in enumerate(arguments) if p.kind is inspect.Parameter.KEYWORD_ONLY), None)
    words = [str(p) for p in arguments]
    if keyword is not None and not any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in arguments):
        words.insert(keyword, "*")
    lines = textwrap.wrap(f"({', '.join(words)})", 88 - len(name), break_on_hyphens=False)
    return name + f"\n{' ' * (len(name) + 1)}".join(lines)


def commands() -> str:
    """Return the commands of the command line, in the order of ``semmem --help``."""
    return table(("command", "what it does"), _commands(typer.main.get_command(app), "semmem"))


def _commands(command: Any, name: str) -> Iterator[Sequence[str]]:
    if command.params is not None and (
        not hasattr(command, "commands") or getattr(command, "invoke_without_command", 0)
    ):
        yield f"`{' '.join([name, *_arguments(command)])}`", first_line(command.help)
    for inner, one in getattr(command, "commands", {}).items():
        yield from _commands(one, f"{name} {inner}")


def _arguments(command: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    names = [(p.metavar or p.name.upper()).strip("[].") for p in arguments]
    return [name if p.required else f"[{name}]" for p, name in zip(arguments, names, strict=True)]


def settings() -> str:
    """Return the settings of semmem.toml, the environment and ``connect``."""
    rows = (
        (f"`{name}`<br>`SEMMEM_{name.upper()}`", first_line(field.description), _plain(field.default))
        for name, field in Settings.model_fields.items()
    )
    return table(("setting, variable of the environment", "meaning", "default"), rows)


def recipe_settings() -> str:
    """Return the settings of a recipe, and what the recipe ``default`` has."""
    usual = settings_in(RECIPES["default"])

    def value(name: str) -> str:
        if name.endswith(".LEG"):
            return _plain(getattr(RECIPES["default"], name.removesuffix(".LEG")))
        return "on" if name not in usual else _plain(usual[name])

    rows = ((f"`{r.name}`", r.values.words, r.meaning, value(r.name)) for r in SETTINGS.values())
    return table(("setting", "values", "meaning", "in `default`"), rows)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        each = {name: f"({_plain(one)})" if isinstance(one, Mapping) else _plain(one) for name, one in value.items()}
        return ", ".join(f"{name} {one}" for name, one in each.items()) or "none"
    if value is None or value == () or value == "":
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, int | float) else f"`{value}`"


def error_classes() -> str:
    """Return every error with what its message says by itself, its parent, its exit code and its HTTP status."""

    def rows() -> Iterator[Sequence[str]]:
        kinds = sorted(
            (getattr(errors, name) for name in errors.__all__), key=lambda c: (answer(c()).exit_code, c.__name__)
        )
        for kind in kinds:
            told, parent = answer(kind()), kind.__mro__[1]
            of = f"`{parent.__name__}`" if parent in (*kinds,) and parent is not errors.SemmemError else ""
            yield f"`{kind.__name__}`", of, first_line(kind.__doc__), str(told.http_status), str(told.exit_code)

    return table(("class", "is also a", "when, and what to do", "HTTP status", "exit code"), rows())


def floors() -> str:
    """Return, for each setting that was measured, the answers kept and the unrelated prompts dropped by each floor."""
    head: list[str] = []
    rows: list[list[str]] = []
    for embedder, setting, words in (
        ("minilm", "all legs", "MiniLM"),
        ("minilm", "without dense", "without dense"),
        ("hashing", "all legs", "hashing"),
    ):
        result = json.loads((ROOT / "eval" / "results" / f"floors-{embedder}.json").read_text(encoding="utf-8"))
        sets = result["in sample"][setting]["sets"].values()
        head = ["means of eight sets, floor", *(f"{floor:g}".lstrip("0") for floor in result["floors"])]
        for kind, what in (("answered", "answers kept"), ("unrelated", "unrelated prompts dropped")):
            of_kind = [one[kind] for one in sets if kind in one]
            means = [sum(each) / len(of_kind) for each in zip(*of_kind, strict=True)]
            rows.append([f"{words}: {what}", *(f"{mean:.2f}".removeprefix("0") for mean in means)])
    return table(head, iter(rows))


def finds() -> str:
    """Return what each leg found on each set, how often arithmetic guarantees it a place, and what became of it."""

    def rows() -> Iterator[Sequence[str]]:
        for path in sorted((ROOT / "eval" / "results").glob("*-legs.json")):
            result = json.loads(path.read_text(encoding="utf-8"))
            for c in result["comparisons"]:
                if (c["group"], c["metric"]) == ("headline", "R@10"):
                    yield result["corpus"]["name"], c["leg"], *summed(c)

    return table(["data set", "leg", *(name.replace("first k", "first ten") for name in SUMMED)], rows())


def memory_fields() -> str:
    """Return the fields that a memory may be given."""
    rows = ((f"`{name}`", row.kind.words, row.meaning.rstrip(".")) for name, row in FIELDS.items())
    return table(("field", "values", "what it is"), rows)


def filters() -> str:
    """Return the filters of a call, and the field that each compares."""
    rows = ((f"`{name}`", f"`{row.field}`", row.meaning.rstrip(".")) for name, row in FILTERS.items())
    return table(("filter", "field", "what it keeps"), rows)


KNOWN = {
    ("locomo3", "all"): "LoCoMo, 3 conversations, all categories",
    ("locomo3", "headline"): "LoCoMo, categories 1 to 4",
    ("locomo3", "1 multi-hop"): "LoCoMo, category 1, multi-hop",
    ("longmemeval_mini", "headline"): "LongMemEval, oracle sessions in one pool",
    ("musique100", "headline"): "MuSiQue, 1,890 passages",
    ("hotpotqa100", "headline"): "HotpotQA, 994 passages",
}
"""Sets that others publish numbers of, by set and stratum of eval/results/levels.json."""


def _levels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "eval" / "results" / "levels.json").read_text(encoding="utf-8"))[
        "rows"
    ]
    return found


def levels() -> str:
    """Return how much of what answers is among the first hits, on sets that others publish numbers of."""
    found = _levels()
    metrics = {
        "Success@5": "any, first 5",
        "R@5": "share, first 5",
        "Success@10": "any, first 10",
        "R@10": "share, first 10",
    }

    def number(value: float) -> str:
        return f"{value:.3f}".removeprefix("0")

    def cell(row: Mapping[str, Any]) -> str:
        low, high = row["interval"] or (0, 0)
        return number(row["value"]) + (f" [{number(low)}, {number(high)}]" if low < high else "")

    def rows() -> Iterator[Sequence[str]]:
        for (data, stratum), name in KNOWN.items():
            of = {r["metric"]: r for r in found if (r["data"], r["stratum"]) == (data, stratum)}
            yield name, str(of["R@5"]["questions"]), *(cell(of[metric]) for metric in metrics)

    return table(["set", "questions", *metrics.values()], rows())


def readme_levels() -> str:
    """Return the same for the README: shares of the first ten, and what is found of them at five."""
    metrics = {"Success@5": "any of the wanted in 5", "R@5": "share in 5", "R@10": "share in 10"}

    def rows() -> Iterator[Sequence[str]]:
        for known, name in KNOWN.items():
            of = {r["metric"]: r for r in _levels() if (r["data"], r["stratum"]) == known}
            yield name, str(of["R@5"]["questions"]), *(encoders.share(of[metric]) for metric in metrics)

    return table(["", "questions", *metrics.values()], rows())


def readme_encoders() -> str:
    """Return recall@10 of each embedder by set, its costs, and which to choose."""
    head, *lines = encoders.rows(["R@10"], intervals=True)
    return table(["recall@10", *head[1:]], iter(lines))


def all_encoders() -> str:
    """Return three metrics of each embedder by set, and all its costs."""
    head, *lines = encoders.rows(["R@5", "R@10", "nDCG@10"], intervals=False)
    each = encoders.ENCODERS.values()
    more = [[str(one.passage_ms), str(one.dimensions), str(one.max_tokens)] for one in each]
    costly = ["ms a passage", "dimensions", "longest text in tokens"]
    lines = [[*line[:5], *extra, *line[5:-1]] for line, extra in zip(lines, more, strict=True)]
    return table([*head[:5], *costly, *head[5:-1]], iter(lines))


def best_legs() -> str:
    """Return the default beside its best leg in each stratum of 20 questions or more, with each encoder."""
    cells = {"R@5": "R@5 (best leg)", "nDCG@10": "nDCG@10 (best leg)"}

    def cell(row: Mapping[str, Any]) -> str:
        text = f"{row['value']:.3f} ({row['best']} {row['legs'][row['best']]:.3f})".replace("0.", ".")
        questions = f"; ahead on {row['ahead']}, behind on {row['behind']}"
        return f"**{text.removesuffix(')')}{questions})**" if row["loses"] else text

    def rows() -> Iterator[Sequence[str]]:
        for encoder, result in (("minilm", "minilm"), ("mpnet", "mpnet"), ("mpnet", "mpnet-multihop")):
            path = ROOT / "eval" / "results" / f"best-leg-{result}.json"
            strata: dict[tuple[str, str, int], dict[str, str]] = {}
            for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
                if row["metric"] in cells and row["questions"] >= FEWEST:
                    strata.setdefault((row["data"], row["stratum"], row["questions"]), {})[row["metric"]] = cell(row)
            for (data, stratum, questions), of in strata.items():
                yield data, encoder, stratum, str(questions), *(of[metric] for metric in cells)

    return table(["set", "encoder", "stratum", "questions", *cells.values()], rows())


def company() -> str:
    """Return R@5 of the default and of each leg alone beside foreign memories, as eval/results/company.json has it."""
    found = json.loads((ROOT / "eval" / "results" / "company.json").read_text(encoding="utf-8"))["sets"]
    legs = ("", *(f", {leg} alone" for leg in ("lexical", "dense", "graph")))

    def cell(row: Mapping[str, Any]) -> str:
        if (less := row.get("R@5 difference")) is None:
            return f"{row['R@5']:.3f}".removeprefix("0")
        return f"{less['delta']:+.3f} [{less['low']:+.3f}, {less['high']:+.3f}]".replace("0.", ".")

    def rows() -> Iterator[Sequence[str]]:
        for data, of in found.items():
            by_name = {row["row"]: row for row in of}
            for name in ("as they are", *(n for n in by_name if n.endswith("foreign memories beside"))):
                shown = name.removesuffix(" beside")
                yield data, shown, *(cell(by_name[name + leg]) for leg in legs)

    return table(["set", "beside it", "`default`", "lexical", "dense", "graph"], rows())


def hooks() -> str:
    """Return how long a prompt waits for its hook, as eval/results/hooks.json has it."""
    found = json.loads((ROOT / "eval" / "results" / "hooks.json").read_text(encoding="utf-8"))["rows"]
    columns = {
        "calls": "calls", "median": "p50 ms", "95th percentile": "p95 ms", "99th": "p99 ms",
        "processor, median": "processor p50 ms", "in that of importing numpy": "of numpy",
    }  # fmt: skip

    def cell(row: Mapping[str, Any], name: str) -> str:
        return f"{row[name]:,} ms" if name.endswith("ms") else f"{row[name]}"

    rows = ([name, *(cell(row, column) for column in columns.values())] for name, row in found.items())
    return table(["a prompt waits, 200 memories", *columns], rows)


def rights() -> str:
    """Return what a key of each right may do at a server, beside what those before it may."""
    grown = {
        (right_of(route, {name: True}), f"{_named(route)} with `{name}`")
        for route in ROUTES
        for name in ("everything", "reveal", "sensitive")
        if name in arguments_of(route) and right_of(route, {name: True}) != route.right
    }
    plain = {(route.right, _named(route)) for route in ROUTES}

    def rows() -> Iterator[Sequence[str]]:
        for right in ("read", "write", "admin"):
            option = "" if right == "read" else f"`--{right}`"
            yield f"`{right}`", option, ", ".join(sorted(verb for of, verb in plain | grown if of == right))

    return table(("right", "option of `semmem keys add`", "verbs"), rows())


def clients() -> str:
    """Return the clients that `semmem install` knows, with their files and hooks."""
    rows = (
        (
            f"[{one.title}]({one.page})",
            f"`semmem install {one.name}`",
            f"`~/{one.servers}`".replace("~/…", "…"),
            "none" if one.project is None else f"`{one.project}`",
            "none" if one.hooks is None else ", ".join(one.hooks.events.values()),
        )
        for one in CLIENTS.values()
    )
    return table(("client", "command", "its file", "with `--project`", "hooks"), rows)


def _named(route: Route) -> str:
    return f"`{route.name.removesuffix('_by_url')}`"


TABLES: Mapping[str, Callable[[], str]] = {
    "verbs": verbs,
    "signatures": signatures,
    "commands": commands,
    "settings": settings,
    "errors": error_classes,
    "settings of a recipe": recipe_settings,
    "fields": memory_fields,
    "filters": filters,
    "rights": rights,
    "clients": clients,
    "peers": peers.everywhere,
    "readme peers": peers.on_three,
    "floors": floors,
    "finds": finds,
    "levels": levels,
    "readme levels": readme_levels,
    "readme encoders": readme_encoders,
    "encoders": all_encoders,
    "best legs": best_legs,
    "company": company,
    "hooks": hooks,
}


def written(text: str) -> str:
    """Return a document with each of its tables as the code has it now."""
    for name, made in TABLES.items():
        begin, end = f"<!-- {name}: made by make docs -->\n", f"\n<!-- end of {name} -->"
        head, mark, rest = text.partition(begin)
        if mark:
            after = f"\n{rest}".partition(end)
            text = head + begin + made() + end + (after[2] if after[1] else f"\n{rest}")
    return text


if __name__ == "__main__":
    for document in DOCUMENTS:
        path = ROOT / document
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
