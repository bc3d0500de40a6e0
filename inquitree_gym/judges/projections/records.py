"""Alignments as logs keep them, and judgements of projections: one JSON Lines file per judge and settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from inquitree_gym.errors import JudgeError
from inquitree_gym.judges.projections.alignment import ORDERS, Alignment
from inquitree_gym.judges.projections.judgement import ProjectionJudgement
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.judges.records import (
    JUDGEMENTS,
    JudgedFile,
    JudgedRecord,
    read_judged,
    text_digest,
    usage_counts,
    version_of,
)
from inquitree_gym.log import AlignmentRecord, has_header
from inquitree_gym.trees.disclosure import ProjectionTask

PROJECTIONS = "projections"
"""Folder of the files among the judgements of a run."""


class ProjectionJudgementRecord(AlignmentRecord, JudgedRecord):
    """Judgement of one projection, with the ratings in both orders, from which every score can be computed."""

    kind: Literal["projection_judgement"] = "projection_judgement"
    episode: str
    """File name of the episode's log."""
    turn: int
    """Turn of the projection, 1 for the first."""
    digest: str
    """Digest of the task."""
    projection: str
    """SHA-256 of the projection."""
    usage: dict[str, float] = Field(default={})
    """Nonzero fields of `Usage`, and ``unread``."""

    @property
    def unscored(self) -> int:
        """1 for a projection without a score, else 0."""
        return int(self.f1 is None)


@dataclass(frozen=True, slots=True)
class ProjectionJudgements:
    """Judgements of one run by one judge with one configuration."""

    judge: str
    config: dict[str, Any]
    by_turn: dict[tuple[str, int], ProjectionJudgementRecord]
    """The latest judgement of each projection, by file name of its log and turn."""

    @property
    def label(self) -> str:
        """Name and version of the judge."""
        return judge_label(self.judge, version_of(self.config))

    def of(self, episode: str, turn: int, task: ProjectionTask, projection: str) -> ProjectionJudgementRecord | None:
        """Return the judgement of one projection; None if it was not judged, or judged on another version of the task.

        Raises:
            JudgeError: a different projection was judged for this turn.
        """
        found = self.by_turn.get((episode, turn))
        if found is None or found.digest != task.digest:
            return None
        if found.projection != text_digest(projection):
            raise JudgeError(
                f"{self.judge} judged a projection at turn {turn} of {episode} that is not the given one; "
                "judge the run again"
            )
        return found


def read_projection_judgements(run: str | os.PathLike[str]) -> list[ProjectionJudgements]:
    """Return the judgements of projections of a run folder by every judge, ordered by file name.

    Raises:
        JudgeError: a file is damaged.
    """
    return [_read(file) for file in sorted(Path(run, JUDGEMENTS, PROJECTIONS).glob("*.jsonl")) if has_header(file)]


class ProjectionJudgementFile(JudgedFile[tuple[str, int], ProjectionJudgementRecord]):
    """The judgements of the projections of one run by one judge with one configuration, by episode and turn."""

    folder = f"{JUDGEMENTS}/{PROJECTIONS}"
    record_type = ProjectionJudgementRecord

    def key(self, record: ProjectionJudgementRecord) -> tuple[str, int]:
        """Return the file name of the episode's log, and the turn."""
        return record.episode, record.turn

    def holds(self, key: tuple[str, int], about: ProjectionTask, text: str) -> bool:
        """Return whether this projection was judged on this task, and scored."""
        found = self.found.get(key)
        if found is None or found.unscored:
            return False
        return (found.digest, found.projection) == (about.digest, text_digest(text))

    def add(
        self, key: tuple[str, int], about: ProjectionTask, text: str, judgement: ProjectionJudgement
    ) -> ProjectionJudgementRecord:
        """Append a judgement, which replaces earlier ones of the projection."""
        episode, turn = key
        alignment = judgement.alignment
        f1 = None if alignment is None or judgement.unscored else float(alignment.score().f1)
        record = ProjectionJudgementRecord(
            **dict(alignment_record(alignment, f1)),
            episode=episode,
            turn=turn,
            digest=about.digest,
            projection=text_digest(text),
            usage=usage_counts(judgement.usage, judgement.unread),
        )
        return self.keep(record)


def alignment_record(alignment: Alignment | None, f1: float | None) -> AlignmentRecord:
    """Return the record of an alignment.

    Args:
        alignment: the alignment; None if the judge could not find the claims.
        f1: its score in [0, 1]; None for an unscored projection.
    """
    if alignment is None:
        return AlignmentRecord(analogous=(), extraneous=(), pair_ratings=(), extra_ratings=(), f1=None)
    return AlignmentRecord(
        analogous=alignment.analogous,
        extraneous=alignment.extraneous,
        pair_ratings=tuple((one, other) for one, other in alignment.pair_ratings.tolist()),
        extra_ratings=tuple(tuple((one, other) for one, other in each) for each in alignment.extra_ratings.tolist()),
        f1=f1,
        reasons=alignment.reasons,
    )


def recorded_alignment(record: AlignmentRecord) -> Alignment | None:
    """Return the alignment of a record, with NaN for null; None where the judge could not find the claims."""
    if not record.analogous:
        return None
    claims, extras = len(record.analogous), len(record.extraneous)
    return Alignment(
        analogous=record.analogous,
        extraneous=record.extraneous,
        pair_ratings=np.array(record.pair_ratings, np.float64).reshape(claims, ORDERS),
        extra_ratings=np.array(record.extra_ratings, np.float64).reshape(extras, claims, ORDERS),
        reasons=record.reasons,
    )


def _read(file: Path) -> ProjectionJudgements:
    header, records = read_judged(file, ProjectionJudgementRecord)
    return ProjectionJudgements(header.judge, header.config, {(each.episode, each.turn): each for each in records})
