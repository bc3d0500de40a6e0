"""The scores of one episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from inquitree_gym.judges import Judge, Verdict, conclusion_quality
from inquitree_gym.log import Episode
from inquitree_gym.scoring.trajectory import Path, read_path
from inquitree_gym.trees import Tree


@dataclass(frozen=True, slots=True)
class EpisodeScore:
    """Everything that is scored of one episode."""

    tree: str
    agent: str
    """See `agent_label`."""
    model: str | None
    """litellm's name of the chat model that the agent asks; None for an agent that asks none."""
    effort: str | None
    """The reasoning effort that the model is asked for; None without a model, or for the provider's default."""
    published: str
    """When the paper behind the tree appeared, as precisely as it is known: a day, a month or a year."""
    fake_level: int
    seed: int
    limit: str
    """Turn limit: ``default`` for n(2H + 3), ``3n``, a number, or ``none``."""
    reading: str
    """What read the actions: the embedder's name and τ."""
    judge: str
    path: Path
    verdicts: tuple[Verdict, ...]
    quality: float | None
    """Q = Σ p·S (Eq. 9), in [0, |C|]; None where the judge left an item unscored or nothing was concluded."""
    items: int
    """|C|: conclusion items of the tree."""

    @property
    def quality_share(self) -> float | None:
        """Q/|C| in [0, 1], the scale of the paper's tables."""
        return None if self.quality is None else self.quality / self.items

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        verdicts = [verdict._asdict() for verdict in self.verdicts]
        return {**plain, "path": self.path._asdict(), "verdicts": verdicts, "quality_share": self.quality_share}


def score_episode(episode: Episode, tree: Tree, judge: Judge) -> EpisodeScore:
    """Score one episode from its log and its tree alone.

    Raises:
        LogError: the episode was played on another version of the tree.
    """
    path = read_path(episode, tree)
    verdicts = () if path.conclusion is None else judge.judge(path.conclusion)
    return EpisodeScore(
        tree=tree.id,
        agent=agent_label(episode.header.agent),
        model=_word(episode.header.agent.get("model")),
        effort=_word(episode.header.agent.get("reasoning_effort")),
        published=tree.paper.published.written,
        fake_level=int(episode.header.rules["fake_level"]),
        seed=episode.header.seed,
        limit=_limit(episode.header.rules["max_turns"], len(tree.subtopics)),
        reading=f"{episode.header.embedder.name} τ={episode.header.rules['threshold']}",
        judge=judge.name,
        path=path,
        verdicts=verdicts,
        quality=conclusion_quality(tree, path.proven, verdicts) if verdicts else None,
        items=len(tree.conclusions),
    )


def agent_label(config: Mapping[str, Any]) -> str:
    """Return the name of an agent as logged, and of one that asks a model also the model, so that models stay apart.

    A model goes by the ``label`` that its study gives it, where it gives one; else by its name and reasoning effort.
    """
    name = str(config.get("name", "unknown"))
    if label := config.get("label"):
        return f"{name} {label}"
    model = config.get("model")
    effort = config.get("reasoning_effort")
    return " ".join([name, *([str(model)] if model else []), *([f"({effort})"] if model and effort else [])])


def _word(value: Any) -> str | None:
    return None if value is None else str(value)


def _limit(turns: int | str | None, n: int) -> str:
    """Name a turn limit so that trees of different size compare."""
    if turns is None:
        return "none"
    return "3n" if turns == 3 * n else str(turns)
