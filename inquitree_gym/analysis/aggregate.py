"""Aggregate scores by setting: means over trees, sensitivity, and comparison with the baselines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from inquitree_gym.analysis.load import ScoredEpisode
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean, paired_difference
from inquitree_gym.scoring.vigilance import CRITERION, D_PRIME, Counts, sensitivity

Measure = Callable[[EpisodeScore], float | None]
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def _stretch(score: EpisodeScore) -> float | None:
    """Return the position of L in [3n, n(2H + 3)]: 0 at the lower bound, 1 at the upper one."""
    path = score.trajectory
    return None if path.most_turns is None else (path.turns - path.fewest_turns) / (path.most_turns - path.fewest_turns)


MEASURES: dict[str, Measure] = {
    "coverage": lambda score: score.trajectory.coverage,
    "unaided": lambda score: score.trajectory.unaided_coverage,
    "coverage at 3n": lambda score: score.trajectory.coverage_at_3n,
    "Q": lambda score: score.quality,
    "Q/|C|": lambda score: score.quality_share,
    "turns L": lambda score: float(score.trajectory.turns),
    "stretch": _stretch,
    "hints": lambda score: float(score.trajectory.hints),
    "redo": lambda score: score.trajectory.redo_rate,
    "hits": lambda score: score.trajectory.hit_rate,
    "false alarms": lambda score: score.trajectory.false_alarm_rate,
}
"""Measures of one episode, by heading."""
FLOOR, CEILING = "random-menu", "oracle"
NORMALISED = "normalised"
"""Heading of Q/|C| scaled from the floor (0) to the oracle (1); absent unless the scores hold both."""
CHANGE = "redo − level 0"
"""Heading of redo frequency minus that of the same tree and seed without fakes; absent unless the scores hold both."""


class Player(NamedTuple):
    """Settings that episodes share when fake levels are pooled."""

    agent: str
    limit: str
    reading: str


class Setting(NamedTuple):
    """Settings that episodes share when they are averaged."""

    agent: str
    fake_level: int
    limit: str
    reading: str

    @property
    def player(self) -> Player:
        """The setting without its fake level."""
        return Player(self.agent, self.limit, self.reading)


@dataclass(frozen=True, slots=True)
class SettingSummary:
    """Means over the episodes of one agent at one fake level, turn limit and reading."""

    agent: str
    fake_level: int
    limit: str
    reading: str
    trees: int
    episodes: int
    unscored: int
    """Episodes without a conclusion score; they are absent from its mean, not 0."""
    bounds: str
    """[3n, n(2H + 3)] of the trees, each end as a range."""
    estimates: dict[str, Estimate]
    """By heading: the `MEASURES`, `NORMALISED`, `CHANGE`, d′ and c."""

    @property
    def setting(self) -> Setting:
        """The setting of the episodes."""
        return Setting(self.agent, self.fake_level, self.limit, self.reading)


def setting_of(score: EpisodeScore) -> Setting:
    """Return the setting of an episode."""
    return Setting(score.agent, score.fake_level, score.limit, score.reading)


def player_of(score: EpisodeScore) -> Player:
    """Return the player of an episode."""
    return Player(score.agent, score.limit, score.reading)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by key, keys in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def by_player(episodes: Iterable[ScoredEpisode]) -> dict[Player, list[ScoredEpisode]]:
    """Return the episodes by player, in order of first appearance."""
    return grouped(episodes, lambda episode: player_of(episode.score))


def summarise(scores: Sequence[EpisodeScore]) -> list[SettingSummary]:
    """Return one summary per agent, fake level, turn limit and reading, in order of first appearance."""
    groups = grouped(scores, setting_of)
    measures = {**MEASURES, NORMALISED: _normalised(groups)}
    return [
        _summary(setting, group, measures, groups.get(setting._replace(fake_level=0), []))
        for setting, group in groups.items()
    ]


def summary_table(summaries: Iterable[SettingSummary], measures: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first; intervals stand below their means."""
    summaries = list(summaries)
    several = len({each.reading for each in summaries}) > 1
    with_bounds = "turns L" in measures
    reading, bounds = ["reading"] * several, ["[3n, n(2H+3)]"] * with_bounds
    yield ["agent", "fakes", "limit", *reading, "n", *measures, *bounds]
    for each in summaries:
        setting = [each.agent, str(each.fake_level), each.limit, *[each.reading] * several]
        estimates = [in_cell(each.estimates[name]) for name in measures]
        yield [*setting, f"{each.episodes} ({each.trees})", *estimates, *[each.bounds] * with_bounds]


def format_estimate(estimate: Estimate) -> tuple[str, str]:
    """Return a mean and its interval as text, the interval with fewer digits; empty without an interval."""
    mean, low, high = estimate[:3]
    if mean is None:
        return "–", ""
    digits = 1 if abs(mean) >= 10 else 2
    interval = "" if low is None or high is None else f"[{low:z.{digits}f}, {high:z.{digits}f}]"
    return f"{mean:z.{digits + 1}f}", interval


def in_cell(estimate: Estimate) -> str:
    """Return an estimate as the text of one cell, the interval on a second line."""
    return "\n".join(filter(None, format_estimate(estimate)))


def as_plain(value: Any) -> Any:
    """Return records, nested in any way, as plain values for JSON."""
    if is_dataclass(value):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_plain(each) for name, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _normalised(groups: Mapping[Setting, Sequence[EpisodeScore]]) -> Measure:
    """Return the measure of Q/|C| on the scale from the floor (0) to the oracle (1) of the same tree and setting."""
    shares = {
        (setting, tree): fmean(known)
        for setting, group in groups.items()
        for tree, of_tree in grouped(group, lambda score: score.tree).items()
        if (known := [score.quality_share for score in of_tree if score.quality_share is not None])
    }

    def normalised(score: EpisodeScore) -> float | None:
        ends = [shares.get((setting_of(score)._replace(agent=agent), score.tree)) for agent in (FLOOR, CEILING)]
        (low, high), share = ends, score.quality_share
        return None if share is None or low is None or high is None or high <= low else (share - low) / (high - low)

    return normalised


def _summary(
    setting: Setting,
    scores: Sequence[EpisodeScore],
    measures: Mapping[str, Measure],
    without_fakes: Sequence[EpisodeScore],
) -> SettingSummary:
    estimates = {
        name: clustered_mean((score.tree, measure(score)) for score in scores) for name, measure in measures.items()
    }
    sensed = sensitivity(_counts(scores))
    estimates |= {CHANGE: _redo_change(scores, without_fakes), D_PRIME: sensed[D_PRIME], CRITERION: sensed[CRITERION]}
    lows = [score.trajectory.fewest_turns for score in scores]
    highs = [score.trajectory.most_turns or 0 for score in scores]
    return SettingSummary(
        **setting._asdict(),
        trees=len({score.tree for score in scores}),
        episodes=len(scores),
        unscored=sum(score.quality is None for score in scores),
        bounds=f"[{_span(lows)}, {_span(highs)}]",
        estimates=estimates,
    )


def _counts(scores: Iterable[EpisodeScore]) -> dict[str, Counts]:
    """Return the observed and redone results by tree."""
    found: dict[str, Counts] = {}
    for score in scores:
        path = score.trajectory
        shown = Counts(path.fakes_shown, path.hits, path.trues_shown, path.false_alarms)
        found[score.tree] = found.get(score.tree, Counts()) + shown
    return found


def _redo_change(scores: Sequence[EpisodeScore], without_fakes: Iterable[EpisodeScore]) -> Estimate:
    """Return redo frequency minus that at level 0, paired by tree and seed; no value at level 0 itself."""
    ours, theirs = (
        {(score.tree, score.seed): score.trajectory.redo_rate for score in side} for side in (scores, without_fakes)
    )
    return paired_difference(ours if scores[0].fake_level else {}, theirs)


def _span(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"
