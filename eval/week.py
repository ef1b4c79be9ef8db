"""Play a week of a coding agent through the hooks and the MCP server, and score what its model would have been given.

    python -m eval week --data eval/data/week --out eval/results/week.json

Each session starts a real `semmem mcp` in its clone, which also answers the hooks of that session. Its questions are
asked before its own turns are stored: those at its beginning of the block of session-start alone, the others of the
hook of a prompt and of memory_recall. Then the hook stop stores its transcript, and memory_remember its notes. No
language model is asked: an answer counts as given where a gold memory is shown with the words that a reader needs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from eval.datasets.source import Source
from eval.environment import without_settings
from eval.tokens import counter

__all__ = ["AT_THE_START", "Answer", "Shown", "markdown", "played", "report", "shown_in", "the_answer"]

AT_THE_START = "session start"
"""The stratum of the questions that the block of session-start has to answer."""

_SEMMEM = (sys.executable, "-m", "semmem")
_REMOTE = '[remote "origin"]\n\turl = git@git.tern.example:tern/kelpline.git\n'
_WAIT_S = 120


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model was given: the id and the text of each memory, in order, and the tokens of all."""

    memories: tuple[tuple[str, str], ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """How one question was answered through one interface.

    ``gold``: a gold memory is shown; ``answered``: with the words that a reader needs; ``outdated``: a memory that it
    outdates is shown before it, or instead of it.
    """

    id: str
    stratum: str
    through: str
    shown: int
    tokens: int
    gold: bool
    answered: bool
    outdated: bool


def the_answer(question: Mapping[str, Any], through: str, shown: Shown) -> Answer:
    """Score what was shown for a question."""
    gold, stale = set(question["gold_ids"]), set(question.get("stale_ids", ()))
    words = str(question.get("answer", "")).casefold()
    places = [index for index, (id, _) in enumerate(shown.memories) if id in gold]
    first_stale = next((index for index, (id, _) in enumerate(shown.memories) if id in stale), None)
    return Answer(
        id=question["id"],
        stratum=question["stratum"],
        through=through,
        shown=len(shown.memories),
        tokens=shown.tokens,
        gold=bool(places),
        answered=any(words in shown.memories[index][1].casefold() for index in places),
        outdated=first_stale is not None and (not places or first_stale < places[0]),
    )


def shown_in(block: str, count: Callable[[str], int]) -> Shown:
    """Read the block of a hook."""
    lines = [json.loads(line) for line in block.splitlines() if line.startswith("{")]
    return Shown(tuple((str(one["id"]), str(one["text"])) for one in lines), count(block))


# ---------------------------------------------------------------------- playing it


def played(folder: Path, embedder: str | None, session_start: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Play the week in ``folder`` over an empty store; return its answers and what remembering cost."""
    source = Source(folder)
    week = [row for _, row in source.rows("week.jsonl", ("id", "transcript"))]
    questions: dict[str, list[dict[str, Any]]] = {}
    for _, row in source.rows("queries.jsonl", ("id", "gold_ids", "asked_in")):
        questions.setdefault(row["asked_in"], []).append(row)
    with tempfile.TemporaryDirectory() as home:
        env = _environment(home, embedder, session_start)
        clones = {name: _clone(Path(home, name)) for name in sorted({one["clone"] for one in week})}
        play = _Play(folder, env, clones, counter())
        for session in week:
            anyio.run(play.session, session, questions.get(session["id"], []))
            say(f"{session['id']}: {len(play.answers)} answers")
        _ended(home)
    return {"answers": [asdict(one) for one in play.answers], "starts": play.starts, "remembered": play.remembered}


class _Play:
    """A week that is being played."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], clones: Mapping[str, Path], count: Callable[[str], int]
    ) -> None:
        self._folder, self._env, self._clones, self._count = folder, dict(env), clones, count
        self.answers: list[Answer] = []
        self.starts: list[int] = []
        self.remembered: list[dict[str, Any]] = []

    async def session(self, session: Mapping[str, Any], questions: Sequence[Mapping[str, Any]]) -> None:
        """Play one session: its beginning, its questions, and its end."""
        clone = self._clones[session["clone"]]
        parameters = StdioServerParameters(
            command=_SEMMEM[0], args=[*_SEMMEM[1:], "mcp"], env=self._env, cwd=str(clone)
        )
        async with Client(parameters) as client:
            await client.list_tools()
            await self._listened()
            start = shown_in(self._hook("session-start", session, source="startup"), self._count)
            self.starts.append(start.tokens)
            for question in questions:
                if question["stratum"] == AT_THE_START:
                    self.answers.append(the_answer(question, "session-start", start))
                    continue
                block = self._hook("prompt", session, prompt=question["question"])
                self.answers.append(the_answer(question, "prompt", shown_in(block, self._count)))
                told = await client.call_tool("memory_recall", {"query": question["question"]})
                hits = (told.structured_content or {}).get("hits", [])
                memories = tuple((str(hit["id"]), str(hit["text"])) for hit in hits)
                text = "\n".join(str(getattr(one, "text", "")) for one in told.content)
                self.answers.append(the_answer(question, "mcp", Shown(memories, self._count(text))))
            transcript = clone.parent / Path(session["transcript"]).name
            shutil.copy(self._folder / session["transcript"], transcript)
            self._hook("stop", session, transcript_path=str(transcript))
            for note in session["notes"]:
                await self._remember(client, {**note, "created_at": session["until"]})

    async def _remember(self, client: Client, note: Mapping[str, Any]) -> None:
        told = await client.call_tool("memory_remember", dict(note))
        text = "\n".join(str(getattr(one, "text", "")) for one in told.content)
        if told.is_error:
            raise RuntimeError(f"memory_remember says: {text}")
        older = [str(one["id"]) for one in json.loads(text).get("older", [])]
        self.remembered.append({"id": note["id"], "tokens": self._count(text), "older": older})

    def _hook(self, event: str, session: Mapping[str, Any], **given: Any) -> str:
        clone = self._clones[session["clone"]]
        payload = {"session_id": session["session"], "cwd": str(clone), **given}
        done = subprocess.run(
            [*_SEMMEM, "hook", event, "--agent", session["client"]],
            env=self._env,
            cwd=clone,
            input=json.dumps(payload),
            capture_output=True,
            text=True,
            check=True,
        )
        if lines := [line for line in done.stderr.splitlines() if "withheld" not in line]:
            raise RuntimeError(f"The hook {event} says: {lines[0]}")
        return done.stdout

    async def _listened(self) -> None:
        folder = Path(self._env["HOME"]) / ".local/state/semmem/hooks"
        with anyio.fail_after(_WAIT_S):
            while not any(folder.glob("*.sock")):
                await anyio.sleep(0.05)


def _environment(home: str, embedder: str | None, session_start: str | None) -> dict[str, str]:
    models = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    chosen = {"SEMMEM_EMBEDDER": embedder, "SEMMEM_SESSION_START": session_start}
    return {
        **without_settings("XDG_"),
        "HOME": home,
        "XDG_DATA_HOME": models,
        "SEMMEM_URL": f"embedded://{home}/store",
        "SEMMEM_IDLE_STOP_S": "60",
        "SEMMEM_HOOK_PROCESS_S": "0",
        **{name: value for name, value in chosen.items() if value is not None},
    }


def _clone(folder: Path) -> Path:
    """Make a clone of the project, as far as anything reads one."""
    git = folder / "kelpline" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (git / "config").write_text(_REMOTE, encoding="utf-8")
    return folder / "kelpline"


def _ended(home: str) -> None:
    """Stop the server of the store, whose folder is about to be removed."""
    from semmem.stores.embedded.server import EmbeddedServer

    EmbeddedServer(Path(home) / "store").stop()


# ---------------------------------------------------------------------- its score


def report(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Return the score of a week: by interface and stratum, and what all of it cost."""
    answers = [Answer(**row) for row in rows["answers"]]
    strata = list(dict.fromkeys(one.stratum for one in answers))
    through: dict[str, Any] = {}
    for name in dict.fromkeys(one.through for one in answers):
        own = [one for one in answers if one.through == name]
        by_stratum = {stratum: _score([one for one in own if one.stratum == stratum]) for stratum in strata}
        asked = [one for one in own if _answerable(one.stratum)]
        through[name] = {
            "strata": {stratum: score for stratum, score in by_stratum.items() if score},
            "answerable": _score(asked),
            "unanswerable": _score([one for one in own if not _answerable(one.stratum)]),
        }
    remembered = rows["remembered"]
    return {
        "through": through,
        "session start": {"tokens, mean": round(mean(rows["starts"])), "tokens, most": max(rows["starts"])},
        "remember": {
            "notes": len(remembered),
            "naming older ones": sum(bool(one["older"]) for one in remembered),
            "tokens where none is near": _median(one["tokens"] for one in remembered if not one["older"]),
            "tokens where one is": _median(one["tokens"] for one in remembered if one["older"]),
        },
    }


def _answerable(stratum: str) -> bool:
    return stratum not in ("unanswerable", "unrelated", "chit-chat", "acknowledgement")


def _score(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the shares of some questions; {} of none."""
    if not answers:
        return {}
    share = {
        name: round(sum(values) / len(answers), 3)
        for name, values in (
            ("gold shown", [one.gold for one in answers]),
            ("answered", [one.answered for one in answers]),
            ("outdated first", [one.outdated for one in answers]),
            ("silent", [not one.shown for one in answers]),
        )
    }
    return {"questions": len(answers), **share, "tokens, mean": round(mean(one.tokens for one in answers))}


def _median(values: Iterable[int]) -> float | None:
    found = list(values)
    return median(found) if found else None


def markdown(result: Mapping[str, Any]) -> str:
    """Return the tables of a report."""
    return "\n".join(_lines(result))


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    columns = ("questions", "gold shown", "answered", "outdated first", "silent", "tokens, mean")
    yield f"| through | questions of | {' | '.join(columns)} |"
    yield f"|---|---|{'---|' * len(columns)}"
    for name, of in result["through"].items():
        groups = {**of["strata"], "all that have an answer": of["answerable"], "all that have none": of["unanswerable"]}
        for stratum, score in groups.items():
            if score:
                yield f"| {name} | {stratum} | {' | '.join(str(score[one]) for one in columns)} |"
    for what in ("session start", "remember"):
        yield ""
        yield f"{what}: " + ", ".join(f"{name} {value}" for name, value in result[what].items())
