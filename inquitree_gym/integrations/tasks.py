"""Tasks of every kind of environment with cell and seed, as frozen values with a key, the same in every adapter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError

from inquitree_gym.errors import OptionError
from inquitree_gym.kinds import DEFAULT_KIND, kind
from inquitree_gym.protocols import Scalar
from inquitree_gym.runs.study import ALL, MAX_EPISODES, faults
from inquitree_gym.trees.catalogue import is_path


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """One episode to play. Every value is plain, so a task can be sent to another process as JSON."""

    kind: str
    """Kind of environment."""
    task: str
    """Id of the task."""
    version: int
    """Version of the task."""
    seed: int
    cell: Mapping[str, Scalar] = field(default_factory=dict)
    """Values on the grid of the kind."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other settings of the kind that are not its defaults, as in the table of the kind in a study file."""

    @property
    def key(self) -> str:
        """Name, such as ``paper12@1/fake_level=3/s0``. Settings that are not the default come last."""
        cell = [f"{name}={value}" for name, value in self.cell.items()]
        return "/".join([f"{self.task}@{self.version}", *cell, f"s{self.seed}", *_words(self.settings)])

    @property
    def shown(self) -> EpisodeTask:
        """The task without what a client must not see, such as the world of an inquiry."""
        hidden = kind(self.kind).settings.hidden_rules
        rules = {name: value for name, value in self.settings.get("rules", {}).items() if name not in hidden}
        others = {name: value for name, value in self.settings.items() if name != "rules"}
        return replace(self, settings=others | ({"rules": rules} if rules else {}))

    @property
    def parsed(self) -> Any:
        """Settings of the kind.

        Raises:
            OptionError: a setting is unknown or out of range.
        """
        return parse_settings(self.kind, {**self.settings, **self.cell})

    @property
    def options(self) -> dict[str, Any]:
        """Return the options that the environment is reset with. See `load` for the errors."""
        options: dict[str, Any] = self.parsed.options(dict(self.cell), self.load())
        return options

    def load(self) -> Any:
        """Return the task.

        Raises:
            OptionError: it is named by a path, or another version of it is installed.
            TreeError: it is unknown, invalid, or may not be distributed.
        """
        task = task_by_id(self.task, self.kind)
        if task.version != self.version:
            raise OptionError(
                f"the task is for version {self.version} of {task.id}, but version {task.version} is installed; "
                "make the tasks again"
            )
        return task


@dataclass(frozen=True, slots=True)
class OwnTask(EpisodeTask):
    """One episode on a task that was loaded already, which may come from a file. Not for other processes."""

    loaded: Any = None

    def load(self) -> Any:
        """Return the task."""
        return self.loaded


def make_tasks(
    papers: str | Sequence[str] = ALL, *, env: str = DEFAULT_KIND, seeds: int | Sequence[int] = 5, **settings: Any
) -> tuple[EpisodeTask, ...]:
    """Return the episodes of each task, cell and seed, task by task.

    Args:
        papers: ids or paper numbers, as a list or separated by commas. ``all`` for every shipped task. Tasks of your
            own are named by their id and found in the folders of ``INQUITREE_TREES``. A path is refused, since it may
            come from a client.
        env: kind of environment.
        seeds: number of seeds, 0, 1, 2, …, or the seeds themselves.
        settings: settings of the kind, as in its table in a study file. Those of its grid take one value or several, as
            a list or separated by commas, such as ``fake_level=[0, 3]``. Inquiries also take ``world``.

    Raises:
        OptionError: a value is out of range, a setting is unknown, or a task is named by a path.
        TreeError: a task is unknown, invalid, or may not be distributed.
    """
    of_kind = kind(env)
    names = [name.strip() for name in papers.split(",")] if isinstance(papers, str) else papers
    loaded = [task_by_id(name, env) for name in of_kind.tasks.expand([check_id(name) for name in names])]
    if not loaded:
        raise OptionError(f"there is no task to make; name at least one {of_kind.tasks.noun}")
    numbers = _seeds(seeds)
    parsed = parse_settings(env, settings)
    cells = parsed.cells()
    if (count := len(loaded) * len(cells) * len(numbers)) > MAX_EPISODES:
        raise OptionError(f"{count:,} tasks are more than {MAX_EPISODES:,}; choose fewer seeds")
    for task in loaded:
        parsed.options(cells[0], task)  # refuses what a task does not have
    others = _deciding(type(parsed), parsed.model_dump(mode="json", exclude=set(parsed.grid), exclude_unset=True))
    return tuple(
        EpisodeTask(env, task.id, task.version, seed, cell, others)
        for task, cell, seed in product(loaded, cells, numbers)
    )


def _deciding(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that make a difference. A default of one preset may not be that of another."""
    whole = model(**values)
    return {
        name: value
        for name, value in values.items()
        if model(**{other: values[other] for other in values if other != name}) != whole
    }


def parse_settings(env: str, settings: Mapping[str, Any]) -> Any:
    """Return the settings of a kind from plain values, lists also as texts. Raise `OptionError` if invalid."""
    model = kind(env).settings
    lists = {name for name, one in model.model_fields.items() if get_origin(one.annotation) is tuple}
    values = {
        name: [part.strip() for part in value.split(",")] if name in lists and isinstance(value, str) else value
        for name, value in settings.items()
    }
    try:
        return model(**values)
    except ValidationError as error:
        raise OptionError(f"no task can be made; {'; '.join(faults(error))}") from None


def task_by_id(name: str, env: str) -> Any:
    """Return the task of a kind with an id or paper number. See `check_id` and `load_tree` for the errors."""
    return kind(env).tasks.load(check_id(name))


def check_id(name: object) -> str:
    """Return the name of a task that a client may choose. Raise `OptionError` for a path or anything but a text."""
    if not isinstance(name, str) or is_path(name):
        raise OptionError(
            "a task is named by its id here, such as paper12; put a file of your own in a folder named by "
            "INQUITREE_TREES"
        )
    return name


def _words(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield settings as parts of a key, those of a table one by one."""
    for name, value in sorted(settings.items()):
        if isinstance(value, Mapping):
            yield from (f"{name}.{inner}={value[inner]}" for inner in sorted(value))
        else:
            words = ",".join(map(str, value)) if isinstance(value, list) else value
            yield f"{name}={words}"


def _seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    numbers = range(seeds) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not numbers or any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in numbers):
        raise OptionError(f"seeds must be a number of seeds from 1, or a list of integers from 0, got {seeds!r:.80}")
    return numbers
