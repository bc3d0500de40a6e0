"""Kinds of environments: what the package needs to know of one, and how one is found by name.

A kind is a package with the modules `ids`, `settings`, `tasks`, `events`, `play`, `judging` and `results`. The last six
hold one part each, with a class in `protocols`, and are imported on first use, so that scoring a log loads nothing that
plays. Another, `pages`, is optional. This module imports no kind and names only those of this package. Any other is
found by an entry point in the group ``inquitree_gym.kinds``, whose name is that of the kind and whose value is its
package. Its environments are registered when it is first looked up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import OptionError, suggest

if TYPE_CHECKING:
    from inquitree_gym.protocols import Judging, Play, Tasks

GROUP = "inquitree_gym.kinds"
"""Group of the entry points of kinds."""
PARTS = ("ids", "settings", "tasks", "events", "play", "judging", "results")
"""Modules that the package of a kind must have."""


@dataclass(frozen=True)
class Kind:
    """A kind of environment, found by `kind`. It is pickled by its name."""

    name: str
    """Name in logs, study files and ``--env``."""
    package: str
    """Package with the parts."""

    def __reduce__(self) -> tuple[Callable[[str], Kind], tuple[str]]:
        return kind, (self.name,)

    @cached_property
    def settings(self) -> type[Any]:
        """Model of its settings. See `Settings`."""
        settings: type[Any] = self._part("settings", "SETTINGS")
        return settings

    @cached_property
    def tasks(self) -> Tasks[Any]:
        """Its tasks."""
        tasks: Tasks[Any] = self._part("tasks", "TASKS")
        return tasks

    @cached_property
    def event(self) -> type[Any]:
        """Model of its part of a logged turn, a subclass of `log.records.TurnEvent`."""
        event: type[Any] = self._part("events", "EVENT")
        return event

    @cached_property
    def setup(self) -> type[Any]:
        """Model of its part of the header of a log, a subclass of `log.records.Setup`."""
        setup: type[Any] = self._part("events", "SETUP")
        return setup

    @cached_property
    def play(self) -> Play[Any]:
        """Its environments, agents and templates."""
        play: Play[Any] = self._part("play", "PLAY")
        return play

    @cached_property
    def judging(self) -> Judging[Any]:
        """Its judges."""
        judging: Judging[Any] = self._part("judging", "JUDGING")
        return judging

    @cached_property
    def results(self) -> Any:
        """Its scores, an instance of `results.score.KindResults`."""
        return self._part("results", "RESULTS")

    @property
    def verbs(self) -> Mapping[str, tuple[str, str]]:
        """Verbs of the command line of its own, ``VERBS`` of ``<kind>/ids.py``: module in the package, and help."""
        verbs: Mapping[str, tuple[str, str]] = getattr(import_module(f"{self.package}.ids"), "VERBS", {})
        return verbs

    @cached_property
    def pages(self) -> Any:
        """Its additions to pages, an instance of `results.report.KindPages`. None for a kind without ``pages.py``."""
        return self._part("pages", "PAGES") if find_spec(f"{self.package}.pages") is not None else None

    def register(self) -> None:
        """Register its environments with Gymnasium."""
        import_module(f"{self.package}.ids").register()

    def _part(self, module: str, name: str) -> Any:
        """Return the object that a part holds.

        Raises:
            OptionError: the package has no such module, or the module has no such object.
        """
        place = f"{self.package}.{module}"
        try:
            part = import_module(place)
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
            raise OptionError(f"kind '{self.name}' must have the module {place}, got none. Add it.") from error
        if not hasattr(part, name):
            raise OptionError(f"{place} of kind '{self.name}' must define {name}, got none. Add it.")
        return getattr(part, name)


KINDS = (
    Kind("inquiry", "inquitree_gym.inquiry"),
    Kind("projection", "inquitree_gym.projection"),
    Kind("exploration", "inquitree_gym.exploration"),
)
"""The kinds of this package."""
DEFAULT_KIND = KINDS[0].name
"""Kind of environment of a study that names none."""


def kind(name: str) -> Kind:
    """Return a kind of this package, or one that is installed.

    Raises:
        OptionError: no kind has this name, or it was left out.
    """
    own = {each.name: each for each in KINDS}
    if name in own:
        return own[name]
    found, left_out = installed()
    if name in found:
        return found[name]
    known = [*own, *found]
    if name in left_out:
        raise OptionError(f"kind '{name}' is left out: {left_out[name]}. Known kinds: {', '.join(known)}")
    raise OptionError(
        f"no kind of environment is called '{name:.80}'{suggest(name, known)}; known: {', '.join(known)}. Install the "
        "package that has it"
    )


def kinds() -> tuple[Kind, ...]:
    """Return the kinds of this package and those that are installed."""
    return (*KINDS, *installed()[0].values())


def kinds_with(part: str) -> tuple[Kind, ...]:
    """Return the kinds that have a part. An installed one whose part cannot be loaded is left out with a warning."""
    whole = list(KINDS)
    for other in installed()[0].values():
        reason = _failure(partial(getattr, other, part))
        if reason:
            warnings.warn(f"the kind of environment '{other.name}' is left out: {reason}", stacklevel=2)
        else:
            whole.append(other)
    return tuple(whole)


def register_kinds() -> None:
    """Register the environments of the kinds of this package. Those of others follow when one is looked up."""
    for own in KINDS:
        own.register()


@cache
def installed() -> tuple[dict[str, Kind], dict[str, str]]:
    """Return the kinds with an entry point by name, and the reasons why others are left out, by name.

    The first call registers their environments, and warns of each kind that is left out.
    """
    from importlib.metadata import entry_points  # reads every installed package, which takes longer than a reset

    packages: dict[str, set[str]] = {}
    for entry in entry_points(group=GROUP):
        packages.setdefault(entry.name, set()).add(entry.value)
    found: dict[str, Kind] = {}
    left_out: dict[str, str] = {}
    for name, values in sorted(packages.items()):
        reason = _fault(name, sorted(values))
        if not reason:
            found[name] = Kind(name, values.pop())
            reason = _failure(found[name].register)
        if reason:
            found.pop(name, None)
            left_out[name] = reason
            warnings.warn(f"the kind of environment '{name}' is left out: {reason}", stacklevel=2)
    return found, left_out


def _fault(name: str, packages: Sequence[str]) -> str:
    """Return the reason to leave out an installed kind, or an empty string."""
    if any(name == own.name for own in KINDS):
        return f"{', '.join(packages)} has the name of a kind of this package; rename its entry point"
    if len(packages) > 1:
        return f"{' and '.join(packages)} have the same name; uninstall one of them"
    return _failure(lambda: _check_parts(packages[0]))


def _check_parts(package: str) -> None:
    for part in PARTS:
        if find_spec(f"{package}.{part}") is None:
            raise OptionError(f"{package} must have the module {part}, got none; add it")


def _failure(call: Callable[[], object]) -> str:
    """Call code of another package. Return why it failed, or an empty string."""
    try:
        call()
    except (Exception, SystemExit) as error:  # noqa: BLE001  (any error of others must not break this package)
        return f"{type(error).__name__}: {error}"
    return ""
