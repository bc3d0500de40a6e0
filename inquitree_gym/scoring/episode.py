"""The scores of one episode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from inquitree_gym.engine import Rules
from inquitree_gym.judges import Judge, Verdict, conclusion_quality
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.log import Episode, Header
from inquitree_gym.scoring.exposures import Calibration
from inquitree_gym.scoring.trajectory import Trajectory, read_trajectory
from inquitree_gym.trees import Tree

MAX_SHOWN = 24
"""Characters of a setting in a label."""


class AgentScore(Protocol):
    """Dataclass of the scores of an episode, with its agent."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def agent(self) -> str:
        """See `agent_label`."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Configuration of the agent, as logged."""


AnyScore = TypeVar("AnyScore", bound=AgentScore)


@dataclass(frozen=True, slots=True)
class EpisodeScore:
    """Scores of one episode."""

    tree: str
    agent: str
    """See `agent_label`."""
    model: str | None
    """litellm's name of the agent's model; None for an agent without one."""
    effort: str | None
    """Reasoning effort requested from the model; None for the provider's default, or without a model."""
    published: str
    """Publication date of the paper, as precise as known: a day, a month or a year."""
    fake_level: int
    seed: int
    limit: str
    """Turn limit: ``default`` for n(2H + 3), ``3n``, a number, or ``none``. A log alone does not tell 3n from the
    number; for a run, the study does."""
    reading: str
    """Embedder and threshold, or reader, that the actions were read with, and rules other than the default's."""
    judge: str
    """Name of the judge."""
    judge_version: int
    trajectory: Trajectory
    verdicts: tuple[Verdict, ...]
    quality: float | None
    """Q = Σ p·S (Eq. 9), in [0, |C|]; None without a conclusion, or with an unscored item."""
    items: int
    """|C|: number of conclusion items of the tree."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Configuration of the agent, as logged."""

    @property
    def judged_by(self) -> str:
        """Name and version of the judge."""
        return judge_label(self.judge, self.judge_version)

    @property
    def cluster(self) -> str:
        """Episodes with the same cluster are not independent: those on one tree."""
        return self.tree

    @property
    def quality_share(self) -> float | None:
        """Q/|C| in [0, 1], the scale of the paper's tables."""
        return None if self.quality is None else self.quality / self.items

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        calibration = Calibration.of(self.trajectory.beliefs)
        return {**asdict(self), "quality_share": self.quality_share, "calibration": asdict(calibration)}


def score_episode(episode: Episode, tree: Tree, judge: Judge) -> EpisodeScore:
    """Score one episode from its log and its tree alone.

    Raises:
        LogError: the episode was played on a different version of the tree.
    """
    trajectory = read_trajectory(episode, tree)
    verdicts = () if trajectory.conclusion is None else judge.judge(trajectory.conclusion)
    rules = Rules.recorded(episode.header.rules)
    return EpisodeScore(
        tree=tree.id,
        agent=agent_label(episode.header.agent),
        model=optional_word(episode.header.agent.get("model")),
        effort=optional_word(episode.header.agent.get("reasoning_effort")),
        published=tree.paper.published.written,
        fake_level=int(episode.header.rules["fake_level"]),
        seed=episode.header.seed,
        limit=_limit(episode.header.rules["max_turns"], len(tree.subtopics)),
        reading=reading_of(episode.header),
        judge=judge.name,
        judge_version=judge.version,
        trajectory=trajectory,
        verdicts=verdicts,
        quality=conclusion_quality(tree, trajectory.proven, verdicts, rules.evidence) if verdicts else None,
        items=len(tree.conclusions),
        config=episode.header.agent,
    )


def agent_label(config: Mapping[str, Any]) -> str:
    """Return an agent's logged name with its model; see `agent_and_model`."""
    return " ".join(filter(None, agent_and_model(config)))


def agent_and_model(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return an agent's logged name, and its model: the study's ``label`` for it, or its name and reasoning effort.

    The model of an agent without one is empty.
    """
    model, effort = (str(config.get(name) or "") for name in ("model", "reasoning_effort"))
    return str(config.get("name", "unknown")), str(
        config.get("label") or model + f" ({effort})" * bool(model and effort)
    )


def told_apart(scores: Sequence[AnyScore]) -> list[AnyScore]:
    """Return the scores, in which a label of an agent that stands for several configurations names what differs."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    keys = [_as_key(score.config) for score in scores]
    for score, key in zip(scores, keys, strict=True):
        found.setdefault(score.agent, {})[key] = score.config
    labels = {
        (agent, key): label
        for agent, configs in found.items()
        if len(configs) > 1
        for key, label in zip(configs, _labels(agent, list(configs.values())), strict=True)
    }
    return [
        replace(score, agent=labels.get((score.agent, key), score.agent))
        for score, key in zip(scores, keys, strict=True)
    ]


def _labels(agent: str, configs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = dict.fromkeys(name for config in configs for name in config)
    varied = [name for name in names if len({_as_key(config.get(name)) for config in configs}) > 1]
    for config in configs:
        shown = [f"{name}={str(config[name])[:MAX_SHOWN]}" for name in varied if config.get(name) is not None]
        yield f"{agent} ({', '.join(shown)})" if shown else agent


def _as_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def optional_word(value: Any) -> str | None:
    """Return a setting as a word; None stays None."""
    return None if value is None else str(value)


def reading_of(header: Header) -> str:
    """Return embedder and threshold, or the reader, that a log was read with, and rules other than the default's."""
    by = f"{header.inquiry_embedder.name} τ={header.rules['threshold']}"
    if header.reader is not None:
        by = str(header.reader.get("name", "unknown reader"))
    rules = Rules.recorded(header.rules).label
    return by if rules == "default" else f"{by}, rules: {rules}"


def _limit(turns: int | str | None, n: int) -> str:
    """Name a turn limit independently of the size of the tree."""
    if turns is None:
        return "none"
    return "3n" if turns == 3 * n else str(turns)
