"""Closed-book probe: a conclusion from the topic alone, without any inquiry, judged like any other.

A model knew or guessed its correct statements before the first turn. They measure memory to the extent that they are
better on papers from before the model's training cutoff than on later papers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from inquitree_gym.baselines.conversation import move_fault, read_move, system, user
from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.judges.quality import mean_score
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.inquiry.results import EpisodeScore
from inquitree_gym.judging.judgement import judge_label
from inquitree_gym.judging.stored import read_judgements
from inquitree_gym.llm import Chat, Message
from inquitree_gym.prompts import Prompts
from inquitree_gym.protocols import Scalar
from inquitree_gym.results.cutoff import ModelDates, Side, find_model, parse_date, side_of
from inquitree_gym.results.offline_judging import StatedText
from inquitree_gym.results.questions import AnswerFile, AskingResult, ask_questions, read_answers, repeated
from inquitree_gym.results.statistics import Estimate, clustered_mean, unpaired_difference
from inquitree_gym.results.summary import Player, first_cell, grouped, in_cell, player_of
from inquitree_gym.trees import Tree

PURPOSE = "closed-book"
TEMPLATES = ("closed_book_system", "closed_book_request")
"""Templates of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedBookConclusion(StatedText):
    """One conclusion from the topic alone."""

    model: str
    effort: str | None
    """The reasoning effort. None for the provider's default."""
    off_format: bool
    """True if the reply broke the form and was taken whole."""


@dataclass(frozen=True, slots=True)
class ClosedBookGrade:
    """One judge's grade of one closed-book conclusion."""

    judge: str
    """Name and version of the judge."""
    conclusion: ClosedBookConclusion
    score: float | None
    """Mean S over the conclusion items, in [0, 1]. None with an unscored item."""


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """One model's closed-book conclusions by one judge. Every estimate is of mean S, clustered by tree."""

    model: str
    """litellm's name."""
    effort: str | None
    judge: str
    conclusions: int
    off_format: int
    """Conclusions that broke the form and were taken whole."""
    unscored: int
    memory: Estimate
    cutoff: str | None
    """The model's cutoff. None if unknown, which leaves the conclusions unsplit."""
    before: Estimate
    after: Estimate
    difference: Estimate
    """Before − after, with Welch's interval."""
    degrees: float | None
    unclear: int
    """Trees on neither side."""

    @property
    def name(self) -> str:
        """The model with its reasoning effort."""
        return self.model + (f" ({self.effort})" if self.effort else "")


@dataclass(frozen=True, slots=True)
class LoopGain:
    """An agent's conclusions in the loop beside its model's closed-book ones, by the same judge, on the same trees."""

    player: Player
    judge: str
    loop: Estimate
    """Mean S in the loop."""
    memory: Estimate
    """Mean S closed-book."""
    gain: Estimate
    """Loop − memory, tree by tree."""


@dataclass(frozen=True, slots=True)
class Memorisation:
    """Closed-book conclusions beside the episodes of the same models."""

    cell: Mapping[str, Scalar]
    """The cell of the episodes."""
    models: tuple[ModelMemory, ...]
    gains: tuple[LoopGain, ...]


async def ask_closed_book(
    chat: Chat, trees: Sequence[Tree], folder: str | os.PathLike[str], repeats: int, max_concurrency: int,
    progress: Callable[[], None],
) -> AskingResult:  # fmt: skip
    """Ask a model for the conclusions of some trees from their topics alone, and store them in ``folder``.

    Args:
        chat: the model, budgeted if a cap applies.
        trees: each with a distinct id.
        folder: holds one answer file per model and configuration. Stored answers are not asked again.
        repeats: conclusions per tree. The seed of a request is the number of its repetition.
        max_concurrency: questions asked at the same time.
        progress: called once per question. See `ask_questions`.

    Raises:
        OptionError: ``repeats`` or ``max_concurrency`` is below 1.
        ServiceError: the service answers no question at all.
        LogError: answers cannot be read or written.
    """
    prompts = inquiry_prompts(names=TEMPLATES)
    questions = [
        question for tree in trees for question in repeated((tree.id, tree.digest), _messages(tree, prompts), repeats)
    ]
    with AnswerFile(folder, PURPOSE, {"chat": chat.config, "prompts": prompts.digest}) as file:
        return await ask_questions(chat, questions, file, max_concurrency, progress)


def closed_book_conclusions(folder: str | os.PathLike[str], trees: Mapping[str, Tree]) -> list[ClosedBookConclusion]:
    """Return the stored conclusions about these versions of some trees.

    Args:
        folder: see `ask_closed_book`.
        trees: by id.

    Raises:
        LogError: the folder holds no answers of a closed-book probe, or a file is damaged.
    """
    files = sorted(Path(folder).glob(f"{PURPOSE}-*.jsonl"))
    if not files:
        raise LogError(f"'{folder}' holds no closed-book conclusions; inquitree closed-book --out {folder} makes some")
    return [each for file in files for each in _read(file, trees)]


def grade_closed_book(folder: str | os.PathLike[str], trees: Mapping[str, Tree]) -> list[ClosedBookGrade]:
    """Return every judge's grades of the stored conclusions about some trees.

    Raises:
        LogError: see `closed_book_conclusions`.
        JudgeError: a file of judgements is damaged.
    """
    conclusions = closed_book_conclusions(folder, trees)
    grades = []
    for judgements in read_judgements(folder).judges.values():
        label = judge_label(judgements.judge, judgements.version)
        for conclusion in conclusions:
            payload = judgements.of(conclusion.key, conclusion.task, conclusion.text)
            if payload is not None:
                grades.append(ClosedBookGrade(label, conclusion, mean_score(payload.value)))
    return grades


def summarise_memory(grades: Iterable[ClosedBookGrade], models: Sequence[ModelDates]) -> list[ModelMemory]:
    """Return one summary per model, reasoning effort and judge, in order of first appearance.

    Args:
        grades: see `grade_closed_book`.
        models: see `load_models`.
    """
    groups = grouped(grades, lambda grade: (grade.conclusion.model, grade.conclusion.effort, grade.judge))
    return [_memory(found, find_model(models, model)) for (model, _, _), found in groups.items()]


def compare_with_loop(
    grades: Sequence[ClosedBookGrade], scores: Sequence[EpisodeScore], models: Sequence[ModelDates]
) -> Memorisation:
    """Set closed-book conclusions beside the episodes of the same models at the lowest fake level.

    Args:
        grades: see `grade_closed_book`.
        scores: scores of episodes, at least one.
        models: see `load_models`.
    """
    cell = first_cell(scores)
    gains = []
    for judge, judged in grouped(scores, lambda score: score.judged_by).items():
        memory = grouped(
            (grade for grade in grades if grade.judge == judge and grade.score is not None),
            lambda grade: (grade.conclusion.model, grade.conclusion.effort),
        )
        asked = (score for score in judged if score.model is not None and score.cell == cell)
        for player, found in grouped(asked, player_of).items():
            known = memory.get((str(found[0].model), found[0].effort))
            if known is not None:
                gains.append(_gain(player, judge, found, known))
    return Memorisation(cell, tuple(summarise_memory(grades, models)), tuple(gains))


def memory_table(found: Iterable[ModelMemory]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first."""
    yield ["model", "judge", "n", "unscored", "memory", "cutoff", "before", "after", "before − after"]
    for each in found:
        counts = [f"{each.conclusions} ({each.memory.trees})", str(each.unscored)]
        sides = map(in_cell, (each.before, each.after, each.difference))
        yield [each.name, each.judge, *counts, in_cell(each.memory), each.cutoff or "–", *sides]


def _messages(tree: Tree, prompts: Prompts) -> list[Message]:
    request = prompts.render("closed_book_request", topic=tree.topic)
    return [system(prompts.render("closed_book_system")), user(request)]


def _read(file: Path, trees: Mapping[str, Tree]) -> Iterator[ClosedBookConclusion]:
    config, answers = read_answers(file)
    chat = config.get("chat", {})  # empty if the first line is torn, which leaves no answers either
    for (tree_id, digest, repeat), answer in answers.items():
        tree = trees.get(tree_id)
        if tree is not None and tree.digest == digest:
            yield ClosedBookConclusion(
                name=f"{file.stem}/{tree_id}/{repeat}",
                task=tree,
                text=read_move(answer.text),
                model=chat["model"],
                effort=chat.get("reasoning_effort"),
                off_format=bool(move_fault(answer.text)),
            )


def _memory(grades: Sequence[ClosedBookGrade], dates: ModelDates | None) -> ModelMemory:
    first = grades[0]
    values = [(grade.conclusion.task.id, grade.score) for grade in grades]
    sides = [_side(grade, dates) for grade in grades]
    before, after = ([v for v, s in zip(values, sides, strict=True) if s == side] for side in ("before", "after"))
    contrast = unpaired_difference(before, after)
    return ModelMemory(
        model=first.conclusion.model,
        effort=first.conclusion.effort,
        judge=first.judge,
        conclusions=len(grades),
        off_format=sum(grade.conclusion.off_format for grade in grades),
        unscored=sum(grade.score is None for grade in grades),
        memory=clustered_mean(values),
        cutoff=None if dates is None else dates.written_cutoff,
        before=clustered_mean(before),
        after=clustered_mean(after),
        difference=contrast.estimate,
        degrees=contrast.degrees,
        unclear=len({tree for (tree, _), side in zip(values, sides, strict=True) if side == "unclear"}),
    )


def _side(grade: ClosedBookGrade, dates: ModelDates | None) -> Side | None:
    return None if dates is None else side_of(parse_date(grade.conclusion.task.paper.published.written), dates.window)


def _gain(player: Player, judge: str, scores: Iterable[EpisodeScore], known: Sequence[ClosedBookGrade]) -> LoopGain:
    memory = grouped(known, lambda grade: grade.conclusion.task.id)
    loop: dict[str, list[float]] = {}
    for score in scores:
        grade = score.detail.mean_grade
        if grade is not None and score.task in memory:
            loop.setdefault(score.task, []).append(grade)
    recalled = {tree: [grade.score for grade in memory[tree] if grade.score is not None] for tree in loop}
    return LoopGain(
        player=player,
        judge=judge,
        loop=clustered_mean((tree, value) for tree, values in loop.items() for value in values),
        memory=clustered_mean((tree, value) for tree, values in recalled.items() for value in values),
        gain=clustered_mean((tree, fmean(values) - fmean(recalled[tree])) for tree, values in loop.items()),
    )
