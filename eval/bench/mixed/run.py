"""Run the mixed load: fill each system and load it, in a process of its own each, one system after the other."""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import semmem
from eval.bench.mixed.load import Plan, filled, loaded, summed, without_files
from eval.bench.mixed.processes import SPAWN, end_with_parent
from eval.bench.mixed.systems import absent
from eval.bench.record import Record
from eval.experiments.evidence.provenance import COMMIT, installed, now
from semmem.model.errors import SemmemError
from semmem.model.failure import reason
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["mixed"]

_PACKAGES = ("lancedb", "qdrant-client", "txtai", "langgraph-checkpoint-postgres", "psycopg", "numpy")
Say = Callable[[str], None]
Phase = Callable[[str, Plan, Path], dict[str, Any]]


def mixed(
    plan: Plan,
    folder: Path,
    systems: Sequence[str],
    *,
    only_fill: bool = False,
    within_s: float = math.inf,
    say: Say = print,
) -> dict[str, Any]:
    """Fill and load each system, and return the result; ``folder`` holds stores that wait for their load.

    What another call with the same plan has measured is not measured again, and a store that it has filled is loaded.
    Where a load has several turns, the systems take turns. No turn begins that would end after ``within_s`` seconds.
    """
    folder, end = folder.absolute(), time.monotonic() + within_s
    record = Record(folder, asdict(plan), "systems", free="patience_s", newer={"turns": 1})
    at_hand = [name for name in systems if _is_at_hand(name, record, say)]
    for turn in range(plan.turns):
        for name in list(at_hand):
            row = record.rows.get(name, {})
            if "load" in row or len(row.get("turns", ())) > turn:
                continue
            try:
                _fill(name, plan, record, _store(folder, name), say)
                if only_fill:
                    continue
                if time.monotonic() + plan.turn_s > end:
                    say(f"{name}: its next turn waits for the same command.")
                    at_hand.remove(name)
                else:
                    _load(name, plan, record, _store(folder, name), turn, say)
            except _Failed as error:  # a defect of one system must not end the run
                say(f"{name} {error}")
                record.note(name, {"skipped": f"{name} {error}"})
                _removed(_store(folder, name))
                at_hand.remove(name)
    return {
        "plan": asdict(plan),
        "at": now(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "versions": {"semmem": semmem.__version__} | {name: installed(name) for name in _PACKAGES},
        "commit": COMMIT,
        "systems": {name: {key: row[key] for key in row if key != "turns"} for name, row in record.rows.items()},
    }


def _is_at_hand(name: str, record: Record, say: Say) -> bool:
    """Return whether a system is installed and not measured yet; say so where it is not."""
    row = record.rows.get(name, {})
    if "load" in row:
        say(f"{name}: measured already, in {record.file.name}.")
        return False
    if (why := absent(name)) is not None:
        say(why)
        record.note(name, {**row, "skipped": why})
        return False
    return True


def _store(folder: Path, name: str) -> Path:
    """Return the folder of the store of a system."""
    return folder / "stores" / name.replace(", ", "-").replace(" ", "-").lower()


def _removed(folder: Path) -> None:
    """Remove the store of a system, and end the server that a run leaves there when it is killed."""
    with suppress(SemmemError):
        EmbeddedServer(folder).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def _fill(name: str, plan: Plan, record: Record, folder: Path, say: Say) -> None:
    """Fill a system that is not filled."""
    if "fill" in record.rows.get(name, {}):
        return
    say(f"{name}: storing {plan.memories:,} memories …")
    _removed(folder)
    folder.mkdir(parents=True)
    record.note(name, {"fill": _in_process(filled, name, plan, folder, plan.patience_s)})


def _load(name: str, plan: Plan, record: Record, folder: Path, turn: int, say: Say) -> None:
    """Load a filled system for a turn; after the last one sum up its turns, and remove its store."""
    row = record.rows[name]
    fill, turns = row["fill"], row.get("turns", [])
    which = f", turn {turn + 1} of {plan.turns}" if plan.turns > 1 else ""
    say(f"{name}: {plan.readers} readers and {plan.writers} writers for {plan.turn_s:g} s{which} …")
    record.note(name, {})  # a load that is interrupted leaves a store that differs from those of others
    phase = partial(loaded, turn=turn, forgotten=turns[-1]["forgotten"] if turns else ())
    measured = _in_process(phase, name, plan, folder, plan.turn_s + plan.patience_s)
    when = {"at": now(), "commit": COMMIT, "load_average": [round(one, 1) for one in os.getloadavg()]}
    turns.append({**when, **measured})
    if len(turns) < plan.turns:
        record.note(name, {"fill": fill, "turns": turns})
        return
    record.note(name, {"fill": fill, "load": summed(turns)})
    _removed(folder)


class _Failed(Exception):
    """A system could not be filled or loaded; the message is the end of a sentence about it."""


def _in_process(phase: Phase, name: str, plan: Plan, folder: Path, patience_s: float) -> dict[str, Any]:
    """Return what a phase returns in a new process, which is ended after ``patience_s``."""
    receiver, sender = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_answer, args=(sender, phase, name, plan, folder))
    process.start()
    sender.close()
    try:
        if not receiver.poll(patience_s):
            raise _Failed(f"was ended after {patience_s:g} s; give it more by --patience.")
        text: str = receiver.recv()
        process.join(60)
    except EOFError:
        process.join()
        raise _Failed(_silent_end(process.exitcode)) from None
    finally:
        process.kill()
        process.join()
        with suppress(SemmemError):  # of a process that was ended
            EmbeddedServer(folder).stop("immediate")
    answer: dict[str, Any] | str = json.loads(text)
    if isinstance(answer, str):
        raise _Failed(answer)
    return answer


def _silent_end(exit_code: int | None) -> str:
    if exit_code == -signal.SIGKILL:
        return "was killed by the system, as where a process needs more memory than there is."
    return f"ended with the exit code {exit_code} and said nothing."


def _answer(sender: Connection, phase: Phase, name: str, plan: Plan, folder: Path) -> None:
    end_with_parent()
    try:
        sender.send(json.dumps(phase(name, plan, folder)))
    except Exception as error:  # noqa: BLE001  # it is told by the process that waits
        sender.send(json.dumps(f"failed: {without_files(reason(error))}"))
