"""A small projection task about bread, for tests."""

from __future__ import annotations

import copy
import json
from typing import Any

from inquitree_gym.projection.tasks import parse_task
from inquitree_gym.trees import CANARY, ProjectionTask

DISCLOSURE: dict[str, Any] = {
    "topic": "Bread dough",
    "domain": "baking",
    "question": "How do yeast and salt affect dough?",
    "hypothesis": "If dough has more yeast, then it rises higher.",
    "null_hypothesis": "If the amount of yeast in the dough differs, then there is no change in its height.",
    "procedure": [
        "Prepare doughs that differ in yeast, in salt, or in the temperature of the water.",
        "Measure the height of each dough after two hours.",
        "Weigh the gas that each dough gives off.",
    ],
    "outcome": "This study finds that yeast increases the height of the dough, that salt reduces the gas from the "
    "dough, and that warm water shortens the time of rising.",
    "claims": [
        {
            "id": "p1",
            "independent": "yeast in the dough",
            "relation": "increases",
            "dependent": "the height of the dough",
            "contraries": [
                "Yeast in the dough decreases the height of the dough.",
                "Yeast in the dough does not change the height of the dough.",
            ],
            "evidence": ["s1a"],
        },
        {
            "id": "p2",
            "independent": "salt in the dough",
            "relation": "reduces",
            "dependent": "the gas that the dough gives off",
            "contraries": ["Salt in the dough raises the gas that the dough gives off."],
            "evidence": ["s2a"],
        },
        {
            "id": "p3",
            "independent": "warm water in place of cold",
            "relation": "shortens",
            "dependent": "the time of rising",
            "contraries": ["Warm water in place of cold lengthens the time of rising."],
            "evidence": ["s3a"],
        },
    ],
}
TASK: dict[str, Any] = {
    "format": "projection/1",
    "id": "bread",
    "version": 1,
    "canary": CANARY,
    "paper": {
        "title": "Bread",
        "authors": ["A. Nobody"],
        "journal": "Journal of Made Results",
        "year": 2020,
        "published": {"date": "2020-05-01", "precision": "month"},
        "doi": "",
        "licence": "CC BY 4.0",
    },
    "disclosure": DISCLOSURE,
    "provenance": {
        "sources": [{"id": "S1", "address": "generated:tests", "what": "made up"}],
        "support": [
            {"node": node, "sources": ["S1"], "facts": [], "strength": "full_text"} for node in ("s1a", "s2a", "s3a")
        ],
    },
}


def task_document(**changes: Any) -> dict[str, Any]:
    """Return a copy of the task's document with some fields of its disclosure replaced."""
    document = copy.deepcopy(TASK)
    document["disclosure"] |= changes
    return document


def make_task(**changes: Any) -> ProjectionTask:
    """Return the task with some fields of its disclosure replaced."""
    return parse_task(json.dumps(task_document(**changes)).encode())
