"""The judges of the logs of one folder: the one that scores them, and the others that have judged them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import DamagedJudgementError, JudgeError, OptionError
from inquitree_gym.judging.judgement import LOCAL, Judged
from inquitree_gym.judging.stored import Judgements, read_judgements
from inquitree_gym.kinds import DEFAULT_KIND, kind

if TYPE_CHECKING:
    from inquitree_gym.log import Episode


@dataclass(frozen=True, slots=True)
class Panel:
    """The judge that scores the logs of a folder, and the others that have judged them."""

    folder: Path
    task_kind: str
    label: str
    """Label of the chosen judge: its name and version, numbered if it has judged with several settings."""
    stored: Mapping[str, Judgements]
    faults: list[str] = field(default_factory=list)
    """Damaged files, lines and judgements, which are left out."""

    def chosen(self, log: str, episode: Episode[Any], task: Any) -> Judged:
        """Return the judgements of an episode by the chosen judge: the stored ones, or those of the kind's own judge.

        Raises:
            JudgeError: it has not judged the episode.
            DamagedJudgementError: its judgement is damaged, or may be among the damaged lines.
            OptionError: no judge has its name.
        """
        stored = self.stored.get(self.label)
        judged = None if stored is None else self._judged(stored, log, episode, task)
        if judged is not None:
            return judged
        own: Judged = kind(self.task_kind).judging.own_judged(episode, task)
        if self.label in ("", own.judge, own.label):
            return own
        if stored is None:
            _check_name(self.label, self.task_kind)
            raise _not_judged(self.label, f"'{log}'", self.folder)
        if stored.faults:
            raise DamagedJudgementError(
                f"the stored judgement of '{log}' by {stored.judge} is incomplete; judge the run again"
            )
        raise _not_judged(stored.judge, f"'{log}'", self.folder)

    def others(self, log: str, episode: Episode[Any], task: Any) -> dict[str, Judged]:
        """Return the judgements of an episode by the other judges, by label. Damaged ones are left out."""
        judged = {}
        for label, stored in self.stored.items():
            try:
                of_judge = None if label == self.label else self._judged(stored, log, episode, task)
            except DamagedJudgementError as error:
                self.faults.append(str(error))
                continue
            if of_judge is not None and of_judge.payloads:
                judged[label] = of_judge
        return judged

    def _judged(self, stored: Judgements, log: str, episode: Episode[Any], task: Any) -> Judged | None:
        """Return the judgements of an episode by one judge. None if it has not judged all its texts."""
        payloads = {}
        for turn, text in kind(self.task_kind).judging.texts(episode):
            payload = stored.of((log, turn), task, text)
            if payload is None:
                return None
            payloads[turn] = payload.value
        return Judged(stored.judge, stored.version, payloads)


def read_panel(folder: str | os.PathLike[str], judge: str | None = None, task_kind: str = DEFAULT_KIND) -> Panel:
    """Read the judgements beside a run, and choose the judge that scores it.

    A local judge of the present version with other constants than the present ones is labelled "earlier".

    Args:
        folder: folder of the run.
        judge: a name, which takes the newest version of that judge, or a label as shown with the scores. None for the
            kind's own judge.
        task_kind: kind of environment of the scored logs.

    Raises:
        JudgeError: the judge is not the kind's own and has judged nothing here.
        OptionError: no judge has that name, or the newest version has judged with several settings.
    """
    own: str = kind(task_kind).judging.own
    stored, faults = read_judgements(folder, task_kind), []
    faults.extend(stored.faults)
    labelled = {}
    for label, judgements in stored.by_label().items():
        if own and judgements.judge == LOCAL and judgements.label == own:
            from inquitree_gym.judging.registry import load_judge

            present = judgements.config == load_judge(LOCAL, task_kind=task_kind).config
            labelled[own if present else f"{label}, earlier"] = judgements
        else:
            labelled[label] = judgements
    return Panel(Path(folder), task_kind, _choose(judge, own, labelled, Path(folder), task_kind), labelled, faults)


def _choose(judge: str | None, own: str, stored: Mapping[str, Judgements], folder: Path, task_kind: str) -> str:
    """Return the label of a judge."""
    if judge is None or judge == own or (own and judge == LOCAL):
        return own
    if judge in stored:
        return judge
    versions = {label: judgements.version for label, judgements in stored.items() if judgements.judge == judge}
    newest = [label for label, version in versions.items() if version == max(versions.values())]
    if len(newest) > 1:
        labels = ", ".join(f"'{label}'" for label in newest)
        raise OptionError(f"'{judge}' has judged '{folder}' with several settings; choose one of {labels}")
    if not newest and own:
        _check_name(judge, task_kind)
        raise _not_judged(judge, f"the {kind(task_kind).judging.noun}s", folder)
    return newest[0] if newest else judge


def _not_judged(judge: str, what: str, folder: Path) -> JudgeError:
    return JudgeError(f"{judge} has not judged {what} of '{folder}' yet; run: inquitree judge {folder} --judge {judge}")


def _check_name(name: str, task_kind: str) -> None:
    """See `judging.registry.check_name`, which is imported for a judge that has judged nothing."""
    from inquitree_gym.judging.registry import check_name

    check_name(name, task_kind)
