"""Small projection tasks, and a judge that compares claims by their text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from inquitree_gym.judging.judgement import InProcessJudge
from inquitree_gym.projection.env import ProjectionEnv
from inquitree_gym.projection.judges.alignment import MAX_EXTRAS, ORDERS, Alignment
from inquitree_gym.sheets import Sheet, write_sheet
from inquitree_gym.trees import ProjectionTask
from tests.tasks import make_task


def named_task(name: str) -> ProjectionTask:
    """The task about bread under another id and topic."""
    return make_task(topic=f"{name} dough").model_copy(update={"id": name})


def reply(env: ProjectionEnv, choices: Sequence[int | None], probabilities: Sequence[float | None] = ()) -> str:
    """What to write on the sheet that ``env`` asks for: 0 names the claim, i its i-th contrary."""
    return write_sheet(Sheet(tuple(choices), tuple(probabilities)), env.runtime.layout(env.state))


class WordJudge:
    """A line that is the text of a true claim is right, one that is a contrary wrong, and any other unrelated."""

    name, version = "words", 1

    def __init__(self, task: ProjectionTask) -> None:
        self.task = task

    def judge(self, projection: str) -> Alignment:
        lines = [line.strip() for line in projection.splitlines() if line.strip()]
        pairs, analogous = [], []
        for claim in self.task.claims:
            found = next((line for line in lines if line in (claim.text, *claim.contraries)), None)
            analogous.append(found)
            pairs.append(np.nan if found is None else 1.0 if found == claim.text else -1.0)
        extraneous = tuple(line for line in dict.fromkeys(lines) if line not in analogous)[:MAX_EXTRAS]
        return Alignment(
            analogous=tuple(analogous),
            extraneous=extraneous,
            pair_ratings=np.repeat(np.array(pairs)[:, None], ORDERS, axis=1),
            extra_ratings=np.zeros((len(extraneous), len(pairs), ORDERS)),
        )


def _config() -> dict[str, Any]:
    return {"version": WordJudge.version, "reads": "lines"}


@cache
def _judge(task: ProjectionTask) -> WordJudge:
    return WordJudge(task)


WORDS = InProcessJudge("words", _config, _judge)
"""The judge of any task."""
