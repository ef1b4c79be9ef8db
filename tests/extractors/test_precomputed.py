"""Names and relationships out of a file, matched by the text of a memory."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from semmem.concepts.rules import extract
from semmem.extractors import load
from semmem.extractors.precomputed import Precomputed
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key

MILL: dict[str, Any] = {
    "title": "Orbit Mill",
    "text": "The mill was built in 1846. Its owner, hugo brandt, sold it to the county.",
    "extracted_entities": ["the mill", "hugo brandt", "1846"],
    "extracted_triples": [["hugo brandt", "sold", "orbit mill"], ["orbit mill", "was built in", "1846"]],
}
HUGO, ORBIT, PLAIN = (key(Kind.NAME, parts) for parts in (("hugo", "brandt"), ("orbit", "mill"), ("mill",)))


def written(tmp_path: Path, *docs: Any) -> Path:
    path = tmp_path / "triples.json"
    path.write_text(json.dumps({"docs": list(docs)}), encoding="utf-8")
    return path


def names(extraction: Extraction) -> dict[int, tuple[float, float]]:
    columns = zip(extraction.keys, extraction.kinds, extraction.mentions, extraction.subjects, strict=True)
    return {at: (mention, subject) for at, kind, mention, subject in columns if kind == Kind.NAME}


def test_a_memory_gets_the_names_and_relationships_of_its_passage(tmp_path: Path) -> None:
    extractor = Precomputed(written(tmp_path, MILL))
    extraction = extractor.extract(MILL["text"], MILL["title"])
    # the title is a capitalised span and the subject; 1846 alone is no concept, so neither is what it ends
    assert names(extraction) == {HUGO: (1.0, 0.0), ORBIT: (1.0, 1.0), PLAIN: (1.0, 0.0)}
    assert extraction.relationships == ((HUGO, "sold", ORBIT),)
    assert extractor.counts == {"matched": 1, "passages": 1}


def test_terms_stems_and_length_are_those_of_the_rules(tmp_path: Path) -> None:
    extraction = Precomputed(written(tmp_path, MILL)).extract(MILL["text"], MILL["title"])
    rules = extract(MILL["text"], MILL["title"])
    assert extraction.length == rules.length
    for kind in (Kind.TERM, Kind.STEM, Kind.BIGRAM):
        one, other = (
            [r for r in zip(e.keys, e.kinds, e.names, e.mentions, e.counts, strict=True) if r[1] == kind]
            for e in (extraction, rules)
        )
        assert one == other


def test_case_spaces_and_final_punctuation_do_not_matter(tmp_path: Path) -> None:
    extractor = Precomputed(written(tmp_path, MILL))
    assert HUGO in extractor.extract("  " + MILL["text"].upper().replace(" ", "  ") + " ", "ORBIT MILL").keys
    assert extractor.counts["matched"] == 1


def test_a_memory_without_its_title_is_found_by_its_text(tmp_path: Path) -> None:
    extractor = Precomputed(written(tmp_path, MILL))
    assert HUGO in extractor.extract(MILL["text"]).keys
    assert extractor.counts["matched"] == 1


def test_a_text_that_two_passages_have_is_told_apart_by_its_title(tmp_path: Path) -> None:
    other = {**MILL, "title": "Old Mill", "extracted_entities": ["county"], "extracted_triples": []}
    extractor = Precomputed(written(tmp_path, MILL, other))
    assert HUGO in extractor.extract(MILL["text"], "Orbit Mill").keys
    assert HUGO not in extractor.extract(MILL["text"], "Old Mill").keys
    assert extractor.extract(MILL["text"]) == extract(MILL["text"])
    assert extractor.counts == {"fallback": 1, "matched": 2, "passages": 2}


def test_a_part_of_a_split_text_takes_what_stands_in_it(tmp_path: Path) -> None:
    extractor = Precomputed(written(tmp_path, MILL))
    first, second = "The mill was built in 1846.", "Its owner, hugo brandt, sold it to the county."
    assert names(extractor.extract(first, "Orbit Mill")) == {ORBIT: (1.0, 1.0), PLAIN: (1.0, 0.0)}
    part = extractor.extract(second, "Orbit Mill")
    assert HUGO in part.keys
    assert part.relationships == ((HUGO, "sold", ORBIT),)  # the title belongs to every part
    assert extractor.counts == {"part": 2, "passages": 1}


def test_a_text_that_is_not_in_the_file_falls_back_to_the_rules_and_is_counted(tmp_path: Path) -> None:
    extractor = Precomputed(written(tmp_path, MILL))
    assert extractor.extract("Ada Lovelace ran.", "Note") == extract("Ada Lovelace ran.", "Note")
    assert extractor.counts == {"fallback": 1, "passages": 1}


def test_a_passage_may_stand_for_title_and_text(tmp_path: Path) -> None:
    row = {"idx": 0, "passage": f"{MILL['title']}\n{MILL['text']}", "extracted_entities": ["hugo brandt"]}
    extractor = Precomputed(written(tmp_path, row))
    assert HUGO in extractor.extract(MILL["text"], "Orbit Mill").keys
    assert extractor.counts["matched"] == 1


def test_parts_of_another_form_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = {**MILL, "extracted_entities": ["hugo brandt", 7], "extracted_triples": [["a", "b"], "x", ["a", None, "c"]]}
    extractor = Precomputed(written(tmp_path, odd, "no passage", {"title": "no text"}))
    extraction = extractor.extract(MILL["text"], MILL["title"])
    assert HUGO in extraction.keys
    assert extraction.relationships == ()
    # 7, the pair, "x", the one with null; and two passages that are none
    assert extractor.counts == {"malformed": 6, "matched": 1, "passages": 1}


def test_without_spans_only_the_file_makes_names(tmp_path: Path) -> None:
    row = {**MILL, "text": "Ada Lovelace met hugo brandt.", "extracted_triples": []}
    path = written(tmp_path, row)
    ada = key(Kind.NAME, ("ada", "lovelace"))
    assert ada in Precomputed(path).extract(row["text"], row["title"]).keys
    alone = Precomputed(path, spans=False)
    assert names(alone.extract(row["text"], row["title"])) == {HUGO: (1.0, 0.0), PLAIN: (1.0, 0.0), ORBIT: (0.0, 1.0)}
    assert ada in dict(alone.extract(row["text"], row["title"]).candidates)  # where others are about her, she is named


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"3", b'{"docs": {}}', b"[" * 100_000])
def test_a_file_of_another_form_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "triples.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"file of relationships .*; it needs"):
        Precomputed(path)


def test_a_file_that_is_not_there_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        load("precomputed", triples=tmp_path / "none.json")
    with pytest.raises(InvalidInput, match="SEMMEM_TRIPLES"):
        load("precomputed")


def test_every_passage_of_the_published_file_is_matched() -> None:
    data = Path(os.environ.get("SEMMEM_EVAL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    folder = data / "musique100"
    if not (folder / "openie_gpt35.json").is_file():
        pytest.skip("musique100 with its relationships is not here")
    extractor = load("precomputed", triples=folder / "openie_gpt35.json")
    with (folder / "documents.jsonl").open(encoding="utf-8") as lines:
        memories = [json.loads(line) for line in lines][:100]
    tied = 0
    for memory in memories:
        extraction = extractor.extract(memory["text"], memory["title"])
        held = {k for k, kind in zip(extraction.keys, extraction.kinds, strict=True) if kind == Kind.NAME}
        assert all(left in held and right in held for left, _, right in extraction.relationships)
        tied += len(extraction.relationships)
    counts = extractor.counts  # type: ignore[attr-defined]
    assert (counts["passages"], counts["matched"], counts.get("fallback", 0)) == (1890, 100, 0)
    assert tied > 500  # the file holds nine for each passage
