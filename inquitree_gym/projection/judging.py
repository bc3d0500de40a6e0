"""Judges of projections by name, and their alignments as logs and files of judgements keep them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field

from inquitree_gym.errors import JudgeError
from inquitree_gym.judging.judgement import InProcessJudge, Judged, JudgedText, version_of
from inquitree_gym.judging.stored import Payload
from inquitree_gym.projection.events import AlignmentRecord
from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, ORDERS, Alignment

if TYPE_CHECKING:
    from inquitree_gym.log import Episode
    from inquitree_gym.projection.judges.llm import LLMProjectionJudge, ProjectionJudgeOptions
    from inquitree_gym.trees.disclosure import ProjectionTask


class StoredAlignment(AlignmentRecord, Payload):
    """Alignment of a projection with the ratings in both orders, from which every score can be computed."""

    extraneous: tuple[str, ...] = Field(max_length=MAX_EXTRAS)

    @classmethod
    def _of(cls, task: ProjectionTask, judged: Alignment | None) -> Self:
        """Keep the ratings. None for a projection that the judge could not align."""
        if judged is not None and len(judged.analogous) != len(task.claims):
            raise JudgeError(
                f"a judgement of {task.id} must have {len(task.claims)} pairs, one per claim in their order, got "
                f"{len(judged.analogous)}"
            )
        f1 = None if judged is None or not judged.complete else float(judged.score().f1)
        return cls(**dict(alignment_record(judged, f1)))

    def check(self, task: ProjectionTask) -> None:
        """See `Payload.check`."""
        if self.analogous and len(self.analogous) != len(task.claims):
            raise JudgeError(f"it must have {len(task.claims)} pairs, got {len(self.analogous)}")
        alignment = self.value
        complete = alignment is not None and alignment.complete
        if complete != (self.f1 is not None):
            raise JudgeError("f1 must be null exactly where a rating is missing")

    @property
    def value(self) -> Alignment | None:
        """The alignment. None where the judge could not find the claims."""
        return recorded_alignment(self)

    @property
    def unscored(self) -> int:
        """1 for a projection without a score, else 0."""
        return int(self.f1 is None)


def alignment_record(alignment: Alignment | None, f1: float | None) -> AlignmentRecord:
    """Return the record of an alignment, None if the judge found no claims, with its F1, None for an unscored one."""
    if alignment is None:
        return AlignmentRecord(analogous=(), extraneous=(), pair_ratings=(), extra_ratings=(), f1=None)
    return AlignmentRecord(
        analogous=alignment.analogous,
        extraneous=alignment.extraneous,
        pair_ratings=tuple((one, other) for one, other in alignment.pair_ratings.tolist()),
        extra_ratings=tuple(
            tuple((one, other) for one, other in ratings) for ratings in alignment.extra_ratings.tolist()
        ),
        f1=f1,
        reasons=alignment.reasons,
    )


def recorded_alignment(record: AlignmentRecord) -> Alignment | None:
    """Return the alignment of a record, with NaN for null. None where the judge could not find the claims."""
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


class ProjectionJudging:
    """Judges of projections. See `protocols.Judging` for the members."""

    noun = "projection"
    part = "projection"
    payload = StoredAlignment
    presets: Mapping[str, Mapping[str, Any]] = {"llm": {}}

    @property
    def options(self) -> type[ProjectionJudgeOptions]:
        """Options of judges that ask a chat model."""
        from inquitree_gym.projection.judges.llm import ProjectionJudgeOptions

        return ProjectionJudgeOptions

    @property
    def judges(self) -> Mapping[str, Any]:
        """Makers of judges by the prefix of their names."""
        return {"nli": lambda model, options: _nli(model), "llm": _llm}

    def texts(self, episode: Episode[Any]) -> Iterator[JudgedText]:
        """Yield the projections, without those after a sheet, which had shown the claims."""
        for turn in episode.turns:
            if turn.event.kind == "projection" and not turn.event.after_sheet:
                yield JudgedText(turn.turn, turn.action)

    def about(self, task: ProjectionTask, episode: Episode[Any]) -> ProjectionTask:
        """Return the task."""
        return task

    def own_judged(self, episode: Episode[Any], task: ProjectionTask) -> Judged:
        """Return the alignments by the judge of the reward, if one set it."""
        judge = episode.header.setup.judge
        if judge is None:
            return Judged("")
        judged = {turn.turn: recorded_alignment(turn.event.judged) for turn in episode.turns if turn.event.judged}
        return Judged(str(judge.get("name", "unknown")), version_of(judge), judged)


JUDGING = ProjectionJudging()


def _nli(model: str) -> InProcessJudge[ProjectionTask]:
    from inquitree_gym.judging.nli import CrossEncoderInference
    from inquitree_gym.projection.judges.nli import VERSION, NLIProjectionJudge

    inference = CrossEncoderInference(model)
    config = partial(inference.config, VERSION)
    return InProcessJudge(f"nli:{model}", config, cache(lambda task: NLIProjectionJudge(task, inference)))


def _llm(model: str, options: ProjectionJudgeOptions) -> LLMProjectionJudge:
    from inquitree_gym.projection.judges.llm import LLMProjectionJudge

    return LLMProjectionJudge(options.chat(model), settings=options, cache=options.reply_cache, budget=options.budget)
