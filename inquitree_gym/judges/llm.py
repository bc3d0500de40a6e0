"""A judge that asks a chat model: a verdict per conclusion item, the reason before it, both orders averaged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import platformdirs

from inquitree_gym.embeddings.vectors import CACHE_VARIABLE
from inquitree_gym.errors import BudgetError, OptionError, ServiceError
from inquitree_gym.judges.asking import TEMPLATES, Graded, Question, ask, orders
from inquitree_gym.judges.quality import NOTHING, Verdict
from inquitree_gym.judges.spent import Spent
from inquitree_gym.llm import Budget, BudgetedChat, CachedChat, Chat, Completion, ReplyCache
from inquitree_gym.llm.event_loop import begin
from inquitree_gym.matching import readable
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree


class Ruling(NamedTuple):
    """What a judge makes of one conclusion."""

    verdicts: tuple[Verdict, ...]
    """One per conclusion item, in tree order."""
    spent: Spent = Spent()


class _Sample(NamedTuple):
    """One answer, or why there is none."""

    reverse: bool
    graded: tuple[Graded, ...]
    """One per item, in tree order; empty without an answer."""
    fault: str
    spent: Spent


class LLMJudge:
    """Asks a chat model about every conclusion, in both orders of the items and as often as wanted.

    A grade is the mean over the orders of the mean over the repeats; an item for which an order gave no verdict that
    can be read stays unscored. Whatever was paid for is kept before it is used.
    """

    def __init__(
        self,
        chat: Chat,
        *,
        repeats: int = 1,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        """Judge by ``chat``.

        Args:
            chat: the model; temperature 0 is its own setting.
            repeats: answers per order; from 1.
            cache: of replies; None takes the one in `reply_folder`.
            budget: shared by whoever is given it; None is no cap.
            prompts: with the templates `TEMPLATES`; None takes the package's own.

        Raises:
            OptionError: ``repeats`` is below 1, or the cost is capped and the model's price unknown.
        """
        if repeats < 1:
            raise OptionError(f"a judge answers at least once, not {repeats} times; give repeats from 1")
        self.name = f"llm:{chat.config['model']}"
        self.budget = budget or Budget()
        self._chat = CachedChat(BudgetedChat(chat, self.budget), cache or ReplyCache(reply_folder()))
        self._repeats = repeats
        self._prompts = prompts or Prompts(names=TEMPLATES)

    @property
    def config(self) -> dict[str, Any]:
        """What decides the verdicts, beside tree and conclusion; plain values."""
        return {"chat": self._chat.config, "repeats": self._repeats, "prompts": self._prompts.digest}

    def of(self, tree: Tree) -> _OfTree:
        """Return this judge for one tree, to be asked without an event loop."""
        return _OfTree(self, tree)

    async def rule(self, tree: Tree, conclusion: str) -> Ruling:
        """Judge one conclusion. One without a letter asserts nothing and is not asked about.

        Raises:
            ServiceError: the service will answer no question: the key, the model's name or the quota is at fault.
            CacheError: a paid reply could not be kept.
        """
        text = readable(conclusion)
        if not any(map(str.isalpha, text)):
            return Ruling((Verdict(NOTHING, "nothing concluded"),) * len(tree.conclusions))
        asked = orders(tree.conclusions)
        samples = [
            await self._sample(tree, text, reverse, repeat) for repeat in range(self._repeats) for reverse in asked
        ]
        verdicts = tuple(_verdict(samples, asked, index) for index in range(len(tree.conclusions)))
        return Ruling(verdicts, sum((sample.spent for sample in samples), Spent()))

    async def _sample(self, tree: Tree, conclusion: str, reverse: bool, repeat: int) -> _Sample:
        question = ask(tree, conclusion, reverse=reverse, repeat=repeat)
        try:
            completion = await self._chat.complete(question.messages(self._prompts), seed=repeat)
        except BudgetError:
            return _Sample(reverse, (), "not asked: the budget is used up", Spent(skipped=1))
        except ServiceError as error:
            if error.concerns_all:
                raise
            return _Sample(reverse, (), str(error), Spent(failed=1))
        return _read(question, completion)


class _OfTree:
    """An LLM judge for one tree; a `concluding.Judge`."""

    def __init__(self, judge: LLMJudge, tree: Tree) -> None:
        self.name = judge.name
        self._judge = judge
        self._tree = tree

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        """Return one verdict per conclusion item, in tree order; see `LLMJudge.rule` for the errors."""
        return begin(self._judge.rule(self._tree, conclusion)).result().verdicts


def reply_folder() -> Path:
    """Return the folder of judges' replies: ``judge`` in `INQUITREE_CACHE`, or in the user's cache folder."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).expanduser() / "judge" if named else Path(platformdirs.user_cache_dir("inquitree-gym"), "judge")


def _read(question: Question, completion: Completion) -> _Sample:
    graded = question.read(completion.text)
    unread = sum(each.grade is None for each in graded)
    reverse = question.items[0] != 0
    ending = "" if completion.finish_reason == "stop" else f" (the answer ended with '{completion.finish_reason}')"
    return _Sample(reverse, graded, f"no verdict that can be read{ending}", Spent.on(completion) + Spent(unread=unread))


def _verdict(samples: Sequence[_Sample], asked: Sequence[bool], index: int) -> Verdict:
    """Average one item: over the repeats of each order, then over the orders."""
    means, reasons = [], []
    for reverse in asked:
        of_order = [sample for sample in samples if sample.reverse == reverse]
        given = [sample.graded[index] for sample in of_order if sample.graded]
        grades = [(each.grade, each.reason) for each in given if each.grade is not None]
        if not grades:
            return Verdict(None, of_order[-1].fault)
        means.append(fmean(grade for grade, _ in grades))
        reasons.append(f"{grades[0][0]:g}: {grades[0][1]}")
    return Verdict(fmean(means), " | ".join(dict.fromkeys(reasons)))
