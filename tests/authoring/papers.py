"""The made-up paper in other forms: PDF, HTML and JATS XML."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

import pypdf
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

LINES = 44
"""Lines of a page."""


def as_pdf(text: str, file: Path) -> None:
    """Write a text as pages of lines of 88 characters."""
    lines = [line for part in text.split("\n") for line in textwrap.wrap(part.lstrip("# "), 88) or [""]]
    with PdfPages(file) as pages:
        for start in range(0, len(lines), LINES):
            figure = Figure(figsize=(8.3, 11.7))
            for i, line in enumerate(lines[start : start + LINES]):
                figure.text(0.05, 0.95 - i / LINES * 0.9, line, fontsize=9, parse_math=False)
            pages.savefig(figure)
        pages.infodict()["Title"] = lines[0]


def blank_pdf(pages: int, file: Path, password: str = "") -> None:
    """Write empty pages."""
    writer = pypdf.PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(200, 200)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(file)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    for block in text.strip().split("\n\n"):
        kind = "table" if block.startswith("|") else block.split()[0] if block.startswith("#") else "p"
        yield kind, block.lstrip("# ")


def _rows(block: str) -> str:
    rows = [re.split(r"\s*\|\s*", row.strip("| ")) for row in block.split("\n") if "---" not in row]
    return "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)


def as_html(text: str) -> str:
    tags = {"#": "h1", "##": "h2", "###": "h3", "p": "p"}
    body = ""
    for kind, block in _blocks(text):
        body += f"<table>{_rows(block)}</table>" if kind == "table" else f"<{tags[kind]}>{escape(block)}</{tags[kind]}>"
    return f"<!DOCTYPE html><html><head><title>A page</title></head><body><nav>Menu</nav>{body}</body></html>"


def as_jats(text: str) -> str:
    (_, title), *blocks = _blocks(text)
    body, caption = "<sec><title>Record</title>", ""
    for kind, block in blocks:
        if block.startswith("Table"):
            caption = block
        elif block.startswith("Figure"):
            body += f"<fig><caption><p>{escape(block)}</p></caption></fig>"
        elif kind == "table":
            body += f"<table-wrap><caption><p>{caption}</p></caption><table>{_rows(block)}</table></table-wrap>"
        else:
            body += f"<p>{escape(block)}</p>" if kind == "p" else f"</sec><sec><title>{escape(block)}</title>"
    meta = (
        f"<front><article-meta><title-group><article-title>{title}</article-title></title-group></article-meta></front>"
    )
    return f"<?xml version='1.0'?><article>{meta}<body>{body}</sec></body></article>"
