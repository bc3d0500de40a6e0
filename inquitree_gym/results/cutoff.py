"""Papers from before and after the training cutoff of an agent's model, as in the paper's Figure 4.

A model may have read a paper published before its training data end. Tasks are therefore split by the publication date
of their paper, and an agent's means over the two groups are compared. A task whose side is unknown, because a date is
not precise enough, is unclear: it is left out and counted.
"""

from __future__ import annotations

import calendar
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from statistics import median_low
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from inquitree_gym.errors import OptionError
from inquitree_gym.files import MAX_SETTINGS, read_text_input
from inquitree_gym.kinds import kind
from inquitree_gym.protocols import Scalar
from inquitree_gym.results.score import KindResults, Measure, Score, disambiguate_agents
from inquitree_gym.results.statistics import Estimate, clustered_mean, unpaired_difference
from inquitree_gym.results.summary import Player, by_player, first_cell, grouped, in_cell

PACKAGED = "data/models.toml"
"""Path of the packaged list, beside this module."""

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", re.ASCII)
_EXAMPLE = 'write it as "2025", "2025-01" or "2025-01-31"'

Name = Annotated[str, Field(min_length=1, max_length=200)]


class DateRange(NamedTuple):
    """Range of days, both ends included."""

    first: date
    last: date


class SourcedDate(BaseModel):
    """A date, as precisely as it is known, with its source."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    date: str
    """A day, a month or a year: ``2025-01-31``, ``2025-01``, ``2025``."""
    source: Name
    """Key of the file's ``[sources]``."""

    @field_validator("date")
    @classmethod
    def _is_a_date(cls, text: str) -> str:
        parse_date(text)
        return text

    @property
    def period(self) -> DateRange:
        """The range of days that the date may mean."""
        return parse_date(self.date)


class ModelDates(BaseModel):
    """Release date and training cutoff of a chat model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    patterns: Annotated[list[Name], Field(min_length=1)]
    """litellm's names of the model in lower case, after the last slash, with the wildcards ``*``, ``?`` and ``[…]``."""
    cutoff: SourcedDate
    """End of the knowledge that the vendor calls reliable, or simply the cutoff."""
    latest: SourcedDate | None = None
    """End of the training data, if known to be later."""
    released: SourcedDate | None = None

    @field_validator("patterns")
    @classmethod
    def _can_match(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            if "/" in pattern or pattern != pattern.lower():
                raise ValueError(
                    f"the pattern '{pattern}' never matches: write it in lower case, without the provider before the "
                    "last slash"
                )
        return patterns

    @model_validator(mode="after")
    def _in_order(self) -> ModelDates:
        if self.latest is not None and self.latest.period.last < self.cutoff.period.first:
            raise ValueError(f"latest ({self.latest.date}) is before cutoff ({self.cutoff.date})")
        if self.released is not None and self.released.period.last < self.window.first:
            raise ValueError(f"released ({self.released.date}) is before cutoff ({self.cutoff.date})")
        return self

    @property
    def window(self) -> DateRange:
        """Days on which the training data may end: from the first of `cutoff` to the last of `latest`."""
        ends = [fact.period.last for fact in (self.cutoff, self.latest) if fact is not None]
        return DateRange(self.cutoff.period.first, max(ends))

    @property
    def written_cutoff(self) -> str:
        """The cutoff as written by its sources. Two dates if the training data extend beyond the reliable knowledge."""
        return self.cutoff.date if self.latest is None else f"{self.cutoff.date} to {self.latest.date}"

    def fits(self, model: str) -> bool:
        """Return whether litellm's name ``model`` is one of this model."""
        last = model.rpartition("/")[2].lower()
        return any(fnmatchcase(last, pattern) for pattern in self.patterns)


class _ModelFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    sources: dict[str, Name]
    models: Annotated[list[ModelDates], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_sourced(self) -> _ModelFile:
        if faults := [*self._dangling(), *self._twins()]:
            raise ValueError("; ".join(faults))
        return self

    def _dangling(self) -> Iterator[str]:
        for model in self.models:
            for place in ("cutoff", "latest", "released"):
                fact = getattr(model, place)
                if fact is not None and fact.source not in self.sources:
                    yield f"{model.name}, {place}: the source '{fact.source}' is not in [sources]"

    def _twins(self) -> Iterator[str]:
        first: dict[str, str] = {}
        for model in self.models:
            for pattern in model.patterns:
                if (twin := first.setdefault(pattern, model.name)) != model.name:
                    yield f"{model.name}: the pattern '{pattern}' is already used by {twin}"


def parse_date(text: str) -> DateRange:
    """Return the range of days of a day, a month or a year, as in ``2024-02-29``, ``2024-02``, ``2024``.

    Raises:
        ValueError: ``text`` is no such date.

    >>> parse_date("2024-02")
    DateRange(first=datetime.date(2024, 2, 1), last=datetime.date(2024, 2, 29))
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is not a date; {_EXAMPLE}")
    year, month, day = (None if part is None else int(part) for part in found.groups())
    assert year is not None
    try:
        first = date(year, 1 if month is None else month, 1 if day is None else day)
    except ValueError as error:
        raise ValueError(f"'{text}' is not a date of the calendar ({error}); {_EXAMPLE}") from None
    if day is not None:
        return DateRange(first, first)
    end = 12 if month is None else month
    return DateRange(first, date(year, end, calendar.monthrange(year, end)[1]))


def load_models(file: str | os.PathLike[str] | None = None) -> tuple[ModelDates, ...]:
    """Return the models of the user's ``file``, followed by those of the package.

    Raises:
        OptionError: the file cannot be read or is invalid. The message names every fault with its place.
    """
    own = resources.files(__package__).joinpath(PACKAGED).read_text(encoding="utf-8")
    packaged = _parse(own, PACKAGED)
    if file is None:
        return packaged
    text = read_text_input(Path(file).expanduser(), limit=MAX_SETTINGS, error=OptionError)
    return (*_parse(text, str(file)), *packaged)


def find_model(models: Sequence[ModelDates], model: str) -> ModelDates | None:
    """Return the first entry that matches litellm's name ``model``, or None."""
    return next((entry for entry in models if entry.fits(model)), None)


def _parse(text: str, where: str) -> tuple[ModelDates, ...]:
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits, or tables nested too deeply
        raise OptionError(f"'{where}' is not TOML: {error}") from error
    try:
        return tuple(_ModelFile.model_validate(document).models)
    except ValidationError as error:
        faults = [f"{_place(fault['loc'], document)}: {fault['msg']}" for fault in error.errors(include_url=False)]
        lines = "\n".join(f"  - {fault}" for fault in faults)
        raise OptionError(
            f"'{where}' is not a list of models; expected [sources] and [[models]] with name, patterns, cutoff and, if "
            f'known, latest and released, each date as {{ date = "2025-01", source = "KEY" }}:\n{lines}'
        ) from None


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Return a location with models by their names: ``GPT-5 › cutoff › date``."""
    names: list[str] = []
    for key in location:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            document = None
        named = document.get("name") if isinstance(document, dict) else None
        names.append(named if isinstance(named, str) else str(key))
    return " › ".join(name for name in names if name != "models") or "the file"


Side = Literal["before", "after", "unclear"]


@dataclass(frozen=True, slots=True)
class CutoffSplit:
    """One player on papers from before and after a cutoff."""

    player: Player
    cutoff: str
    """The cutoff as written by its sources. See `ModelDates.written_cutoff`."""
    control: bool
    """True if the player asks no model, so that a difference cannot come from training data."""
    before: Mapping[str, Estimate]
    """By measure, the mean over trees of papers published before the cutoff."""
    after: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    """By measure, before minus after, with Welch's interval over tree means."""
    degrees: Mapping[str, float | None]
    """By measure, Welch's degrees of freedom. None without an interval."""
    unclear: int
    """Trees on neither side."""


@dataclass(frozen=True, slots=True)
class CutoffAnalysis:
    """Episodes split at the cutoffs of their models."""

    cell: Mapping[str, Scalar]
    splits: tuple[CutoffSplit, ...]
    """Models first, then controls at the median of the models' cutoffs. Empty without a model of known cutoff."""
    unnamed: Mapping[str, int]
    """Episodes left out in all cells, by litellm's name of a model of unknown cutoff."""


def side_of(published: DateRange, cutoff: DateRange) -> Side:
    """Return the side of a cutoff on which a paper appeared, given the days on which either may have been."""
    if published.last <= cutoff.first:
        return "before"
    return "after" if published.first > cutoff.last else "unclear"


def split_by_cutoff(
    scores: Iterable[Score[Any]], models: Sequence[ModelDates], results: KindResults[Any, Any] | None = None
) -> CutoffAnalysis:
    """Split the episodes of one kind, in the cell with the smallest values, at the cutoffs of their models.

    ``results`` are those of their kind, if not the usual ones. See `load_models` for ``models``.
    """
    scores = disambiguate_agents(scores)
    chosen = kind(scores[0].kind).results if results is None else results
    measures = chosen.split or chosen.measures
    cell = first_cell(scores)
    players = by_player(score for score in scores if score.cell == cell)
    asked = {player: find_model(models, group[0].model) for player, group in players.items() if group[0].model}
    known = {player: found for player, found in asked.items() if found is not None}
    splits = [split_at(player, players[player], dates, measures) for player, dates in known.items()]
    if known:
        middle = _median(list(known.values()))
        splits += [
            split_at(player, group, middle, measures) for player, group in players.items() if player not in asked
        ]
    return CutoffAnalysis(cell, tuple(splits), _unnamed(scores, models))


def _unnamed(scores: Sequence[Score[Any]], models: Sequence[ModelDates]) -> dict[str, int]:
    """Return the number of episodes of each model whose cutoff is unknown, by litellm's name of the model."""
    names = Counter(score.model for score in scores if score.model)
    return {name: count for name, count in names.items() if find_model(models, name) is None}


def cutoff_table(found: CutoffAnalysis, results: KindResults[Any, Any]) -> Iterator[list[str]]:
    """Yield the rows of a text table of differences, headings first. ``results`` are those of the kind."""
    measures = list(found.splits[0].difference)
    yield ["agent", "cutoff", f"{results.clusters} before", "after", "unclear", *map(results.heading, measures)]
    for split in found.splits:
        numbers = [str(max(each.trees for each in side.values())) for side in (split.before, split.after)]
        estimates = [in_cell(split.difference[name]) for name in measures]
        yield [player_label(split), split.cutoff, *numbers, str(split.unclear), *estimates]


def _side(score: Score[Any], dates: ModelDates) -> Side:
    return side_of(parse_date(score.published), dates.window) if score.published else "unclear"


def player_label(split: CutoffSplit, name: str = "") -> str:
    """Return the agent of a split, or the given name of its player, marked if it is a control."""
    name = name or split.player.agent
    return f"{name}, control" if split.control else name


def _median(found: Sequence[ModelDates]) -> ModelDates:
    middle = median_low(each.window for each in found)
    return next(each for each in found if each.window == middle)


def split_at(
    player: Player, scores: Sequence[Score[Any]], dates: ModelDates, measures: Sequence[Measure[Any]]
) -> CutoffSplit:
    """Split the episodes of one player at the cutoff of a model."""
    groups = grouped(scores, lambda score: _side(score, dates))
    before, after = (
        {
            measure.name: [(score.task, measure.of(score.detail)) for score in groups.get(side, [])]
            for measure in measures
        }
        for side in ("before", "after")
    )
    contrasts = {name: unpaired_difference(before[name], after[name]) for name in before}
    return CutoffSplit(
        player=player,
        cutoff=dates.written_cutoff,
        control=scores[0].model is None,
        before={name: clustered_mean(values) for name, values in before.items()},
        after={name: clustered_mean(values) for name, values in after.items()},
        difference={name: contrast.estimate for name, contrast in contrasts.items()},
        degrees={name: contrast.degrees for name, contrast in contrasts.items()},
        unclear=len({score.task for score in groups.get("unclear", [])}),
    )
