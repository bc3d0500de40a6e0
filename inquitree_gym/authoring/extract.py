"""Text of a paper from a PDF, HTML, JATS XML, Markdown or plain-text file. Files are untrusted and bounded.

Every form is first turned into Markdown, whose headings, paragraphs, tables and captions are then told apart.
"""

from __future__ import annotations

import io
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from inquitree_gym.authoring.sources import MAX_PAPER
from inquitree_gym.errors import OptionError, require
from inquitree_gym.files import read_input

MAX_FILE = 50_000_000
"""Largest file of a paper, in bytes."""
MAX_PAGES = 150
"""Largest number of pages of a PDF."""
MIN_WORDS = 200
"""Smallest number of words of a paper."""
MAX_TITLE = 300
"""Longest first paragraph that is taken for the title, in characters."""
MIN_PAGE_WORDS = 20
"""Words per page of a PDF below which it is taken for a scan."""

_HEADINGS = (
    "abstract summary introduction background results findings discussion conclusion conclusions methods materials "
    "references acknowledgements acknowledgments limitations supplementary appendix data funding"
)
_HEADING = re.compile(rf"(?:\d+(?:\.\d+)*\.?\s+)?(?:{'|'.join(_HEADINGS.split())})\b[^.!?]{{0,50}}", re.IGNORECASE)
_WORD = re.compile(r"\w{1,12}")  # in scripts without spaces, twelve characters at most
_MARKED = re.compile(r"#{1,6}\s+(.*)")
_CAPTION = re.compile(r"\*{0,2}(?:fig(?:ure|\.)|table|box)\s*\d+", re.IGNORECASE)
_LINE_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_LETTER_HYPHEN = re.compile(r"(?<=[^\W\d])-(?=[^\W\d])")
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2212": "-"})
_SKIPPED = {"script", "style", "nav", "header", "footer", "aside", "form", "noscript", "template", "svg", "button"}
_ENCRYPTED = "'{file}' must be readable without a password, got an encrypted PDF. Decrypt it first."
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors that a damaged PDF makes pypdf raise besides its own."""
_BLOCKS = {"p", "li", "blockquote", "pre", "figcaption", "dd"}


@dataclass(frozen=True, slots=True)
class PaperSection:
    """A heading, empty before the first one, and the paragraphs below it."""

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True)
class PaperDocument:
    """A paper as text."""

    title: str
    sections: tuple[PaperSection, ...]
    captions: tuple[str, ...]
    """Captions of figures and tables."""
    tables: tuple[str, ...]
    """Tables as lines of cells with bars between them."""
    file: str
    """Name of the file."""

    @cached_property
    def text(self) -> str:
        """The whole paper as Markdown: title, sections, then captions and tables."""
        parts = [f"# {self.title}"]
        for section in self.sections:
            parts += [f"## {section.heading}"] if section.heading else []
            parts += section.paragraphs
        return "\n\n".join([*parts, *self.captions, *self.tables])

    def place(self, quotation: str) -> str | None:
        """Return the place of a quotation, such as ``Results, paragraph 2``. None if it is not in the text.

        White space, hyphens between letters, forms of quotation marks and compatible characters make no difference.
        """
        found = self._plain.find(plain(quotation))
        return None if found < 0 else self._places[bisect_right(self._starts, found) - 1]

    @cached_property
    def _blocks(self) -> tuple[tuple[str, str], ...]:
        found = [("title", self.title)]
        for section in self.sections:
            heading = section.heading or "opening"
            found += [(f"{heading}, paragraph {i}", text) for i, text in enumerate(section.paragraphs, 1)]
        found += [(f"caption {i}", text) for i, text in enumerate(self.captions, 1)]
        return (*found, *((f"table {i}", text) for i, text in enumerate(self.tables, 1)))

    @cached_property
    def _places(self) -> tuple[str, ...]:
        return tuple(place for place, _ in self._blocks)

    @cached_property
    def _plain(self) -> str:
        return "".join(plain(text) for _, text in self._blocks)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        lengths = (len(plain(text)) for _, text in self._blocks)
        return tuple(accumulate(lengths, initial=0))[:-1]


def plain(text: str) -> str:
    r"""Return a text without white space and hyphens between letters, in the form in which quotations are compared.

    >>> plain("a meta-\nanalysis of 3\u00a0cases") == plain("a metaanalysis of 3 cases")
    True
    """
    spelled = unicodedata.normalize("NFKC", text.translate(_QUOTES)).replace("\u2010", "-")
    return _LETTER_HYPHEN.sub("", re.sub(r"[\s|]+", "", re.sub(r"[\u2011-\u2014]", "-", spelled)))


def read_document(file: Path) -> PaperDocument:
    """Return the text of a paper. The form is told by the content, and by ``.md`` or ``.txt`` for text.

    Raises:
        OptionError: the file cannot be read, is larger than `MAX_FILE`, has more than `MAX_PAGES` pages, no text, too
            little or too much of it, or is encrypted or damaged.
        MissingExtraError: the extractor is not installed.
    """
    content = read_input(file, limit=MAX_FILE, error=OptionError)
    if not content.strip():
        raise OptionError(f"'{file}' must hold the text of a paper, got an empty file. Give another file.")
    head = content[:2000].lstrip(b"\xef\xbb\xbf\r\n\t ")
    if head.startswith(b"%PDF-"):
        title, text = _pdf(content, file)
    elif re.search(rb"<article[\s>]", head) and head.startswith(b"<?xml"):
        title, text = _jats(content, file)
    elif re.match(rb"<(!doctype html|html|\?xml)", head, re.IGNORECASE):
        title, text = _html(content, file)
    else:
        title, text = "", _decoded(content, file)
    document = _parsed(title, _cleaned(text), file.name)
    _check_length(document, file)
    return document


def _check_length(document: PaperDocument, file: Path) -> None:
    words = len(_WORD.findall(document.text))
    if words < MIN_WORDS:
        raise OptionError(
            f"'{file}' must hold a whole paper of at least {MIN_WORDS} words, got {words}. Give the full text, "
            "not an abstract or a link."
        )
    if len(document.text) > MAX_PAPER:
        raise OptionError(
            f"'{file}' must have at most {MAX_PAPER:,} characters of text, got {len(document.text):,}. Give the paper "
            "alone, without supplements."
        )


def _decoded(content: bytes, file: Path) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(
            f"'{file}' must be PDF, HTML, JATS XML, Markdown or UTF-8 text, got other bytes at {error.start}. Convert "
            "it to one of these."
        ) from None
    if "\0" in text:
        raise OptionError(f"'{file}' must be PDF, HTML, JATS XML, Markdown or UTF-8 text, got binary data. Convert it.")
    return text


def _cleaned(text: str) -> str:
    """Return a text without control characters and characters that nobody sees."""
    text = _LINE_HYPHEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n").translate(_LIGATURES))
    return "".join(
        each for each in text if each in "\n\t" or unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Co")
    )


# Forms


def _pdf(content: bytes, file: Path) -> tuple[str, str]:
    pypdf = require("pypdf", "author")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise OptionError(_ENCRYPTED.format(file=file))
        if (pages := len(reader.pages)) > MAX_PAGES:
            raise OptionError(
                f"'{file}' must have at most {MAX_PAGES} pages, got {pages}. Give the pages of the paper alone."
            )
        texts = [page.extract_text() for page in reader.pages]
        title = str((reader.metadata or {}).get("/Title") or "").strip()
    except (OptionError, pypdf.errors.DependencyError) as error:
        raise (error if isinstance(error, OptionError) else OptionError(_ENCRYPTED.format(file=file))) from None
    except (pypdf.errors.PyPdfError, *_DAMAGE) as error:
        raise OptionError(
            f"'{file}' must be a whole PDF, got a damaged one ({type(error).__name__}). Print it to a new PDF."
        ) from None
    if (words := sum(len(_WORD.findall(text)) for text in texts)) < MIN_PAGE_WORDS * pages:
        raise OptionError(
            f"'{file}' must contain text, got {words} words on {pages} pages, as in a scan. Run text recognition first."
        )
    found = title if plain(title) in plain(texts[0]) else ""
    return found, "\n".join(texts)


def _jats(content: bytes, file: Path) -> tuple[str, str]:
    etree = require("lxml.etree", "author")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise OptionError(f"'{file}' must be valid XML, got a fault: {error.msg}. Download it again.") from None
    title = _inner(root.find(".//{*}article-meta//{*}article-title"))
    parts = [*root.iterfind(".//{*}article-meta//{*}abstract"), *root.iterfind("./{*}body")]
    return title, "\n\n".join(line for part in parts for line in _jats_lines(part))


def _jats_lines(node: Any) -> Iterator[str]:
    name = _tag(node)
    if name in ("abstract", "sec"):
        heading = node.find("{*}title")
        yield f"## {_inner(heading) or name.capitalize()}"
    if name == "table-wrap":
        yield " ".join(filter(None, (_inner(node.find("{*}label")), _inner(node.find("{*}caption")))))
        yield _rows(node)
    elif name == "fig":
        yield " ".join(filter(None, (_inner(node.find("{*}label")), _inner(node.find("{*}caption")))))
    elif name in ("p", "list-item", "disp-quote"):
        yield _inner(node)
    else:
        for child in node:
            yield from _jats_lines(child)


def _html(content: bytes, file: Path) -> tuple[str, str]:
    html = require("lxml.html", "author")
    try:
        root = html.document_fromstring(content, parser=html.HTMLParser(no_network=True, huge_tree=False))
    except (require("lxml.etree", "author").ParserError, ValueError) as error:
        raise OptionError(f"'{file}' must be HTML with a text, got {error}. Save the page again.") from None
    named = root.find(".//meta[@name='citation_title']")
    title = str(named.get("content", "")).strip() if named is not None else _inner(root.find(".//h1"))
    main = next((found for name in ("article", "main", "body") if (found := root.find(f".//{name}")) is not None), root)
    return title or _inner(root.find(".//title")), "\n\n".join(filter(None, _html_lines(main)))


def _html_lines(node: Any) -> Iterator[str]:
    name = _tag(node)
    if name in _SKIPPED:
        return
    if re.fullmatch(r"h[1-6]", name):
        yield f"## {_inner(node)}"
    elif name == "table":
        yield _inner(node.find("caption"))
        yield _rows(node)
    elif name in _BLOCKS:
        yield _inner(node)
    else:
        for child in node:
            yield from _html_lines(child)


def _tag(node: Any) -> str:
    """Return the name of an element without its namespace. Empty for comments and instructions."""
    return node.tag.rpartition("}")[2].lower() if isinstance(node.tag, str) else ""


def _inner(node: Any) -> str:
    return "" if node is None else " ".join("".join(node.itertext()).split())


def _rows(table: Any) -> str:
    rows = (row for row in table.iter() if _tag(row) == "tr")
    return "\n".join(f"| {' | '.join(map(_inner, row))} |" for row in rows)


# Markdown


def _parsed(title: str, text: str, file: str) -> PaperDocument:
    """Tell headings, paragraphs, captions and tables apart."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    captions: list[str] = []
    tables: list[str] = []
    for kind, block in _kinds(text):
        if kind == "heading" and not title and not _HEADING.fullmatch(block):
            title = block
        elif kind == "heading" and plain(block) != plain(title):
            sections.append((block, []))
        elif kind != "heading":
            {"caption": captions, "table": tables}.get(kind, sections[-1][1]).append(block)
    if not title and sections[0][1] and len(sections[0][1][0]) <= MAX_TITLE:
        title = sections[0][1].pop(0)
    kept = tuple(PaperSection(heading, tuple(paragraphs)) for heading, paragraphs in sections if paragraphs)
    return PaperDocument(title or file, kept, tuple(captions), tuple(tables), file)


def _kinds(text: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks of a text with their kinds: heading, table, caption or paragraph."""
    open_lines: list[str] = []
    open_kind = ""
    for line in [*map(str.strip, text.split("\n")), ""]:
        kind = _kind(line, open_kind)
        if open_lines and (kind != open_kind or kind == "heading"):
            yield open_kind, ("\n" if open_kind == "table" else " ").join(open_lines)
            open_lines = []
        marked = _MARKED.fullmatch(line)
        open_kind = kind
        if line:
            open_lines.append(marked[1].strip() if marked else line)


def _kind(line: str, before: str) -> str:
    """Return the kind of a line. A caption goes on until an empty line, a heading or a table."""
    if not line:
        return ""
    if _MARKED.fullmatch(line) or (len(line) < 70 and _HEADING.fullmatch(line)):
        return "heading"
    if line.startswith("|") and line.endswith("|"):
        return "table"
    return "caption" if before == "caption" or (before != "paragraph" and _CAPTION.match(line)) else "paragraph"
