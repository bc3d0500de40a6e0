"""A small projection task, and a judge that compares its claims by text."""

from __future__ import annotations

from typing import Any

import numpy as np

from inquitree_gym.judges.projections.alignment import MAX_EXTRAS, ORDERS, Alignment
from inquitree_gym.trees import load_tree
from inquitree_gym.trees.disclosure import ProjectionTask

RELATIONS = (("raises", "lowers"), ("lowers", "raises"), ("does not change", "raises"))


def make_task(claims: int = 3, task_id: str = "tiny") -> ProjectionTask:
    """A task with claims that rise, fall and stay in turn."""
    paper, provenance = load_tree("paper12").paper, load_tree("paper12").provenance
    return ProjectionTask.model_validate_json(
        __import__("json").dumps(
            {
                "format": "projection/1",
                "id": task_id,
                "version": 1,
                "canary": "a canary",
                "paper": paper.model_dump(mode="json"),
                "provenance": provenance.model_dump(mode="json"),
                "disclosure": disclosure(claims, task_id),
            }
        )
    )


def disclosure(claims: int, name: str) -> dict[str, Any]:
    said = [RELATIONS[i % 3] for i in range(claims)]
    return {
        "topic": f"Light and {name}",
        "domain": "plants",
        "question": "How does light act on growth?",
        "hypothesis": "If plants get more light, then they grow more.",
        "null_hypothesis": "If plants get more light, then there is no change in growth.",
        "procedure": ["Plants are kept under three lamps.", "Their height is measured each day."],
        "outcome": "This study finds that light acts on growth.",
        "claims": [
            {
                "id": f"p{i}",
                "independent": f"lamp {i}",
                "relation": relation,
                "dependent": f"trait {i}",
                "contraries": [f"Lamp {i} {contrary} trait {i}."],
                "evidence": ["s1a"],
            }
            for i, (relation, contrary) in enumerate(said)
        ],
    }


class WordJudge:
    """Judge of any task: a line that is a claim's text is right, one that is a contrary wrong, any other unrelated."""

    name = "words"

    def for_task(self, task: ProjectionTask) -> TaskWordJudge:
        return TaskWordJudge(task)


class TaskWordJudge:
    name, version = "words", 1

    def __init__(self, task: ProjectionTask) -> None:
        self.task = task
        self.asked: list[str] = []

    def align(self, projection: str) -> Alignment:
        self.asked.append(projection)
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
