"""Run the mixed load: fill each system and load it, in a process of its own each, one system after the other."""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import semmem
from eval.bench.mixed.load import Plan, filled, loaded, without_files
from eval.bench.mixed.systems import absent
from eval.datasets import DatasetError
from eval.experiments.evidence.provenance import COMMIT, installed
from semmem.model.errors import SemmemError
from semmem.model.failure import reason
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["mixed"]

_PACKAGES = ("lancedb", "qdrant-client", "txtai", "langgraph-checkpoint-postgres", "psycopg", "numpy")
_SPAWN = multiprocessing.get_context("spawn")
Say = Callable[[str], None]
Phase = Callable[[str, Plan, Path], dict[str, Any]]


def mixed(
    plan: Plan, folder: Path, systems: Sequence[str], *, only_fill: bool = False, say: Say = print
) -> dict[str, Any]:
    """Fill and load each system, and return the result; ``folder`` holds stores that wait for their load.

    What another call with the same plan has measured is not measured again, and a store that it has filled is loaded.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    record = _Record(folder, asdict(plan))
    for name in systems:
        if "load" in record.systems.get(name, {}):
            say(f"{name}: measured already, in {record.file.name}.")
        elif (why := absent(name)) is not None:
            say(why)
            record.note(name, {**record.systems.get(name, {}), "skipped": why})
        else:
            try:
                _one(name, plan, record, only_fill, say)
            except _Failed as error:  # a defect of one system must not end the run
                say(f"{name} {error}")
                record.note(name, {"skipped": f"{name} {error}"})
                shutil.rmtree(record.store(name), ignore_errors=True)
    return {
        "plan": asdict(plan),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}",
        "versions": {"semmem": semmem.__version__} | {name: installed(name) for name in _PACKAGES},
        "commit": COMMIT,
        "systems": record.systems,
    }


class _Record:
    """What has been measured so far, in a file of the folder.

    Raises DatasetError for a folder with a run of another plan, or with anything else in it.
    """

    def __init__(self, folder: Path, plan: Mapping[str, Any]) -> None:
        self.file, self.stores, self._plan = folder / "measured.json", folder / "stores", plan
        self.systems: dict[str, dict[str, Any]] = {}
        if self.file.exists():
            try:
                found = json.loads(self.file.read_text(encoding="utf-8"))
                other, self.systems = dict(found["plan"]), dict(found["systems"])
            except (ValueError, TypeError, KeyError):
                raise DatasetError(f"{self.file} is no record of a run; give another folder by --out.") from None
            if {**other, "patience_s": plan["patience_s"]} != plan:  # which no number depends on
                raise DatasetError(f"{folder} holds a run with other options; give another folder by --out.")
        elif any(folder.iterdir()):
            raise DatasetError(f"{folder} holds other files; give a new or empty folder by --out.")
        self._write()

    def store(self, name: str) -> Path:
        return self.stores / name.replace(", ", "-").replace(" ", "-").lower()

    def note(self, name: str, row: dict[str, Any]) -> None:
        self.systems[name] = row
        self._write()

    def _write(self) -> None:
        self.file.write_text(json.dumps({"plan": self._plan, "systems": self.systems}, indent=1), encoding="utf-8")


def _one(name: str, plan: Plan, record: _Record, only_fill: bool, say: Say) -> None:
    folder, fill = record.store(name), record.systems.get(name, {}).get("fill")
    if fill is None:
        say(f"{name}: storing {plan.memories:,} memories …")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        fill = _in_process(filled, name, plan, folder)
        record.note(name, {"fill": fill})
    if only_fill:
        return
    say(f"{name}: {plan.readers} readers and {plan.writers} writers for {plan.seconds:g} s …")
    record.note(name, {})  # a load that is interrupted leaves a store that differs from those of others
    load = _in_process(loaded, name, plan, folder)
    record.note(name, {"fill": fill, "load": {"load_average": [round(one, 1) for one in os.getloadavg()], **load}})
    shutil.rmtree(folder, ignore_errors=True)


class _Failed(Exception):
    """A system could not be filled or loaded; the message is the end of a sentence about it."""


def _in_process(phase: Phase, name: str, plan: Plan, folder: Path) -> dict[str, Any]:
    """Return what a phase returns in a new process, which is ended after the plan's patience."""
    receiver, sender = _SPAWN.Pipe(duplex=False)
    process = _SPAWN.Process(target=_answer, args=(sender, phase, name, plan, folder))
    process.start()
    sender.close()
    try:
        if not receiver.poll(plan.seconds + plan.patience_s):
            raise _Failed(f"was ended after {plan.patience_s:g} s; give it more by --patience.")
        text: str = receiver.recv()
        process.join(60)
    except EOFError:
        process.join()
        raise _Failed(f"ended with the exit code {process.exitcode} and said nothing.") from None
    finally:
        process.kill()
        process.join()
        with suppress(SemmemError):  # of a process that was ended
            EmbeddedServer(folder).stop("immediate")
    answer: dict[str, Any] | str = json.loads(text)
    if isinstance(answer, str):
        raise _Failed(answer)
    return answer


def _answer(sender: Connection, phase: Phase, name: str, plan: Plan, folder: Path) -> None:
    try:
        sender.send(json.dumps(phase(name, plan, folder)))
    except Exception as error:  # noqa: BLE001  # it is told by the process that waits
        sender.send(json.dumps(f"failed: {without_files(reason(error))}"))
