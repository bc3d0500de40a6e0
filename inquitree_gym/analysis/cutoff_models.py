"""Release and cutoff dates of chat models, from ``data/models.toml`` and a file of the user."""

from __future__ import annotations

import calendar
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from inquitree_gym.errors import OptionError

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
        """The cutoff as written by its sources; two dates if the training data extend beyond the reliable knowledge."""
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
        OptionError: the file cannot be read or is invalid; the message names every fault with its place.
    """
    own = resources.files(__package__).joinpath(PACKAGED).read_text(encoding="utf-8")
    packaged = _parse(own, PACKAGED)
    if file is None:
        return packaged
    try:
        text = Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"cannot read the models of '{file}': {error}; give a TOML file in UTF-8") from error
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
