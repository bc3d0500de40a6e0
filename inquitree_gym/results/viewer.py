"""HTML pages of episodes, turn by turn, and an index of the episodes of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from inquitree_gym.errors import DamagedJudgementError, LogError, OptionError
from inquitree_gym.judging.chosen import ChosenJudge, choose_judge
from inquitree_gym.judging.judgement import Judged, judge_label
from inquitree_gym.judging.stored import JUDGEMENTS
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, has_header
from inquitree_gym.results.listing import (
    INDEX,
    UNSCORED,
    VIEW,
    Columns,
    ListedEpisode,
    address,
    folder_of,
    listed_values,
    page_name,
    write_list,
)
from inquitree_gym.results.logs import DAMAGED, OTHER_TASK, AnyLogs, LogEntry, Missing, agent_label, find_logs
from inquitree_gym.results.report import cell_words, pages_of
from inquitree_gym.results.score import Score, cost_of, make_score
from inquitree_gym.results.tables import dollars
from inquitree_gym.results.templating import render, write_text
from inquitree_gym.runs.specs import EpisodeSpec

_ENDED = ("concluded", "truncated", "abandoned", DAMAGED, OTHER_TASK)
"""States of logs that a run does not continue."""


def view_log(file: Path, out: Path | None = None, judge: str | None = None) -> Path:
    """Write the page of one log, by default beside it, and return the page. See `view_run`."""
    return view_run(file, out, judge=judge)


def view_run(
    path: AnyLogs, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda spec: True,
    progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None,
    on_damaged: Callable[[Missing], None] = lambda damaged: None,
) -> Path:  # fmt: skip
    """Write the pages of the wanted episodes of logs. Return the index, or the page of a single episode.

    Args:
        path: a run folder, another folder of logs, a log, or the logs that were found there.
        out: an ``.html`` file or a folder. By default the folder `VIEW` of the path, or a page beside a single log. The
            pages of an index lie in a folder beside it.
        wanted: selects episodes.
        progress: called with each episode after its page has been written.
        judge: name of the judge. By default the judge of the kind of environment.
        on_damaged: called with each damaged log and judgement, which an index leaves out.

    Raises:
        LogError: the path does not exist, or the single wanted log is damaged or its task is not available. An index
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
    if len(entries) == 1:
        (entry,) = begun
        page = entry.file.with_suffix(".html") if logs.path.is_file() else logs.path / VIEW / page_name(entry.name)
        page = page if out is None else out if _is_page(out) else out / page_name(entry.name)
        line = LogPages(page, "", judge).draw(entry, page, back=False)
        if isinstance(line, Missing):
            raise LogError(f"'{entry.file}' {line.error}" if line.status == OTHER_TASK else line.error)
        return page
    pages = LogPages(logs.path / VIEW if out is None else out, f"Episodes of {logs.path.resolve().name}", judge)
    pages.write(entries, progress)
    for damaged in pages.damaged():
        on_damaged(damaged)
    return pages.index


def follow_run(
    path: Path, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda spec: True,
    judge: str | None = None,
) -> Generator[Path, None, None]:  # fmt: skip
    """Write the pages of a run again and again while it is being played. Yield the index after each round.

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
    pages = LogPages(path / VIEW if out is None else out, f"Episodes of {path.resolve().name}", judge)
    done = False
    try:
        while not done:
            done = pages.write([entry for entry in find_logs(path).entries if wanted(entry.spec)], live=True)
            yield pages.index
    finally:
        pages.write([entry for entry in find_logs(path).entries if wanted(entry.spec)])


class LogPages:
    """Pages of episodes with an index. A page is written again if its log has changed."""

    def __init__(self, out: Path, title: str, judge: str | None = None) -> None:
        """Write to the file or folder ``out`` under a title. See `view_run` for the arguments and errors."""
        self.index = out if _is_page(out) else out / INDEX
        self._title = title
        self._lines: dict[str, tuple[object, ListedEpisode]] = {}
        """State of the log and line of the index, by name of the log."""
        self._judge = judge
        self._judges: dict[tuple[Path, str], ChosenJudge] = {}
        self._missing: list[Missing] = []

    def damaged(self) -> Iterator[Missing]:
        """Yield the damaged logs and judgements that were met."""
        yield from (each for each in self._missing if each.status == DAMAGED)
        for (_, name), judge in self._judges.items():
            yield from (Missing(JUDGEMENTS, DAMAGED, fault, name) for fault in judge.faults)

    def write(
        self, entries: Sequence[LogEntry], progress: Callable[[EpisodeSpec], None] | None = None, live: bool = False
    ) -> bool:
        """Write the changed pages and the index. Return True if every episode has ended.

        ``live`` pages of unfinished episodes reload themselves, as the index does.
        """
        lines = []
        for entry in entries:
            lines.append(self._line(entry, live))
            if progress is not None:
                progress(entry.spec)
        done = all(line.status in _ENDED for line in lines)
        unscored = any(line.values.get(UNSCORED) for line in lines)
        columns = Columns.of_kinds(dict.fromkeys(line.kind for line in lines), unscored)
        write_list(self.index, self._title, lines, columns, live=live and not done)
        return done

    def draw(self, entry: LogEntry, page: Path, *, back: bool = True, live: bool = False) -> ListedEpisode | Missing:
        """Write the page of a log, and return its line, or the reason for its absence. ``back`` links to the index."""
        logged = entry.read()
        if isinstance(logged, Missing):
            return logged
        episode, task = logged.episode, logged.task
        place = entry.home, logged.kind
        if place not in self._judges:
            self._judges[place] = choose_judge(entry.home, self._judge, logged.kind)
        try:
            judged = self._judges[place].judged(entry.file.name, episode, task)
        except DamagedJudgementError as error:
            return Missing(entry.name, DAMAGED, str(error), logged.kind)
        score = write_view(
            episode, task, page, judged=judged, back=address(page, self.index) if back else "", live=live
        )
        return ListedEpisode(
            kind=logged.kind, task=task.id, agent=entry.spec.player, cell=_cell(entry, episode), seed=entry.spec.seed,
            status=episode.status, page=address(self.index, page), values={} if score is None else listed_values(score),
            judged_by="" if score is None else score.judged_by,
        )  # fmt: skip

    def _line(self, entry: LogEntry, live: bool) -> ListedEpisode:
        size = entry.file.stat().st_size if entry.file.exists() else None
        known = self._lines.get(entry.name)
        if known is None or known[0] != (size, live or known[1].status in _ENDED):
            line = self._write_episode(entry, live)
            known = self._lines[entry.name] = ((size, live or line.status in _ENDED), line)
        return known[1]

    def _write_episode(self, entry: LogEntry, live: bool) -> ListedEpisode:
        """Write the page of an episode that has been started, and return its line."""
        spec = entry.spec
        line = self.draw(entry, folder_of(self.index) / page_name(entry.name), live=live)
        if not isinstance(line, Missing):
            return line
        self._missing.append(line)
        return ListedEpisode(spec.env, Path(spec.task).stem, spec.player, _cell(entry, None), spec.seed, line.status)


def write_view(
    episode: Episode[Any], task: Any, file: Path, *, judged: Judged | None = None,
    back: str = "", live: bool = False,
) -> Score[Any] | None:  # fmt: skip
    """Write the page of one episode and return its score. None for an unfinished one.

    Args:
        episode: finished or torn.
        task: the task that it was played on.
        file: path of the page.
        judged: its judgements by a judge. None takes the judge of the kind.
        back: address of an index to link to.
        live: True if the page reloads itself, unless the episode has ended.
    """
    header, cost, of_kind = episode.header, cost_of(episode), kind(episode.header.task.kind)
    of_kind.results.check(episode, task)
    judged = of_kind.judging.own_judged(episode, task) if judged is None else judged
    score = None if episode.footer is None else make_score(episode, task, judged)
    view = pages_of(of_kind.name).view(episode, task, judged, score)
    settings = {"agent": header.agent, "rules": header.rules, **view.settings, "versions": header.versions}
    place = cell_words({name: header.rules[name] for name in of_kind.settings.grid if name in header.rules})
    title = " · ".join(filter(None, (task.id, agent_label(header.agent), place, f"seed {header.seed}")))
    page = render(
        view.template,
        package=of_kind.package,
        styles=("base.css", "episode.css"),
        script="episode.js",
        title=title,
        paper=view.paper,
        task=task,
        episode=episode,
        views=view.views,
        signs=view.signs,
        live=live and episode.footer is None,
        cost=cost,
        dollars=dollars(cost.dollars, cost.unpriced),
        score=score,
        judged_by=judge_label(judged.judge, judged.version),
        shown={} if score is None else listed_values(score),
        settings=json.dumps(settings, indent=2, ensure_ascii=False),
        back=back,
        **view.values,
    )
    write_text(file, page)
    return score


def _cell(entry: LogEntry, episode: Episode[Any] | None) -> dict[str, Any]:
    """Return the values on the grid of an episode, from its log or from the study."""
    if episode is None:
        return dict(entry.spec.cell)
    grid = kind(episode.header.task.kind).settings.grid
    return {name: episode.header.rules[name] for name in grid if name in episode.header.rules}


def _is_page(out: Path) -> bool:
    return out.suffix.lower() in (".html", ".htm")
