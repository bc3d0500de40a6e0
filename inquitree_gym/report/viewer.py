"""An episode as one HTML page that needs nothing else, and an index of the episodes of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from inquitree_gym.analysis.load import cost_of
from inquitree_gym.judges import Judge, evidence_ratios, local_judge
from inquitree_gym.log import Episode
from inquitree_gym.report.graph import graph
from inquitree_gym.report.steps import steps
from inquitree_gym.report.tables import Cell, cell, written_dollars
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.trees import Tree


class Graded(NamedTuple):
    """One conclusion item with what it earned."""

    id: str
    text: str
    evidence: float
    """p (Eq. 8), in [0, 1]."""
    score: float | None
    """S; None where the judge left it unscored."""
    why: str
    others: tuple[float | None, ...]
    """S by the other judges."""

    @property
    def earned(self) -> float | None:
        """p·S."""
        return None if self.score is None else self.evidence * self.score


class Entry(NamedTuple):
    """One episode of an index."""

    page: str
    """Address of its page, relative to the index; empty where it has none."""
    tree: str
    agent: str
    fake_level: int
    seed: int
    status: str
    score: EpisodeScore | None


_INDEXED: dict[str, Callable[[EpisodeScore], object]] = {
    "coverage": lambda score: score.path.coverage,
    "unaided": lambda score: score.path.unaided_coverage,
    "turns L": lambda score: score.path.turns,
    "hints": lambda score: score.path.hints,
    "Q/|C|": lambda score: score.quality_share,
}
"""What an index shows of an episode."""


class Panel(NamedTuple):
    """Who has judged an episode."""

    judge: Judge
    """Gives the scores."""
    others: Mapping[str, Judge]
    """By label, those that are shown beside it."""


def write_view(
    episode: Episode, tree: Tree, file: Path, back: str = "", panel: Panel | None = None
) -> EpisodeScore | None:
    """Write the page of one episode; return its score, None for a torn one.

    Args:
        episode: whole or torn.
        tree: the tree that it was played on.
        file: where the page goes.
        back: address of an index to link to.
        panel: who judges; without it the local judge alone.

    Raises:
        LogError: the episode was played on another version of the tree.
        OptionError: the file cannot be written.
    """
    panel = panel or Panel(local_judge(tree), {})
    score = None if episode.footer is None else score_episode(episode, tree, panel.judge)
    header = episode.header
    agent, level = agent_label(header.agent), header.rules["fake_level"]
    settings = {"agent": header.agent, "rules": header.rules, "versions": header.versions}
    page = render(
        "episode.html",
        styles=("base.css", "episode.css"),
        script="episode.js",
        title=f"{tree.id} · {agent} · fake level {level} · seed {header.seed}",
        tree=tree,
        graph=graph(tree),
        episode=episode,
        steps=steps(episode, tree),
        facts=_facts(episode, tree, score),
        items=_items(tree, score, panel.others.values()),
        judges=list(panel.others),
        score=score,
        threshold=float(header.rules["threshold"]),
        settings=json.dumps(settings, indent=2, ensure_ascii=False),
        back=back,
    )  # fmt: skip
    write_text(file, page)
    return score


def write_index(title: str, entries: Sequence[Entry], file: Path) -> None:
    """Write a page that lists episodes with their scores, each linked to its own page.

    Raises:
        OptionError: the file cannot be written.
    """
    lines = [
        (entry, [cell(None if entry.score is None else measure(entry.score)) for measure in _INDEXED.values()])
        for entry in entries
    ]
    page = render(
        "index.html",
        styles=("base.css", "index.css"),
        script="index.js",
        title=title,
        measures=list(_INDEXED),
        lines=lines,
    )
    write_text(file, page)


def _facts(episode: Episode, tree: Tree, score: EpisodeScore | None) -> list[tuple[str, Cell]]:
    header = episode.header
    known: list[tuple[str, object]] = [
        ("status", episode.status),
        ("turns", len(episode.turns)),
        ("τ", float(header.rules["threshold"])),
        ("read by", header.embedder.name),
    ]
    if score is not None:
        path = score.path
        known += [
            ("L, bounds", f"{path.turns} in [{path.fewest_turns}, {path.most_turns or '∞'}]"),
            ("coverage", path.coverage),
            ("unaided", path.unaided_coverage),
            ("at 3n", path.coverage_at_3n),
            ("hints, forced", f"{path.hints}, {path.forced}"),
            ("fakes redone", f"{path.hits} of {path.fakes_shown}"),
            ("true redone", f"{path.false_alarms} of {path.trues_shown}"),
            ("Q of |C|", None if score.quality is None else f"{score.quality:.2f} of {score.items}"),
            ("Q/|C|", score.quality_share),
        ]
    spent = cost_of(episode)
    if spent.replies:
        known += [("prompt tokens", spent.prompt_tokens), ("completion tokens", spent.completion_tokens)]
        known.append(("US dollars", written_dollars(spent.dollars, spent.unpriced)))
    return [(name, cell(value)) for name, value in known]


def _items(tree: Tree, score: EpisodeScore | None, others: Iterable[Judge]) -> list[Graded]:
    if score is None or not score.verdicts or score.path.conclusion is None:
        return []
    ratios = evidence_ratios(tree, score.path.proven)
    beside = [judge.judge(score.path.conclusion) for judge in others]
    return [
        Graded(item.id, item.text, float(ratio), verdict.score, verdict.why, tuple(each[i].score for each in beside))
        for i, (item, ratio, verdict) in enumerate(zip(tree.conclusions, ratios, score.verdicts, strict=True))
    ]
