"""Write a result as Markdown for a decision record: the verdict first, then its evidence; no text of a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.experiments.ingredients import is_of_ingredients, worth
from eval.reports.verdicts import FOUND, found_rows
from eval.statistics.significance import FEW
from eval.statistics.verdict import bounds, interval, kind_of
from semmem.model.reports import counted

__all__ = ["formulas", "headline", "leg_only", "markdown", "plain_sentence"]

_SHOWN = ("R@1", "R@2", "R@5", "R@10", "R@20", "AllGold@5", "AllGold@10", "nDCG@10", "RR@10", "Success@5",
          "R<=500tok", "R<=1000tok", "R<=2000tok")  # fmt: skip


def headline(result: Mapping[str, Any]) -> str:
    """Return the result in one plain sentence: first metric, all questions, the first comparison.

    The comparison is chosen before any number is known: the largest of several would be biased upwards. The history
    ends with the evaluation that had reach, and so does its headline. The verdicts on the others are counted.
    """
    first = [c for c in result["comparisons"] if c["group"] == "headline" and c["metric"] == result["metrics"][0]]
    if not first:
        return f"{result['corpus']['name']}: measured, nothing compared."
    studied = [c for c in first if not c.get("control")]
    chosen = studied[-1] if str(result["command"]).startswith("history") else studied[0]
    sentence = plain_sentence(chosen, result)
    if len(first) > 1:
        kinds = [kind_of(c) for c in first]
        counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
        sentence += f" Of {len(first)} comparisons: {', '.join(f'{n} {kind}' for kind, n in counts.items())}."
    standing = result["corpus"].get("standing")
    notes = [f"{standing[:1].upper()}{standing[1:]}."] if standing else []
    if untuned := formulas(result, [chosen["base"], chosen["other"]]):
        notes.append(f"Not tuned as rrf was: {', '.join(untuned)}.")
    if result.get("environment", {}).get("embedder") == "hashing":
        notes.append("The dense leg had vectors of the hashing embedder, which knows no meaning.")
    return sentence + (f" ({' '.join(notes)})" if notes else "")


def formulas(result: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Return the formulas of the named conditions that nothing was tuned for: all but weighted rank fusion.

    Of another system's runs it is not known what was tuned.
    """
    if result["corpus"].get("format") == "runs":
        return []
    used = {str(result["conditions"][name]["recipe"].get("fusion", "rrf")) for name in names}
    return sorted(used - {"rrf"})


def plain_sentence(comparison: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return one comparison in everyday words; a refused one says what could not be asked."""
    what = _subject(comparison, result)
    where = f"On {result['corpus']['name']}"
    if comparison["group"] != "headline":
        where += f" ({comparison['group']})"
    kind, metric = kind_of(comparison), in_words(comparison["metric"])
    if kind == "ruled out":
        finds, k = comparison.get("finds") or {}, comparison["metric"].partition("@")[2]
        by = "votes and seeds" if finds.get("seeds") else "votes"
        sentence = f"{where}, arithmetic keeps all finds of {what} out of the first {k}, so they cannot be judged."
        if finds and not finds["parts"]:
            sentence = f"{where}, {what} found nothing that is not in a list without it, so no find can be judged."
        if (paired := comparison.get("reranking")) is None:
            return sentence
        return f"{sentence} By its {by} it changes {metric} by {paired['delta']:+.3f}{interval(paired)}."
    if kind == "not evaluable":
        return f"{where}, {what} cannot be judged: {comparison['sentence'].removeprefix('not evaluable: ')}."
    paired = comparison["paired"]
    if kind == "described only":
        each = ", ".join(f"{delta:+.3f}" for delta in paired["each"])
        unit = _UNITS.get(result.get("draws", {}).get("unit"), "unit")
        return (
            f"{where}, {metric} is {paired['base']:.3f} without and {paired['mean']:.3f} with {what} "
            f"({paired['delta']:+.3f}{f'; by {unit}: {each}' if each else interval(paired)}); "
            "they are too few to say anything of others."
        )
    if kind == "not separated":
        low, high = bounds(paired)
        about = " (approximate)" if paired["units"] < FEW else ""
        return (
            f"{where}, {what} is not separated from no effect on {metric}: "
            f"{paired['delta']:+.3f}{interval(paired)}{about} over {counted(paired['n'], 'question')}; "
            f"the true difference may lie between {low:+.3f} and {high:+.3f}."
        )
    verb = "raises" if kind == "helps" else "lowers"
    about = "approximate " if paired["units"] < FEW else ""
    spread = "" if paired["low"] is None else f", {about}95 % interval {paired['low']:+.3f} to {paired['high']:+.3f}"
    return (
        f"{where}, {what} {verb} {metric} from {paired['base']:.3f} to {paired['mean']:.3f} "
        f"({paired['delta']:+.3f}{spread}, {counted(paired['n'], 'question')})."
    )


def _subject(comparison: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    leg, other, base = comparison["leg"], comparison["other"], comparison["base"]
    if is_of_ingredients(result) and not leg:
        return f"“{comparison['name']}”"
    if leg and leg in result["conditions"][other]["recipe"]["weights"]:
        return f"the {leg} leg {'with' if comparison['values'] else 'in'} {other}"
    return f"{other} instead of {base}"


_UNITS = {"conversation": "conversation", "document": "cluster of documents", "question": "question"}
_IN_WORDS = {
    "R": "the share of the wanted memories among the first {k} (R@{k})",
    "AllGold": "the share of questions with every wanted memory among the first {k} (AllGold@{k})",
    "nDCG": "the quality of the order of the first {k} (nDCG@{k})",
    "RR": "how far up the first wanted memory stands (RR@{k})",
    "Success": "the share of questions with a wanted memory among the first {k} (Success@{k})",
}


def leg_only(comparison: Mapping[str, Any]) -> str:
    """Return how many memories that only the studied leg returned are in the first k, and how many of them are gold."""
    turnover = comparison["turnover"]
    if not comparison["leg"]:
        return ""
    return (
        f"{turnover['leg-only']} ({turnover['leg-only gold']})"
        if "leg-only gold" in turnover
        else str(turnover["leg-only"])
    )


def in_words(metric: str) -> str:
    """Return what a metric measures, for somebody who does not know its name."""
    kind, _, k = metric.partition("@")
    return _IN_WORDS.get(kind, metric).format(k=k)


def markdown(result: Mapping[str, Any]) -> str:
    """Return the whole summary."""
    corpus, env = result["corpus"], result["environment"]
    parts = [f"# {corpus['name']}: {result['command'] or 'experiment'}", "", f"**{headline(result)}**", ""]
    by_metric = [] if is_of_ingredients(result) else result["metrics"]
    if is_of_ingredients(result):
        parts += [worth(result), ""]
    for metric in by_metric:
        parts += [f"## {metric}", "", *_verdicts([c for c in result["comparisons"] if c["metric"] == metric]), ""]
    if of_legs := _found(result["comparisons"]):
        parts += ["## What each leg found", "", *of_legs, ""]
    parts += ["## Measures, all questions of the headline", "", *_measures(result), ""]
    parts += ["## Before the numbers", "", *_preflight(result), ""]
    if live := _live(result):
        parts += ["## A witness through the real store", "", *live, ""]
    if any(condition["ceilings"] for condition in result["conditions"].values()):
        parts += ["## Ceilings of recall", "", *_ceilings(result), ""]
    if result["linkage"]:
        parts += ["## Are the gold memories of a question tied in the graph?", "", *_linkage(result["linkage"]), ""]
    if result["cost"]:
        parts += ["## Cost", "", *_cost(result["cost"]), ""]
    notes = "; ".join(f"{what}: {n}" for what, n in corpus["notes"].items())
    parts += [
        "## What was run",
        "",
        f"{counted(corpus['memories'], 'memory')} in {counted(corpus['namespaces'], 'namespace')}, "
        f"{counted(corpus['queries'], 'question')}, "
        f"{corpus['headline']} in the headline{'; ' + notes if notes else ''}. sha256 `{corpus['sha256']}`. "
        f"{_standing(result)}",
        "",
        f"Python {env['python']}, {env['machine']}, embedder {env['embedder']}, seed {env['seed']}, commit "
        f"{env['commit']}; {', '.join(f'{n} {v}' for n, v in env['packages'].items())}.{_checked(result)}",
        "",
    ]
    return "\n".join(parts)


def _checked(result: Mapping[str, Any]) -> str:
    lists = result.get("fast path agreed with recall on")
    return "" if lists is None else f" The fast path agreed with recall on {lists} lists."


def _standing(result: Mapping[str, Any]) -> str:
    """Return how the set stands to what was tuned, what one draw was, and what was not tuned."""
    standing, draws = result["corpus"].get("standing"), result.get("draws")
    if standing is None or draws is None:
        return ""
    sentence = f"Of the project: {standing}. Drawn and flipped: {draws['units']} {_UNITS[draws['unit']]}s."
    if untuned := formulas(result, result["conditions"]):
        sentence += (
            " Weights, rank constants and the walk were chosen under rrf, the formula of `default`; "
            f"{', '.join(untuned)} got no such effort: their weights are equal, given, or those of rrf."
        )
    if str(result["command"]).startswith("run"):
        sentence += " Recipes of one leg, and those of other systems, are as they are published."
    return sentence


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table; numbers to three places."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cell(c) for c in row) + " |" for row in rows]


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value).replace("|", "\\|")


def _verdicts(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = []
    for c in comparisons:
        turnover = c["turnover"]
        row = [c["name"], c["group"], c["sentence"]]
        if c["verdict"] == "not evaluable" or "boosted in gold" not in turnover:
            # nothing that could be read as a result stands beside a refusal
            rows.append([*row, "", "", ""])
            continue
        rows.append(
            [
                *row,
                leg_only(c),
                f"{turnover['boosted in']} ({turnover['boosted in gold']})",
                f"{turnover['demoted out']} ({turnover['demoted out gold']})",
            ]
        )
    return table(["comparison", "questions", "verdict", "found (gold)", "others in (gold)", "out (gold)"], rows)


def _found(comparisons: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the studied legs found over all questions of the headline, at each cut-off once."""
    once = {(c["name"], c["finds"]["k"]): c for c in comparisons if c["group"] == "headline" and c.get("finds")}
    rows = [[name, k, *row] for (name, k), c in once.items() for row in found_rows(c)]
    return table(["comparison", "k", *FOUND], rows) if rows else []


def _measures(result: Mapping[str, Any]) -> list[str]:
    rows = []
    every = {n: c["measures"] for n, c in result["conditions"].items()} | dict(result["baselines"])
    for name, groups in every.items():
        means = groups.get("headline", {})
        rows.append([name, *(means.get(m) for m in _SHOWN)])
    return table(["condition", *_SHOWN], rows)


def _preflight(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, condition in result["conditions"].items():
        before = condition["preflight"]
        for regime, share in before["regimes"].items():
            for leg, facts in before["legs"].items():
                reach = [before["reach"][k][regime][leg] for k in ("5", "10", "20")]
                lists = [f"{facts['empty']:.0%}", facts["depth"], facts["memories only it returned"]]
                rows.append([name, f"{regime} ({share})", leg, *reach, *lists])
    head = [
        "condition",
        "regime (questions)",
        "leg",
        "reach at 5",
        "at 10",
        "at 20",
        "empty",
        "depth",
        "only it returned",
    ]
    return table(head, rows[:60])


def _live(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, condition in result["conditions"].items():
        for one in condition["preflight"].get("live witness", ()):
            if "not probed" in one:
                rows.append([name, one["leg"], "", one["k"], "", f"not probed: {one['not probed']}"])
                continue
            end = f"came back at place {one['place']}" if one["returned"] else f"dropped at “{one['dropped']}”"
            rows.append([name, one["leg"], one["regime"], one["k"], one["class"], end])
    return table(["condition", "leg", "regime", "k", "by arithmetic", "a memory only it found"], rows) if rows else []


def _ceilings(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, condition in result["conditions"].items():
        for k, ceiling in condition["ceilings"].items():
            weights = ", ".join(f"{leg} {w:g}" for leg, w in ceiling["weights"].items())
            row = [ceiling["union"], ceiling["undominated"], ceiling["oracle"], ceiling["single"]]
            rows.append([name, k, *row, weights, ceiling["as_set"]])
    head = ["condition", "k", "in any list", "not dominated", "oracle per question", "best one setting", "its weights"]
    return table([*head, "as set, bare sum"], rows)


def _linkage(linkage: Mapping[str, Any]) -> list[str]:
    rows = [
        [
            group,
            found["questions"],
            found["pairs"],
            found["share"],
            found["named"],
            found["concept"],
            found["neighbour"],
            found["chance"],
        ]
        for group, found in linkage.items()
        if found["pairs"]
    ]
    head = [
        "questions",
        "with 2 or more",
        "pairs",
        "linked",
        "by a name",
        "by a concept",
        "neighbours",
        "linked by chance",
    ]
    return table(head, rows)


def _cost(cost: Mapping[str, Any]) -> list[str]:
    rows: list[list[Any]] = [
        [f"recall, {stage}, ms p50 / p95", f"{ms['p50']} / {ms['p95']}"] for stage, ms in cost["recall ms"].items()
    ]
    if "ingest" in cost:
        rows.append(["memories per second", cost["ingest"]["memories per second"]])
    rows.append(["store, MB", round(cost["store bytes"] / 1e6, 1)])
    rows.append(["peak memory, MB", round(cost["peak memory bytes"] / 1e6)])
    return table(["what", "how much"], rows)
