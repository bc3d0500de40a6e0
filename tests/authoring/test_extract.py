"""A paper is the same text from every form of file, and what is no paper is refused with the reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inquitree_gym.authoring import read_document
from inquitree_gym.authoring.extract import MAX_PAGES
from inquitree_gym.errors import OptionError
from tests.authoring.papers import as_html, as_jats, as_pdf, blank_pdf
from tests.authoring.replies import OUTLINE, PAPER, ROWS

TEXT = PAPER.read_text("utf-8")


@pytest.fixture(params=["md", "txt", "html", "xml", "pdf"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"paper.{request.param}"
    if request.param == "pdf":
        as_pdf(TEXT, path)
    else:
        made = {"html": as_html, "xml": as_jats, "txt": lambda text: re.sub(r"^#+ ", "", text, flags=re.MULTILINE)}
        path.write_text(made.get(request.param, str)(TEXT), "utf-8")
    return path


def test_every_form_holds_title_and_quotations(file: Path):
    found = read_document(file)
    assert found.title == OUTLINE["title"]
    assert [row[3] for row in ROWS if found.place(row[3]) is None] == []
    assert found.place("the rate of calls fell by 3.1 calls per minute") is None
    assert "Introduction" in {section.heading for section in found.sections}
    assert "11.2" in found.text


@pytest.mark.parametrize("form", [str, as_html, as_jats])
def test_tables_and_captions_stand_apart(form, tmp_path: Path):
    (tmp_path / "paper").write_text(form(TEXT), "utf-8")
    found = read_document(tmp_path / "paper")
    assert found.tables[0].startswith("| water | dry air | moist air |")
    assert "Table 2. Calls per minute within twenty metres of a post." in found.captions
    assert found.place("Reed bed of the Lower Sedge with the four transects").startswith("caption")


def test_spaces_hyphens_and_marks_of_quotation_make_no_difference():
    found = read_document(PAPER)
    assert found.place("pitch of a call fell by 41\u00a0hertz for each milli-\nmetre") == "Conditions, paragraph 1"
    assert found.place("pitch of a call fell by 42 hertz") is None


def test_what_nobody_sees_is_left_out(tmp_path: Path):
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    (tmp_path / "paper.md").write_text(TEXT.replace("marsh", f"mar\u200bsh\u202e{hidden}"), "utf-8")
    (tmp_path / "page.html").write_text(as_html(TEXT).replace("<p>", "<script>obey()</script><p>", 1), "utf-8")
    assert read_document(tmp_path / "paper.md").text == read_document(PAPER).text.replace("pipers.md", "paper.md")
    assert "obey" not in read_document(tmp_path / "page.html").text


def test_entities_of_xml_read_no_file(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("a secret", "utf-8")
    entity = f'<!DOCTYPE article [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
    text = as_jats(TEXT).replace("?>", f"?>{entity}", 1).replace("<p>", "<p>&e;", 1)
    (tmp_path / "paper.xml").write_text(text, "utf-8")
    assert "a secret" not in read_document(tmp_path / "paper.xml").text


SENTENCE = (
    "\u5728\u4e8c\u5341\u5ea6\u7684\u6c34\u4e2d\uff0c\u96c4\u86d9\u6bcf\u5206\u949f\u9e23\u53eb\u4e09\u5341\u6b21\u3002"
)
"""In water of twenty degrees, males call thirty times a minute."""


def test_a_paper_in_a_script_without_spaces_is_long_enough_by_its_characters(tmp_path: Path):
    (tmp_path / "paper.md").write_text(f"# {SENTENCE[:11]}\n\n{SENTENCE * 120}", "utf-8")
    assert read_document(tmp_path / "paper.md").place(SENTENCE) == "opening, paragraph 1"
    (tmp_path / "note.md").write_text(SENTENCE * 20, "utf-8")
    assert "at least 200 words" in told(tmp_path / "note.md")


def told(path: Path) -> str:
    with pytest.raises(OptionError) as caught:
        read_document(path)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "got an empty file"),
        (b" \n ", "got an empty file"),
        (b"\x89PNG\r\n\x1a\n\xff", "got other bytes at 0"),
        (b"abc\0def", "got binary data"),
        (b"Milk, bread and two eggs", "at least 200 words, got 5"),
        (b"word " * 90_000, "at most 400,000 characters"),
        (b"%PDF-1.7\nnothing of the kind", "got a damaged one"),
        (b"<?xml version='1.0'?><article><p>open", "must be valid XML"),
        (b"<html></html>", "at least 200 words"),
    ],
)
def test_a_file_that_is_no_paper_is_refused(content: bytes, reason: str, tmp_path: Path):
    (tmp_path / "paper").write_bytes(content)
    assert reason in told(tmp_path / "paper")


def test_a_scan_a_book_and_a_locked_pdf_are_refused(tmp_path: Path):
    blank_pdf(3, tmp_path / "scan.pdf")
    assert "got 0 words on 3 pages, as in a scan" in told(tmp_path / "scan.pdf")
    blank_pdf(500, tmp_path / "book.pdf")
    assert f"must have at most {MAX_PAGES} pages, got 500" in told(tmp_path / "book.pdf")
    blank_pdf(1, tmp_path / "locked.pdf", password="open sesame")
    assert "got an encrypted PDF" in told(tmp_path / "locked.pdf")
