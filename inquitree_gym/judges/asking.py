"""What a model is asked about a conclusion, and how its answer is read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from inquitree_gym.judges.quality import FULL, NOTHING, PARTIAL
from inquitree_gym.llm import Message
from inquitree_gym.llm.parsing import spoken
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree

TEMPLATES = ("judge_system", "judge_request")
"""Templates of what a judge says to a chat model."""
MAX_REASON = 500
"""Characters of a reason that are kept."""

_GRADE = re.compile(r"(?:(?P<full>1(?:\.0+)?)|(?P<partial>0?\.60*)|(?P<nothing>0(?:\.0+)?))(?![\d.]*\d|\w)")
_GAP = r"[ \t*_`]*"
_OR = re.compile(rf"{_GAP}(?:,|\bor\b|\bto\b|[-–]){_GAP}(?:or\b{_GAP})?[01]?\.?\d", re.IGNORECASE)
"""Leaves open which grade is meant, as an answer that repeats what it may say does: ``1, 0.6 or 0``."""
_GRADES = {"full": FULL, "partial": PARTIAL, "nothing": NOTHING}
_MARKUP = r"[\s*_`#>-]*"


class Finding(NamedTuple):
    """A conclusion item as it is shown."""

    code: str
    """Names the item in this question alone; whoever wrote the conclusion cannot have known it."""
    text: str
    contrary: tuple[str, ...]


class Graded(NamedTuple):
    """What one answer says of one item."""

    grade: float | None
    """1, 0.6 or 0; None where the answer gives none of them."""
    reason: str


class Question(NamedTuple):
    """One question: the items of a tree in one order, and a conclusion."""

    topic: str
    conclusion: str
    items: tuple[int, ...]
    """Index in the tree of each finding, in the order shown."""
    findings: tuple[Finding, ...]
    fence: str
    """The line around the conclusion; it cannot stand in it."""

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the question as chat messages. The conclusion goes in as a value, never as a template."""
        return [
            {"role": "system", "content": prompts.render("judge_system")},
            {"role": "user", "content": prompts.render("judge_request", **self._asdict())},
        ]

    def read(self, reply: str) -> tuple[Graded, ...]:
        """Return what a reply says of every item, in tree order; of several verdicts on an item the last one wins.

        What a model thought before ``</think>`` is no part of its reply.
        """
        reply = spoken(reply)
        graded = dict(zip(self.items, (_graded(finding.code, reply) for finding in self.findings), strict=True))
        return tuple(graded[index] for index in sorted(graded))


def ask(tree: Tree, conclusion: str, *, reverse: bool, repeat: int) -> Question:
    """Return the question about a conclusion.

    Args:
        tree: whose conclusion items are the findings.
        conclusion: data from anywhere, without lone surrogates.
        reverse: show the last item first.
        repeat: number of the repetition; it changes the codes, and with them the prompt.
    """
    secret = hashlib.sha256(f"{tree.digest}\n{reverse}\n{repeat}\n{conclusion}".encode()).hexdigest()
    items = tuple(range(len(tree.conclusions)))[:: -1 if reverse else 1]
    findings = tuple(
        Finding(_code(position, secret), tree.conclusions[index].text, tree.conclusions[index].false_variants)
        for position, index in enumerate(items, 1)
    )
    return Question(tree.topic, conclusion, items, findings, f"=== {secret[:24]} ===")


def orders(items: Sequence[object]) -> tuple[bool, ...]:
    """Return the orders to ask in, as values of ``reverse``: both, where there is an order at all."""
    return (False, True) if len(items) > 1 else (False,)


def _code(position: int, secret: str) -> str:
    return f"F{position}-{hashlib.sha256(f'{secret}{position}'.encode()).hexdigest()[:6].upper()}"


def _graded(code: str, reply: str) -> Graded:
    said = list(re.finditer(rf"\bVERDICT\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=][\s*_`]*", reply, re.IGNORECASE))
    if not said:
        return Graded(None, "")
    grade = _GRADE.match(reply, said[-1].end())
    name = grade.lastgroup if grade and not _OR.match(reply, grade.end()) else None
    return Graded(_GRADES[name] if name else None, _reason(code, reply[: said[-1].start()]))


def _reason(code: str, before: str) -> str:
    """Return the last reason given before the verdict."""
    pattern = rf"\bREASON\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=](.*?)(?=\b(?:REASON|VERDICT)\b{_MARKUP}F\d+-|\Z)"
    reasons = re.findall(pattern, before, re.IGNORECASE | re.DOTALL)
    return " ".join(reasons[-1].split())[:MAX_REASON].strip("*_` ") if reasons else ""
