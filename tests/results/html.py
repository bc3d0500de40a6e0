"""A page as a browser takes it apart, to see what it would load, run and show."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "link", "img", "br", "input", "hr"}
LOADING = {"src", "srcset", "data", "action", "poster", "background", "formaction"}
HOSTILE = '</script><script>alert(1)</script>"><img src=x onerror=alert(2)>{{ 7 * 7 }}&lt;b&gt;\u202e'
"""What an agent may write to take over a page."""


class Page(HTMLParser):
    """Tags with their attributes, texts, scripts."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data

    def attributes(self, name: str) -> list[str]:
        """Every value of one attribute."""
        return [attributes[name] or "" for _, attributes in self.tags if name in attributes]

    def has(self, tag: str, **wanted: str) -> bool:
        return any(tag == name and wanted.items() <= attributes.items() for name, attributes in self.tags)


def read_page(file: Path) -> Page:
    """Parse a page and see that it is well formed, needs nothing else, and runs its own script only."""
    document = file.read_text(encoding="utf-8")
    page = Page(document)
    assert document.startswith("<!DOCTYPE html>")
    assert page.faults == page.open == [], "a tag was opened or closed by what a log holds"
    ids = page.attributes("id")
    assert len(ids) == len(set(ids)), "ids are unique on a page"
    for target in (*page.attributes("href"), *page.attributes("xlink:href")):
        assert not re.match(r"\w+:|//", target), f"{target} lies outside"
        assert not target.startswith("#") or target[1:] in ids, f"{target} leads nowhere"
    for place in (*page.attributes("aria-labelledby"), *page.attributes("for")):
        assert place in ids
    assert not any(page.attributes(name) for name in LOADING)
    assert "@import" not in document
    assert set(re.findall(r"url\(([^)]*)\)", document)) <= {f"#{name}" for name in ids}
    assert not {name for _, attributes in page.tags for name in attributes if name.startswith("on")}
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "object", "embed", "link", "base"}
    _see_policy(page)
    return page


def _see_policy(page: Page) -> None:
    (policy,) = (a["content"] or "" for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    assert [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in page.scripts] == allowed
