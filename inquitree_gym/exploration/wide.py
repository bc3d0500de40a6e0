"""The agent `wide`: it opens as many hits as it can, and answers by regular expressions over their pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.exploration.actions import words_of
from inquitree_gym.exploration.reading import ASKED, SCOPE, parts_of

MOST_HITS = 50
"""Hits that are opened at most."""
_HIT = re.compile(r"^\d+\. (\S+) · ", re.MULTILINE)
_TITLE = re.compile(r"^\S+ · (.+?)(?: · [^·]+)? · page \d+ of \d+$", re.MULTILINE)
_PAPER = re.compile(
    r"^(?P<authors>.+)\n(?P<venue>.+), (?P<year>\d{4})\. (?P<figures>\d+) figures, (?P<works>\d+) ref", re.MULTILINE
)
_SLOT = re.compile(r"([^.\]]*)\[ref\.(\d+)\]")
_NOUN = re.compile(r"(?:List every| of| fit) (\w+)(?: that| [A-Z][.:])")
_CHECKS: dict[str, Callable[[re.Match[str], str], bool]] = {
    r"published after (\d+)": lambda paper, asked: int(paper["year"]) > int(asked),
    r"more than (\d+) works": lambda paper, asked: int(paper["works"]) > int(asked),
    r"exactly (\d+) pictures": lambda paper, asked: paper["figures"] == asked,
    r"author called (\w+)": lambda paper, asked: asked in paper["authors"],
    r"the initials ([A-Z]+)": lambda paper, asked: "".join(re.findall("[A-Z]", paper["venue"])) == asked,
}
"""Constraints of a question on a paper, each with its check against the head of a page."""


class WideAgent(BaselineAgent):
    """Searches with the question and its parts, opens the hits, and answers from the pages that look most like it."""

    name = "wide"

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._queries: list[str] = []
        self._hits: list[str] = []
        self._pages: dict[str, str] = {}

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next SEARCH or OPEN, or the answer if no turn or query is left."""
        question, outcome = parts_of(observation)
        if info["turn"] == 0:
            self._queries = _queries(question)
        elif info["tool"] == "open":
            self._pages[self._hits.pop(0)] = outcome
        else:
            self._hits = [hit for hit in _HIT.findall(outcome) if hit not in self._pages]
        if info["state"] == "explore" and len(self._pages) < MOST_HITS and (self._hits or self._queries):
            return f"OPEN {self._hits[0]}" if self._hits else f"SEARCH {self._queries.pop(0)}"
        return f"ANSWER\n{_answer(question, list(self._pages.values()))}"


def _queries(question: str) -> list[str]:
    """Return the question, its sentences, their parts, and its words, the longest first."""
    sentences = question.split(". ")
    parts = [part for sentence in sentences for part in re.split(r", | and ", sentence)]
    words = sorted(words_of(question), key=len, reverse=True)
    return [query for query in dict.fromkeys((question, *sentences, *parts, *words)) if words_of(query)]


def _answer(question: str, pages: list[str]) -> str:
    """Return an answer in the form that the question asks for. Empty if no page fits it."""
    papers, noun = [head for page in pages if (head := _PAPER.search(page))], _NOUN.search(question)
    if slots := _SLOT.findall(question):
        cited = [head.string for head in papers]
        return "\n".join(f"[ref.{slot}: {_work(_nearest(claim, cited))}]" for claim, slot in slots if papers)
    if noun is None:
        return _found_paper(question, papers)
    records = [page for page in pages if re.search(rf" · {noun[1]}$", page, re.MULTILINE)]
    if table := SCOPE.search(question):
        heads = [header.partition(" (")[0] for header in table[3].split(" | ")]
        rows = [[_name(page), *(_value(page, head) for head in heads[1:])] for page in records]
        return "\n".join(f"| {' | '.join(row)} |" for row in (table[3].split(" | "), ["---"] * len(heads), *rows))
    asked, page = ASKED.search(question), _nearest(question, records)
    return _name(page) if asked is None or asked[1] == "name" else _value(page, asked[1])


def _nearest(text: str, pages: Iterable[str]) -> str:
    """Return the page that shares most words with a text. Empty without a page."""
    words = {*words_of(text)}
    return max(pages, key=lambda page: len(words & {*words_of(page)}), default="")


def _name(page: str) -> str:
    """Return the name of the record or paper that a page is about."""
    title = _TITLE.search(page)
    return title[1] if title else ""


def _value(page: str, label: str) -> str:
    """Return what stands after a label, without a key. Empty without it."""
    found = re.search(rf"^{re.escape(label)}: (.+?)(?: \(\S+\))?$", page, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


def _found_paper(question: str, papers: list[re.Match[str]]) -> str:
    """Return the title or the first author of the first paper that passes most checks of a T2 question."""
    asked = [(check, match[1]) for form, check in _CHECKS.items() if (match := re.search(form, question))]
    head = max(papers, key=lambda paper: sum(check(paper, each) for check, each in asked), default=None)
    author = head["authors"].partition(", ")[0] if head else ""
    return _name(head.string) if head and "title" in question else author


def _work(page: str) -> str:
    """Return the paper of a page as it is cited."""
    head = _PAPER.search(page)
    return f"{head['authors']}. {_name(page)}. {head['venue']}. {head['year']}." if head else ""
