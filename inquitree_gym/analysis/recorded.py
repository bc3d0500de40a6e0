"""What judges have said of a run before, so that reports and pages need not ask again."""

from __future__ import annotations

import os
from typing import NamedTuple

from inquitree_gym.judges import Judge, Judgements, labelled, local_judge, make_panel, read_judgements
from inquitree_gym.judges.panel import LOCAL
from inquitree_gym.trees import Tree


class Recorded(NamedTuple):
    """The judgements beside a run."""

    own: Judgements | None
    """Those of the local judge as it is now."""
    others: dict[str, Judgements]
    """All others, by label."""

    def local(self, log: str, tree: Tree) -> Judge:
        """Return the local judge for the episode of this log: what it said before, or else itself."""
        said = None if self.own is None else self.own.of(log, tree)
        return local_judge(tree) if said is None else said

    def panel(self, log: str, tree: Tree) -> dict[str, Judge]:
        """Return the other judges that have judged the episode of this log, by label."""
        judges = {label: each.of(log, tree) for label, each in self.others.items()}
        return {label: judge for label, judge in judges.items() if judge is not None}


def recorded_judges(folder: str | os.PathLike[str]) -> Recorded:
    """Read the judgements beside a run; a local judge with other constants is one of the others, called earlier.

    Raises:
        JudgeError: a file of judgements is damaged.
    """
    found = labelled(read_judgements(folder))
    config = make_panel([LOCAL])[0].config
    own = next((each for each in found.values() if (each.judge, each.config) == (LOCAL, config)), None)
    others = {
        f"{label}, earlier" if each.judge == LOCAL else label: each for label, each in found.items() if each is not own
    }
    return Recorded(own, others)
