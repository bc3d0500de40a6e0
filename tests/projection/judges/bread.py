"""A projection task about bread."""

from __future__ import annotations

import json

from inquitree_gym.trees import CANARY
from inquitree_gym.trees.disclosure import ProjectionTask

CLAIMS = (
    ("warmth", "more warmth", "speeds up", "the rise of the dough", "slows down"),
    ("salt", "more salt", "reduces", "the activity of the yeast", "increases"),
    ("oven", "a longer time in the oven", "thickens", "the crust of the loaf", "thins"),
    ("shape", "the shape of the tin", "does not change", "the taste of the bread", "improves"),
)


PAPER = {
    "title": "What makes a loaf",
    "authors": ["A. Baker"],
    "journal": "Letters on Bread",
    "year": 2026,
    "published": {"date": "2026-01-01", "precision": "year"},
    "doi": "",
    "licence": "CC0",
}
PROVENANCE = {
    "sources": [{"id": "S1", "address": "generated:bread", "what": "made up"}],
    "support": [{"node": f"s-{name}", "sources": ["S1"], "strength": "full_text"} for name, *_ in CLAIMS],
}


def bread(claims: int = len(CLAIMS)) -> ProjectionTask:
    """Return the task with its first claims; the last of the four is a null result."""
    return ProjectionTask.model_validate_json(bread_json(claims))


def bread_json(claims: int = len(CLAIMS)) -> str:
    """Return the task as a document."""
    shown = CLAIMS[:claims]
    outcome = ", that ".join(f"{what} {relation} {on}" for _, what, relation, on, _ in shown)
    return json.dumps(
        {
            "format": "projection/1",
            "id": "bread",
            "version": 1,
            "canary": CANARY,
            "paper": PAPER,
            "provenance": PROVENANCE,
            "disclosure": {
                "topic": "Baking bread",
                "domain": "kitchen",
                "question": "What decides how a loaf turns out?",
                "hypothesis": "If the dough is kept warmer, then it rises faster.",
                "null_hypothesis": "If the dough is kept warmer, then there is no change in how fast it rises.",
                "procedure": [
                    "Keep dough at several temperatures and measure its height each hour.",
                    "Count yeast cells in dough with different amounts of salt.",
                    "Bake loaves for different times and in different tins, and compare crust and taste.",
                ],
                "outcome": f"This study finds that {outcome}.",
                "claims": [claim(*each) for each in shown],
            },
        }
    )


def claim(name: str, what: str, relation: str, on: str, contrary: str) -> dict[str, object]:
    """Return a claim with the contrary of its effect, and no effect or one where it has none."""
    other = "spoils" if relation == "does not change" else "does not change"
    contraries = [f"{what[0].upper()}{what[1:]} {verb} {on}." for verb in (contrary, other)]
    return {
        "id": name, "independent": what, "relation": relation, "dependent": on, "contraries": contraries,
        "evidence": [f"s-{name}"],
    }  # fmt: skip
