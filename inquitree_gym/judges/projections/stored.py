"""Judgements of the projections of a run: one JSON Lines file per judge and settings, with whole alignments."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from inquitree_gym.errors import InquiTreeError, JudgeError
from inquitree_gym.judges.projections.judgement import ProjectionJudgement
from inquitree_gym.judges.projections.records import alignment_record
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.judges.records import JUDGEMENTS, JudgementHeader, version_of
from inquitree_gym.log import AlignmentRecord, JsonlWriter, file_stem, has_header, read_records, settings_digest
from inquitree_gym.trees.disclosure import ProjectionTask

PROJECTIONS = "projections"
"""Folder of the files among the judgements of a run."""


class ProjectionJudgementRecord(AlignmentRecord):
    """Judgement of one projection, with the ratings in both orders, so that every score follows from it."""

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
        """Return the judgement of one projection; None if it was not judged, or on another version of the task.

        Raises:
            JudgeError: another projection of this turn was judged.
        """
        found = self.by_turn.get((episode, turn))
        if found is None or found.digest != task.digest:
            return None
        if found.projection != _digest(projection):
            raise JudgeError(
                f"{self.judge} judged another projection of {episode}, turn {turn}, than the given one; "
                "judge the run again"
            )
        return found


def read_projection_judgements(run: str | os.PathLike[str]) -> list[ProjectionJudgements]:
    """Return the judgements of projections of a run folder by every judge, ordered by file name.

    Raises:
        JudgeError: a file is damaged.
    """
    return [_read(file) for file in sorted(Path(run, JUDGEMENTS, PROJECTIONS).glob("*.jsonl")) if has_header(file)]


class ProjectionJudgementFile(JsonlWriter):
    """The judgements of the projections of one run by one judge with one configuration, to read and extend."""

    def __init__(self, run: str | os.PathLike[str], judge: str, config: Mapping[str, Any]) -> None:
        """Open or create the file in the run folder ``run``.

        Raises:
            JudgeError: the file is damaged.
            LogError: it cannot be written, or another process is writing it.
        """
        header = JudgementHeader(judge=judge, config=json.loads(json.dumps(dict(config))))
        name = f"{file_stem(judge)}-{settings_digest(header.config)}.jsonl"
        file = Path(run, JUDGEMENTS, PROJECTIONS, name)
        super().__init__(file, resume=True, header=header)
        try:
            self.found = _read(file).by_turn
        except InquiTreeError:
            self.close()
            raise

    def holds(self, episode: str, turn: int, task: ProjectionTask, projection: str) -> bool:
        """Return whether this projection was judged on this task, and scored."""
        found = self.found.get((episode, turn))
        if found is None or found.f1 is None:
            return False
        return (found.digest, found.projection) == (task.digest, _digest(projection))

    def add(
        self, episode: str, turn: int, task: ProjectionTask, projection: str, judgement: ProjectionJudgement
    ) -> ProjectionJudgementRecord:
        """Append a judgement, which replaces earlier ones of the projection."""
        alignment = judgement.alignment
        f1 = None if alignment is None or judgement.unscored else float(alignment.score().f1)
        counts = {**asdict(judgement.usage), "unread": judgement.unread}
        record = ProjectionJudgementRecord(
            **dict(alignment_record(alignment, f1)),
            episode=episode,
            turn=turn,
            digest=task.digest,
            projection=_digest(projection),
            usage={name: value for name, value in counts.items() if value},
        )
        self.write(record)
        self.found[episode, turn] = record
        return record


def _digest(projection: str) -> str:
    return hashlib.sha256(projection.encode("utf-8", "replace")).hexdigest()


def _read(file: Path) -> ProjectionJudgements:
    remedy = "remove the file and judge the run again (paid replies are taken from the cache)"
    header, records = read_records(file, JudgementHeader, ProjectionJudgementRecord, remedy=remedy, error=JudgeError)
    return ProjectionJudgements(header.judge, header.config, {(each.episode, each.turn): each for each in records})
