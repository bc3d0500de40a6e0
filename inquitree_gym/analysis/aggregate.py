"""Aggregate scores by setting, as means over trees, and compare two runs, paired by tree and seed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

from inquitree_gym.analysis.load import ScoredEpisode
from inquitree_gym.errors import OptionError
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean, paired_difference
from inquitree_gym.scoring.episode import told_apart
from inquitree_gym.scoring.exposures import ALL, AUC, BRIER, FIRST, TELLABLE, TRUTH_SEEN, calibration
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


def _redone(showing: str, kind: str) -> Measure:
    return lambda score: getattr(score.trajectory.showings[showing], kind)


SPLIT = {
    f"{heading}, {showing}": _redone(showing, kind)
    for showing in (FIRST, TELLABLE, TRUTH_SEEN)
    for heading, kind in (("hits", "hit_rate"), ("false alarms", "false_alarm_rate"))
}
"""Rates over one kind of showings, by heading; see `SHOWINGS`."""
MEASURES |= SPLIT
FLOOR, CEILING = "random-menu", "oracle"
NORMALISED = "normalised"
"""Heading of Q/|C| scaled from the floor (0) to the oracle (1); absent unless the scores hold both."""
CHANGE = "redo − level 0"
"""Heading of redo frequency minus that of the same tree and seed without fakes; absent unless the scores hold both."""

SHOWN = ("coverage", "unaided", "Q/|C|", "turns L", "redo", "hits", "false alarms")
"""Measures in the difference table of a report."""
NARROW = ("coverage", "unaided", "Q/|C|", "hits", "false alarms")
"""Measures in the difference table of a terminal."""
_VARIED = ("agent", "limit", "reading")
"""Settings that may differ between the runs unless one of the runs has several values."""


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
    stated: int
    """Results with a stated belief."""
    unscored: int
    """Episodes without a conclusion score; they are absent from its mean, not 0."""
    bounds: str
    """[3n, n(2H + 3)] of the trees, each end as a range."""
    estimates: dict[str, Estimate]
    """By heading: the `MEASURES`, `NORMALISED`, `CHANGE`, d′, c, and the scores of stated beliefs."""

    @property
    def setting(self) -> Setting:
        """The setting of the episodes."""
        return Setting(self.agent, self.fake_level, self.limit, self.reading)


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The second run or agent minus the first, for one pair of settings."""

    name: str
    """The paired settings that differ, or of which a run has several values."""
    fake_level: int
    pairs: int
    """Pairs of tree and seed in both runs."""
    estimates: dict[str, Estimate]
    """By measure, the mean of second − first, clustered by tree."""


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
    """Return one summary per agent, fake level, turn limit and reading, in order of first appearance.

    Several configurations of one agent are several agents; see `told_apart`.
    """
    scores = told_apart(scores)
    groups = grouped(scores, setting_of)
    measures = {**MEASURES, NORMALISED: _normalised(groups)}
    return [
        _summary(setting, group, measures, groups.get(setting._replace(fake_level=0), []))
        for setting, group in groups.items()
    ]


def compare(first: Sequence[EpisodeScore], second: Sequence[EpisodeScore]) -> list[PairedDifference]:
    """Return the paired differences of two runs, one per fake level and paired setting.

    A setting (agent, turn limit, reading) may differ between the runs if each run has a single value of it. Otherwise
    only equal values are paired.

    Raises:
        OptionError: the runs share no episode.
    """
    differences = _differences(told_apart(first), told_apart(second))
    if not differences:
        told = (sorted({f"{score.agent} at level {score.fake_level}" for score in run}) for run in (first, second))
        kinds = " | ".join(map("; ".join, told))
        raise OptionError(f"the runs share no agent, fake level, tree and seed, so nothing can be paired: {kinds}")
    return differences


def compare_agents(scores: Sequence[EpisodeScore]) -> list[PairedDifference]:
    """Return the paired differences of every two agents, later minus earlier; see `compare` for the errors."""
    players = grouped(told_apart(scores), player_of)
    differences = [each for pair in combinations(players.values(), 2) for each in _differences(*pair)]
    if not differences:
        names = ", ".join(f"'{player.agent}'" for player in players)
        raise OptionError(f"a comparison takes two agents that share a fake level, tree and seed; these are {names}")
    return differences


def summary_table(summaries: Iterable[SettingSummary], measures: Sequence[str]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first; a mean over fewer trees than its row has n below it."""
    summaries = list(summaries)
    several = len({each.reading for each in summaries}) > 1
    with_bounds = "turns L" in measures
    reading, bounds = ["reading"] * several, ["[3n, n(2H+3)]"] * with_bounds
    yield ["agent", "fakes", "limit", *reading, "n", *measures, *bounds]
    for each in summaries:
        setting = [each.agent, str(each.fake_level), each.limit, *[each.reading] * several]
        estimates = [in_cell(each.estimates[name], each.trees) for name in measures]
        yield [*setting, f"{each.episodes} ({each.trees})", *estimates, *[each.bounds] * with_bounds]


def differences_table(differences: Sequence[PairedDifference]) -> Iterator[list[str]]:
    """Yield the rows of a text table, headings first."""
    yield ["pair", "fakes", "pairs", *NARROW]
    for each in differences:
        estimates = [in_cell(each.estimates[name]) for name in NARROW]
        yield [each.name, str(each.fake_level), str(each.pairs), *estimates]


def belief_table(summaries: Iterable[SettingSummary]) -> Iterator[list[str]]:
    """Yield the rows of a text table on stated beliefs, headings first."""
    yield ["agent", "fakes", "limit", "stated", BRIER, AUC]
    for each in summaries:
        estimates = [in_cell(each.estimates[name], each.trees) for name in (BRIER, AUC)]
        yield [each.agent, str(each.fake_level), each.limit, str(each.stated), *estimates]


def format_estimate(estimate: Estimate) -> tuple[str, str]:
    """Return a mean and its interval as text, the interval with fewer digits; empty without an interval."""
    mean, low, high = estimate[:3]
    if mean is None:
        return "–", ""
    digits = 1 if abs(mean) >= 10 else 2
    interval = "" if low is None or high is None else f"[{low:z.{digits}f}, {high:z.{digits}f}]"
    return f"{mean:z.{digits + 1}f}", interval


def in_cell(estimate: Estimate, trees: int = 0) -> str:
    """Return an estimate as the lines of one cell: mean, interval, and n if it rests on fewer than ``trees`` trees."""
    fewer = f"n = {estimate.trees}" if 0 < estimate.trees < trees else ""
    return "\n".join(filter(None, (*format_estimate(estimate), fewer)))


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
        (tree, *setting): fmean(known)
        for setting, group in groups.items()
        if setting.agent in (FLOOR, CEILING)
        for tree, of_tree in grouped(group, lambda score: score.tree).items()
        if (known := [score.quality_share for score in of_tree if score.quality_share is not None])
    }

    def normalised(score: EpisodeScore) -> float | None:
        setting = (score.fake_level, score.limit, score.reading)
        low, high = (shares.get((score.tree, end, *setting)) for end in (FLOOR, CEILING))
        share = score.quality_share
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
    stated = {
        tree: [belief for score in group for belief in score.trajectory.beliefs]
        for tree, group in grouped(scores, lambda score: score.tree).items()
    }
    estimates |= calibration(stated)
    estimates |= {CHANGE: _redo_change(scores, without_fakes), D_PRIME: sensed[D_PRIME], CRITERION: sensed[CRITERION]}
    lows = [score.trajectory.fewest_turns for score in scores]
    highs = [score.trajectory.most_turns or 0 for score in scores]
    return SettingSummary(
        **setting._asdict(),
        trees=len({score.tree for score in scores}),
        episodes=len(scores),
        stated=sum(map(len, stated.values())),
        unscored=sum(score.quality is None for score in scores),
        bounds=f"[{_span(lows)}, {_span(highs)}]",
        estimates=estimates,
    )


def _counts(scores: Iterable[EpisodeScore]) -> dict[str, Counts]:
    """Return the observed and redone results by tree."""
    found: dict[str, Counts] = {}
    for score in scores:
        found[score.tree] = found.get(score.tree, Counts()) + score.trajectory.showings[ALL]
    return found


def _redo_change(scores: Sequence[EpisodeScore], without_fakes: Iterable[EpisodeScore]) -> Estimate:
    """Return redo frequency minus that at level 0, paired by tree and seed; no value at level 0 itself."""
    ours, theirs = (
        {(score.tree, score.seed): score.trajectory.redo_rate for score in side} for side in (scores, without_fakes)
    )
    return paired_difference(ours if scores[0].fake_level else {}, theirs)


def _span(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"


def _differences(first: Sequence[EpisodeScore], second: Sequence[EpisodeScore]) -> list[PairedDifference]:
    """Return the differences with at least one pair; see `compare`."""
    matched = [field for field in _VARIED if any(len({getattr(s, field) for s in run}) > 1 for run in (first, second))]
    ours, theirs = (
        grouped(run, lambda score: (*(getattr(score, field) for field in matched), score.fake_level))
        for run in (first, second)
    )
    found = (_difference(ours[key], theirs[key], matched) for key in ours if key in theirs)
    return [each for each in found if each.pairs]


def _difference(
    first: Sequence[EpisodeScore], second: Sequence[EpisodeScore], matched: Sequence[str]
) -> PairedDifference:
    before, after = ({(score.tree, score.seed): score for score in run} for run in (first, second))
    estimates = {
        name: paired_difference(
            {key: measure(score) for key, score in after.items()},
            {key: measure(score) for key, score in before.items()},
        )
        for name, measure in MEASURES.items()
    }
    name = _name(first[0], second[0], matched)
    return PairedDifference(name, first[0].fake_level, len(before.keys() & after.keys()), estimates)


def _name(first: EpisodeScore, second: EpisodeScore, matched: Sequence[str]) -> str:
    """Name a pair by its matched settings and those that differ."""
    values = {field: (getattr(first, field), getattr(second, field)) for field in _VARIED}
    shown = [field for field, (before, after) in values.items() if field in matched or before != after] or ["agent"]
    pairs = [values[field] for field in shown]
    return ", ".join(str(before) if before == after else f"{after} − {before}" for before, after in pairs)
