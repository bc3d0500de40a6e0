"""The judge that scores a run, from the judgements stored beside it or computed at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inquitree_gym.errors import JudgeError, OptionError
from inquitree_gym.judges import Judge, Judgements, Verdict, local_judge, make_judges, read_judgements
from inquitree_gym.judges.local import VERSION
from inquitree_gym.judges.quality import judge_label
from inquitree_gym.judges.records import judgements_by_label
from inquitree_gym.judges.registry import LOCAL, check_name
from inquitree_gym.trees import Tree

CURRENT = judge_label(LOCAL, VERSION)
"""Label of the present local judge."""


@dataclass(frozen=True, slots=True)
class RecordedJudges:
    """The judge chosen for a run, and all judgements stored beside the run."""

    folder: Path
    label: str
    """Label of the chosen judge: its name and version, numbered if it has judged with several settings."""
    stored: dict[str, Judgements]
    """Stored judgements by label."""

    def chosen(self, log: str, tree: Tree) -> Judge:
        """Return the chosen judge for one log: its stored judgement, or the local judge, computed now.

        Another judge without a judgement of the log raises `JudgeError` once it is called.
        """
        found = self.stored.get(self.label)
        recorded = None if found is None else found.of(log, tree)
        if recorded is not None:
            return recorded
        if found is None or self.label == CURRENT:
            return local_judge(tree)
        return _Unjudged(found.judge, found.version, log, self.folder)

    def others(self, log: str, tree: Tree) -> dict[str, Judge]:
        """Return the other judges that have judged one log, by label."""
        judges = {label: each.of(log, tree) for label, each in self.stored.items() if label != self.label}
        return {label: judge for label, judge in judges.items() if judge is not None}


@dataclass(frozen=True, slots=True)
class _Unjudged:
    """A judge that has not judged a log."""

    name: str
    version: int
    log: str
    folder: Path

    def judge(self, conclusion: str) -> tuple[Verdict, ...]:
        raise _not_judged(self.name, f"the conclusion of '{self.log}'", self.folder)


def recorded_judges(folder: str | os.PathLike[str], judge: str = LOCAL) -> RecordedJudges:
    """Read the judgements beside a run, and choose the judge that scores it.

    A local judge of the present version with other constants than the present ones is labelled "earlier".

    Args:
        folder: of the run.
        judge: a name, which takes the newest version of that judge, or a label as shown with the scores.

    Raises:
        JudgeError: a file of judgements is damaged, or the judge is not the local one and has judged nothing here.
        OptionError: no judge has that name, or the newest version has judged with several settings.
    """
    config = make_judges([LOCAL])[0].config
    found = judgements_by_label(read_judgements(folder))
    stored = {}
    for label, each in found.items():
        if (each.judge, each.config) == (LOCAL, config):
            stored[CURRENT] = each
        else:
            stored[f"{label}, earlier" if (each.judge, each.version) == (LOCAL, VERSION) else label] = each
    return RecordedJudges(Path(folder), _choose(judge, stored, Path(folder)), stored)


def _choose(judge: str, stored: Mapping[str, Judgements], folder: Path) -> str:
    if judge in (LOCAL, CURRENT) or judge in stored:
        return CURRENT if judge == LOCAL else judge
    versions = {label: each.version for label, each in stored.items() if each.judge == judge}
    newest = [label for label, version in versions.items() if version == max(versions.values())]
    if not newest:
        check_name(judge)
        raise _not_judged(judge, "the conclusions", folder)
    if len(newest) > 1:
        labels = ", ".join(f"'{label}'" for label in newest)
        raise OptionError(f"'{judge}' has judged '{folder}' with several settings; choose one of {labels}")
    return newest[0]


def _not_judged(judge: str, what: str, folder: Path) -> JudgeError:
    return JudgeError(f"{judge} has not judged {what} of '{folder}' yet; run: inquitree judge {folder} --judge {judge}")
