"""Papers from before and from after the training cutoff of an agent's model, as in the paper's Figure 4.

A model may have read a paper that appeared before its training data end. So trees are split by the publication date of
their paper, and an agent's means over the two groups of trees are compared. A tree whose side cannot be told, because
its date or the model's cutoff is not known precisely enough, is unclear: left out, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median_low
from typing import Any, Literal, NamedTuple

from inquitree_gym.analysis.aggregate import MEASURES, Measure, Player, format_estimate, player_of
from inquitree_gym.analysis.cutoff_models import ModelDates, Period, find_model, read_period
from inquitree_gym.analysis.diff_in_diff import Crossing, Sighting, crossing
from inquitree_gym.scoring import EpisodeScore, Estimate, clustered_mean
from inquitree_gym.scoring.statistics import unpaired_difference

Side = Literal["before", "after", "unclear"]


def mean_grade(score: EpisodeScore) -> float | None:
    """Return the mean S of the conclusion items, in [0, 1]; None where one is unscored or nothing was concluded.

    Q/|C| without the evidence ratio p: what an answer says, however it was come by.
    """
    grades = [verdict.score for verdict in score.verdicts if verdict.score is not None]
    return fmean(grades) if grades and len(grades) == len(score.verdicts) else None


CUTOFF_MEASURES: dict[str, Measure] = {
    **{name: MEASURES[name] for name in ("coverage", "unaided", "Q/|C|")},
    "mean S": mean_grade,
}
"""What is split at the cutoff, by heading."""


class Split(NamedTuple):
    """A player on trees of papers from before and from after a cutoff."""

    player: Player
    cutoff: str
    """As its sources write it; see `ModelDates.written_cutoff`."""
    control: bool
    """Whether the player asks no model, so that no difference can come from what it has read."""
    before: Mapping[str, Estimate]
    """Per measure, the mean over trees of papers that were published before the cutoff."""
    after: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    """Per measure before minus after, Welch's interval over the tree means."""
    degrees: Mapping[str, float | None]
    """Per measure Welch's degrees of freedom; None without an interval."""
    unclear: int
    """Trees on neither side."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {**self._asdict(), "player": dict(zip(("agent", "limit", "reading"), self.player, strict=True))}
        for side in ("before", "after", "difference"):
            plain[side] = {measure: estimate._asdict() for measure, estimate in plain[side].items()}
        return plain


class Cutoffs(NamedTuple):
    """What a report says of training cutoffs."""

    level: int
    """The fake level of the episodes that were compared."""
    splits: tuple[Split, ...]
    """Models first, then controls at the median of the models' cutoffs; empty without a model of known cutoff."""
    crossings: Mapping[str, Crossing]
    """Per measure, the same trees before the cutoff of one model and after that of another."""
    unnamed: Mapping[str, int]
    """Episodes, at every fake level, of models of which no entry gives the cutoff, by litellm's name; left out."""

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        crossings = {name: {**each._asdict(), "effect": each.effect._asdict()} for name, each in self.crossings.items()}
        splits = [each.as_plain() for each in self.splits]
        return {"level": self.level, "splits": splits, "crossings": crossings, "unnamed": dict(self.unnamed)}


def side_of(published: Period, cutoff: Period) -> Side:
    """Tell on which side of a cutoff a paper appeared.

    Args:
        published: days on which it may have appeared.
        cutoff: days that may be the last one of the training data.
    """
    if published.last <= cutoff.first:
        return "before"
    return "after" if published.first > cutoff.last else "unclear"


def split_by_cutoff(scores: Iterable[EpisodeScore], models: Sequence[ModelDates]) -> Cutoffs:
    """Split episodes at the cutoffs of their models, at the lowest fake level that there is.

    Args:
        scores: one or more.
        models: see `load_models`.
    """
    scores = list(scores)
    dates = {name: find_model(models, name) for name in dict.fromkeys(score.model for score in scores) if name}
    unnamed = Counter(score.model for score in scores if score.model and dates[score.model] is None)
    level = min(score.fake_level for score in scores)
    players: dict[Player, list[EpisodeScore]] = {}
    for score in scores:
        if score.fake_level == level:
            players.setdefault(player_of(score), []).append(score)
    asked = {player: dates[of[0].model] for player, of in players.items() if of[0].model}
    known = {player: found for player, found in asked.items() if found is not None}
    splits = [_split(player, players[player], found) for player, found in known.items()]
    if known:
        middle = _median(list(known.values()))
        splits += [_split(player, of, middle) for player, of in players.items() if player not in asked]
    crossings = {name: _crossing(players, known, measure) for name, measure in CUTOFF_MEASURES.items()} if known else {}
    return Cutoffs(level, tuple(splits), crossings, {str(name): count for name, count in unnamed.items()})


def cutoff_table(found: Cutoffs) -> Iterator[list[str]]:
    """Yield the cells of a text table of the differences: a heading line, then one line per split."""
    yield ["agent", "cutoff", "trees before", "after", "unclear", *CUTOFF_MEASURES]
    for each in found.splits:
        trees = [str(side["coverage"].trees) for side in (each.before, each.after)]
        estimates = ["\n".join(filter(None, format_estimate(each.difference[name]))) for name in CUTOFF_MEASURES]
        yield [each.player[0] + ", control" * each.control, each.cutoff, *trees, str(each.unclear), *estimates]


def _median(found: Sequence[ModelDates]) -> ModelDates:
    middle = median_low(each.window for each in found)
    return next(each for each in found if each.window == middle)


def _split(player: Player, scores: Sequence[EpisodeScore], dates: ModelDates) -> Split:
    groups: dict[Side, list[EpisodeScore]] = {"before": [], "after": [], "unclear": []}
    for score in scores:
        groups[side_of(read_period(score.published), dates.window)].append(score)
    values = {
        name: [[(score.tree, measure(score)) for score in groups[side]] for side in ("before", "after")]
        for name, measure in CUTOFF_MEASURES.items()
    }
    contrasts = {name: unpaired_difference(*sides) for name, sides in values.items()}
    return Split(
        player=player,
        cutoff=dates.written_cutoff,
        control=scores[0].model is None,
        before={name: clustered_mean(before) for name, (before, _) in values.items()},
        after={name: clustered_mean(after) for name, (_, after) in values.items()},
        difference={name: contrast.estimate for name, contrast in contrasts.items()},
        degrees={name: contrast.degrees for name, contrast in contrasts.items()},
        unclear=len({score.tree for score in groups["unclear"]}),
    )


def _crossing(
    players: Mapping[Player, Sequence[EpisodeScore]], known: Mapping[Player, ModelDates], measure: Measure
) -> Crossing:
    sightings = []
    for player, dates in known.items():
        for score in players[player]:
            side, value = side_of(read_period(score.published), dates.window), measure(score)
            if side != "unclear" and value is not None:
                sightings.append(Sighting(" ".join(player), score.tree, side == "before", value))
    return crossing(sightings)
