"""The beginning of an id that semmem made stands for it, in every verb and both stores; anything else is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import semmem
from semmem.interfaces.cli.app import app
from semmem.model.short_ids import is_short, shortened, whole_id
from tests.serving import serving

ONE = "01a21778-29eb-7b28-b94e-55cfd07622ef"
NEAR = "01a21778-29eb-7c00-8000-000000000000"  # of the same millisecond
LATER = "01a21779-0000-7000-8000-000000000000"


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def mem(
    request: pytest.FixtureRequest, module_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[semmem.Semmem]:
    """A store of either kind; each test takes a namespace of its own."""
    file: Path = tmp_path_factory.mktemp("short") / "notes.db"
    url = module_store() if request.param == "postgres" else f"sqlite:{file}"
    with semmem.connect(url, embedder="none", pool_size=4, recall_log=True) as mem:
        yield mem


@pytest.fixture
def space(mem: semmem.Semmem, request: pytest.FixtureRequest) -> str:
    """The name of a namespace with three memories whose ids semmem could have made, and two with ids of their own."""
    name = str(request.node.name)[:100]
    for id in (ONE, NEAR, LATER, "fact-10", "20261126-b"):
        mem.remember(f"The ferry of {id} leaves at nine.", id=id, namespace=name)
    return name


def test_a_short_id_has_eight_characters_or_more_of_an_id_that_semmem_makes() -> None:
    short = ["01a21778", "01a21778-", "01a21778-29eb-7", ONE[:-1]]
    assert all(map(is_short, short))
    assert not any(map(is_short, ["", "01a2177", "01a21778x", "01a21778_29eb", "01A21778", "fact-100", ONE]))


def test_the_shortest_form_that_is_shown_has_thirteen_characters_or_as_many_as_are_needed() -> None:
    assert shortened(ONE, [ONE]) == "01a21778-29eb"
    assert shortened(ONE, [NEAR, ONE]) == "01a21778-29eb-7b"
    assert shortened(ONE, [ONE, f"{ONE[:18]}-0000-000000000000"]) == "01a21778-29eb-7b28-b"  # no hyphen at its end
    assert shortened("fact-10", ["fact-10"]) == "fact-10"
    assert shortened(ONE, [NEAR] * 100) == ONE
    assert whole_id("01a21778", [], "x") == "01a21778"


def test_ids_of_peoples_own_that_begin_so_hide_no_second_id_from_the_beginning_of_one() -> None:
    own = [f"01a21778!{number:02}" for number in range(99)]
    assert whole_id("01a21778", [*own[:98], ONE], "x") == ONE
    with pytest.raises(semmem.InvalidInput, match="100 or more ids begin with it"):
        whole_id("01a21778", [*own, ONE], "x")


def test_every_verb_that_takes_an_id_takes_the_beginning_of_one(mem: semmem.Semmem, space: str) -> None:
    assert mem.get("01a21779", namespace=space).id == LATER
    assert mem.get("01a21778-29eb-7b", namespace=space, as_of="2100-01-01").id == ONE
    assert mem.history(LATER[:13], namespace=space)[0].memory.id == LATER
    assert mem.update(LATER[:13], namespace=space, title="Ferry").title == "Ferry"
    link = mem.link(LATER[:13], "supersedes", ONE[:16], namespace=space)
    assert (link.from_id, link.to_id) == (LATER, ONE)
    assert mem.links(ONE[:16], namespace=space) == [link]
    assert mem.unlink(LATER[:13], "supersedes", ONE[:16], namespace=space) is True
    found = mem.recall("ferry", namespace=space, exclude=[ONE[:16], NEAR[:16]])
    assert {hit.id for hit in found} == {LATER, "fact-10", "20261126-b"}
    assert found.explain(LATER[:13]).id == LATER
    assert mem.feedback(found.id or "", useful=[LATER[:13]], namespace=[f"{space}-none", space]) == 1
    assert [(one.id, one.useful) for one in mem.judgments(namespace=space)] == [(LATER, True)]
    assert mem.forget(LATER[:13], namespace=space) == 1
    assert mem.restore_memory(LATER[:13], namespace=space).id == LATER


def test_an_ambiguous_beginning_is_refused_and_names_what_it_could_be(mem: semmem.Semmem, space: str) -> None:
    for call in (mem.get, mem.forget, mem.history, mem.links):
        with pytest.raises(semmem.InvalidInput) as caught:
            call("01a21778-29eb", namespace=space)
        assert str(caught.value) == (
            f"The id '01a21778-29eb' is ambiguous in namespace {space!r}: 2 ids begin with it ({ONE}, {NEAR}); "
            "give more of it."
        )
    assert len(mem.list(namespace=space).memories) == 5


def test_an_id_of_peoples_own_is_never_taken_for_the_beginning_of_another(mem: semmem.Semmem, space: str) -> None:
    for id in ("fact-1", "20261126", "20261126-", "01a2177", "01a21778-29EB-7b"):
        with pytest.raises(semmem.NotFound):
            mem.forget(id, namespace=space)
    with pytest.raises(semmem.NotFound):
        mem.get("01a21779", namespace=f"{space}-none")


def test_an_id_that_is_stored_wins_over_those_that_begin_with_it(mem: semmem.Semmem, space: str) -> None:
    mem.remember("The ferry is blue.", id="01a21778", namespace=space)
    assert mem.get("01a21778", namespace=space).text == "The ferry is blue."


def test_a_forgotten_id_makes_a_beginning_ambiguous_for_it_could_be_restored(mem: semmem.Semmem, space: str) -> None:
    mem.forget(NEAR, namespace=space)
    with pytest.raises(semmem.InvalidInput, match="2 ids begin with it"):
        mem.get("01a21778-29eb", namespace=space)


def test_ids_are_shown_as_short_as_they_are_unique(mem: semmem.Semmem, space: str) -> None:
    assert mem.store.ids_with_prefix(space, ["01a21778", "01a21779", "02"], 2) == {
        "01a21778": [ONE, NEAR], "01a21779": [LATER], "02": [],
    }  # fmt: skip
    assert mem._short_ids([ONE, LATER, "fact-10"], namespace=space) == {
        ONE: "01a21778-29eb-7b", LATER: "01a21779-0000", "fact-10": "fact-10",
    }  # fmt: skip


def test_a_server_takes_short_ids_and_its_client_shows_whole_ones(mem: semmem.Semmem, space: str) -> None:
    with serving(mem) as address, semmem.connect(address) as client:
        assert client.get("01a21779", namespace=space).id == LATER
        with pytest.raises(semmem.InvalidInput, match="The id '01a21778-29eb' is ambiguous"):
            client.get("01a21778-29eb", namespace=space)
        assert client._short_ids([LATER], namespace=space) == {LATER: LATER}


@pytest.mark.slow
def test_the_command_line_takes_a_short_id(mem: semmem.Semmem, space: str) -> None:
    words = [LATER[:13], "--url", mem.store.url, "--namespace", space]
    assert "The ferry of" in CliRunner().invoke(app, ["get", *words]).output
    wrong = CliRunner().invoke(app, ["get", ONE[:13], *words[1:]])
    assert (wrong.exit_code, "is ambiguous" in wrong.output) == (2, True)
