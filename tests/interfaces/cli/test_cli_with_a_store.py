"""The command line against a real store: the verbs, their JSON, their exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from semmem.stores.sql_files import statements
from semmem.write import ingest
from tests.interfaces.cli.program import Call, in_process, loaded


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program in this process on an empty store, with the hashing embedder; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    return in_process(capfd)


def test_what_was_remembered_is_recalled_with_components_that_sum_to_the_score(call: Call) -> None:
    memory = loaded(call("remember", "The key of Heron House hangs behind the radio.", "--id", "key", "--json"))
    loaded(call("remember", "The radio is tuned to channel twelve.", "--id", "radio", "--json"))
    assert (memory["id"], memory["namespace"]) == ("key", "default")
    found = loaded(call("recall", "key of Heron House", "--json"))
    assert found["hits"][0]["id"] == "key"
    assert found["degraded"] == {}
    for hit in found["hits"]:
        assert sum(hit["components"].values()) == pytest.approx(hit["score"], abs=1e-12)


def test_every_option_of_remember_reaches_the_memory(call: Call) -> None:
    given = {
        "id": "a",
        "title": "Heron House",
        "author": "Oona",
        "session": "may",
        "position": 3,
        "source": "notes.md",
        "importance": 0.9,
        "created_at": "2025-05-01T09:00:00+00:00",
    }
    options = [part for key, value in given.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    call(
        "remember", "Shut on Wednesdays.", *options, "--tag", "x", "--tag", "y", "--metadata", '{"n": 1}', "-n", "demo"
    )
    memory = loaded(call("get", "a", "-n", "demo", "--json"))
    assert {key: memory[key] for key in given} == given
    assert (memory["tags"], memory["metadata"], memory["namespace"]) == (["x", "y"], {"n": 1}, "demo")


def test_the_same_id_with_other_content_is_refused(call: Call) -> None:
    call("remember", "One.", "--id", "a")
    assert call("remember", "One.", "--id", "a")[0] == 0
    code, out, err = call("remember", "Two.", "--id", "a")
    assert (code, out) == (5, "")
    assert "update" in err
    assert err.count("\n") == 1


def test_standard_input_and_files_are_remembered(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("From a pipe: Søren.".encode())))
    call("remember", "-", "--id", "pipe")
    note = tmp_path / "Tide table.md"
    note.write_text("High water at nine.", encoding="utf-8")
    call("remember", str(note), "--id", "file")
    assert loaded(call("get", "pipe", "--json"))["text"] == "From a pipe: Søren."
    stored = loaded(call("get", "file", "--json"))
    assert (stored["title"], stored["text"], stored["source"]) == ("Tide table", "High water at nine.", str(note))


def test_a_file_of_items_goes_in_but_for_the_broken_ones(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text(
        '{"id": "a", "text": "One."}\n{"id": "b"}\nnonsense\n{"id": "c", "text": "Two."}\n', encoding="utf-8"
    )
    report = loaded(call("remember", str(file), "--on-error", "skip", "-n", "many", "--json"))
    assert (report["remembered"], [bad["position"] for bad in report["rejected"]]) == (2, [1, 2])
    assert {memory["id"] for memory in loaded(call("list", "-n", "many", "--json"))["memories"]} == {"a", "c"}


def test_a_broken_item_stops_its_batch_unless_it_is_skipped(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text('{"id": "a", "text": "One."}\n{"id": "b"}\n', encoding="utf-8")
    code, out, err = call("remember", str(file), "--json")
    assert (code, json.loads(out)["error"]["class"]) == (2, "BadItem")
    assert err == "notes.jsonl, line 2: The text is empty; a memory needs some text.\n"
    assert loaded(call("list", "--json"))["memories"] == []
    file.write_text("".join(f'{{"id": "{id}", "text": "{id[1:]}"}}\n' for id in ("a1", "b2", "c3", "d4", "e")))
    assert call("remember", str(file), "--batch-size", "2")[2] == (
        "notes.jsonl, line 5: The text is empty; a memory needs some text. The 4 items of earlier batches are stored.\n"
    )
    assert len(loaded(call("list", "--json"))["memories"]) == 4


def test_a_bad_line_is_told_by_its_number_in_our_words(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text(
        '{"id": "a", "text": "One."}\n\nnonsense\n{"id": "b", "text": "", "title": "B"}\n7\n', encoding="utf-8"
    )
    code, _, err = call("remember", str(file), "--on-error", "skip")
    assert (code, [line.split(":")[0] for line in err.splitlines()]) == (0, ["  line 3", "  line 4 (b)", "  line 5"])
    assert "  line 3: it is no JSON object." in err
    assert loaded(call("remember", str(file), "--on-error", "skip", "--json"))["rejected"][0]["line"] == 3
    assert call("remember", str(file))[2] == "notes.jsonl, line 3: it is no JSON object.\n"
    exported = tmp_path / "out.jsonl"
    call("export", str(exported))
    assert call("remember", str(exported), "-n", "n")[2] == (
        "out.jsonl, line 1: it was written by semmem export; semmem import jsonl reads it.\n"
    )


def test_who_looks_in_an_empty_namespace_is_told_of_the_others(call: Call) -> None:
    assert call("recall", "key")[1].endswith("Nothing was found. The store holds no memories.\n")
    call("remember", "The key is red.", "-n", "team")
    for args in (("recall", "key"), ("list",)):
        assert "There are memories in namespace team: say which with -n." in " ".join(call(*args)[1].split())
    assert "Nothing was found.\n" in call("recall", "key", "-n", "team", "--author", "Ada")[1]


def test_pages_of_a_list_follow_each_other(call: Call) -> None:
    for number in range(3):
        call("remember", f"Note {number}.", "--id", str(number), "--created-at", f"2025-01-0{number + 1}")
    first = loaded(call("list", "--limit", "2", "--json"))
    second = loaded(call("list", "--limit", "2", "--cursor", first["cursor"], "--json"))
    assert [m["id"] for m in first["memories"] + second["memories"]] == ["2", "1", "0"]
    assert second["cursor"] is None
    call("recall", "Note 0", "--limit", "1")
    sorted_by = loaded(call("list", "--sort-by", "accessed", "--limit", "1", "--json"))["memories"]
    assert [(m["id"], m["access_count"]) for m in sorted_by] == [("0", 1)]
    code, _, err = call("list", "--sort-by", "accessed", "--cursor", first["cursor"])
    assert (code, "This cursor is of a list by created, not by accessed" in err) == (2, True)


def test_forget_only_counts_until_it_is_told_yes(call: Call) -> None:
    call("remember", "One.", "--id", "a", "--tag", "old")
    call("remember", "Two.", "--id", "b")
    assert loaded(call("forget", "--tag", "old", "--json")) == {"forgotten": 0, "matched": 1, "dry_run": True}
    assert loaded(call("forget", "--all", "--json"))["matched"] == 2
    assert loaded(call("stats", "--json"))["memories"] == 2
    assert loaded(call("forget", "--tag", "old", "--yes", "--json"))["forgotten"] == 1
    assert loaded(call("forget", "b", "--yes", "--json"))["forgotten"] == 1
    assert loaded(call("stats", "--json"))["memories"] == 0


def test_what_does_not_exist_is_told_with_its_own_exit_code(call: Call) -> None:
    for args in (("get", "nobody"), ("forget", "nobody", "--yes"), ("explain", "nobody", "--query", "anything")):
        code, out, err = call(*args)
        assert (code, out) == (4, "")
        assert "nobody" in err


def test_explain_says_why_not(call: Call) -> None:
    call("remember", "The key hangs behind the radio.", "--id", "key")
    call("remember", "Herring is in season.", "--id", "fish")
    why = loaded(call("explain", "fish", "--query", "where is the key?", "--recipe", "lexical", "--json"))
    assert (why["returned"], why["rank"]) == (False, None)
    code, out, err = call("explain", "fish", "--query", "where is the key?", "--recipe", "lexical")
    assert (code, err) == (0, "")
    assert "not in the list" in out
    call("update", "key", "--valid-to", "2024-05-03")
    asked = ("explain", "key", "--query", "where is the key?", "--recipe", "lexical")
    assert "  not valid since 3 May 2024: it ranks below valid memories\n" in call(*asked)[1]
    assert "  withheld: the confidence of the recall is below 1\n" in call(*asked, "--min-confidence", "1")[1]
    assert "  left out: no room for it in a budget of 2 tokens\n" in call(*asked, "--token-budget", "2")[1]
    assert "out of scope: a filter or exclude leaves it out\n" in call(*asked, "--session", "s")[1]
    assert "no version of it was valid on 3 May 2001" in call(*asked, "--as-of", "2001-05-03")[1]
    assert call("get", "key", "--as-of", "2001-05-03")[0] == 4
    assert call("get", "key", "--as-of", "then")[0] == 2


def test_a_recall_can_be_narrowed_and_widened(call: Call) -> None:
    call("remember", "The key is red.", "--id", "a", "-n", "one", "--session", "s1")
    call("remember", "The key is blue.", "--id", "b", "-n", "two", "--session", "s2")
    both = loaded(call("recall", "key", "-n", "one", "-n", "two", "--json"))
    assert {hit["id"] for hit in both["hits"]} == {"a", "b"}
    only = loaded(call("recall", "key", "-n", "one", "-n", "two", "--session", "s2", "--json"))
    assert [hit["id"] for hit in only["hits"]] == ["b"]
    less = loaded(call("recall", "key", "-n", "one", "-n", "two", "--exclude", "a", "--json"))
    assert [hit["id"] for hit in less["hits"]] == ["b"]


def test_a_context_is_a_block_for_a_prompt_and_says_what_had_no_place(call: Call) -> None:
    call("remember", "The key hangs behind the radio.", "--id", "a", "-n", "one")
    call("remember", "The key of the boat. " * 60, "--id", "b", "-n", "two")
    code, out, err = call("context", "key", "-n", "one", "-n", "two", "--budget", "300")
    assert (code, out.splitlines()[0], out.splitlines()[-1]) == (0, "<semmem-memories>", "</semmem-memories>")
    assert "behind the radio" in out
    assert err.startswith("Left out of 300 tokens: b (4")
    told = loaded(call("context", "key", "-n", "one", "--json"))
    assert (told["text"].count("\n"), [hit["id"] for hit in told["hits"]]) == (4, ["a"])
    assert call("context", "zebra", "-n", "nowhere")[1:] == ("", "No memory is shown: the block is empty.\n")
    assert call("context", "key", "--budget", "0")[0] == 2
    shown = call("recall", "key", "-n", "one", "-n", "two", "--token-budget", "100")[1]
    assert "Left out of 100 tokens: b (4" in shown


def test_what_was_recalled_is_judged_and_the_judgments_are_lines_for_eval(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("remember", "The key hangs behind the radio.", "--id", "a")
    monkeypatch.setenv("SEMMEM_RECALL_LOG", "true")
    found = loaded(call("recall", "where is the key?", "--json"))
    assert f"semmem feedback {found['id'][:8]}" in call("recall", "where is the key?")[1]
    assert call("feedback", found["id"], "--useful", "a", "--made-by", "ada")[:2] == (0, "1 judgment stored.\n")
    (line,) = call("judgments")[1].splitlines()
    told = json.loads(line)
    assert (told["question"], told["memory_id"], told["grade"]) == ("where is the key?", "a", 1)
    assert loaded(call("judgments", "--json"))["judgements"] == [told]
    code, _, err = call("feedback", found["id"], "--useful", "b")
    assert (code, err) == (4, "There is no memory 'b' in namespace 'default'; no judgment was stored.\n")
    assert call("feedback", found["id"])[0] == 2


def test_what_people_read_fits_a_hundred_columns(call: Call) -> None:
    call("remember", "The key of Heron House hangs behind the radio. " * 5, "--id", "key", "--title", "Heron House")
    for args in (("recall", "key of Heron House"), ("list",), ("stats",), ("reach",), ("get", "key")):
        code, out, err = call(*args)
        assert (code, err) == (0, ""), args
        assert max(map(len, out.splitlines())) <= 100, args
    assert "lexical" in call("recall", "key of Heron House")[1]


def test_the_doctor_says_what_is_there_and_what_mends_the_rest(call: Call) -> None:
    told = loaded(call("doctor", "--json"))
    by_name = {one["what"]: one for one in told["findings"]}
    assert by_name["semmem"]["state"] == "good"
    assert by_name["server"]["detail"] == "a server of your own"
    assert by_name["store"]["state"] == "good"
    assert all(one["mend"] for one in told["findings"] if one["state"] == "bad" and one["what"] != "store")


def test_a_store_that_cannot_be_reached_is_one_sentence(call: Call, tmp_path: Path) -> None:
    code, out, err = call("--url", f"postgresql://nobody@/x?host={tmp_path}", "stats", "--json")
    assert (code, json.loads(out)["error"]) == (8, {"class": "StoreUnavailable", "message": err.rstrip("\n")})
    assert err.count("\n") == 1


def test_an_embedded_server_that_never_ran_is_not_started_by_a_look(call: Call, tmp_path: Path) -> None:
    told = loaded(call("server", "status", "--url", f"embedded:{tmp_path}/none", "--json"))
    assert told["running"] is False
    assert loaded(call("server", "stop", "--url", f"embedded:{tmp_path}/none", "--json")) == {"stopped": False}
    assert not (tmp_path / "none").exists()


def test_namespaces_lists_what_there_is(call: Call) -> None:
    assert call("namespaces")[1].strip() == "The store holds no memories."
    call("remember", "The key is under the pot.", "-n", "house", "--created-at", "2026-01-02T03:04:00Z")
    call("remember", "The boat is blue.", "-n", "harbour")
    found = loaded(call("namespaces", "--json"))["namespaces"]
    assert [(one["name"], one["memories"]) for one in found] == [("harbour", 1), ("house", 1)]
    assert found[1]["updated_at"] == "2026-01-02T03:04:00+00:00"
    assert "house" in call("namespaces")[1]


def test_changes_are_printed_with_the_cursor_that_goes_on(call: Call) -> None:
    call("remember", "The key is under the pot.", "--id", "key", "-n", "house")
    code, out, err = call("changes", "-n", "house")
    assert (code, out.split()[2:], err.split()[0]) == (0, ["written", "key"], "Cursor:")
    call("forget", "key", "-n", "house", "--yes")
    found = loaded(call("changes", "-n", "house", "--since", err.split()[1], "--json"))
    assert [(one["kind"], one["id"]) for one in found["changes"]] == [("forgotten", "key")]
    assert loaded(call("changes", "-n", "house", "--since", found["cursor"], "--json"))["changes"] == []
    assert call("changes", "--since", "nonsense")[0] == 2


def test_the_limits_of_a_namespace_are_set_shown_and_told_when_they_are_met(call: Call) -> None:
    assert "may hold any number of memories, any number of bytes." in call("namespaces", "limit", "house")[1]
    shown = call("namespaces", "limit", "house", "--most-memories", "1", "--keep-days", "2.5")[1]
    assert "keeps memories 2.5 days after their last change and may hold at most 1 memory," in " ".join(shown.split())
    call("remember", "The key is under the pot.", "-n", "house")
    code, _, err = call("remember", "The boat is blue.", "-n", "house")
    assert (code, "at most 1 are allowed; nothing was stored" in " ".join(err.split())) == (10, True)
    found = loaded(call("namespaces", "limit", "house", "--most-memories", "0", "--json"))
    assert found == {"keep_days": 2.5, "most_memories": None, "most_bytes": None}
    assert call("namespaces", "limit", "house", "--keep-days", "-1")[0] == 2


def test_a_namespace_that_is_not_there_is_not_dropped(call: Call) -> None:
    for given in ((), ("--yes",)):
        code, out, err = call("namespaces", "drop", "nowhere", *given)
        assert (code, out) == (4, "")
        assert err.startswith("There are no memories in namespace 'nowhere'; `semmem namespaces` lists those")


def test_a_hit_that_does_not_hold_now_says_so(call: Call) -> None:
    loaded(call("remember", "The heron nests in the reeds.", "--id", "past", "--valid-to", "2020-01-31", "--json"))
    loaded(call("remember", "The heron nests on the roof.", "--id", "to-come", "--valid-from", "2126-01-31", "--json"))
    loaded(call("remember", "The heron nests in the tree.", "--id", "now", "--json"))
    out = " ".join(call("recall", "where does the heron nest?")[1].split())  # lines end anywhere
    assert out.count("held until 2020-01-31") == 1
    assert out.count("holds from 2126-01-31") == 1


def test_a_namespace_is_renamed_copied_and_dropped(call: Call) -> None:
    call("remember", "The key is under the pot.", "--id", "key", "-n", "house")
    assert call("namespaces", "rename", "house", "home")[1].strip() == "The namespace house is home now, with 1 memory."
    assert call("namespaces", "copy", "home", "spare")[1].strip() == "Copied 1 memory of the namespace home to spare."
    code, _, err = call("namespaces", "rename", "home", "spare")
    assert (code, "already holds memories" in " ".join(err.split())) == (5, True)
    assert call("namespaces", "copy", "nowhere", "x")[0] == 4
    assert loaded(call("namespaces", "drop", "spare", "--json")) == {"memories": 1, "dry_run": True}
    assert call("namespaces", "drop", "spare", "--yes")[1].strip() == "Dropped the namespace spare with 1 memory."
    assert [one["name"] for one in loaded(call("namespaces", "--json"))["namespaces"]] == ["home"]


def test_a_recall_below_the_least_confidence_shows_no_hit(call: Call) -> None:
    call("remember", "The key is under the pot.")
    code, out, _ = call("recall", "key", "--min-confidence", "1")
    assert (code, "is below 1: no hit is shown." in out, "under the pot" in out) == (0, True, False)


def test_an_id_that_is_taken_is_told_before_anything_is_embedded(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.embedders.hashing import Hashing

    call("remember", "One.", "--id", "a")
    asked: list[Any] = []
    monkeypatch.setattr(Hashing, "embed", lambda self, texts: asked.append(texts))
    code, _, err = call("remember", "Two.", "--id", "a")
    assert code == 5
    assert "'a'" in err
    assert call("remember", "One.", "--id", "a")[0] == 0
    assert asked == []


def test_maintain_says_in_words_why_no_vector_came_into_the_index_and_what_it_rebuilt(
    call: Call, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "vectors" not in call("maintain")[1]  # there are none
    loaded(call("remember", "The key hangs behind the radio.", "--json"))
    small = "No vectors are indexed: a namespace with fewer than 10,000 needs no index."
    assert small in " ".join(call("maintain")[1].split())
    with psycopg.connect(store_url, autocommit=True) as other:
        other.execute(statements("postgres")["embedding_index_lock"].format(table="embedding"))
        assert (
            "No vectors were indexed here, because another process is indexing, or keeps using the vectors."
            in call("maintain")[1]
        )
        done = loaded(call("maintain", "--json"))
        assert (done["indexed"], done["busy"]) == (0, 1)
    assert "busy" not in loaded(call("maintain", "--json"))
    monkeypatch.setattr(ingest, "LIKENESS", 2)
    assert loaded(call("stats", "--json"))["stale"] == 1
    found = {one["what"]: one for one in loaded(call("doctor", "--json"))["findings"]}
    assert found["stale"]["detail"] == "an older version made the derived rows of 1 memory"
    assert found["stale"]["mend"] == "semmem maintain"
    assert "Done: rebuilt 1." in call("maintain")[1]
    assert loaded(call("stats", "--json"))["stale"] == 0
