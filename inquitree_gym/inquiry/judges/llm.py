"""A judge that asks a chat model for a reason and a verdict per conclusion item, in one or two orders of the items."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from inquitree_gym.errors import OptionError, plural
from inquitree_gym.inquiry.judges.quality import FULL, NOTHING, PARTIAL, Judge, Verdict
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.judging.asking import Talk, UnscoredError, code_of, fence_of, judging_chat, score_under, secret_of
from inquitree_gym.judging.judgement import Judgement
from inquitree_gym.judging.registry import ChatOptions
from inquitree_gym.llm import Budget, Chat, Message, ReplyCache, run_sync, strip_thinking
from inquitree_gym.prompts import Prompts
from inquitree_gym.text_limits import readable
from inquitree_gym.trees import Tree
from inquitree_gym.trees.worlds import TreeInWorld, told_as

VERSION = 1
"""Version of the rule that turns replies into scores. The templates have a digest."""
LLM_PREFIX, PAPER_PREFIX = "llm:", "llm-paper:"
"""Prefixes of the names of judges that ask a chat model: with this package's settings, or with those of the paper."""
TEMPLATES = ("judge_system", "judge_request")
"""Templates of the messages."""

_GRADE = re.compile(r"(?:-\s+)?(?:(?P<full>1(?:\.0+)?)|(?P<partial>0?\.60*)|(?P<nothing>0(?:\.0+)?))(?![\d.]*\d|\w)")
_GRADES = {"full": FULL, "partial": PARTIAL, "nothing": NOTHING}
_GAP = r"[ \t*_`]*"
_OR = re.compile(rf"{_GAP}(?:[,|—-]|\bor\b|\bto\b){_GAP}(?:or\b{_GAP})?[01]?\.?\d", re.IGNORECASE)
"""Continuation that makes a grade ambiguous, as in a repeated instruction: ``1, 0.6 or 0``."""


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(ChatOptions):
    """Options of judges of conclusions that ask a chat model."""

    repeats: Annotated[int, Field(ge=1, description="Answers of an llm judge per order of the items.")] = 1
    orders: Annotated[
        int, Field(ge=1, le=2, description="Orders of the items that an llm judge is asked in; 2 averages both.")
    ] = 2
    variants: Annotated[bool, Field(description="Show an llm judge the false variants of the items.")] = True

    @property
    def requests(self) -> str:
        """Requests about each conclusion, in words."""
        return f"{plural(self.orders * self.repeats, 'request')} each"


@dataclass(frozen=True, slots=True)
class ShownItem:
    """A conclusion item as shown in a request."""

    code: str
    """Name of the item in this request, unknown to the author of the conclusion."""
    text: str
    contrary: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grade:
    """Grade of one item in one reply."""

    score: float | None
    """1, 0.6 or 0. None if the reply gives none of them."""
    reason: str


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One request: a conclusion, and the items of its tree in one order."""

    topic: str
    conclusion: str
    findings: tuple[ShownItem, ...]
    """In the order shown."""
    reverse: bool
    """True if the findings are in the reverse of tree order."""
    fence: str
    """Line above and below the conclusion that cannot occur in it."""

    @classmethod
    def create(
        cls, tree: Tree | TreeInWorld, conclusion: str, *, reverse: bool, repeat: int, variants: bool = True
    ) -> JudgeRequest:
        """Return the request about a conclusion.

        Args:
            tree: its conclusion items are the findings.
            conclusion: untrusted text, without lone surrogates.
            reverse: show the last item first.
            repeat: number of the repetition, which changes the codes and so the prompt.
            variants: show the false variants of each item as contrary statements.
        """
        tree = told_as(tree)
        secret = secret_of(tree.digest, reverse, repeat, conclusion)
        items = tree.conclusions[:: -1 if reverse else 1]
        findings = tuple(
            ShownItem(code_of("F", position, secret), item.text, item.others if variants else ())
            for position, item in enumerate(items, 1)
        )
        return cls(tree.topic, conclusion, findings, reverse, fence_of(secret))

    def messages(self, prompts: Prompts) -> list[Message]:
        """Return the chat messages. The conclusion is inserted as a value, never as a template."""
        variants = any(finding.contrary for finding in self.findings)
        values = {"topic": self.topic, "conclusion": self.conclusion, "findings": self.findings, "fence": self.fence}
        return [
            {"role": "system", "content": prompts.render("judge_system", variants=variants)},
            {"role": "user", "content": prompts.render("judge_request", **values)},
        ]

    def parse(self, reply: str) -> tuple[Grade, ...]:
        """Return the grade of every item, in tree order. The last of several verdicts on an item counts.

        Text before ``</think>`` is ignored.
        """
        said = strip_thinking(reply)
        grades = tuple(Grade(*score_under(each.code, "VERDICT", said, _score_at)) for each in self.findings)
        return grades[:: -1 if self.reverse else 1]


@dataclass(frozen=True, slots=True)
class _Sample:
    """One answer, or the reason for its absence."""

    reverse: bool
    grades: tuple[Grade, ...]
    """One per item, in tree order. Empty without an answer."""
    fault: str


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
            orders: 2 averages the answers with the items in tree order and in reverse. 1 asks in tree order only.
            variants: show the false variants of each item.
            cache: cache of replies. None for the folder ``judge`` of the package's cache.
            budget: caps on cost and tokens, may be shared. None for no cap.
            prompts: prompts with the templates `TEMPLATES`. None for the package's.

        Raises:
            OptionError: ``repeats`` is below 1, ``orders`` is neither 1 nor 2, or the cost is capped and the model's
                price unknown.
        """
        if repeats < 1:
            raise OptionError(f"repeats must be at least 1, got {repeats}")
        if orders not in (1, 2):
            raise OptionError(f"orders must be 1 or 2, orders of the items, got {orders}")
        prefix = PAPER_PREFIX if orders == 1 and not variants else LLM_PREFIX
        self.name = f"{prefix}{chat.config['model']}"
        self.budget = budget or Budget()
        self._chat = judging_chat(chat, self.budget, cache)
        self._repeats = repeats
        self._orders = (False, True)[:orders]
        self._variants = variants
        self._prompts = prompts or inquiry_prompts(names=TEMPLATES)

    @property
    def config(self) -> dict[str, Any]:
        """Settings that determine the verdicts, besides tree and conclusion. Plain values."""
        return {
            "version": VERSION,
            "chat": self._chat.config,
            "repeats": self._repeats,
            "orders": len(self._orders),
            "variants": self._variants,
            "prompts": self._prompts.digest,
        }

    def for_tree(self, tree: Tree | TreeInWorld) -> Judge:
        """Return a synchronous judge for one tree. It raises the errors of `judge`."""
        return _TreeJudge(self, tree)

    async def judge(self, tree: Tree | TreeInWorld, conclusion: str, /) -> Judgement[tuple[Verdict, ...]]:
        """Judge one conclusion. A conclusion without a letter scores 0 without a request.

        Raises:
            ServiceError: the service rejects every request: wrong key, unknown model or exhausted quota.
            CacheError: a paid reply could not be cached.
        """
        text = readable(conclusion)
        if not any(map(str.isalpha, text)):
            return Judgement((Verdict(NOTHING, "nothing concluded"),) * len(tree.conclusions))
        orders = self._orders if len(tree.conclusions) > 1 else (False,)
        talk, samples = Talk(self._chat), []
        for repeat, reverse in product(range(self._repeats), orders):
            request = JudgeRequest.create(tree, text, reverse=reverse, repeat=repeat, variants=self._variants)
            samples.append(await _sample(request.messages(self._prompts), request, talk, repeat))
        return talk.judgement(tuple(_verdict(samples, orders, index) for index in range(len(tree.conclusions))))


@dataclass(frozen=True, slots=True)
class _TreeJudge:
    """An `LLMJudge` for one tree, called without an event loop."""

    inner: LLMJudge
    tree: Tree | TreeInWorld
    version: int = VERSION

    @property
    def name(self) -> str:
        return self.inner.name

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        return run_sync(self.inner.judge(self.tree, conclusion)).payload


async def _sample(messages: list[Message], request: JudgeRequest, talk: Talk, repeat: int) -> _Sample:
    """Return the answer to a request, which is sent as some messages."""
    try:
        grades = request.parse(await talk.ask(messages, repeat))
    except UnscoredError as error:
        return _Sample(request.reverse, (), str(error))
    unread = sum(grade.score is None for grade in grades)
    return _Sample(request.reverse, grades, str(talk.refuse("no verdict that can be read", unread)) if unread else "")


def _score_at(reply: str, place: int) -> float | None:
    grade = _GRADE.match(reply, place)
    name = grade.lastgroup if grade and not _OR.match(reply, grade.end()) else None
    return _GRADES[name] if name else None


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
