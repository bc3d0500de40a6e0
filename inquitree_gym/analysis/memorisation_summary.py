"""What models knew beforehand, before and after their cutoffs, beside what they concluded in the loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from inquitree_gym.analysis.aggregate import Player, format_estimate, player_of
from inquitree_gym.analysis.cutoff import mean_grade, side_of
from inquitree_gym.analysis.cutoff_models import ModelDates, find_model, read_period
from inquitree_gym.analysis.memorisation import Grade
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean
from inquitree_gym.scoring.statistics import unpaired_difference

MEMORY_MEASURES = ("memory", "before", "after", "difference")


class Memory(NamedTuple):
    """One model's closed-book conclusions by one judge; every estimate is of mean S, clustered by tree."""

    model: str
    """litellm's name."""
    effort: str | None
    judge: str
    conclusions: int
    formless: int
    """Conclusions that broke the form and were taken whole."""
    unscored: int
    memory: Estimate
    cutoff: str | None
    """None where no entry gives it; nothing is split then."""
    before: Estimate
    after: Estimate
    difference: Estimate
    """Before − after, Welch's interval."""
    degrees: float | None
    unclear: int
    """Trees on neither side."""

    @property
    def name(self) -> str:
        """The model, and its reasoning effort."""
        return self.model + (f" ({self.effort})" if self.effort else "")

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        estimates = {name: getattr(self, name)._asdict() for name in MEMORY_MEASURES}
        return {**self._asdict(), **estimates}


class Gain(NamedTuple):
    """What an agent concluded in the loop beside what its model knew, by the same judge, on the same trees."""

    player: Player
    judge: str
    loop: Estimate
    """Mean S of the conclusions in the loop."""
    memory: Estimate
    """Mean S of the closed-book conclusions."""
    gain: Estimate
    """Loop − memory, tree by tree."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {"player": dict(zip(("agent", "limit", "reading"), self.player, strict=True)), "judge": self.judge}
        return plain | {name: getattr(self, name)._asdict() for name in ("loop", "memory", "gain")}


class Memories(NamedTuple):
    """What a report says of closed-book conclusions."""

    level: int
    """The fake level of the episodes that they are set beside."""
    memories: tuple[Memory, ...]
    gains: tuple[Gain, ...]

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "level": self.level,
            "models": [each.as_plain() for each in self.memories],
            "gains": [each.as_plain() for each in self.gains],
        }


def memories(grades: Iterable[Grade], models: Sequence[ModelDates]) -> list[Memory]:
    """Return one line per model, reasoning effort and judge, in order of appearance."""
    groups: dict[tuple[str, str | None, str], list[Grade]] = defaultdict(list)
    for grade in grades:
        groups[grade.recited.model, grade.recited.effort, grade.judge].append(grade)
    return [_memory(found, find_model(models, model)) for (model, _, _), found in groups.items()]


def beside(
    grades: Sequence[Grade], judged: Mapping[str, Sequence[EpisodeScore]], models: Sequence[ModelDates]
) -> Memories:
    """Set closed-book conclusions beside the episodes of the same models, at the lowest fake level.

    Args:
        grades: see `read_grades`.
        judged: scores of episodes by judge, one or more.
        models: see `load_models`.
    """
    level = min(score.fake_level for scores in judged.values() for score in scores)
    gains = []
    for judge, scores in judged.items():
        known = _by_model_and_tree(grade for grade in grades if grade.judge == judge)
        for player, found in _by_player(scores, level).items():
            memory = known.get((found[0].model, found[0].effort))
            if memory is not None:
                gains.append(_gain(player, judge, found, memory))
    return Memories(level, tuple(memories(grades, models)), tuple(gains))


def memory_table(found: Iterable[Memory]) -> Iterator[list[str]]:
    """Yield the cells of a text table: a heading line, then one line per model and judge."""
    yield ["model", "judge", "n", "unscored", "memory", "cutoff", "before", "after", "before − after"]
    for each in found:
        estimates = {name: "\n".join(filter(None, format_estimate(getattr(each, name)))) for name in MEMORY_MEASURES}
        counts = [f"{each.conclusions} ({each.memory.trees})", str(each.unscored)]
        sides = [estimates[name] for name in MEMORY_MEASURES[1:]]
        yield [each.name, each.judge, *counts, estimates["memory"], each.cutoff or "–", *sides]


def _memory(grades: Sequence[Grade], dates: ModelDates | None) -> Memory:
    values: dict[str, list[tuple[str, float | None]]] = {"before": [], "after": [], "unclear": []}
    for grade in grades if dates is not None else ():
        published = read_period(grade.recited.tree.paper.published.written)
        values[side_of(published, dates.window)].append((grade.recited.tree.id, grade.score))  # type: ignore[union-attr]
    contrast = unpaired_difference(values["before"], values["after"])
    return Memory(
        model=grades[0].recited.model,
        effort=grades[0].recited.effort,
        judge=grades[0].judge,
        conclusions=len(grades),
        formless=sum(grade.recited.formless for grade in grades),
        unscored=sum(grade.score is None for grade in grades),
        memory=clustered_mean((grade.recited.tree.id, grade.score) for grade in grades),
        cutoff=None if dates is None else dates.written_cutoff,
        before=clustered_mean(values["before"]),
        after=clustered_mean(values["after"]),
        difference=contrast.estimate,
        degrees=contrast.degrees,
        unclear=len({tree for tree, _ in values["unclear"]}),
    )


def _by_model_and_tree(grades: Iterable[Grade]) -> dict[tuple[str | None, str | None], dict[str, list[float]]]:
    found: dict[tuple[str | None, str | None], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for grade in grades:
        if grade.score is not None:
            found[grade.recited.model, grade.recited.effort][grade.recited.tree.id].append(grade.score)
    return found


def _by_player(scores: Iterable[EpisodeScore], level: int) -> dict[Player, list[EpisodeScore]]:
    found: dict[Player, list[EpisodeScore]] = defaultdict(list)
    for score in scores:
        if score.model is not None and score.fake_level == level:
            found[player_of(score)].append(score)
    return found


def _gain(player: Player, judge: str, scores: Iterable[EpisodeScore], memory: Mapping[str, list[float]]) -> Gain:
    loop: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        grade = mean_grade(score)
        if grade is not None and score.tree in memory:
            loop[score.tree].append(grade)
    return Gain(
        player=player,
        judge=judge,
        loop=clustered_mean((tree, value) for tree, values in loop.items() for value in values),
        memory=clustered_mean((tree, value) for tree in loop for value in memory[tree]),
        gain=clustered_mean((tree, fmean(values) - fmean(memory[tree])) for tree, values in loop.items()),
    )
