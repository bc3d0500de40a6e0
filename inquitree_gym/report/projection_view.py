"""HTML pages of episodes of projections: what was disclosed, what was projected, and how its claims were rated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from inquitree_gym.analysis.load import cost_of
from inquitree_gym.analysis.logs import LogEntry, LoggedProjections, MissingEpisode
from inquitree_gym.analysis.projection_summary import AUC, PAPER, Metric
from inquitree_gym.judges.projections.alignment import Alignment, ProjectionScore
from inquitree_gym.log import Reply, Turn
from inquitree_gym.report.listing import Columns, DrawnEpisode
from inquitree_gym.report.tables import dollars
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.report.turns import Badge
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.scoring.projection import LevelScore, ProjectionEpisodeScore
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

UNSCORED = "unscored"
PROJECTION_COLUMNS = Columns(("paper", "agent", "seed"), (*LEVELS, AUC, UNSCORED))
_SIGNS = {"question": "Q", "null": "0", "procedure": "P"}
"""One-letter signs of the levels in the strip of turns."""
_LEVELS = {
    "question": "projects from topic and question",
    "null": "projects with the null hypothesis",
    "procedure": "projects with the procedure",
}


@dataclass(frozen=True, slots=True)
class RatedClaim:
    """A projected claim, and its ratings."""

    true: str
    """The true claim that it is analogous to; empty for an extraneous one."""
    projected: str | None
    """None if the projection has no analogous claim."""
    ratings: tuple[float, ...]
    """Ratings in both orders, in [-1, 1]; for an extraneous claim their means over the true claims; empty for none."""
    mean: float | None
    reason: str = ""
    """Reason of the judge; empty without one."""


@dataclass(frozen=True, slots=True)
class ProjectionView:
    """One turn of an episode of projections."""

    turn: Turn
    replies: tuple[Reply, ...]
    state: str
    """Level that was projected."""
    mark: Badge
    claims: tuple[RatedClaim, ...]
    """True claims with their analogous ones, then extraneous ones; empty where the judge found no claims."""
    scored: ProjectionScore | None
    """Score as printed; None for an unscored projection."""


def projection_values(score: ProjectionEpisodeScore, metric: Metric = PAPER) -> dict[str, object]:
    """Return the results of an episode by heading of the list."""
    by_level: dict[str, object] = {each.level: each.f1[metric.variant] for each in score.levels}
    return {**by_level, AUC: metric.area(score), UNSCORED: score.unscored}


def draw_projections(
    scorer: Callable[[LoggedProjections], ProjectionEpisodeScore], entry: LogEntry, page: Path, back: str, live: bool
) -> DrawnEpisode | MissingEpisode:
    """Write the page of a log, finished or not.

    Args:
        scorer: scores the episode; see `projection_scorer`.
        entry: the log.
        page: path of the page.
        back: address of a list to link to; empty for none.
        live: True if the run is being played: unless the episode has ended, the page reloads itself.

    Raises:
        OptionError: the page cannot be written.
        JudgeError: the judge has not judged the episode.
    """
    found = entry.read_projections()
    if isinstance(found, MissingEpisode):
        return found
    score = scorer(found)
    finished = found.episode.footer is not None
    write_text(page, _page(found, score, back, live and not finished))
    values = projection_values(score) if finished else {}
    return DrawnEpisode(found.task.id, found.episode.status, values, score.judged_by if finished else "")


def rated_claims(alignment: Alignment, task: ProjectionTask) -> Iterator[RatedClaim]:
    """Yield the true claims of a task with their analogous ones, then the extraneous claims."""
    reasons = alignment.reasons or ("",) * len(task.claims)
    for i, claim in enumerate(task.claims):
        projected = alignment.analogous[i]
        ratings = () if projected is None else tuple(map(float, alignment.pair_ratings[i]))
        mean = None if projected is None else float(alignment.pairs[i])
        yield RatedClaim(claim.text, projected, ratings, mean, reasons[i])
    for j, extra in enumerate(alignment.extraneous):
        ratings = tuple(map(float, alignment.extra_ratings[j].mean(axis=0)))
        yield RatedClaim("", extra, ratings, float(alignment.extras[j]))


def _page(found: LoggedProjections, score: ProjectionEpisodeScore, back: str, live: bool) -> str:
    episode, task = found.episode, found.task
    header, cost = episode.header, cost_of(episode)
    views = [_view(found, turn, level) for turn, level in zip(episode.turns, score.levels, strict=True)]
    settings = {"agent": header.agent, "rules": header.rules, "judge": header.judge, "versions": header.versions}
    return render(
        "projection.html",
        styles=("base.css", "episode.css"),
        script="episode.js",
        title=f"{task.id} · {agent_label(header.agent)} · projections · seed {header.seed}",
        paper=task.paper,
        task=task,
        episode=episode,
        views=views,
        signs=[(view.mark.kind, view.mark.sign, _LEVELS[view.state]) for view in views],
        live=live,
        cost=cost,
        dollars=dollars(cost.dollars, cost.unpriced),
        judged_by=score.judged_by,
        score=None if episode.footer is None else score,
        settings=json.dumps(settings, indent=2, ensure_ascii=False),
        back=back,
    )


def _view(found: LoggedProjections, turn: Turn, level: LevelScore) -> ProjectionView:
    alignment, f1 = level.alignment, level.f1["paper"]
    words = "unscored" if f1 is None else f"F1 = {f1:.3f}"
    kind = "forced" if f1 is None else "true" if f1 > 0 else "fake"
    return ProjectionView(
        turn=turn,
        replies=found.episode.replies_to(turn.turn),
        state=level.level,
        mark=Badge(kind, f"{_LEVELS[level.level]}; {words}", _SIGNS[level.level]),
        claims=() if alignment is None else tuple(rated_claims(alignment, found.task)),
        scored=None if alignment is None or f1 is None else alignment.score(),
    )
