"""The closed-book probe: a conclusion from the topic alone, without any inquiry, judged like any other.

What a model states rightly here it knew, or guessed, before the first turn. It is a measure of memory as far as it is
better on papers from before the model's training cutoff than on those from after it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from inquitree_gym.analysis.load import recorded_judges
from inquitree_gym.analysis.questions import Answer, AnswerFile, Asked, Key, Question, ask_all, read_answers
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judges import JudgementFile, Panelist, Ruling, Spent, rule_all
from inquitree_gym.judges.panel import LOCAL
from inquitree_gym.llm import Chat
from inquitree_gym.llm.parsing import move_fault, read_move
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees import Tree

PURPOSE = "closed-book"
TEMPLATES = ("closed_book_system", "closed_book_request")
"""What the model is told."""


class Recited(NamedTuple):
    """One conclusion from the topic alone."""

    name: str
    """Names it in the judgements: file of answers, tree, repeat."""
    model: str
    effort: str | None
    """The reasoning effort; None for the provider's default."""
    tree: Tree
    conclusion: str
    formless: bool
    """Whether the answer broke the form and was taken whole."""


class Judged(NamedTuple):
    """What one judge did."""

    judge: str
    judged: int
    """Conclusions judged now."""
    found: int
    """Conclusions that had been judged before, with every item scored."""
    spent: Spent


class Grade(NamedTuple):
    """What one judge made of one conclusion."""

    judge: str
    """Its label beside a run; see `recorded_judges`."""
    recited: Recited
    score: float | None
    """Mean S over the conclusion items, in [0, 1]; None where one is unscored."""


async def recite(
    chat: Chat, trees: Sequence[Tree], folder: str | os.PathLike[str], repeats: int, max_concurrency: int,
    progress: Callable[[], None],
) -> Asked:  # fmt: skip
    """Ask a model for the conclusions of some trees, from their topics alone, and keep them in ``folder``.

    Args:
        chat: the model, with a budget around it where there is one.
        trees: each with an id of its own.
        folder: holds one file of answers per model and setting; what it has is not asked again.
        repeats: conclusions per tree; the seed of a request is the number of its repetition.
        max_concurrency: questions that are asked at the same time.
        progress: told of every question once it is done with.

    Raises:
        OptionError: ``repeats`` or ``max_concurrency`` is below 1.
        ServiceError: the service will answer no question.
        LogError: answers cannot be read or written.
    """
    if repeats < 1:
        raise OptionError(f"every tree is asked about at least once, not {repeats} times; give repeats from 1")
    prompts = Prompts(names=TEMPLATES)
    questions = [
        Question(_key(tree, repeat), _messages(tree, prompts), repeat) for tree in trees for repeat in range(repeats)
    ]
    with AnswerFile(folder, PURPOSE, {"chat": chat.config, "prompts": prompts.digest}) as file:
        return await ask_all(chat, questions, file, max_concurrency, progress)


def recited(folder: str | os.PathLike[str], trees: Mapping[str, Tree]) -> list[Recited]:
    """Return the conclusions that a folder holds for some trees, given by id, in the versions at hand.

    Raises:
        LogError: the folder holds no answers of a closed-book probe, or a file is damaged.
    """
    files = sorted(Path(folder).glob(f"{PURPOSE}-*.jsonl"))
    if not files:
        raise LogError(f"'{folder}' holds no closed-book conclusions; inquitree closed-book --out {folder} makes some")
    return [each for file in files for each in _of_file(file, trees)]


async def judge_recited(
    folder: str | os.PathLike[str], found: Sequence[Recited], panelist: Panelist, max_concurrency: int,
    progress: Callable[[], None],
) -> Judged:  # fmt: skip
    """Judge the conclusions that this judge has not scored yet, and keep what it finds beside them.

    Args:
        folder: that the conclusions are from.
        found: see `recited`.
        panelist: the judge.
        max_concurrency: conclusions that are judged at the same time.
        progress: told of every conclusion once it is judged, now or before.

    Raises:
        LogError: judgements cannot be written.
        ServiceError: the judge's service will answer no question; what was judged before is kept.
    """
    with JudgementFile(folder, panelist.name, panelist.config) as kept:
        missing = [each for each in found if not kept.holds(each.name, each.tree, each.conclusion)]
        for _ in range(len(found) - len(missing)):
            progress()

        def keep(index: int, ruling: Ruling) -> None:
            kept.add(missing[index].name, missing[index].tree, missing[index].conclusion, ruling)
            progress()

        rulings = await rule_all(panelist, [(each.tree, each.conclusion) for each in missing], max_concurrency, keep)
    spent = sum((ruling.spent for ruling in rulings), Spent())
    return Judged(panelist.name, len(missing), len(found) - len(missing), spent)


def read_grades(folder: str | os.PathLike[str], trees: Mapping[str, Tree]) -> list[Grade]:
    """Return what every judge has made of the conclusions that a folder holds for some trees.

    Raises:
        LogError: see `recited`.
        JudgeError: a file of judgements is damaged.
    """
    found = recited(folder, trees)
    recorded = recorded_judges(folder)
    judges = ({LOCAL: recorded.current} if recorded.current is not None else {}) | recorded.others
    grades = []
    for label, judgements in judges.items():
        for each in found:
            judge = judgements.of(each.name, each.tree)
            if judge is not None:
                scores = [verdict.score for verdict in judge.judge(each.conclusion)]
                known = [score for score in scores if score is not None]
                grades.append(Grade(label, each, fmean(known) if len(known) == len(scores) else None))
    return grades


def _of_file(file: Path, trees: Mapping[str, Tree]) -> Iterator[Recited]:
    config, answers = read_answers(file)
    chat = config.get("chat", {})  # empty of a file that was torn in its first line, which has no answers either
    for (tree_id, digest, repeat), answer in answers.items():
        tree = trees.get(tree_id)
        if tree is not None and tree.digest == digest:
            name = f"{file.stem}/{tree_id}/{repeat}"
            yield Recited(name, chat["model"], chat.get("reasoning_effort"), tree, *_conclusion(answer))


def _conclusion(answer: Answer) -> tuple[str, bool]:
    return read_move(answer.text), bool(move_fault(answer.text))


def _key(tree: Tree, repeat: int) -> Key:
    return tree.id, tree.digest, str(repeat)


def _messages(tree: Tree, prompts: Prompts) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": prompts.render("closed_book_system")},
        {"role": "user", "content": prompts.render("closed_book_request", topic=tree.topic)},
    ]
