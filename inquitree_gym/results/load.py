"""Load the episodes of logs and score them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inquitree_gym.errors import DamagedJudgementError, LogError
from inquitree_gym.judging.chosen import ChosenJudge, choose_judge
from inquitree_gym.judging.stored import JUDGEMENTS
from inquitree_gym.log import read_episode
from inquitree_gym.results.logs import DAMAGED, AnyLogs, LogEntry, LoggedEpisode, Logs, Missing, find_logs
from inquitree_gym.results.score import Score, distinct_labels, make_score
from inquitree_gym.runs.folder import version_name

if TYPE_CHECKING:
    from inquitree_gym.judging.judgement import Judged
    from inquitree_gym.protocols import Mapped
    from inquitree_gym.runs.specs import EpisodeSpec


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """The scored episodes of one run, or of the logs under one path."""

    folder: Path
    scores: tuple[Score[Any], ...]
    """Scores of the finished episodes by the chosen judge."""
    missing: tuple[Missing, ...] = ()
    tasks: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    """Tasks of the episodes, by `Score.kind` and `Score.task`."""

    @property
    def by_kind(self) -> dict[str, ScoredRun]:
        """The part of each kind with a finished episode, by name. Missing episodes of unknown kind are in each."""
        return {name: self.of_kind(name) for name in dict.fromkeys(score.kind for score in self.scores)}

    def of_kind(self, name: str) -> ScoredRun:
        """Return the part of one kind, with the missing episodes of unknown kind."""
        return replace(
            self,
            scores=tuple(score for score in self.scores if score.kind == name),
            missing=tuple(each for each in self.missing if each.kind in ("", name)),
            tasks={key: task for key, task in self.tasks.items() if key[0] == name},
        )


class ScoredLog(NamedTuple):
    """Score of a log, and its task."""

    score: Score[Any]
    task: Any


def load_run(
    logs: AnyLogs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None
) -> ScoredRun:
    """Read and score every finished episode of a run folder, of another folder of logs, or of a single log.

    Stored judgements are reused. The judge of a kind judges other texts at once, where it can. Any other judge must
    have judged the logs before (`inquitree judge`). A log that cannot be scored is among the missing ones.

    Args:
        logs: a path, or the logs that were found there.
        progress: called after each episode.
        judge: name of the judge. By default the judge of the kind.

    Raises:
        LogError: there is no log, or no finished episode.
        JudgeError: a file of judgements is damaged, or the judge has not judged the logs.
        OptionError: the judge is unknown.
    """
    run = score_logs(find_logs(logs), progress, judge)
    if not run.scores:
        raise no_finished_episode([run])
    return run


def score_logs(
    logs: Logs, progress: Callable[[EpisodeSpec], None] | None = None, judge: str | None = None, mapped: Mapped = map
) -> ScoredRun:
    """Read and score what can be scored, which may be nothing. See `load_run`; ``mapped`` maps over the logs."""
    faults: dict[tuple[Path, str], Sequence[str]] = {}
    scores: list[Score[Any]] = []
    tasks: dict[tuple[str, str], Any] = {}
    missing = list(logs.foreign)
    for entry, (result, chosen) in zip(logs.entries, mapped(_Scorer(judge), logs.entries), strict=True):
        if isinstance(result, Missing):
            missing.append(result)
        else:
            scores.append(result.score)
            tasks[result.score.kind, result.score.task] = result.task
        if chosen is not None:
            faults.setdefault((entry.home, chosen.kind), chosen.faults)
        if progress is not None:
            progress(entry.spec)
    for (_, name), of_judge in faults.items():
        missing += [Missing(JUDGEMENTS, DAMAGED, fault, name) for fault in of_judge]
    return ScoredRun(logs.path, tuple(scores), tuple(missing), tasks)


class _Chosen(NamedTuple):
    """Kind of the judge that was chosen for a log, and the damage in its file."""

    kind: str
    faults: Sequence[str]


class _Scorer:
    """Scores logs by the judges of their folders and kinds, each chosen once."""

    def __init__(self, judge: str | None) -> None:
        self._judge = judge
        self._chosen: dict[tuple[Path, str], ChosenJudge] = {}

    def __call__(self, entry: LogEntry) -> tuple[ScoredLog | Missing, _Chosen | None]:
        """Score a finished episode. The judge is None for another one."""
        logged = entry.read()
        if isinstance(logged, Missing):
            return logged, None
        if logged.missing is not None:
            return logged.missing, None
        key = entry.home, logged.kind
        if key not in self._chosen:
            self._chosen[key] = choose_judge(entry.home, self._judge, logged.kind)
        judge = self._chosen[key]
        chosen = _Chosen(logged.kind, judge.faults)
        try:
            judged = judge.judged(entry.file.name, logged.episode, logged.task)
        except DamagedJudgementError as error:
            return Missing(entry.name, DAMAGED, str(error), logged.kind), chosen
        return ScoredLog(_score(logged, judged), logged.task), chosen


def _score(logged: LoggedEpisode, judged: Judged) -> Score[Any]:
    """Score a log. Its task has the name of its version where it was played beside an earlier one."""
    score, entry, task = make_score(logged.episode, logged.task, judged), logged.entry, logged.task
    name = version_name(task.id, task.digest)
    return replace(
        score,
        task=name if entry.spec.task == name else task.id,
        limit=entry.limit if entry.limit and score.limit else score.limit,
        file=entry.file,
    )


def disambiguate_runs(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Return runs whose scores have a label for each configuration of an agent. See `disambiguate_agents`."""
    labels = iter(distinct_labels([(score.agent, score.config) for run in runs for score in run.scores]))
    return [replace(run, scores=tuple(replace(score, agent=next(labels)) for score in run.scores)) for run in runs]


def finished_episodes(
    logs: AnyLogs,
    progress: Callable[[EpisodeSpec], None] | None = None,
    on_damaged: Callable[[Missing], None] | None = None,
) -> Iterator[LoggedEpisode]:
    """Yield the finished episodes of logs with their tasks. See `find_logs` for the errors.

    Missing and torn episodes are left out in silence. ``on_damaged`` is called with each file that cannot be read as a
    log on a task at hand, which is left out, too. Without it, `LogError` is raised. ``progress`` is called per episode.
    """
    logs = find_logs(logs)

    def leave_out(missing: Missing) -> None:
        if on_damaged is None:
            raise LogError(missing.error)
        on_damaged(missing)

    for foreign in logs.foreign:
        leave_out(foreign)
    for entry in logs.entries:
        logged = entry.read()
        if isinstance(logged, LoggedEpisode):
            if logged.missing is None:
                yield logged
        elif logged.status != "missing":
            leave_out(logged)
        if progress is not None:
            progress(entry.spec)


def no_finished_episode(runs: Sequence[ScoredRun]) -> LogError:
    """Return the error for runs without a finished episode."""
    reason = next((f" ({each.name}: {each.error})" for run in runs for each in run.missing if each.error), "")
    paths = ", ".join(f"'{run.folder}'" for run in runs)
    remedy = "mend the cause, or run the study again" if reason else "run its study first"
    return LogError(f"{paths} holds no finished episode that can be scored{reason}; {remedy}")


def without_doubles(runs: Sequence[ScoredRun]) -> tuple[list[ScoredRun], int]:
    """Return the runs with the first copy of every episode only, and the number of copies left out.

    Two logs hold one episode if their keys are the same, and so are their fingerprints. See `Score.key`. Only logs that
    agree in the former are read again.
    """
    alike: dict[tuple[object, ...], list[Score[Any]]] = {}
    for score in (score for run in runs for score in run.scores):
        alike.setdefault(score.key, []).append(score)
    copies = {id(copy) for group in alike.values() if len(group) > 1 for copy in _copies(group)}
    if not copies:
        return list(runs), 0
    kept = [replace(run, scores=tuple(each for each in run.scores if id(each) not in copies)) for run in runs]
    return kept, len(copies)


def _copies(group: Sequence[Score[Any]]) -> list[Score[Any]]:
    """Return the episodes of a group whose fingerprint an earlier one has."""
    seen: set[str] = set()
    copies = []
    for score in group:
        if score.file is None:
            continue
        fingerprint = read_episode(score.file).fingerprint
        if fingerprint in seen:
            copies.append(score)
        seen.add(fingerprint)
    return copies
