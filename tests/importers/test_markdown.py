"""A folder of notes as memories: what Obsidian shows of a note is what is remembered."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import semmem
from semmem.importers import BadRow, reader
from semmem.importers.markdown import Vault, vault_origin
from semmem.model.errors import BadItem, InvalidInput, MissingExtra
from semmem.model.imported_items import Item
from tests.importers.vault import vault


def read(folder: Path) -> tuple[dict[str, Item], list[BadRow]]:
    bad: list[BadRow] = []
    return {item["id"]: item for item in reader("markdown")(folder, reject=bad.append)}, bad


def test_front_matter_gives_title_tags_aliases_time_and_metadata(tmp_path: Path) -> None:
    note = (
        "---\ntitle: The Kestrel\naliases: [KL-7, Old Bird]\ntags: [hardware, '#logger']\ncreated: 2026-03-01 09:30\n"
        "status: no\nat: 12:30\ndepth: 3\nratio: 0.5\ndone: true\nseen: 2026-04-01\nempty:\n---\n"
        "# Not the title\nIt logs at #site/north, not (#7). #hardware\n"
    )
    folder = vault(tmp_path / "Notes", kestrel=note)
    items, bad = read(folder)
    assert bad == []
    assert items == {
        "kestrel.md": {
            "id": "kestrel.md",
            "source": "kestrel.md",
            "title": "The Kestrel",
            "text": "# Not the title\nIt logs at #site/north, not (#7). #hardware",
            "tags": ["hardware", "logger", "site/north"],
            "created_at": datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
            "metadata": {
                "status": "no", "at": "12:30", "depth": 3, "ratio": 0.5, "done": True, "seen": "2026-04-01",
                "empty": None, "vault": "Notes", "vault_id": vault_origin(folder).folder,
                "aliases": ["KL-7", "Old Bird", "kestrel"], "note_hash": "bb1bd44c4cc190b3",
            },
        }
    }  # fmt: skip
    assert items["kestrel.md"].where == "kestrel.md"


def test_without_front_matter_the_first_heading_is_the_title_else_the_name_of_the_file(tmp_path: Path) -> None:
    folder = vault(
        tmp_path / "v",
        a="## Small\n```sh\n# no heading\n```\n\n# A *great* [[b|Idea]] #\ntext",
        b="Only text.",
        **{"2026-05-01": "# Standup\nWe met."},
        index="---\ntags: one two\nalias: Start\ndate: some day\n---\n# Where it begins\nHere.",
    )
    items, bad = read(folder)
    assert bad == []
    assert {id: (item["title"], item["metadata"].get("aliases")) for id, item in items.items()} == {
        "2026-05-01.md": ("Standup", ["2026-05-01"]),
        "a.md": ("A great Idea", ["a"]),
        "b.md": ("b", None),
        "index.md": ("Where it begins", ["Start"]),  # "index" says nothing
    }
    assert items["2026-05-01.md"]["created_at"] == datetime(2026, 5, 1, tzinfo=UTC)
    assert "created_at" not in items["index.md"]
    assert items["index.md"]["metadata"]["date"] == "some day"
    assert items["index.md"]["tags"] == ["one", "two"]


def test_signs_that_close_a_heading_are_left_out_and_those_of_a_name_stay(tmp_path: Path) -> None:
    notes = {"closed": "# Notes ##  ", "empty": "# #\n# Next", "sharp": "# Learning C#", "spaced": "  #\tA  b\t#"}
    items, _ = read(vault(tmp_path / "v", **notes))
    assert {id: item["title"] for id, item in items.items()} == {
        "closed.md": "Notes", "empty.md": "Next", "sharp.md": "Learning C#", "spaced.md": "A b"
    }  # fmt: skip


def test_links_are_readable_and_lead_to_ids(tmp_path: Path) -> None:
    links = (
        "[[Kestrel]] and [[kestrel|the logger]], [[Kestrel#Use]], ![[Kestrel#^b1]], [[#Below]], [[KL-7]], "
        "[[Nowhere|there]], ![[pic.png|200]], [more](sub/Ada%20Norr.md#life), [out](https://a.b/c.md), "
        "[[sub/Ada Norr\\|Ada]] `[[Kestrel|code]]`\n~~~\n[[Kestrel]] #tag\n~~~\n"
    )
    folder = vault(
        tmp_path / "v",
        Index=links + "---\n",
        Kestrel="---\naliases: KL-7, the Bird\nup: '[[Index]]'\n---\nIt logs.",
        **{"sub__Ada Norr": "She built [[Kestrel|the Bird]]. [[Ada Norr]]"},
    )
    items, bad = read(folder)
    assert bad == []
    assert items["Index.md"]["text"].splitlines() == [
        "Kestrel and the logger (Kestrel), Kestrel > Use, Kestrel, Below, KL-7, there, pic.png, more (Ada Norr), "
        "[out](https://a.b/c.md), Ada (Ada Norr) `[[Kestrel|code]]`",
        "~~~",
        "[[Kestrel]] #tag",
        "~~~",
        "---",
    ]
    assert items["Index.md"]["metadata"]["links"] == ["Kestrel.md", "KL-7", "Nowhere", "pic.png", "sub/Ada Norr.md"]
    assert items["Index.md"]["tags"] == []  # said, so that a note which has lost its tags loses them here too
    assert items["Kestrel.md"]["metadata"]["links"] == ["Index.md"]
    # "the Bird" is a name of it, but nothing with a capital: nobody would find the note by it in the text
    assert items["sub/Ada Norr.md"]["text"] == "She built the Bird (Kestrel). Ada Norr"


def test_a_link_to_a_note_that_cannot_be_read_leads_to_it_all_the_same(tmp_path: Path) -> None:
    items, bad = read(vault(tmp_path / "v", a="See [[latin]].", latin="Öl".encode("latin-1")))
    assert [row.where for row in bad] == ["latin.md"]
    assert (items["a.md"]["text"], items["a.md"]["metadata"]["links"]) == ("See latin.", ["latin.md"])


def test_a_link_means_the_note_that_obsidian_would_open() -> None:
    notes = Vault(["a/Note.md", "a/b/Note.md", "Other.md", "c/deep/Only.md", "x/y/Far.md", "x/Far.md", "a/Far.md"])
    assert notes.find("Other", "a/Note.md") == "Other.md"
    assert notes.find("only", "Other.md") == "c/deep/Only.md"
    assert notes.find("Note", "a/b/Some.md") == "a/b/Note.md"  # beside the source
    assert notes.find("Note", "Other.md") == "a/Note.md"  # the shortest path
    assert notes.find("b/Note", "Other.md") == "a/b/Note.md"
    assert notes.find("Far.md", "Other.md") == "a/Far.md"  # as short as x/Far.md, and before it
    assert notes.find("../Note", "a/b/Note.md") == "a/Note.md"
    assert notes.find("/a/Note", "Other.md") == "a/Note.md"
    assert notes.find("Not", "Other.md") is None


def test_the_name_of_a_file_is_a_name_of_its_note_where_no_other_file_has_it() -> None:
    notes = Vault(["a/Kestrel.md", "b/kestrel.md", "Heron.md", "Index.md"])
    for id in ("a/Kestrel.md", "b/kestrel.md", "Heron.md", "Index.md"):
        notes.name(id, "A title", [])
    assert [notes.aliases(id) for id in ("a/Kestrel.md", "b/kestrel.md")] == [[], []]
    assert (notes.aliases("Heron.md"), notes.aliases("Index.md")) == (["Heron"], [])


def test_hidden_folders_other_files_and_links_to_outside_are_left_out(tmp_path: Path) -> None:
    outside = vault(tmp_path / "outside", secret="Secret.")
    folder = vault(
        tmp_path / "v", a="One.", **{".trash__b": "Two.", ".obsidian__c": "Three.", "d__.hidden": "Four.", "e": "Five."}
    )
    (folder / "f.txt").write_text("Six.", encoding="utf-8")
    (folder / "leak.md").symlink_to(outside / "secret.md")
    (folder / "leaks").symlink_to(outside)
    (folder / "inside.md").symlink_to(folder / "a.md")
    items, bad = read(folder)
    assert list(items) == ["a.md", "e.md", "inside.md"]
    assert bad == [BadRow("leak.md", "it is a link to outside the folder, which is not followed.")]
    with pytest.raises(InvalidInput, match="is not a folder"):
        read(folder / "a.md")


def test_links_to_themselves_pipes_sockets_and_devices_are_told_and_not_waited_for(tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="One.", **{"sub__b": "Two."})
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "one.md").symlink_to("other.md")
    (folder / "other.md").symlink_to("one.md")
    (folder / "sub" / "round").symlink_to(folder)
    (folder / "gone.md").symlink_to("nothing.md")
    (folder / "null.md").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.md")
    (folder / "folder.md").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket.md"))
        items, bad = read(folder)
    assert list(items) == ["a.md", "sub/b.md"]
    reasons = {row.where: row.reason for row in bad}
    assert reasons.pop("socket.md").startswith("it cannot be read: No such device")
    assert reasons == {
        "gone.md": "it cannot be read: No such file or directory.",
        "loop.md": "it cannot be read: Too many levels of symbolic links.",
        "null.md": "it is a link to outside the folder, which is not followed.",
        "one.md": "it cannot be read: Too many levels of symbolic links.",
        "other.md": "it cannot be read: Too many levels of symbolic links.",
        "pipe.md": "it is not a regular file.",
    }


@pytest.mark.parametrize("format", ["chat", "csv", "jsonl", "locomo", "longmemeval", "mcp", "mem0"])
def test_a_pipe_or_a_device_is_no_file_of_any_format(format: str, tmp_path: Path) -> None:
    for name in ("pipe.jsonl", "pipe.json"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(InvalidInput, match=rf"{name} is not a regular file; save its output in one"):
            list(reader(format)(tmp_path / name))
    with pytest.raises(InvalidInput, match="/dev/zero is not a regular file"):
        list(reader(format)(Path("/dev/zero")))


def test_odd_files_are_read_or_told(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9))  # 9 ** 8
    folder = vault(
        tmp_path / "v",
        bom=b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\nOne.\r\n\r\nTwo.\r\n",
        latin="Öl".encode("latin-1"),
        empty="---\ntitle: T\n---\n \n",
        broken="---\ntitle: Re: this\n---\n# Heading\nText.",
        list="---\n- a\n---\nText.",
        shared="---\na: &x [1]\nb: *x\n---\nText.",
        bomb=f"---\n{bomb}---\nText.",
        rule="---\nno front matter",
        code="---\n!!python/object/apply:os.system ['true']\n---\nText.",
        own="---\nlinks: [x]\nvault: y\n---\n[[bom]]",
    )
    items, bad = read(folder)
    assert (items["bom.md"]["title"], items["bom.md"]["text"]) == ("T", "One.\n\nTwo.")
    assert (items["broken.md"]["title"], items["rule.md"]["text"]) == ("Heading", "---\nno front matter")
    assert items["own.md"]["metadata"] == {
        "links": ["bom.md"], "vault": "v", "vault_id": vault_origin(folder).folder,
        "front matter": {"links": ["x"], "vault": "y"}, "note_hash": "81163ad1a1be4704",
    }  # fmt: skip
    assert sorted(items) == [
        f"{name}.md" for name in ("bom", "bomb", "broken", "code", "list", "own", "rule", "shared")
    ]
    assert [(row.where, row.reason[:76], row.id) for row in bad] == [
        ("bomb.md:1", "its front matter is left out: it says more than 100,000 values.", "bomb.md"),
        ("broken.md:2", "its front matter is left out: it is not YAML: mapping values are not allowed", "broken.md"),
        ("code.md:2", "its front matter is left out: it is not YAML: could not determine a construc", "code.md"),
        ("empty.md", "the note is empty.", None),
        ("latin.md", "it is not UTF-8 (byte 0).", "latin.md"),
        ("list.md:2", "its front matter is left out: it is list, not names with values.", "list.md"),
    ]
    with pytest.raises(BadItem, match=r"bomb\.md:1: its front matter is left out"):
        list(reader("markdown")(folder))


def test_front_matter_that_is_too_long_too_deep_or_a_bomb_leaves_the_process_and_the_note(tmp_path: Path) -> None:
    merges = "a0: &a0 {x: 1}\n" + "".join(
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 9)
    )
    ladder = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 60))
    fronts = {
        "aliases": ladder,
        "deepest": f"a: {'[' * 19}{']' * 19}",
        "flow": "a: " + "[" * 30_000,
        "hidden": "a: " + "['] ] ] ]', " * 21 + "]" * 21,
        "indented": "\n".join(" " * i + "a:" for i in range(60)),
        "keys": "? " * 1_500,
        "longest": f"a: {'x' * 3_997}",
        "longer": f"a: {'x' * 3_998}",
        "mappings": "{a: " * 900,
        "merges": merges,
        "sequences": "- " * 1_990,
    }
    vault(tmp_path / "v", **{name: f"---\n{raw}\n---\nText." for name, raw in fronts.items()})
    (tmp_path / "program.py").write_text(
        "import json, resource, sys\n"
        "from pathlib import Path\n"
        "from semmem.importers import reader\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4_000_000_000, 4_000_000_000))\n"
        "bad = []\n"
        "rows = [item['id'] for item in reader('markdown')(Path(sys.argv[1]), reject=bad.append)]\n"
        "print(json.dumps([rows, [[row.where, row.reason.removesuffix('.')] for row in bad]]))\n"
    )
    path = os.pathsep.join(filter(None, (str(Path(semmem.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [sys.executable, tmp_path / "program.py", tmp_path / "v"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    rows, bad = json.loads(ran.stdout)
    assert rows == [f"{name}.md" for name in sorted(fronts)]
    deep, long = (
        "its front matter is left out: it is nested more than 20 levels deep",
        "its front matter is left out: it has {} characters",
    )
    assert bad == [
        ["aliases.md:1", "its front matter is left out: with its references it is nested more than 20 levels deep"],
        ["flow.md:1", f"{long.format('30,003')}, more than 4,000"],
        ["hidden.md:2", deep],
        ["indented.md:22", deep],
        ["keys.md:2", deep],
        ["longer.md:1", f"{long.format('4,001')}, more than 4,000"],
        ["mappings.md:2", deep],
        ["merges.md:1", "its front matter is left out: it says more than 100,000 values"],
        ["sequences.md:2", deep],
    ]


def test_front_matter_may_have_more_lists_side_by_side_than_levels(tmp_path: Path) -> None:
    names = "".join(f"  k{i}: [{i}]\n" for i in range(30))
    items, bad = read(vault(tmp_path / "v", wide=f"---\ndays:\n{names}---\nText."))
    assert bad == []
    assert items["wide.md"]["metadata"]["days"]["k29"] == [29]


def test_sentences_between_two_rules_are_text_and_names_of_two_words_are_front_matter(tmp_path: Path) -> None:
    folder = vault(
        tmp_path / "v",
        meeting="---\nMeeting with Ada: budget is 5000\nNext steps: call Bo\n---\nSecond part.\n",
        dated="---\ndate created: 2026-01-01\ndate last opened: 2026-01-02\n---\nText.\n",
        titled="---\nMeeting with Ada: yes\ntitle: Budget\n---\nText.\n",
        born="---\ndate of birth: 1990-01-01\nparent of this: [a b]\n---\nText.\n",
        nested='---\n"a b c": 1\nd:\n  - e f g: 1\n---\nText.\n',
    )
    items, bad = read(folder)
    assert bad == []
    assert items["meeting.md"]["text"].startswith("---\nMeeting with Ada: budget is 5000\nNext steps: call Bo\n---\n")
    assert items["dated.md"]["metadata"]["date last opened"] == "2026-01-02"
    assert (items["titled.md"]["title"], items["titled.md"]["text"]) == ("Budget", "Text.")
    assert items["nested.md"]["metadata"]["a b c"] == 1
    assert items["born.md"]["metadata"]["parent of this"] == ["a b"]


def test_a_name_that_front_matter_says_again_is_told_and_its_last_value_counts(tmp_path: Path) -> None:
    folder = vault(tmp_path / "v", a="---\ntags: [a]\nk: {x: 1}\ntags: [b]\n\nk: 2\n---\nText.\n")
    items, bad = read(folder)
    assert (items["a.md"]["tags"], items["a.md"]["metadata"]["k"]) == (["b"], 2)
    assert [(row.where, row.reason, row.id, row.imported) for row in bad] == [
        ("a.md:4", "its front matter says 'tags' again; the value before this one is left out.", "a.md", True),
        ("a.md:6", "its front matter says 'k' again; the value before this one is left out.", "a.md", True),
    ]


def test_front_matter_may_be_empty(tmp_path: Path) -> None:
    items, bad = read(vault(tmp_path / "v", a="---\n---\nOne.\n---\nTwo."))
    assert (items["a.md"]["text"], bad) == ("One.\n---\nTwo.", [])


def test_front_matter_without_a_yaml_reader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert list(read(vault(tmp_path / "plain", a="Text."))[0]) == ["a.md"]
    with pytest.raises(MissingExtra, match=r"pip install 'semmem\[markdown\]'"):
        read(vault(tmp_path / "v", a="---\nx: 1\n---\nText."))


def test_a_question_by_an_alias_reaches_the_note_that_links_to_the_thing_over_the_graph(
    store_url: str, tmp_path: Path
) -> None:
    folder = vault(
        tmp_path / "v",
        kestrel="---\ntitle: Kestrel\naliases: [Old Bird]\n---\nA data recorder for cold places.",
        harbour="Every winter the [[kestrel|recorder]] is brought up from the harbour by the night shift.",
        **{f"other{i}": f"Nothing of note happened in week {i}; the crew painted wall {i}." for i in range(6)},
    )
    with semmem.connect(store_url, embedder="none") as mem:
        assert mem.import_items(reader("markdown")(folder)).remembered == 8
        by_name = mem.recall("Who carries the Old Bird?", recipe="graph", limit=3)
        assert [hit.memory.id for hit in by_name][:2] == ["kestrel.md", "harbour.md"]
        assert "graph" in by_name[1].legs
        assert "Old Bird" not in by_name[1].memory.text
        why = str(mem.recall("Who carries the Old Bird?", limit=3).explain("harbour.md"))
        assert "Kestrel" in why
        names = {concept.name: concept.subjects for concept in mem.concepts()}
        assert (names["Kestrel"], names["Old Bird"]) == (1, 1)
        before = mem.graph_hash()
        mem.rebuild(extract=True)
        assert mem.graph_hash() == before
        mem.forget("kestrel.md")
        assert "Old Bird" not in {concept.name for concept in mem.concepts()}


def test_an_alias_that_comes_later_reaches_what_mentioned_it_before(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("It is old. Bird Twelve was seen in Norrbeck.", id="seen")
        mem.remember("A data recorder.", id="about", title="Kestrel", metadata={"aliases": ["Bird Twelve", 7, ""]})
        found = {concept.name: (concept.df, concept.subjects) for concept in mem.concepts()}
        assert found["Bird Twelve"] == (2, 1)
        assert next(hit.memory.id for hit in mem.recall("twelve bird recorder", recipe="lexical")) == "about"
