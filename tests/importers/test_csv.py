"""Tables as memories: columns by a map or by name, rows known by the line they begin on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from semmem.importers import BadRow, reader
from semmem.importers.csv import column_map
from semmem.interfaces.cli.app import run
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item

Call = Callable[..., tuple[int, str, str]]
MAY = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


def table(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def read(path: Path, **how: Any) -> tuple[list[Item], list[BadRow]]:
    bad: list[BadRow] = []
    return list(reader("csv")(path, reject=bad.append, **how)), bad


def test_headers_that_are_remembers_names_need_no_map(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.csv",
        "Id,Text,title,author,session,position,source,tags,importance,created_at,metadata,namespace,colour\n"
        'a,One.,T,Ada,s,3,x.md,"home, key;red",0.25,2026-05-01T09:00:00Z,"{""n"": 1}",m,blue\n'
        "b,Two.,,,,,,,,1777626000,,,\n",
    )
    items, bad = read(path)
    assert bad == []
    assert items == [
        {"id": "a", "text": "One.", "title": "T", "author": "Ada", "session": "s", "position": 3, "source": "x.md",
         "tags": ["home", "key", "red"], "importance": 0.25, "created_at": MAY, "namespace": "m",
         "metadata": {"n": 1, "colour": "blue"}},
        {"id": "b", "text": "Two.", "created_at": MAY},  # 1777626000 s = 2026-05-01T09:00Z
    ]  # fmt: skip
    assert [item.where for item in items] == ["line 2", "line 3"]
    assert read(path, drop_others=True)[0][0]["metadata"] == {"n": 1}


def test_a_map_names_the_columns_and_what_stands_between_tags(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "Nr,Body,Subject,Labels\n1,The text.,A title,red; light blue\n")
    items, bad = read(path, columns=column_map(["text=Body", "title=Subject", "tags=Labels:;", "id=Nr"]))
    assert bad == []
    assert items == [{"id": "1", "text": "The text.", "title": "A title", "tags": ["red", "light blue"]}]


def test_a_row_without_an_id_is_known_by_what_it_holds(tmp_path: Path) -> None:
    one = read(table(tmp_path / "t.csv", "text,n\nOne.,1\nTwo.,2\n"))[0]
    two = read(table(tmp_path / "t.csv", "text,n\nNew.,0\nOne.,1\nTwo.,3\n"))[0]
    assert one[0]["id"] == two[1]["id"]
    assert one[1]["id"] != two[2]["id"]
    assert len({item["id"] for item in one + two}) == 4
    assert one[0]["id"].startswith("t:")


def test_rows_are_told_by_the_line_they_begin_on(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.csv",
        "text,position,importance,created_at,metadata\r\n"  # 1
        '"Two\r\nlines, ""quoted"".",1,,,\r\n'  # 2 and 3
        "\r\n"  # 4
        "Bad.,one,,,\r\n"  # 5
        "Bad.,,much,,\r\n"  # 6
        "Bad.,,,yesterday,\r\n"  # 7
        "Bad.,,,,[1]\r\n"  # 8
        '" ",,,,\r\n'  # 9: white space alone is a blank row
        ",1,,,\r\n"  # 10
        "Bad.,,,,,,\r\n"  # 11
        '"Bad."x,,,,\r\n'  # 12
        "Short.\r\n"  # 13
        '"Never closed\r\nuntil the end.\r\n',  # 14
    )
    items, bad = read(path)
    assert [(item.where, item["text"]) for item in items] == [
        ("line 2", 'Two\r\nlines, "quoted".'), ("line 13", "Short."),
    ]  # fmt: skip
    assert [(row.where, row.reason) for row in bad] == [
        ("line 5", "its position must be a whole number, not 'one'."),
        ("line 6", "its importance must be a number from 0 to 1, not 'much'."),
        ("line 7", "'yesterday' is not a time (ISO 8601, such as 2026-03-01T09:00)."),
        ("line 8", "its metadata must be a JSON object, not '[1]'."),
        ("line 10", "its text (text) is empty."),
        ("line 11", "it has 7 cells and the header 5; is a quote or a delimiter missing?"),
        ("line 12", "it is not CSV (',' expected after '\"')."),
        (
            "lines 14 to 15",
            "it is not CSV (unexpected end of data), and all of it is left out; is there a quote too many or too few?",
        ),
    ]


def test_the_rows_that_a_lone_quote_takes_along_are_named(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.csv",
        'id,text\n1,One.\n2,"Two.\n3,Three.\n4,Four.\n5,"Five, quoted",\n6,Six.\n7,"Seven.\n',
    )
    items, bad = read(path)
    assert [item["id"] for item in items] == ["1", "6"]
    assert [row.where for row in bad] == ["lines 3 to 6", "line 8"]
    assert bad[0].reason.endswith("and all of it is left out; is there a quote too many or too few?")


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_header(tmp_path: Path, sign: str) -> None:
    path = table(tmp_path / "t.csv", f'id{sign}text\n1{sign}"A; b, c | d."\n')
    assert read(path)[0] == [{"id": "1", "text": "A; b, c | d."}]
    assert read(table(tmp_path / "one.csv", "text\nAlone.\n"))[0][0]["text"] == "Alone."
    assert read(path, delimiter=sign)[0][0]["id"] == "1"


def test_a_mark_at_the_start_is_none_of_the_header_and_what_is_not_utf8_is_told(tmp_path: Path) -> None:
    assert read(table(tmp_path / "t.csv", "text\nÖl.\n", "utf-8-sig"))[0][0]["text"] == "Öl."
    path = table(tmp_path / "t.csv", "text,id\nÖl.,1\nOil.,2\n", "latin-1")
    items, bad = read(path)
    assert [item["id"] for item in items] == ["2"]
    assert bad == [BadRow("line 2", "it is not UTF-8; save the table as UTF-8.")]


def test_a_column_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "Body,Subject\nOne.,T\n")
    with pytest.raises(InvalidInput, match=r"no column 'text'; its columns are Body, Subject\. Say --column text=ONE"):
        read(path)
    with pytest.raises(InvalidInput, match="no column 'Text' for text; its columns are Body, Subject"):
        read(path, columns=column_map(["text=Text"]))
    with pytest.raises(InvalidInput, match=r"no column 'text'; its columns are Body of it, Subject\. "):
        read(table(tmp_path / "lines.csv", '"Body\nof it",Subject\nOne.,T\n'))
    with pytest.raises(InvalidInput, match="two columns 'a'"):
        read(table(tmp_path / "two.csv", "a,a\n1,2\n"))
    with pytest.raises(InvalidInput, match="is empty"):
        read(table(tmp_path / "no.csv", "\n\n"))
    for wrong in (["Body"], ["txt=Body"], ["text=", "title=x"], ["text=a", "text=b"]):
        with pytest.raises(InvalidInput, match="--column"):
            column_map(wrong)


def test_a_table_goes_in_from_the_command_line(
    capfd: pytest.CaptureFixture[str], store_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    path = str(table(tmp_path / "notes.csv", "Body;Labels\nThe key is red.;a/b\n;x\n"))
    how = ["import", "csv", path, "--column", "text=Body", "--column", "tags=Labels:/", "-n", "n"]
    assert run([*how, "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["remembered"], [row["where"] for row in told["rejected"]]) == (1, ["line 3"])
    assert run(how) == 0
    assert "1 was there already, 1 row was bad." in " ".join(capfd.readouterr().out.split())
    assert run(["list", "-n", "n", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["memories"][0]["tags"] == ["a", "b"]
    assert run(["import", "csv", path]) == 2
    assert "its columns are Body, Labels" in capfd.readouterr().err
    assert run(["import", "chat", path, "--drop-others"]) == 2
    assert capfd.readouterr().err == "--drop-others is an option of import csv, not of import chat.\n"
    assert run(["import", "csv", path, "--delimiter", "||"]) == 2
    assert run(["import", "--help"]) == 0
    told = capfd.readouterr().out
    for line in ("chat: JSON lines", "csv: a table", "markdown: a folder", "mcp: the file", "mem0: mem0"):
        assert line in told
