"""An explanation says of validity, time and secrecy why a memory stands where it stands, or is not there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import semmem
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.types import Memory
from semmem.read.explanation.absence import not_valid

PORT = "Which port does the gate listen on?"


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as opened:
        yield opened


def lines(why: semmem.Explanation) -> list[str]:
    """Return what is said beside the place, the bar and the legs."""
    of_legs = ("  lexical", "  dense", "  graph", "  importance")
    return [line.strip() for line in str(why).splitlines()[1:] if not line.startswith(of_legs)]


def test_what_is_no_longer_valid_is_said_to_stand_below_what_is(mem: semmem.Semmem) -> None:
    mem.remember("The gate listens on port 5432.", id="old", valid_to="2024-05-03", importance=1.0)
    mem.remember("The gate will listen on port 9999.", id="next", valid_from="2091-12-31T06:05:00")
    mem.remember("The gate is green.", id="gate")
    found = mem.recall(PORT)
    assert found[0].id == "gate"
    said = {hit.id: found.explain(hit.id) for hit in found}
    assert {id: why.not_valid for id, why in said.items()} == {
        "old": "not valid since 3 May 2024: it ranks below valid memories",
        "next": "not valid before 31 December 2091, 06:05 UTC: it ranks below valid memories",
        "gate": None,
    }
    assert lines(said["old"]) == ["not valid since 3 May 2024: it ranks below valid memories"]
    assert said["old"].as_dict()["not_valid"] == said["old"].not_valid


def test_the_day_is_said_in_utc_and_the_hour_only_where_it_is_no_midnight() -> None:
    east = datetime.fromisoformat("2024-05-03T02:00:00+02:00")
    now = datetime(2025, 1, 1, tzinfo=UTC)
    assert not_valid(Memory("a", "n", "x", valid_to=east), now) == "not valid since 3 May 2024"
    assert not_valid(Memory("a", "n", "x", valid_from=east, valid_to=now), now) == "not valid since 1 January 2025"
    assert not_valid(Memory("a", "n", "x", valid_from=now), now) is None
    assert not_valid(Memory("a", "n", "x", valid_to=now + timedelta(seconds=1)), now) is None


def test_of_another_time_it_says_that_no_version_was_valid_and_that_the_graph_sees_none(mem: semmem.Semmem) -> None:
    mem.remember("The gate listens on port 5432.", id="port", created_at="2020-01-01")
    mem.remember("The gate is green.", id="late", created_at="2024-01-01", session="s")
    mem.update("port", text="The gate listens on port 6543.", valid_from="2022-01-01")
    before = mem.recall(PORT, as_of="2019-05-03").explain("port")
    assert (before.not_valid, before.rank) == ("no version of it was valid on 3 May 2019, so it is not there", None)
    assert before.legs["lexical"].status == "out of scope: no version of it was valid on 3 May 2019, so it is not there"
    found = mem.recall(PORT, as_of="2021-01-01")
    assert (found.explain("port").not_valid, found.explain("port").returned) == (None, True)
    assert found.explain("late").not_valid == "no version of it was valid on 1 January 2021, so it is not there"
    narrowed = mem.recall(PORT, as_of="2025-01-01", filters={"sessions": ["t"]}).explain("late")
    assert (narrowed.not_valid, narrowed.legs["lexical"].status) == (
        None, "out of scope: a filter or exclude leaves it out",
    )  # fmt: skip


def test_the_graph_is_said_to_see_no_earlier_version(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=2) as mem:
        mem.remember("Zorvandel Kesh keeps the gate on port 5432.", id="port", created_at="2020-01-01")
        mem.remember("Zorvandel Kesh likes tea.", id="tea", created_at="2020-01-01")
        mem.update("port", text="Nobody keeps it.", valid_from="2022-01-01")
        found = mem.recall("What does Zorvandel Kesh keep?", as_of="2021-01-01")
        said = {id: found.explain(id).legs["graph"] for id in ("port", "tea")}
        assert (said["port"].status, dict(said["port"].needs)) == ("not in the list: it sees no earlier version", {})
        assert said["tea"].rank is not None


def test_what_has_expired_and_what_was_forgotten_is_said_to_be_so_by_every_verb_that_asks_for_it(
    mem: semmem.Semmem,
) -> None:
    mem.remember("The gate is green.", id="gate")
    found = mem.recall(PORT)
    mem.remember("The gate listens on port 5432.", id="gone", expires_at=datetime.now(UTC) + timedelta(milliseconds=1))
    mem.remember("The gate listens on port 6543.", id="lost")
    mem.forget("lost")
    today = f"{datetime.now(UTC):%B %Y}"
    for verb in (found.explain, mem.get, mem.links):
        with pytest.raises(NotFound, match=f"There is no memory 'gone' in .* any more: it expired on .* {today}"):
            verb("gone")
        with pytest.raises(NotFound, match=f"it was forgotten on .* {today}, .* and can be restored until maintain"):
            verb("lost")
        with pytest.raises(NotFound, match=r"There is no memory 'none' in .*default.*; `(semmem )?list` shows what is"):
            verb("none")


def test_a_sensitive_memory_is_said_to_be_found_by_its_exact_id_title_or_tag_alone(mem: semmem.Semmem) -> None:
    mem.remember("The code of the gate is 5432.", id="code", title="Gate", tags=["gate"], sensitive=True)
    said = r"is sensitive: .* `get` does by its exact id, `list` by its exact title or a tag\."
    with pytest.raises(InvalidInput, match=said):
        mem.recall(PORT).explain("code")
    by_name = [mem.list(filters=given)[0].id for given in ({"titles": ["Gate"]}, {"tags": ["gate"]})]
    assert [mem.get("code").id, *by_name] == ["code"] * 3


def test_of_what_supersedes_a_budget_and_a_confidence_each_has_its_line(mem: semmem.Semmem) -> None:
    mem.remember("The gate listens on port 5432.", id="old")
    mem.remember("The gate listens on port 6543 now, and on no other port, as the clerk of the gate says.", id="new")
    mem.link("new", "supersedes", "old")
    said = lines(mem.recall(PORT).explain("old"))
    assert said == ["superseded by new, so it ranks below it"]
    packed = mem.recall(PORT, token_budget=15)
    assert lines(packed.explain("new"))[0] == "left out: no room for it in a budget of 15 tokens"
    unsure = mem.recall(PORT, min_confidence=1.0)
    assert lines(unsure.explain("new"))[0] == "withheld: the confidence of the recall is below 1"
