"""Protocols of the parts of a kind of environment, and what they exchange. See `kinds`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from inquitree_gym.errors import Fault, OptionError

if TYPE_CHECKING:
    pass

Scalar = str | int | float | bool | None

UNREVIEWED = "not reviewed"
"""Mark of tasks that a model wrote and that no person has reviewed."""

T = TypeVar("T")
"""Task that an episode is played on."""
T_contra = TypeVar("T_contra", contravariant=True)


class Task(Protocol):
    """Document that an episode is played on, such as a tree."""

    @property
    def id(self) -> str:
        """Id, as in logs and tables."""

    @property
    def version(self) -> int:
        """Version, from 1."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical document, in hex."""

    @property
    def group(self) -> str:
        """Group in tables, such as the domain of a paper. Empty for none."""

    @property
    def published(self) -> str:
        """Date of publication, ``YYYY``, ``YYYY-MM`` or ``YYYY-MM-DD``. Empty for none."""


@dataclass(frozen=True)
class Outline:
    """Drawing of a task for a terminal, as a tree of texts."""

    heading: str
    text: str = ""
    """Text below the heading."""
    parts: tuple[Outline, ...] = ()
    """The lines below it."""


class Tasks(Protocol[T]):
    """``TASKS`` of ``<kind>/tasks.py``: tasks by name, and their files.

    A kind's class inherits from this one, which has a plain form of all that is only shown.
    """

    columns: Sequence[str] = ("id", "version", "group", "published")
    """Columns of ``inquitree list``."""
    drawn: str = ""
    """Names of tasks that are drawn when they are asked for, in words for ``inquitree list``. Empty for none."""

    @property
    def noun(self) -> str:
        """Word for one task in messages and headings: ``tree``, ``task``, ``question``."""

    @property
    def schema(self) -> Any:
        """Model of a file, for editors."""

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return ids and paths, each once, with names that stand for several, such as ``all``, replaced by these.

        Raises:
            OptionError: two of them would share their logs.
        """

    def load(self, task: str | os.PathLike[str] | T) -> T:
        """Return a task by id or path. A task is returned as it is.

        Raises:
            TreeError: it is unknown or invalid. Every fault is listed with its place.
        """

    def dump(self, task: T) -> bytes:
        """Return the file of a task, for the copy in a run folder. `load` of that file has the same digest."""

    def lint(self, task: T, embedder: Any = None) -> Sequence[Fault]:
        """Return the faults of a task, for its author. Those of meaning need an embedder."""

    def mend(self, document: bytes, where: str) -> tuple[bytes, Sequence[str]]:
        """Return the file of a task with what a program can mend, and a line for each change but those of form.

        Raises:
            TreeError: the document is invalid all the same.
        """
        raise OptionError(f"a {self.noun} has no mended form; leave out --fix")

    def aids(self, task: Any, embedder: Any = None) -> Mapping[str, Sequence[list[str]]]:
        """Return tables that help the author of a task: rows of cells by title, the heading first."""
        return {}

    def is_reviewed(self, task: T) -> bool:
        """Return False for a task that a model wrote and that no person has reviewed."""
        return getattr(task, "reviewed", None) is not False

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Yield the tasks as ``inquitree list`` shows them: values of the `columns`, ``playable`` and ``reviewed``."""
        for name in self.expand(["all"]):
            task: Any = self.load(name)
            yield {column: getattr(task, column) for column in self.columns} | {
                "playable": True,
                "reviewed": self.is_reviewed(task),
            }

    def outline(self, task: T, spoil: bool) -> Outline:
        """Return a task for ``inquitree show``. Only ``spoil`` shows what an agent has to find out."""
        shown: Any = task
        return Outline(f"{shown.id} · version {shown.version}", self.dump(task).decode() if spoil else shown.group)

    @property
    def diagrams(self) -> Mapping[str, Callable[[T], str]]:
        """Functions that return a task as a picture, by the flag of ``inquitree show``: ``mermaid`` or ``svg``."""
        return {}


class Shared(Protocol):
    """Objects that the environments of a run share."""

    @property
    def prompts(self) -> str:
        """Prompts of the observations: ``default``, another set of the kind's, or a folder."""

    @property
    def judge(self) -> Any:
        """Judge that sets the reward: its name, or an asynchronous judge."""

    @property
    def device(self) -> Any:
        """Device of a local embedder."""

    @property
    def cache(self) -> Any:
        """Cache of the replies of models, or None."""

    def chat(self, settings: Mapping[str, Any]) -> Any:
        """Return the chat of one of the models in `KindSettings.services`."""


Course = Iterable[tuple[str, Mapping[str, Any]]]
"""Observations of an episode in order, one per action, each with its info."""


class Play(Protocol[T_contra]):
    """``PLAY`` of ``<kind>/play.py``: everything that plays."""

    @property
    def templates(self) -> tuple[str, ...]:
        """Names of the templates of observations. The files lie in ``<kind>/templates``."""

    @property
    def agents(self) -> Mapping[str, Callable[[Any], Any]]:
        """Makers of the agents without a model by name, each called with the environment."""

    @property
    def model_agents(self) -> Mapping[str, type[Any]]:
        """Agents that ask models by name. Each class names its settings and templates."""

    @property
    def default_agents(self) -> tuple[str, ...]:
        """Names of the agents that ``inquitree run`` plays by default."""

    @property
    def saved_policy(self) -> Callable[[str, Any], Any] | None:
        """Maker of the agent ``policy:FILE``, called with that name and the environment. None if none is trained."""

    def maker(self, settings: Any, shared: Shared) -> Callable[[T_contra], Any]:
        """Return the maker of the environments of a run, which share embedder, reader, judge, prompts and runtimes.

        Raises:
            OptionError: a setting is out of range, or a template is invalid.
            EmbedderError: the embedder is unknown.
        """

    @property
    def course_note(self) -> str:
        """Sentence that explains the shortest and the longest course."""

    def courses(self, task: T_contra, settings: Any, prompts: str) -> tuple[Course, Course]:
        """Return the shortest and the longest course of an episode with some prompts, for ``run --dry-run``."""


class Judging(Protocol[T_contra]):
    """``JUDGING`` of ``<kind>/judging.py``: the judges, and the texts of an episode that are judged."""

    @property
    def noun(self) -> str:
        """Word for one judged text: ``conclusion``, ``projection``."""

    @property
    def part(self) -> str:
        """Word for the part of a text that can be unscored: ``item``, or the text itself."""

    @property
    def judges(self) -> Mapping[str, Callable[[str, Any], Any]]:
        """Makers of judges by the prefix of their names: ``local``, ``nli``, ``llm``.

        Each is called with the name of the model, which is empty for ``local``, and with the options.
        """

    @property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        """Options by the prefix that stands for them, of the judges that may set the reward of a study."""

    @property
    def options(self) -> type[Any]:
        """Options of a judge that asks a model, a subclass of `judging.registry.ChatOptions`."""

    @property
    def payload(self) -> type[Any]:
        """Model of a stored judgement's content, a subclass of `judging.stored.Payload`: all that any score needs."""

    def texts(self, episode: Any) -> Iterator[Any]:
        """Yield the judged texts of an episode with their turns, as `judging.judgement.JudgedText`."""

    def about(self, task: T_contra, episode: Any) -> Any:
        """Return what the judges of an episode's texts are told of its task, most often the task."""

    def own_judged(self, episode: Any, task: T_contra) -> Any:
        """Return what the kind's own judge says of an episode, as `judging.judgement.Judged`."""


Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""The builtin `map` over one sequence, or a function with the same results in the same order."""
