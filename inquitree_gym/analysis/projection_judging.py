"""Judging of logged projections offline; judgements are stored beside the logs, and scores are computed from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inquitree_gym.analysis.judging import JudgingResult, judge_missing
from inquitree_gym.analysis.logs import LoggedProjections, Logs
from inquitree_gym.errors import JudgeError, LogError, OptionError
from inquitree_gym.judges.projections.judgement import AsyncProjectionJudge
from inquitree_gym.judges.projections.records import (
    ProjectionJudgementFile,
    ProjectionJudgements,
    read_projection_judgements,
)
from inquitree_gym.judges.records import version_of
from inquitree_gym.log import AlignmentRecord
from inquitree_gym.trees.disclosure import ProjectionTask


@dataclass(frozen=True, slots=True)
class StatedProjection:
    """A projection to judge."""

    episode: str
    """File name of its log."""
    turn: int
    task: ProjectionTask
    text: str

    @property
    def name(self) -> str:
        """Its episode."""
        return self.episode

    @property
    def key(self) -> tuple[str, int]:
        """Its episode and turn."""
        return self.episode, self.turn

    @property
    def about(self) -> ProjectionTask:
        """Its task."""
        return self.task


def stated_projections(logs: Logs) -> list[StatedProjection]:
    """Return the projections of the finished episodes of logs; other logs are left out.

    Raises:
        LogError: the logs hold no finished episode of projections.
    """
    found = [
        StatedProjection(entry.file.name, turn.turn, read.task, turn.action)
        for entry in logs.entries
        if isinstance(read := entry.read_projections(), LoggedProjections) and read.missing is None
        for turn in read.episode.turns
    ]
    if not found:
        raise LogError(f"'{logs.path}' holds no finished episode of projections to judge yet; run its study first")
    return found


async def judge_projections(
    folder: str | os.PathLike[str],
    projections: Sequence[StatedProjection],
    judge: AsyncProjectionJudge,
    max_concurrency: int,
    progress: Callable[[str], None],
) -> JudgingResult:
    """Judge every projection that this judge has not scored yet, and store the alignments in ``folder``.

    Equal projections about a task are judged once. See `judge_conclusions` for the arguments and errors.
    """
    with ProjectionJudgementFile(folder, judge.name, judge.config) as file:
        return await judge_missing(projections, file, judge.align, max_concurrency, progress)


def chosen_judgements(folder: Path, judge: str) -> ProjectionJudgements:
    """Return the stored judgements by a judge, by its name (the newest version) or label.

    Raises:
        JudgeError: the judge has not judged the projections of this folder.
        OptionError: the newest version of the judge has judged them with several settings.
    """
    stored = [each for each in read_projection_judgements(folder) if judge in (each.judge, each.label)]
    if not stored:
        raise JudgeError(
            f"{judge} has not judged the projections of '{folder}' yet; run: inquitree judge {folder} --judge {judge}"
        )
    newest = max(version_of(each.config) for each in stored)
    found = [each for each in stored if version_of(each.config) == newest]
    if len(found) > 1:
        raise OptionError(f"'{judge}' has judged '{folder}' with several settings; keep one of its files there")
    return found[0]


def judged_turns(found: LoggedProjections, judgements: ProjectionJudgements) -> dict[int, AlignmentRecord]:
    """Return the judgements of the projections of an episode by turn.

    Raises:
        JudgeError: a projection was not judged.
    """
    records: dict[int, AlignmentRecord] = {}
    for turn in found.episode.turns:
        name = found.entry.file.name
        record = judgements.of(name, turn.turn, found.task, turn.action)
        if record is None:
            raise JudgeError(
                f"{judgements.label} has not judged turn {turn.turn} of {name}; "
                f"run: inquitree judge {found.entry.home} --judge {judgements.judge}"
            )
        records[turn.turn] = record
    return records
