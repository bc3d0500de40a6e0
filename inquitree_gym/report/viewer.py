"""HTML pages of episodes, turn by turn, and an index of the episodes of a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from inquitree_gym.analysis.load import cost_of
from inquitree_gym.analysis.logs import (
    LOG_SUFFIX,
    OTHER_TREE,
    AnyLogs,
    LogEntry,
    LoggedEpisode,
    MissingEpisode,
    find_logs,
)
from inquitree_gym.analysis.recorded import RecordedJudges, recorded_judges
from inquitree_gym.engine import Rules
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.judges import Judge, evidence_ratios, local_judge
from inquitree_gym.judges.registry import LOCAL
from inquitree_gym.log import Episode, EventRecord, Header, Reply, Turn, has_header
from inquitree_gym.report.tables import dollars
from inquitree_gym.report.templating import render, write_text
from inquitree_gym.runner.study import EpisodeSpec
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.trees import HINT_LEVELS, Tree
from inquitree_gym.trees.drawing import diagram

INDEX = "index.html"
VIEW = "view"
"""Folder of a run for its pages."""
_IN_SUBTOPIC = ("subtopic", "study", "result")
"""States in which a subtopic is under study."""


@dataclass(frozen=True, slots=True)
class Badge:
    """Short, coloured description of an observation or an event."""

    kind: str
    """``accepted``, ``hint``, ``forced``, ``true``, ``fake`` or ``decision``; the CSS class."""
    words: str
    sign: str = ""
    """One character for the strip of turns."""


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn, and the state of the inquiry after it."""

    turn: Turn
    replies: tuple[Reply, ...]
    state: str
    """State in which the action was taken."""
    shown: Badge | None
    """Observation that the agent read, if its text alone does not tell."""
    mark: Badge
    """Outcome of the action."""
    verdict: str
    """Hit, miss or false alarm; empty for other decisions."""
    truth: str
    """True result, if the observation held a fake one."""
    path: tuple[str, ...]
    """Subtopics in the order in which they were entered, revisits included."""
    current: str
    """Subtopic under study; empty at the topic and at the conclusion."""
    target: str
    """Target of the hint that comes next; empty without one."""
    results: dict[str, int]
    """Result seen last by study: 0 the true one, i the i-th fake."""


def view_log(file: Path, out: Path | None = None, judge: str = LOCAL) -> Path:
    """Write the page of one log, by default beside it, and return the page; see `view_run`."""
    return view_run(file, out, judge=judge)


def view_run(
    path: AnyLogs, out: Path | None = None, *, wanted: Callable[[EpisodeSpec], bool] = lambda spec: True,
    progress: Callable[[EpisodeSpec], None] | None = None, judge: str = LOCAL,
) -> Path:  # fmt: skip
    """Write the pages of the wanted episodes of logs; return the index, or the page of a single episode.

    Args:
        path: a run folder, another folder of logs, a log, or the logs that were found there.
        out: an ``.html`` file or a folder; by default the folder `VIEW` of the path, or a page beside a single log. The
            pages of an index lie in a folder beside it.
        wanted: selects episodes.
        progress: called with each episode after its page has been written.
        judge: name or label of the judge; see `recorded_judges`.

    Raises:
        LogError: the path does not exist, or the single wanted log is damaged or of a tree that is not at hand; an
            index lists such logs instead.
        OptionError: no wanted episode has been started, a page cannot be written, or the judge is unknown.
        JudgeError: the judge has not judged the logs.
    """
    logs = find_logs(path)
    entries = [entry for entry in logs.entries if wanted(entry.spec)]
    begun = [entry for entry in entries if has_header(entry.file)]
    if not begun:
        reason = f": {logs.foreign[0].error}" if logs.foreign else ", none has been started"
        raise OptionError(f"'{logs.path}' holds no episode of that kind: {len(entries)} match{reason}")
    is_page = out is not None and out.suffix.lower() in (".html", ".htm")
    if len(entries) == 1:
        page = begun[0].file.with_suffix(".html") if logs.path.is_file() else logs.path / VIEW / _page_name(begun[0])
        return _write_page(begun[0], page if out is None else out if is_page else out / _page_name(begun[0]), judge)
    out = logs.path / VIEW if out is None else out
    index = out if is_page else out / INDEX
    lines = list(_index_lines(entries, index, judge, progress))
    judged_by = next((line["score"].judged_by for line in lines if line["score"]), "")
    styles, title = ("base.css", "index.css"), f"Episodes of {logs.path.name}"
    text = render("index.html", styles=styles, script="index.js", title=title, lines=lines, judged_by=judged_by)
    write_text(index, text)
    return index


def _write_page(entry: LogEntry, page: Path, judge: str) -> Path:
    found = entry.read()
    if isinstance(found, MissingEpisode):
        raise LogError(found.error if found.status != OTHER_TREE else f"'{entry.file}' {found.error}")
    write_view(found.episode, found.tree, page, **_judges(recorded_judges(entry.home, judge), found))
    return page


def write_view(
    episode: Episode, tree: Tree, file: Path, back: str = "", judge: Judge | None = None,
    others: Mapping[str, Judge] | None = None,
) -> EpisodeScore | None:  # fmt: skip
    """Write the page of one episode and return its score; None for an unfinished one.

    Args:
        episode: finished or torn.
        tree: the tree that it was played on.
        file: path of the page.
        back: address of an index to link to.
        judge: gives the scores; None takes the local judge.
        others: judges by label whose grades stand beside the scores.

    Raises:
        LogError: the episode was played on another version of the tree.
        OptionError: the file cannot be written.
    """
    score = None if episode.footer is None else score_episode(episode, tree, judge or local_judge(tree))
    header, cost = episode.header, cost_of(episode)
    settings = {"agent": header.agent, "rules": header.rules, "versions": header.versions}
    title = f"{tree.id} · {agent_label(header.agent)} · fake level {header.rules['fake_level']} · seed {header.seed}"
    page = render(
        "episode.html",
        styles=("base.css", "episode.css"),
        script="episode.js",
        title=title,
        tree=tree,
        diagram=diagram(tree),
        names={s.id: s.name for s in tree.subtopics} | {s.id: s.text for s in tree.studies},
        episode=episode,
        views=turn_views(episode, tree),
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


def turn_views(episode: Episode, tree: Tree) -> list[TurnView]:
    """Follow an episode, finished or torn, through its tree."""
    truths = {study.id: study.result for study in tree.studies}
    path: tuple[str, ...] = ()
    results: dict[str, int] = {}
    before: EventRecord | None = None
    result: EventRecord | None = None
    found = []
    for turn in episode.turns:
        event = turn.event
        if event.kind == "subtopic" and event.node is not None:
            path = (*path, event.node)
        if event.kind == "declined":
            path = path[:-1]
        if event.kind == "result" and event.node is not None:
            results = {**results, event.node: event.fake}
        state = "topic" if before is None else before.state
        view = TurnView(
            turn=turn,
            replies=episode.replies_to(turn.turn),
            state=state,
            shown=_shown(before),
            mark=_mark(event),
            verdict=_verdict(result, event) if state == "result" else "",
            truth=truths.get(before.node or "", "") if before is not None and before.fake else "",
            path=path,
            current=path[-1] if path and event.state in _IN_SUBTOPIC else "",
            target=event.node or "" if _is_hint(event) else "",
            results=results,
        )
        found.append(view)
        result = event if event.kind == "result" else result
        before = event
    return found


def _shown(event: EventRecord | None) -> Badge | None:
    """Return the kind of an observation that its text alone does not tell: a result or a hint."""
    if event is None or event.node is None:
        return None
    if event.kind == "result":
        which = f"fake result {event.fake}" if event.fake else "true result"
        return Badge("fake" if event.fake else "true", f"{which} of {event.node}")
    if _is_hint(event):
        return Badge("hint", f"hint {event.hint_level} of {HINT_LEVELS}, towards {event.node}")
    return None


def _is_hint(event: EventRecord) -> bool:
    # At the turn limit the prompt for the conclusion takes the place of the hint.
    return event.kind.endswith("_hint") and not event.limit


_DECISIONS = {
    "topic": Badge("decision", "decides to explore", "→"),
    "conclusion": Badge("decision", "decides to conclude", "■"),
    "ask_again": Badge("hint", "no decision can be read; asked again", "?"),
    "end": Badge("decision", "the conclusion is filed", "■"),
}
_NAMING = {
    "declined": ("decision", "declines {node}", "←"),
    "subtopic_tie": ("hint", "as near to {node} as to {other}; asked which", "?"),
    "study_tie": ("hint", "as near to {node} as to {other}; asked which", "?"),
}
"""Class, words and sign of outcomes that name nodes."""


def _mark(event: EventRecord) -> Badge:
    mark = _DECISIONS.get(event.kind) or _choice_mark(event)
    if event.kind in _NAMING:
        kind, words, sign = _NAMING[event.kind]
        mark = Badge(kind, words.format(node=event.node, other=event.other), sign)
    return replace(mark, words=f"{mark.words}; the turn limit strikes") if event.limit else mark


def _choice_mark(event: EventRecord) -> Badge:
    """Return the outcome of a choice or of a study."""
    why = event.reason.replace("_", " ")
    if event.kind.endswith("_hint"):
        hint = f"; hint {event.hint_level} towards {event.node}" if _is_hint(event) else ""
        return Badge("hint", f"not accepted ({why}){hint}", str(event.hint_level or "×"))
    verb = "enters" if event.kind == "subtopic" else "redoes" if event.decision == "redo" else "runs"
    words = f"forced into {event.node} ({why})" if event.forced else f"{verb} {event.node}"
    if event.kind != "result":
        return Badge("forced", words, "!") if event.forced else Badge("accepted", words, "●")
    if event.fake:
        return Badge("fake", f"{words}; fake result {event.fake} is shown", "F")
    return Badge("true", f"{words}; the true result is shown", "T")


def _verdict(result: EventRecord | None, event: EventRecord) -> str:
    """Return the verdict on a decision at a result; empty for a true result that was believed."""
    if result is None or event.decision == "none":
        return ""
    if event.decision == "redo":
        return "hit: a fake result is redone" if result.fake else "false alarm: a true result is redone"
    return "miss: a fake result is believed" if result.fake else ""


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


def _index_lines(
    entries: Sequence[LogEntry], index: Path, judge: str, progress: Callable[[EpisodeSpec], None] | None
) -> Iterator[dict[str, Any]]:
    """Write the page of every episode that has been started, and yield the line of each episode in the index."""
    recorded = {home: recorded_judges(home, judge) for home in {entry.home for entry in entries}}
    pages = index.with_name(f"{index.stem}-episodes")
    for entry in entries:
        found = entry.read()
        score, address = None, ""
        if isinstance(found, LoggedEpisode):
            page = pages / _page_name(entry)
            back = quote(os.path.relpath(index, page.parent))
            score = write_view(found.episode, found.tree, page, back, **_judges(recorded[entry.home], found))
            address = quote(f"{pages.name}/{_page_name(entry)}")
        tree = found.tree.id if isinstance(found, LoggedEpisode) else Path(entry.spec.tree).stem
        status = found.episode.status if isinstance(found, LoggedEpisode) else found.status
        yield {"spec": entry.spec, "tree": tree, "page": address, "status": status, "score": score}
        if progress is not None:
            progress(entry.spec)


def _page_name(entry: LogEntry) -> str:
    return f"{entry.name.removesuffix(LOG_SUFFIX)}.html"


def _judges(recorded: RecordedJudges, found: LoggedEpisode) -> dict[str, Any]:
    log, tree = found.entry.file.name, found.tree
    return {"judge": recorded.chosen(log, tree), "others": recorded.others(log, tree)}
