"""Scores of episodes of every kind: their content, and the base of the results of a kind."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judging.judgement import Judged, judge_label
from inquitree_gym.kinds import kind
from inquitree_gym.llm import Usage
from inquitree_gym.llm.chat import end_of, used_up
from inquitree_gym.log.records import READER_ROLE
from inquitree_gym.protocols import Scalar, Task
from inquitree_gym.results.logs import agent_label

if TYPE_CHECKING:
    from inquitree_gym.log import Episode, Header
    from inquitree_gym.results.statistics import Estimate

D = TypeVar("D")
T = TypeVar("T", bound=Task)
Number = TypeVar("Number", int, float)
REFUSALS = ("refused", "filtered")
"""Ends of a reply that refuses. See `end_of`."""
MAX_SHOWN = 24
"""Characters of a setting in a label."""


@dataclass(frozen=True, slots=True)
class EpisodeCost:
    """Replies, tokens, dollars and seconds of one or more episodes. None is unknown, never 0."""

    replies: int
    """Replies of services, cached ones included."""
    corrections: int
    """Replies requested again because the previous one broke the agent's protocol."""
    cut_short: int
    """Replies that reached the limit of their tokens."""
    without_text: int
    """Replies that reached it before any text, by reasoning alone. Each was asked for again."""
    retries: int
    """Failed requests before these replies."""
    refused: int
    """Replies in which the model or the service's filter refused to answer."""
    unread: int
    """Replies of a reader that name no candidate. See `LLMReader`."""
    prompt_tokens: int | None
    """Prompt tokens of the paid replies, as counted by the services."""
    completion_tokens: int | None
    """Completion tokens of the paid replies, reasoning included."""
    reasoning_tokens: int | None
    """Completion tokens that were reasoning. None if no service named them."""
    dollars: float | None
    """US dollars for the paid replies of known price. None without one."""
    unpriced: int
    """Paid replies of unknown price. With any, the dollars are a lower bound."""
    agent_seconds: float | None
    env_seconds: float

    @classmethod
    def total(cls, costs: Iterable[EpisodeCost]) -> Self:
        """Add costs field by field. A field that is unknown in all of them stays None."""
        costs = list(costs)
        totals: Any = {field.name: _known_sum(getattr(cost, field.name) for cost in costs) for field in fields(cls)}
        return cls(**totals)


@dataclass(frozen=True, slots=True)
class Anchors:
    """Ends of the scale of a normalised measure: 0 at the floor, 1 at the ceiling."""

    name: str
    """Name of the normalised measure."""
    floor: str | float
    """Agent whose mean on the same task is the 0 of the scale, or a value that is."""
    ceiling: str
    """Agent whose mean on the same task is the 1 of the scale."""


@dataclass(frozen=True)
class Measure(Generic[D]):
    """A number of an episode, which may be absent."""

    name: str
    """Name in values, CSV and JSON, and in the docs."""
    of: Callable[[D], float | None]
    """Return the value from the kind's part of a score. None is absent from means, not 0."""
    description: str = ""
    digits: int = 3
    judged: bool = False
    """True if the judge decides on it."""
    anchors: Anchors | None = None


class TextJudge(Protocol):
    """Judge of texts about one task, called at once."""

    @property
    def name(self) -> str:
        """Name of the judge."""

    @property
    def version(self) -> int:
        """Version of its judgements, from 1."""

    def judge(self, text: str, /) -> Any:
        """Return the payload of the judgement of a text."""


@dataclass(frozen=True)
class Score(Generic[D]):
    """Score of one finished episode. Everything but `values` and what follows identifies it. See `key`."""

    kind: str
    """Kind of environment."""
    task: str
    """Id of the task, or the name of a version that was played beside an earlier one. Episodes on one task are not
    independent of each other."""
    version: int
    """Version of the task."""
    group: str
    """Group of the task. Empty for none."""
    published: str
    """Publication date of the task's paper, as precise as known: a day, a month or a year. Empty for none."""
    agent: str
    """See `agent_label`."""
    model: str | None
    """litellm's name of the agent's model. None for an agent without one."""
    effort: str | None
    """Reasoning effort requested from the model. None for the provider's default, or without a model."""
    config: Mapping[str, Any]
    """Configuration of the agent, as logged."""
    cell: Mapping[str, Scalar]
    """Values on the grid of the kind."""
    limit: str
    """Turn limit as the study or else the log has it. Empty for a kind without one."""
    rules: str
    """Reading of the actions, and rules other than the default's."""
    seed: int
    judge: str
    """Name of the judge."""
    judge_version: int
    values: Mapping[str, float | None]
    """Values of the kind's measures by name."""
    detail: D
    """The kind's part."""
    turns: int
    unscored: int
    """Texts that the judge could not score. They are absent from means, not 0."""
    cost: EpisodeCost
    file: Path | None = None
    """The log. None for an episode that is in none."""

    @property
    def judged_by(self) -> str:
        """Name and version of the judge."""
        return judge_label(self.judge, self.judge_version)

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of this episode and its judge. Logs with the same key may be copies of one episode."""
        cell = tuple(self.cell.items())
        config = config_key(self.config)
        return self.kind, self.task, self.agent, config, cell, self.limit, self.rules, self.seed, self.judged_by

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        names = ("kind", "task", "version", "group", "agent", "model", "effort", "published")
        plain = {name: getattr(self, name) for name in names} | dict(self.cell)
        plain |= {name: getattr(self, name) for name in ("seed", "limit", "rules", "judge", "judge_version")}
        more: dict[str, Any] = kind(self.kind).results.plain(self.detail)
        return {**plain, "values": dict(self.values), **more, "config": dict(self.config)}


class KindResults(ABC, Generic[T, D]):
    """Base of the results of a kind. A kind must have `measures` and `detail`."""

    measures: tuple[Measure[D], ...] = ()
    shown: tuple[str, ...] = ()
    """Measures in the table of the verb ``score``. All by default."""
    tables: Mapping[str, tuple[str, ...]] = {}
    """Estimates in the printed tables of a report by title. By default one table of what is shown."""
    compared: tuple[str, ...] = ()
    """Measures in tables of paired differences. What is shown by default."""
    split: tuple[Measure[D], ...] = ()
    """Measures that are compared before and after a training cutoff. All by default."""
    groups: str = ""
    """Word for a group of tasks, over which tables go. Empty if tasks are not grouped."""
    clusters: str = "tasks"
    """Word for several tasks in headings."""
    headings: Mapping[str, str] = {}
    """Headings of measures in tables, where they are not their names. See `heading`."""
    legend: str = ""
    """Explanation below the printed tables of a report."""
    formulas: str = ""
    """Formulas other than the usual ones, in words, for captions."""

    @abstractmethod
    def detail(self, episode: Episode[Any], task: T, judged: Judged) -> D:
        """Return the kind's part of the score of an episode."""

    def score(self, episode: Episode[Any], task: T, judged: Judged) -> tuple[dict[str, float | None], D]:
        """Return the values of the measures by name, and the kind's part of the score.

        Args:
            episode: a finished episode.
            task: its task.
            judged: its judgements by a judge.
        """
        detail = self.detail(episode, task, judged)
        return {measure.name: measure.of(detail) for measure in self.measures}, detail

    def heading(self, measure: str) -> str:
        """Return the heading of a measure in tables: by default its name in words."""
        return self.headings.get(measure, measure.replace("_", " "))

    def measured(self, score: Score[D]) -> Score[D]:
        """Return a score with the values of these measures."""
        return replace(score, values={measure.name: measure.of(score.detail) for measure in self.measures})

    def check(self, episode: Episode[Any], task: T) -> None:
        """Check that an episode was played on this version of a task.

        Raises:
            LogError: it was played on another version, or cannot have happened on this task.
        """
        played = episode.header.task
        if played.digest != task.digest:
            raise LogError(
                f"the episode was played on {played.id} with digest {played.digest[:12]}, but the given task has "
                f"{task.digest[:12]}; score it with the version it was played on"
            )

    def rules(self, header: Header) -> str:
        """Return the reading of the actions, and the rules other than the default's. Empty for none."""
        return ""

    def limit(self, header: Header, task: T) -> str:
        """Return the turn limit, independent of the size of the task. Empty for none."""
        return ""

    def unscored(self, detail: D) -> int:
        """Return the number of texts that the judge could not score."""
        return 0

    def pooled(self, scores: Sequence[Score[D]], of_player: Sequence[Score[D]]) -> dict[str, Estimate]:
        """Return the estimates of a setting that no single episode has, by name.

        Args:
            scores: scores of the setting.
            of_player: all scores of the same agent under the same rules, in every cell.
        """
        return {}

    def facts(self, scores: Sequence[Score[D]]) -> dict[str, int | str]:
        """Return counts and bounds of a setting, by name."""
        return {}

    def plain(self, detail: D) -> dict[str, Any]:
        """Return plain values of the kind's part of a score, for JSON."""
        return {}

    def with_formulas(self, formulas: Mapping[str, str]) -> Self:
        """Return these results with other formulas of the measures, by name.

        Raises:
            OptionError: the kind has no such formula.
        """
        if formulas:
            raise OptionError(f"episodes of this kind have no option {' or '.join(map(repr, formulas))}; leave it out")
        return self


def score_episode(episode: Episode[Any], task: Any, judge: TextJudge | Judged | None = None) -> Score[Any]:
    """Score one episode from its log and its task alone.

    Args:
        episode: the log.
        task: its task.
        judge: a judge of texts about the task, or its judgements of the episode. None takes the judge of the kind.

    Raises:
        LogError: the episode was played on another version of the task.
    """
    of_kind = kind(episode.header.task.kind)
    of_kind.results.check(episode, task)
    if judge is None:
        judged: Judged = of_kind.judging.own_judged(episode, task)
    elif isinstance(judge, Judged):
        judged = judge
    else:
        judged = Judged(
            judge.name, judge.version, {turn: judge.judge(text) for turn, text in of_kind.judging.texts(episode)}
        )
    return make_score(episode, task, judged)


def make_score(episode: Episode[Any], task: Any, judged: Judged) -> Score[Any]:
    """Return the score of an episode that `KindResults.check` has passed."""
    header, of_kind = episode.header, kind(episode.header.task.kind)
    values, detail = of_kind.results.score(episode, task, judged)
    grid = of_kind.settings.grid
    return Score(
        kind=of_kind.name,
        task=task.id,
        version=task.version,
        group=task.group,
        published=task.published,
        agent=agent_label(header.agent),
        model=_word(header.agent.get("model")),
        effort=_word(header.agent.get("reasoning_effort")),
        config=header.agent,
        cell={name: header.rules[name] for name in grid if name in header.rules},
        limit=of_kind.results.limit(header, task),
        rules=of_kind.results.rules(header),
        seed=header.seed,
        judge=judged.judge,
        judge_version=judged.version,
        values=values,
        detail=detail,
        turns=len(episode.turns),
        unscored=of_kind.results.unscored(detail),
        cost=cost_of(episode),
    )


def disambiguate_agents(scores: Iterable[Score[D]]) -> list[Score[D]]:
    """Return the scores, in which a label of an agent that stands for several configurations names what differs."""
    scores = list(scores)
    labels = distinct_labels([(score.agent, score.config) for score in scores])
    return [replace(score, agent=label) for score, label in zip(scores, labels, strict=True)]


def distinct_labels(agents: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the labels of agents, given with their configurations. One of several names what differs in them."""
    configs: dict[str, dict[str, Mapping[str, Any]]] = {}
    keys = [config_key(config) for _, config in agents]
    for (agent, config), key in zip(agents, keys, strict=True):
        configs.setdefault(agent, {})[key] = config
    labels = {
        (agent, key): label
        for agent, of_agent in configs.items()
        if len(of_agent) > 1
        for key, label in zip(of_agent, _labels(agent, list(of_agent.values())), strict=True)
    }
    return [labels.get((agent, key), agent) for (agent, _), key in zip(agents, keys, strict=True)]


def config_key(value: Any) -> str:
    """Return a configuration as text that is equal for equal ones."""
    return json.dumps(value, sort_keys=True, default=str)


def _labels(agent: str, configs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = dict.fromkeys(name for config in configs for name in config)
    varied = [name for name in names if len({config_key(config.get(name)) for config in configs}) > 1]
    for config in configs:
        shown = [f"{name}={str(config[name])[:MAX_SHOWN]}" for name in varied if config.get(name) is not None]
        yield f"{agent} ({', '.join(shown)})" if shown else agent


def cost_of(episode: Episode[Any]) -> EpisodeCost:
    """Add up the cost of one episode. Cached replies are free."""
    usage = sum(map(Usage.of, episode.replies), Usage())
    return EpisodeCost(
        replies=len(episode.replies),
        corrections=sum(reply.role == "correction" for reply in episode.replies),
        cut_short=sum(end_of(reply.finish_reason) == "cut" for reply in episode.replies),
        without_text=sum(used_up(reply.text, reply.finish_reason) for reply in episode.replies),
        retries=sum(reply.retries for reply in episode.replies),
        refused=sum(end_of(reply.finish_reason) in REFUSALS for reply in episode.replies),
        unread=sum(reply.role == READER_ROLE and bool(reply.fault) for reply in episode.replies),
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        dollars=usage.cost,
        unpriced=usage.unpriced,
        agent_seconds=_known_sum(turn.agent_seconds for turn in episode.turns),
        env_seconds=sum(turn.env_seconds for turn in episode.turns),
    )


def _known_sum(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _word(value: Any) -> str | None:
    return None if value is None else str(value)
