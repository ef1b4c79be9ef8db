"""Write the result of a mixed load as Markdown, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eval.bench.mixed.systems import SYSTEMS
from eval.bench.report import head, row
from eval.reports.charts import panels, svg

__all__ = ["markdown", "picture"]

_COLOURS = ("#2b5d8a", "#7fb0d8", "#f58518", "#54a24b", "#b279a2", "#9d755d")
_SHARES = ("p50", "p95", "p99")


def markdown(result: Mapping[str, Any]) -> str:
    """Return what each system did under the load, one row each."""
    plan = result["plan"]
    out = [
        "# A mixed load",
        "",
        f"semmem {result['versions']['semmem']}, {result['machine']}, {result['at']}: {plan['memories']:,} memories in "
        f"{plan['namespaces']:,} namespaces, {plan['readers']} readers, {plan['writers']} writers of at most "
        f"{plan['pace']:g} writes a second each, {plan['seconds']:g} s{_in_turns(plan)}, "
        f"upkeep every {plan['upkeep_s']:g} s, vectors given. Each system alone, in a process of its own. "
        "Absolute times are those of this machine.",
        "",
        *head(
            ["", "recall p50 / p95 / p99, ms", "recalls/s", "found", "write p50 / p95 / p99, ms", "writes/s", "errors"]
        ),
    ]
    measured = {name: one["load"] for name, one in result["systems"].items() if "load" in one}
    for name, load in measured.items():
        cells = [name, _times(load["recall"]), f"{load['recalls_per_s']:g}", _number(load["found"])]
        failed = load["errors_in_all"] + sum(load["degraded"].values())
        out.append(row([*cells, _times(load["write"]), f"{load['writes_per_s']:g}", str(failed)]))
    out += [
        "",
        *head(
            [
                "",
                "filled, memories/s",
                "MiB, filled",
                "MiB, after",
                "MiB resident, start / end",
                "grown",
                "processor, s",
            ]
        ),
    ]
    for name, load in measured.items():
        fill, memory, used = result["systems"][name]["fill"], load["memory"], load["processor_s"]
        resident = " / ".join(_resident(memory[place]) for place in (1, -1))
        sizes = [f"{one['bytes'] / 2**20:.0f}" for one in (fill, load)]
        rate, processor = f"{fill['memories_per_s']:g}", f"{used['process'] + used['server']:g}"
        out.append(row([name, rate, *sizes, resident, _number(load["grown_mb"]), processor]))
    out.append("")
    for name, load in measured.items():
        out.append(f"- {name}: {SYSTEMS[name].note}. {_upkeep(load)}{_machine(load)}{_turns(load)}")
    out += [f"- {one['skipped']}" for one in result["systems"].values() if "skipped" in one]
    for name, load in measured.items():
        failed = {**load["errors"], **{f"degraded, {why}": times for why, times in load["degraded"].items()}}
        out += [f"- {name}, {times} times: {error}" for error, times in failed.items()]
    return "\n".join(out) + "\n"


def picture(result: Mapping[str, Any]) -> str:
    """Return an SVG: percentiles and rates of recalls and writes, resident memory over time, and bytes."""
    measured = {name: one["load"] for name, one in result["systems"].items() if "load" in one}
    colours = dict(zip(SYSTEMS, _COLOURS, strict=True))
    figure, (recalls, writes, memory, *bars) = panels(2, 3, width=13, height=7)
    for axes, verb in ((recalls, "recall"), (writes, "write")):
        width = 0.8 / len(measured)
        for place, (name, load) in enumerate(measured.items()):
            heights = [load[verb].get(f"{share}_ms", 0.0) for share in _SHARES]
            axes.bar([x + place * width for x in range(3)], heights, width=width, color=colours[name], label=name)
        axes.set_xticks([x + 0.4 - width / 2 for x in range(3)], _SHARES)
        axes.set(yscale="log", title=f"{verb}, ms")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    for name, load in measured.items():
        looks = [one for one in load["memory"] if one["process_mb"] is not None]
        megabytes = [one["process_mb"] + one["server_mb"] for one in looks]
        memory.plot([one["s"] for one in looks], megabytes, color=colours[name], lw=1.8)
    memory.set(title="resident, MiB, servers included", xlabel="s", ylim=(0, None))
    finds = [f"{name} (finds {_number(load['found'])})" for name, load in measured.items()]
    _bars(bars[0], "recalls a second", {name: load["recalls_per_s"] for name, load in measured.items()}, colours, finds)
    _bars(bars[1], "writes a second", {name: load["writes_per_s"] for name, load in measured.items()}, colours)
    _bars(bars[2], "on disk, MiB", {name: load["bytes"] / 2**20 for name, load in measured.items()}, colours)
    for axes in (recalls, writes, memory, *bars):
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*recalls.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    plan = result["plan"]
    figure.suptitle(
        f"{plan['memories']:,} memories, {plan['namespaces']:,} namespaces, {plan['readers']} readers, "
        f"{plan['writers']} writers, {plan['seconds']:g} s{_in_turns(plan)}",
        fontsize=11,
    )
    return svg(figure, "A mixed load")


def _bars(
    axes: Any, title: str, values: Mapping[str, float], colours: Mapping[str, str], labels: Sequence[str] = ()
) -> None:
    places = range(len(values))
    axes.barh(places, list(values.values()), color=[colours[name] for name in values])
    axes.set_yticks(places, labels or [""] * len(values))
    axes.invert_yaxis()
    axes.set(title=title)


def _times(times: Mapping[str, float]) -> str:
    values = [times[f"{share}_ms"] for share in _SHARES] if times else []
    return " / ".join(f"{value:.0f}" if value >= 100 else f"{value:.3g}" for value in values)


def _resident(look: Mapping[str, float | None]) -> str:
    process, server = look["process_mb"], look["server_mb"]
    return "" if process is None or server is None else f"{process + server:.0f}"


def _upkeep(load: Mapping[str, Any]) -> str:
    """Say how long upkeep took, and whether the load was over before its end, so that it would have taken longer."""
    took = ", ".join(f"{seconds:g}" for seconds in load["upkeep_s"]) or "none"
    return f"Upkeep, s: {took}{', the last ended only after the load' if load.get('upkeep_late') else ''}."


def _machine(load: Mapping[str, Any]) -> str:
    """Say how fast the machine was before and after the load; earlier results do not."""
    if "loop_ms" not in load:
        return ""
    loops = load["loop_ms"]
    took = ", ".join(f"{before:g} and {after:g}" for before, after in zip(loops[::2], loops[1::2], strict=True))
    return f" A loop of a million additions took {took} ms before and after the load."


def _in_turns(plan: Mapping[str, Any]) -> str:
    turns = plan.get("turns", 1)  # earlier results do not say
    return f" in {turns} turns" if turns > 1 else ""


def _turns(load: Mapping[str, Any]) -> str:
    """Say how each turn of a load went that had several."""
    turns = load.get("turns", ())
    told = "; ".join(f"{one['recalls_per_s']:g} of {_times(one['recall'])} ms" for one in turns)
    return f" Recalls a second of its turns: {told}." if turns else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
