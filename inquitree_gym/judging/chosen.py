"""The judge that scores the logs of one folder: its stored judgements, or those of the kind's own judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import DamagedJudgementError, JudgeError
from inquitree_gym.judging.judgement import Judged
from inquitree_gym.judging.stored import Judgements, read_judgements
from inquitree_gym.kinds import DEFAULT_KIND, kind

if TYPE_CHECKING:
    from inquitree_gym.log import Episode


@dataclass(frozen=True, slots=True)
class ChosenJudge:
    """The judge that scores the logs of a folder."""

    folder: Path
    task_kind: str
    name: str
    """Name of the judge. Empty for the kind's own."""
    stored: Judgements | None
    """Its judgements beside the logs. None without any."""
    faults: Sequence[str] = ()
    """Damaged files and lines of judgements, which are left out."""

    def judged(self, log: str, episode: Episode[Any], task: Any) -> Judged:
        """Return the judgements of an episode: the stored ones, or those of the kind's own judge.

        Raises:
            JudgeError: the judge has not judged the episode.
            DamagedJudgementError: its judgement is damaged, or may be among the damaged lines.
            OptionError: no judge has its name.
        """
        judged = None if self.stored is None else self._recalled(self.stored, log, episode, task)
        if judged is not None:
            return judged
        own: Judged = kind(self.task_kind).judging.own_judged(episode, task)
        if self.name in ("", own.judge):
            return own
        if self.stored is None:
            _check_name(self.name, self.task_kind)
        elif self.stored.faults:
            raise DamagedJudgementError(
                f"the stored judgement of '{log}' by {self.name} is incomplete; judge the run again"
            )
        raise JudgeError(
            f"{self.name} has not judged '{log}' of '{self.folder}' yet; "
            f"run: inquitree judge {self.folder} --judge {self.name}"
        )

    def _recalled(self, stored: Judgements, log: str, episode: Episode[Any], task: Any) -> Judged | None:
        """Return the stored judgements of an episode. None if one of its texts has none."""
        payloads, judging = {}, kind(self.task_kind).judging
        told = judging.about(task, episode)
        for turn, text in judging.texts(episode):
            payload = stored.of((log, turn), told, text)
            if payload is None:
                return None
            payloads[turn] = payload.value
        return Judged(stored.judge, stored.version, payloads)


def choose_judge(
    folder: str | os.PathLike[str], judge: str | None = None, task_kind: str = DEFAULT_KIND
) -> ChosenJudge:
    """Return the judge that scores the logs of one kind in a folder.

    Args:
        folder: folder of the run.
        judge: name of the judge. None for the kind's own.
        task_kind: kind of environment of the scored logs.
    """
    stored, faults = read_judgements(folder, task_kind)
    return ChosenJudge(Path(folder), task_kind, judge or "", stored.get(judge) if judge else None, faults)


def _check_name(name: str, task_kind: str) -> None:
    """See `judging.registry.check_name`, which is imported for a judge that has judged nothing."""
    from inquitree_gym.judging.registry import check_name

    check_name(name, task_kind)
