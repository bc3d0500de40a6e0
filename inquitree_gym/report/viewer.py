"""HTML pages of episodes, turn by turn, and an index of the episodes of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from inquitree_gym.analysis.load import cost_of
from inquitree_gym.analysis.logs import (
    OTHER_ENV,
    OTHER_TREE,
    AnyLogs,
    LogEntry,
    LoggedEpisode,
    Logs,
    MissingEpisode,
    find_logs,
)
from inquitree_gym.analysis.projections import projection_scorer
from inquitree_gym.analysis.recorded import RecordedJudges, recorded_judges
from inquitree_gym.engine import Rules
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judges import Judge, evidence_ratios, local_judge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.log import Episode, Header, TaskKind, has_header
from inquitree_gym.report.listing import (
    INDEX,
    INQUIRY_COLUMNS,
    VIEW,
    Columns,
    DrawnEpisode,
    ListedEpisode,
    address,
    inquiry_values,
    page_name,
    pages_of,
    write_list,
)
from inquitree_gym.report.projection_view import PROJECTION_COLUMNS, draw_projections
from inquitree_gym.report.tables import dollars
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.report.turns import legend, turn_views
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.trees import Tree
from inquitree_gym.trees.drawing import diagram

_ENDED = ("concluded", "truncated", "abandoned", "damaged", OTHER_TREE, OTHER_ENV)
"""States of logs that a run does not go on with."""


def view_log(file: Path, out: Path | None = None, judge: str | None = None) -> Path:
    """Write the page of one log, by default beside it, and return the page; see `view_run`."""
    return view_run(file, out, judge=judge)


def view_run(
    path: AnyLogs, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda spec: True,
    progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None,
) -> Path:  # fmt: skip
    """Write the pages of the wanted episodes of logs; return the index, or the page of a single episode.

    Args:
        path: a run folder, another folder of logs, a log, or the logs that were found there.
        out: an ``.html`` file or a folder; by default the folder `VIEW` of the path, or a page beside a single log. The
            pages of an index lie in a folder beside it.
        wanted: selects episodes.
        progress: called with each episode after its page has been written.
        judge: name or label of the judge; None for the local judge, or for projections the judge of the reward. See
            `recorded_judges` and `projection_scorer`.

    Raises:
        LogError: the path does not exist, or the single wanted log is damaged or its tree is not available; an index
            lists such logs instead.
        OptionError: no wanted episode has been started, a page cannot be written, or the judge is unknown.
        JudgeError: the judge has not judged the logs.
    """
    logs = find_logs(path)
    entries = [entry for entry in logs.entries if wanted(entry.spec)]
    begun = [entry for entry in entries if has_header(entry.file)]
    if not begun:
        reason = f": {logs.foreign[0].error}" if logs.foreign else ", none has been started"
        raise OptionError(f"'{logs.path}' holds no episode of that kind: {len(entries)} match{reason}")
    kind = _kind_of(logs)
    if len(entries) == 1:
        (entry,) = begun
        page = entry.file.with_suffix(".html") if logs.path.is_file() else logs.path / VIEW / page_name(entry.name)
        page = page if out is None else out if _is_page(out) else out / page_name(entry.name)
        return _write_page(entry, page, _pages_of_kind(kind, judge))
    pages = LogPages(logs.path / VIEW if out is None else out, f"Episodes of {logs.path.name}", judge, kind)
    pages.write(entries, progress)
    return pages.index


def follow_run(
    path: Path, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda spec: True,
    judge: str | None = None,
) -> Generator[Path, None, None]:  # fmt: skip
    """Write the pages of a run again and again while it is being played; yield the index after each round.

    Pages of unfinished episodes reload themselves until every wanted episode has ended, or the generator is
    closed. Only pages of logs that have grown are written again. See `view_run` for the arguments and the errors, but
    no episode need have been started, and there is always an index.

    Raises:
        OptionError: the path is no folder, or no episode is wanted.
    """
    if path.is_file():
        raise OptionError(f"a run is followed in its folder, and '{path}' is a file; view it without --follow")
    if not any(wanted(entry.spec) for entry in find_logs(path).entries):
        raise OptionError(f"'{path}' holds no episode of that kind to follow; start the run, or choose other episodes")
    pages = LogPages(path / VIEW if out is None else out, f"Episodes of {path.name}", judge, _kind_of(find_logs(path)))
    done = False
    try:
        while not done:
            done = pages.write([entry for entry in find_logs(path).entries if wanted(entry.spec)], live=True)
            yield pages.index
    finally:
        pages.write([entry for entry in find_logs(path).entries if wanted(entry.spec)])


class LogPages:
    """Pages of episodes with an index; a page is written again if its log has changed."""

    def __init__(self, out: Path, title: str, judge: str | None = None, kind: TaskKind = "inquiry") -> None:
        """Write to the file or folder ``out`` under a title; see `view_run` for the arguments and errors."""
        self.index = out if _is_page(out) else out / INDEX
        self._title = title
        self._kind = _pages_of_kind(kind, judge)
        self._lines: dict[str, tuple[object, ListedEpisode]] = {}
        """State of the log and line of the index, by name of the log."""

    def write(
        self, entries: Sequence[LogEntry], progress: Callable[[EpisodeSpec], None] | None = None, live: bool = False
    ) -> bool:
        """Write the changed pages and the index; return True if every episode has ended.

        Args:
            entries: logs of the index.
            progress: called with each episode after its page has been written.
            live: True if pages of unfinished episodes and the index reload themselves.
        """
        lines = []
        for entry in entries:
            lines.append(self._line(entry, live))
            if progress is not None:
                progress(entry.spec)
        done = all(line.status in _ENDED for line in lines)
        write_list(self.index, self._title, lines, columns=self._kind.columns, live=live and not done)
        return done

    def _line(self, entry: LogEntry, live: bool) -> ListedEpisode:
        size = entry.file.stat().st_size if entry.file.exists() else None
        known = self._lines.get(entry.name)
        if known is None or known[0] != (size, live or known[1].status in _ENDED):
            line = self._write_episode(entry, live)
            known = self._lines[entry.name] = ((size, live or line.status in _ENDED), line)
        return known[1]

    def _write_episode(self, entry: LogEntry, live: bool) -> ListedEpisode:
        """Write the page of an episode that has been started, and return its line."""
        spec, page = entry.spec, pages_of(self.index) / page_name(entry.name)
        found = self._kind.draw(entry, page, address(page, self.index), live)
        settings: dict[str, str | int] = {"agent": spec.player, "fakes": spec.fake_level, "seed": spec.seed}
        told = tuple(settings[name] for name in self._kind.columns.settings[1:])
        if isinstance(found, MissingEpisode):
            return ListedEpisode((Path(spec.tree).stem, *told), found.status)
        shown = address(self.index, page)
        return ListedEpisode((found.task, *told), found.status, shown, found.values, found.judged_by)


class _PagesOfKind(NamedTuple):
    """List and pages of the episodes of one kind of environment."""

    columns: Columns
    draw: Callable[[LogEntry, Path, str, bool], DrawnEpisode | MissingEpisode]
    """Writes the page of a log, with the address of a list, and whether the page reloads itself."""


def _pages_of_kind(kind: TaskKind, judge: str | None) -> _PagesOfKind:
    if kind == "projection":
        return _PagesOfKind(PROJECTION_COLUMNS, partial(draw_projections, projection_scorer(judge)))
    recorded = lru_cache(maxsize=None)(partial(recorded_judges, judge=judge or LOCAL))
    return _PagesOfKind(INQUIRY_COLUMNS, partial(_draw_inquiry, recorded))


def _kind_of(logs: Logs) -> TaskKind:
    """Return the kind of the logs; for logs of both kinds ``inquiry``, and logs of projections are only listed."""
    return "projection" if logs.kinds == {"projection"} else "inquiry"


def _draw_inquiry(
    recorded: Callable[[Path], RecordedJudges], entry: LogEntry, page: Path, back: str, live: bool
) -> DrawnEpisode | MissingEpisode:
    found = entry.read()
    if isinstance(found, MissingEpisode):
        return found
    score = write_view(found.episode, found.tree, page, back, live=live, **_judges(recorded(entry.home), found))
    judged_by = "" if score is None else score.judged_by
    return DrawnEpisode(found.tree.id, found.episode.status, inquiry_values(score), judged_by)


def _write_page(entry: LogEntry, page: Path, kind: _PagesOfKind) -> Path:
    found = kind.draw(entry, page, "", False)
    if isinstance(found, MissingEpisode):
        raise LogError(found.error if found.status != OTHER_TREE else f"'{entry.file}' {found.error}")
    return page


def write_view(
    episode: Episode, tree: Tree, file: Path, back: str = "", judge: Judge | None = None,
    others: Mapping[str, Judge] | None = None, live: bool = False,
) -> EpisodeScore | None:  # fmt: skip
    """Write the page of one episode and return its score; None for an unfinished one.

    Args:
        episode: finished or torn.
        tree: the tree that it was played on.
        file: path of the page.
        back: address of an index to link to.
        judge: gives the scores; None takes the local judge.
        others: judges by label whose grades stand beside the scores.
        live: True if the episode is being played: unless it has ended, the page reloads itself.

    Raises:
        LogError: the episode was played on another version of the tree.
        OptionError: the file cannot be written.
    """
    score = None if episode.footer is None else score_episode(episode, tree, judge or local_judge(tree))
    header, cost = episode.header, cost_of(episode)
    settings = {"agent": header.agent, "rules": header.rules, "versions": header.versions}
    views = turn_views(episode, tree)
    title = f"{tree.id} · {agent_label(header.agent)} · fake level {header.rules['fake_level']} · seed {header.seed}"
    page = render(
        "episode.html",
        styles=("base.css", "episode.css"),
        script="episode.js",
        title=title,
        paper=tree.paper,
        tree=tree,
        diagram=diagram(tree),
        names={s.id: s.name for s in tree.subtopics} | {s.id: s.text for s in tree.studies},
        episode=episode,
        views=views,
        signs=legend(views),
        live=live and episode.footer is None,
        cost=cost,
        dollars=dollars(cost.dollars, cost.unpriced),
        items=_graded_items(tree, header, score, others or {}),
        judges=list(others or {}),
        score=score,
        threshold=float(header.rules["threshold"]),
        settings=json.dumps(settings, indent=2, ensure_ascii=False),
        back=back,
    )
    write_text(file, page)
    return score


def _graded_items(
    tree: Tree, header: Header, score: EpisodeScore | None, others: Mapping[str, Judge]
) -> list[tuple[Any, ...]]:
    """Return per conclusion item: the item, its evidence ratio p, the verdict, and the verdicts of other judges."""
    if score is None or not score.verdicts or score.trajectory.conclusion is None:
        return []
    ratios = map(float, evidence_ratios(tree, score.trajectory.proven, Rules.recorded(header.rules).evidence))
    beside = [judge.judge(score.trajectory.conclusion) for judge in others.values()]
    by_item = zip(*beside, strict=True) if beside else [()] * len(tree.conclusions)
    return list(zip(tree.conclusions, ratios, score.verdicts, by_item, strict=True))


def _is_page(out: Path) -> bool:
    return out.suffix.lower() in (".html", ".htm")


def _judges(recorded: RecordedJudges, found: LoggedEpisode) -> dict[str, Any]:
    log, tree = found.entry.file.name, found.tree
    return {"judge": recorded.chosen(log, tree), "others": recorded.others(log, tree)}
