"""A folder of PDF, HTML and Office files as notes, converted by the real converter."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from semmem.importers import BadRow, reader
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.imported_items import Item
from tests.interfaces.cli.program import Call, in_process
from tests.traces import lookups, sent, traced, tracing

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
MAY = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


def docx(path: Path, text: str) -> None:
    """Write a document of Word with one paragraph."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    rels = "application/vnd.openxmlformats-package.relationships+xml"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(
            "[Content_Types].xml",
            f'<?xml version="1.0"?><Types xmlns="{PACKAGE}/content-types">'
            f'<Default Extension="rels" ContentType="{rels}"/>'
            f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        )
        file.writestr(
            "_rels/.rels",
            f'<?xml version="1.0"?><Relationships xmlns="{PACKAGE}/relationships">'
            f'<Relationship Id="r1" Type="{OFFICE}" Target="word/document.xml"/></Relationships>',
        )
        file.writestr(
            "word/document.xml",
            f'<?xml version="1.0"?><w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r>'
            "</w:p></w:body></w:document>",
        )


def pdf(path: Path, text: str) -> None:
    """Write a PDF of one page with one line."""
    drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 4 0 R>>>>/Contents 5 0 R>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream\n",
    ]
    out, places = "%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj{one}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    out += f"xref\n0 6\n0000000000 65535 f \n{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF"
    path.write_text(out, encoding="latin-1")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    pytest.importorskip("markitdown", reason="markitdown is not installed; make install-dev brings it")
    import openpyxl
    from pptx import Presentation

    folder = tmp_path / "papers"
    (folder / "old").mkdir(parents=True)
    pdf(folder / "boat.pdf", "The boat lies in Bergen.")
    docx(folder / "crew.docx", "Petra leads the crew.")
    body = "<h1>The plan</h1><p>We sail in May.</p><script>x()</script>"
    html = f"<html><head><title>Plan</title></head><body>{body}</body></html>"
    (folder / "plan.html").write_text(html, encoding="utf-8")
    book = openpyxl.Workbook()
    book.active.append(["Port", "Day"])
    book.active.append(["Heron Island", "Tuesday"])
    book.save(folder / "old" / "ports.xlsx")
    slides = Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Ferries"
    slide.placeholders[1].text = "The ferry leaves at nine."
    slides.save(folder / "talk.pptx")
    (folder / "readme.txt").write_text("Passed over.", encoding="utf-8")
    for path in folder.rglob("*.*"):
        os.utime(path, (MAY.timestamp(), MAY.timestamp()))
    return folder


def read(path: Path) -> tuple[list[Item], list[BadRow]]:
    bad: list[BadRow] = []
    return list(reader("documents")(path, reject=bad.append)), bad


def test_each_document_is_a_note_in_markdown(papers: Path) -> None:
    items, bad = read(papers)
    assert bad == []
    assert [(one["id"], one["title"], one["metadata"]["format"]) for one in items] == [
        ("papers/boat.pdf", "boat", "pdf"),
        ("papers/crew.docx", "crew", "docx"),
        ("papers/old/ports.xlsx", "ports", "xlsx"),
        ("papers/plan.html", "Plan", "html"),
        ("papers/talk.pptx", "Ferries", "pptx"),
    ]
    by_name = {one["source"]: one["text"] for one in items}
    assert by_name["boat.pdf"] == "The boat lies in Bergen."
    assert by_name["crew.docx"] == "Petra leads the crew."
    assert by_name["plan.html"] == "# The plan\n\nWe sail in May."
    assert "| Heron Island | Tuesday |" in by_name["old/ports.xlsx"]
    assert "The ferry leaves at nine." in by_name["talk.pptx"]
    assert {one["created_at"] for one in items} == {MAY}


def test_odd_documents_are_named_with_the_reason(papers: Path) -> None:
    (papers / "a.docx").write_bytes(b"no zip")
    (papers / "e.xlsx").write_bytes(b"PK\x03\x04 cut off")
    (papers / "b.pdf").write_bytes(b"%PDF-1.4 broken")
    (papers / "c.doc").write_bytes(b"\xd0\xcf")
    (papers / "d.html").write_text("<p> </p>", encoding="utf-8")
    os.mkfifo(papers / "f.html")
    items, bad = read(papers)
    assert len(items) == 5
    found = [(row.where, row.reason) for row in bad]
    assert [where for where, _ in found] == ["a.docx", "b.pdf", "c.doc", "d.html", "e.xlsx", "f.html"]
    assert [reason for _, reason in found] == [
        "it cannot be converted: File is not a zip file.",
        "it cannot be converted: No /Root object! - Is this really a PDF.",
        ".doc is not read; save it as one of .pdf, .html, .htm, .docx, .pptx, .xlsx, .epub.",
        "it has no text that can be read; it may be a scan.",
        "it cannot be converted: File is not a zip file.",
        "it is not a regular file.",
    ]


def test_a_folder_is_imported_once_a_changed_document_replaces_its_memory_and_an_edit_by_hand_stays(
    papers: Path, store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", store_url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    program: Call = in_process(capfd)
    assert "Imported 5 memories into namespace default" in program("import", "documents", str(papers))[1]
    assert "5 were there already" in program("import", "documents", str(papers))[1]
    docx(papers / "crew.docx", "Petra leads the crew; her key is ghp_" + "a1B2" * 9)
    (papers / "boat.pdf").unlink()
    assert program("update", "papers/plan.html", "We sail in June.")[0] == 0
    _, out, err = program("import", "documents", str(papers))
    assert "1 has changed, 3 were there already" in out
    assert "Redacted 1 credential." in err
    assert "1 note is deleted, but still remembered; --prune forgets them:\n  papers/boat.pdf" in err
    assert "Forgot 1 memory" in program("import", "documents", str(papers), "--prune")[1]
    texts = program("list", "--json")[1]
    assert "ghp_…[removed]" in texts
    assert "We sail in June." in texts


def test_what_is_no_folder_of_documents_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match=r"There is no document in .*: neither it nor a folder in it has \.pdf, "):
        read(tmp_path)
    program: Call = in_process(capfd)
    (tmp_path / "a.html").write_text("<p>x</p>", encoding="utf-8")
    refused = program("import", "documents", str(tmp_path / "a.html"))[2]
    assert refused == f"{tmp_path}/a.html is a file; import documents reads a folder.\n"
    assert program("import", "documents", str(tmp_path / "b"))[2] == f"There is no folder {tmp_path}/b.\n"
    from semmem.importers import documents

    documents._converter.cache_clear()
    monkeypatch.setitem(sys.modules, "markitdown", None)
    with pytest.raises(MissingExtra, match=r"install it with: pip install 'semmem\[documents\]'"):
        read(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(bool(tracing()), reason=tracing())
def test_the_conversion_reaches_no_other_machine_and_writes_nothing_at_home(papers: Path, tmp_path: Path) -> None:
    code = (
        "import semmem, sys, time; from pathlib import Path; from semmem.importers import reader; "
        "print(len(list(reader('documents')(Path(sys.argv[1]))))); time.sleep(3)"
    )
    home, log = tmp_path / "home", tmp_path / "log"
    home.mkdir()
    done = subprocess.run(
        traced([sys.executable, "-c", code, str(papers)], log), env={**os.environ, "HOME": str(home)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert sent(log) == []
    assert lookups(log) == []
    assert list(home.iterdir()) == []


def test_the_reason_of_a_damaged_document_has_200_characters_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semmem.importers import documents

    class Failing:
        def convert_local(self, file: object) -> object:
            raise ValueError("x" * 300)

    (tmp_path / "a.html").write_text("<p>Tea.</p>", encoding="utf-8")
    monkeypatch.setattr(documents, "_converter", Failing)
    _, bad = read(tmp_path)
    assert [row.reason for row in bad] == [f"it cannot be converted: {'x' * 200}."]
