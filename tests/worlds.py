"""Research trees with worlds for tests: any axes, results that read none, one or two, and items for each axis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Any

from hypothesis import strategies as st

from inquitree_gym.inquiry.engine import Engine, Rules
from inquitree_gym.trees import CANARY, Tree, parse_tree

Axes = Sequence[int]
"""Indices of axes."""
OUTCOMES = ("rose", "fell", "held")
WOODS = ("alder", "birch", "cedar", "hazel", "larch", "maple", "rowan")


def keys(poles: Sequence[int], axes: Axes) -> list[str]:
    return ["".join(map(str, each)) for each in product(*(range(poles[axis]) for axis in axes))]


def told(axes: Axes, key: str) -> str:
    """The finding of a key, without a digit."""
    return " and ".join(f"reading {chr(65 + axis)} {OUTCOMES[int(pole)]}" for axis, pole in zip(axes, key, strict=True))


def node(identifier: str, text: str) -> dict[str, Any]:
    words = text.split()
    hints = [" ".join(["Think, step by step, of", *words[: len(words) * level // 4]]) for level in range(1, 5)]
    return {"id": identifier, "text": text, "paraphrases": [f"In other words: {text}"], "hints": hints}


def study(identifier: str, poles: Sequence[int], axes: Axes) -> dict[str, Any]:
    forms = ("In the first run, {}.", "On a second run, {}.", "In some third run, {}.")
    texts = {key: [form.format(told(axes, key) or "all held") for form in forms] for key in keys(poles, axes)}
    names = [f"a{axis + 1}" for axis in axes]
    result = {"axes": names, "texts": texts, "support": "sheet"}
    return node(identifier, f"Protocol {identifier} measures the outcome twice.") | {"result": result}


def world_document(
    poles: Sequence[int], studies: Sequence[Sequence[Axes]], items: Sequence[Axes], tree_id: str = "made"
) -> dict[str, Any]:
    """A document with ``poles[i]`` poles on axis i: per subtopic and study, and per item, the axes that it reads.

    Subtopics form a chain, actual poles alternate, and an item needs, for each of its axes, any study that reads it.
    """
    subtopics = []
    for i, group in enumerate(studies):
        found = [study(f"s{i + 1}{chr(97 + k)}", poles, axes) for k, axes in enumerate(group)]
        because = [{"id": f"s{i}", "because": "It uses what the subtopic before measures."}] if i else []
        name = {"name": f"Question {i + 1}", "prerequisites": because, "studies": found}
        subtopics.append(
            node(f"s{i + 1}", f"Which readings does {WOODS[i % len(WOODS)]} question {i + 1} find?") | name
        )
    named = {f"s{i + 1}{chr(97 + k)}": axes for i, group in enumerate(studies) for k, axes in enumerate(group)}
    readers = [[name for name, axes in named.items() if axis in axes] for axis in range(len(poles))]
    conclusions = [
        {
            "id": f"c{i + 1}",
            "axes": [f"a{axis + 1}" for axis in axes],
            "texts": {key: f"Everywhere {told(axes, key)}." for key in keys(poles, axes)},
            "needs": [readers[axis] for axis in axes],
        }
        for i, axes in enumerate(items)
    ]
    return {
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
        "topic": "What do the readings do?",
        "axes": [
            {
                "id": f"a{i + 1}",
                "question": f"What does reading {i + 1} do?",
                "poles": [f"it {OUTCOMES[pole]}" for pole in range(count)],
                "actual": i % 2,
                "settled_by": "data",
            }
            for i, count in enumerate(poles)
        ],
        "constants": [],
        "subtopics": subtopics,
        "conclusions": conclusions,
        "provenance": {"sources": [], "support": []},
    }


def clean_document() -> dict[str, Any]:
    """A document without any fault: four subtopics, five axes, one result of two axes and three controls."""
    layout = [[[1], [1], [0], []], [[1], [0], [3], [0, 3], []], [[2], [2], [3], [4]], [[4], [4], [2], []]]
    document = world_document([2, 2, 3, 2, 2], layout, [[0], [0, 1], [2], [3], [4]])
    document["subtopics"][2]["prerequisites"][0]["id"] = "s1"
    document["subtopics"][3]["prerequisites"].insert(0, {"id": "s2", "because": "It uses the map."})
    nodes = [each for subtopic in document["subtopics"] for each in (subtopic, *subtopic["studies"])]
    support = [
        {"node": each["id"], "sources": [], "strength": "unconfirmed"} for each in nodes + document["conclusions"]
    ]
    document["provenance"] = {"tier": "A", "sources": [], "support": support}
    return document


def read(document: dict[str, Any]) -> Tree:
    return parse_tree(json.dumps(document).encode(), "broken.json")


@st.composite
def world_trees(draw: st.DrawFn, max_axes: int = 6, binary: int = 0) -> Tree:
    """Draw a tree with at least ``binary`` axes of two poles."""
    poles = draw(st.lists(st.integers(2, 3), min_size=max(1, binary), max_size=max_axes))
    poles = draw(st.permutations([2] * binary + poles[binary:]))
    axis = st.integers(0, len(poles) - 1)
    some = st.lists(axis, unique=True, max_size=2)
    studies = draw(st.lists(st.lists(some, min_size=1, max_size=3), min_size=1, max_size=4))
    studies.append([[index] for index in range(len(poles))])
    items = [[index] for index in range(len(poles))] + [axes for axes in draw(st.lists(some, max_size=2)) if axes]
    return read(world_document(poles, studies, items, draw(st.sampled_from(["made", "other", "third"]))))


def draw_world(tree: Tree, which: str, seed: int) -> tuple[int, ...]:
    """Return the world that an episode with ``seed`` is played in."""
    return Engine(tree, Rules(threshold=0.0, world=which)).start(seed).state.world
