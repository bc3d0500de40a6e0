"""A judge that asks a chat model: a reason and then a verdict per conclusion item, in one or two orders of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from inquitree_gym.errors import BudgetError, OptionError, ServiceError
from inquitree_gym.judges.quality import FULL, NOTHING, PARTIAL, Judge, Verdict
from inquitree_gym.judges.records import Judgement, JudgeReply
from inquitree_gym.llm import (
    Budget,
    BudgetedChat,
    CachedChat,
    Chat,
    Completion,
    Message,
    ReplyCache,
    Usage,
    run_sync,
    strip_thinking,
)
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.matching import readable
from inquitree_gym.prompts import Prompts
from inquitree_gym.readers import reply_folder
from inquitree_gym.trees import Tree

VERSION = 1
"""Version of the rule that makes scores of replies; the templates have a digest."""
LLM_PREFIX, PAPER_PREFIX = "llm:", "llm-paper:"
"""Prefixes of the names of judges that ask a chat model: with this package's settings, or with those of the paper."""
JUDGE_ROLE = "judge"
"""Role of a judge's replies in logs, and the folder of its cached replies."""
TEMPLATES = ("judge_system", "judge_request")
"""Templates of the messages."""

_GRADE = re.compile(r"(?:(?P<full>1(?:\.0+)?)|(?P<partial>0?\.60*)|(?P<nothing>0(?:\.0+)?))(?![\d.]*\d|\w)")
_GRADES = {"full": FULL, "partial": PARTIAL, "nothing": NOTHING}
_GAP = r"[ \t*_`]*"
_OR = re.compile(rf"{_GAP}(?:,|\bor\b|\bto\b|[-–]){_GAP}(?:or\b{_GAP})?[01]?\.?\d", re.IGNORECASE)
"""Continuation that makes a grade ambiguous, as in a repeated instruction: ``1, 0.6 or 0``."""
_MARKUP = r"[\s*_`#>-]*"


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion item as shown in a request."""

    code: str
    """Name of the item in this request, unknown to the author of the conclusion."""
    text: str
    contrary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of one item in one reply."""

    score: float | None
    """1, 0.6 or 0; None if the reply gives none of them."""
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One request: a conclusion, and the items of its tree in one order."""

    topic: str
    conclusion: str
    findings: tuple[Finding, ...]
    """In the order shown."""
    reverse: bool
    """True if the findings are in the reverse of tree order."""
    fence: str
    """Line above and below the conclusion that cannot occur in it."""

    @classmethod
    def create(cls, tree: Tree, conclusion: str, *, reverse: bool, repeat: int, variants: bool = True) -> JudgeRequest:
        """Return the request about a conclusion.

        Args:
            tree: its conclusion items are the findings.
            conclusion: untrusted text, without lone surrogates.
            reverse: show the last item first.
            repeat: number of the repetition, which changes the codes and so the prompt.
            variants: show the false variants of each item as contrary statements.
        """
        secret = hashlib.sha256(f"{tree.digest}\n{reverse}\n{repeat}\n{conclusion}".encode()).hexdigest()
        items = tree.conclusions[:: -1 if reverse else 1]
        findings = tuple(
            Finding(_code(position, secret), item.text, item.false_variants if variants else ())
            for position, item in enumerate(items, 1)
        )
        return cls(tree.topic, conclusion, findings, reverse, f"=== {secret[:24]} ===")

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the chat messages. The conclusion is inserted as a value, never as a template."""
        variants = any(finding.contrary for finding in self.findings)
        values = {"topic": self.topic, "conclusion": self.conclusion, "findings": self.findings, "fence": self.fence}
        return [
            {"role": "system", "content": prompts.render("judge_system", variants=variants)},
            {"role": "user", "content": prompts.render("judge_request", **values)},
        ]

    def parse(self, reply: str) -> tuple[Grade, ...]:
        """Return the grade of every item, in tree order; the last of several verdicts on an item counts.

        Text before ``</think>`` is ignored.
        """
        grades = tuple(_grade(finding.code, strip_thinking(reply)) for finding in self.findings)
        return grades[:: -1 if self.reverse else 1]


@dataclass(frozen=True, slots=True)
class _Sample:
    """One answer, or the reason for its absence."""

    reverse: bool
    grades: tuple[Grade, ...]
    """One per item, in tree order; empty without an answer."""
    fault: str
    usage: Usage
    completion: Completion | None = None

    @property
    def unread(self) -> int:
        """Number of items on which the answer has no readable verdict."""
        return sum(grade.score is None for grade in self.grades)


class LLMJudge:
    """Judge by a chat model, asked in one or both orders of the items, with repeats.

    The score of an item is the mean over the orders of the mean over the repeats. An item stays unscored if one of the
    orders has no readable verdict on it. Every paid reply is cached before it is used. With ``orders=1`` and
    ``variants=False``, the setting of the paper, its name begins with `PAPER_PREFIX`.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        repeats: int = 1,
        orders: int = 2,
        variants: bool = True,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        """Judge by ``chat``.

        Args:
            chat: the model, with its temperature.
            repeats: answers per order, from 1.
            orders: 2 averages the answers with the items in tree order and in reverse; 1 asks in tree order only.
            variants: show the false variants of each item.
            cache: cache of replies; None for the folder ``judge`` of the package's cache.
            budget: caps on cost and tokens, may be shared; None for no cap.
            prompts: prompts with the templates `TEMPLATES`; None for the package's.

        Raises:
            OptionError: ``repeats`` is below 1, ``orders`` is neither 1 nor 2, or the cost is capped and the model's
                price unknown.
        """
        if repeats < 1:
            raise OptionError(f"a judge answers at least once, not {repeats} times; give repeats from 1")
        if orders not in (1, 2):
            raise OptionError(
                f"a judge is asked in 1 or 2 orders of the items, not {orders}; give orders=1 or orders=2"
            )
        prefix = PAPER_PREFIX if orders == 1 and not variants else LLM_PREFIX
        self.name = f"{prefix}{chat.config['model']}"
        self.budget = budget or Budget()
        self._chat = CachedChat(BudgetedChat(chat, self.budget), cache or ReplyCache(reply_folder(JUDGE_ROLE)))
        self._repeats = repeats
        self._orders = (False, True)[:orders]
        self._variants = variants
        self._prompts = prompts or Prompts(names=TEMPLATES)

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the verdicts, besides tree and conclusion; plain values."""
        return {
            "version": VERSION,
            "chat": self._chat.config,
            "repeats": self._repeats,
            "orders": len(self._orders),
            "variants": self._variants,
            "prompts": self._prompts.digest,
        }

    def for_tree(self, tree: Tree) -> Judge:
        """Return a synchronous judge for one tree; it raises the errors of `judge`."""
        return _TreeJudge(self, tree)

    async def judge(self, tree: Tree, conclusion: str) -> Judgement:
        """Judge one conclusion. A conclusion without a letter scores 0 without a request.

        Raises:
            ServiceError: the service rejects every request: wrong key, unknown model or exhausted quota.
            CacheError: a paid reply could not be cached.
        """
        text = readable(conclusion)
        if not any(map(str.isalpha, text)):
            return Judgement((Verdict(NOTHING, "nothing concluded"),) * len(tree.conclusions))
        orders = self._orders if len(tree.conclusions) > 1 else (False,)
        samples = [
            await self._sample(tree, text, reverse, repeat) for repeat in range(self._repeats) for reverse in orders
        ]
        verdicts = tuple(_verdict(samples, orders, index) for index in range(len(tree.conclusions)))
        replies = tuple(
            JudgeReply(sample.completion, sample.fault if sample.unread else "")
            for sample in samples
            if sample.completion is not None
        )
        usage = sum((sample.usage for sample in samples), Usage())
        return Judgement(verdicts, usage, sum(sample.unread for sample in samples), replies)

    async def _sample(self, tree: Tree, conclusion: str, reverse: bool, repeat: int) -> _Sample:
        request = JudgeRequest.create(tree, conclusion, reverse=reverse, repeat=repeat, variants=self._variants)
        replies: list[Completion] = []
        try:
            completion = await complete_with_text(
                self._chat, request.messages(self._prompts), seed=repeat, keep=replies.append
            )
        except BudgetError:
            return _Sample(reverse, (), "not asked: the budget is used up", _paid(replies) + Usage(skipped=1))
        except ServiceError as error:
            if error.concerns_all:
                raise
            return _Sample(reverse, (), str(error), _paid(replies) + Usage(failed=1))
        grades = request.parse(completion.text)
        reason = completion.finish_reason
        fault = "no verdict that can be read" + (f" (the answer ended with '{reason}')" if reason != "stop" else "")
        return _Sample(reverse, grades, fault, _paid(replies), completion)


@dataclass(frozen=True, slots=True)
class _TreeJudge:
    """An `LLMJudge` for one tree, called without an event loop."""

    inner: LLMJudge
    tree: Tree
    version: int = VERSION

    @property
    def name(self) -> str:
        return self.inner.name

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        return run_sync(self.inner.judge(self.tree, conclusion)).verdicts


def _paid(replies: Sequence[Completion]) -> Usage:
    return sum(map(Usage.of, replies), Usage())


def _code(position: int, secret: str) -> str:
    return f"F{position}-{hashlib.sha256(f'{secret}{position}'.encode()).hexdigest()[:6].upper()}"


def _grade(code: str, reply: str) -> Grade:
    said = list(re.finditer(rf"\bVERDICT\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=][\s*_`]*", reply, re.IGNORECASE))
    if not said:
        return Grade(None, "")
    grade = _GRADE.match(reply, said[-1].end())
    name = grade.lastgroup if grade and not _OR.match(reply, grade.end()) else None
    return Grade(_GRADES[name] if name else None, _reason(code, reply[: said[-1].start()]))


def _reason(code: str, before: str) -> str:
    """Return the last reason given before the verdict."""
    pattern = rf"\bREASON\b{_MARKUP}{re.escape(code)}{_MARKUP}[:=](.*?)(?=\b(?:REASON|VERDICT)\b{_MARKUP}F\d+-|\Z)"
    reasons = re.findall(pattern, before, re.IGNORECASE | re.DOTALL)
    return " ".join(reasons[-1].split()).strip("*_` ") if reasons else ""


def _verdict(samples: Sequence[_Sample], orders: Sequence[bool], index: int) -> Verdict:
    """Average the grades of one item over the repeats of each order, then over the orders."""
    means, reasons = [], []
    for reverse in orders:
        of_order = [sample for sample in samples if sample.reverse == reverse]
        grades = [sample.grades[index] for sample in of_order if sample.grades]
        scored = [(grade.score, grade.reason) for grade in grades if grade.score is not None]
        if not scored:
            return Verdict(None, of_order[-1].fault)
        means.append(fmean(score for score, _ in scored))
        reasons.append(f"{scored[0][0]:g}: {scored[0][1]}")
    return Verdict(fmean(means), " | ".join(dict.fromkeys(reasons)))
