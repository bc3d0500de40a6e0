"""Research trees for property tests: any number of subtopics, independent, chained or a random DAG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from inquitree_gym.trees import CANARY, Tree, parse_tree
from inquitree_gym.trees.document import MAX_AXES

SHAPES = ("independent", "chain", "random")
WORDS = ("alder", "birch", "cedar", "hazel", "larch", "maple", "rowan")


def study(identifier: str, axis: str, poles: int = 3) -> dict:
    found = [f"The outcome of {identifier} rose.", *(f"The outcome of {identifier} fell by step {i}." for i in (1, 2))]
    return {
        "id": identifier,
        "text": f"Protocol of {identifier}: measure, compare and report what differs.",
        "hints": [f"Hint {level} towards {identifier}." for level in range(1, 5)],
        "result": {
            "axes": [axis],
            "texts": {str(pole): [text] for pole, text in enumerate(found[:poles])},
            "support": "inferred",
        },
    }


def make_tree(prerequisites: list[list[int]], studies: list[int], poles: int = 3, tree_id: str = "made") -> Tree:
    """Build a tree: per subtopic the indices of its prerequisites and its number of studies.

    The studies of a subtopic read an axis of its own. Beyond twelve subtopics axes are shared.
    """
    n_axes = min(len(prerequisites), MAX_AXES)
    ways = ["rising", "falling by one step", "falling by two steps"][:poles]
    axes = [
        {
            "id": f"a{i + 1}",
            "question": f"Is question number {i + 1} decided by rising or by falling?",
            "poles": [f"Question number {i + 1} is decided by {way}." for way in ways],
            "actual": 0,
            "settled_by": "paper",
        }
        for i in range(n_axes)
    ]
    subtopics = [
        {
            "id": f"s{i + 1}",
            "name": f"Question {i + 1}",
            "text": f"What decides question number {i + 1}?",
            "prerequisites": [{"id": f"s{j + 1}", "because": "it has to be known first"} for j in needs],
            "hints": [f"Hint {level} towards question {i + 1}." for level in range(1, 5)],
            "studies": [study(f"s{i + 1}{'abc'[k]}", f"a{i % n_axes + 1}", poles) for k in range(studies[i])],
        }
        for i, needs in enumerate(prerequisites)
    ]
    conclusions = [
        {
            "id": f"c{i + 1}",
            "axes": [axis["id"]],
            "texts": {str(pole): text for pole, text in enumerate(axis["poles"])},
            "needs": [[study["id"] for study in subtopics[i]["studies"]]],
        }
        for i, axis in enumerate(axes)
    ]
    return parse_tree(
        json.dumps(
            {
                "format": "inquitree/2",
                "id": tree_id,
                "version": 1,
                "canary": CANARY,
                "paper": {
                    "title": "A made paper",
                    "authors": ["Nobody"],
                    "journal": "Journal of Made Results",
                    "year": 2020,
                    "published": {"date": "2020-01-01", "precision": "year"},
                    "doi": "",
                    "licence": "none",
                },
                "topic": "What decides the questions?",
                "axes": axes,
                "subtopics": subtopics,
                "conclusions": conclusions,
                "provenance": {"sources": [], "support": []},
            }
        ).encode()
    )


def with_rewordings(tree: Tree, count: int) -> Tree:
    """Give every result of every study some other wordings."""
    document = tree.model_dump(mode="json")
    for subtopic in document["subtopics"]:
        for node in subtopic["studies"]:
            for key, wordings in node["result"]["texts"].items():
                wordings += [f"Pole {key} of {node['id']}, seen {i} times." for i in range(count)]
    return parse_tree(json.dumps(document).encode())


def readable(tree: Tree) -> Tree:
    """Give every subtopic a word of its own, so that hashed words tell its text from the others."""
    document = tree.model_dump(mode="json")
    for word, subtopic in zip(WORDS, document["subtopics"], strict=False):
        subtopic["text"] += f" Think of {word}."
    return parse_tree(json.dumps(document).encode())


def with_paraphrases(tree: Tree, paraphrases: Mapping[str, Sequence[str]]) -> Tree:
    """Give subtopics and studies, by id, other wordings."""
    document = tree.model_dump(mode="json")
    for subtopic in document["subtopics"]:
        for node in (subtopic, *subtopic["studies"]):
            node["paraphrases"] = list(paraphrases.get(node["id"], ()))
    return parse_tree(json.dumps(document).encode())


@st.composite
def trees(draw: st.DrawFn, shapes: tuple[str, ...] = SHAPES, max_subtopics: int = 8) -> Tree:
    """Draw a tree of one of the shapes."""
    n = draw(st.integers(1, max_subtopics))
    shape = draw(st.sampled_from(shapes))
    if shape == "independent":
        needs: list[list[int]] = [[] for _ in range(n)]
    elif shape == "chain":
        needs = [[i - 1] if i else [] for i in range(n)]
    else:
        needs = [draw(st.lists(st.integers(0, i - 1), unique=True, max_size=3)) if i else [] for i in range(n)]
        order = draw(st.permutations(range(n)))
        shuffled: list[list[int]] = [[] for _ in range(n)]
        for i, found in enumerate(needs):
            shuffled[order[i]] = sorted(order[j] for j in found)
        needs = shuffled
    studies = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return make_tree(needs, studies, draw(st.integers(2, 3)))
