"""Wordings of results: whether a text is repeated says nothing about the truth of what it says."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from inquitree_gym.inquiry.arrays.env import InquiryBatchEnv
from inquitree_gym.inquiry.engine import Decision, Engine, ObservationKind, Reading, Rules
from inquitree_gym.inquiry.engine.transition import draw_one
from inquitree_gym.inquiry.observations import ObservationRenderer
from inquitree_gym.inquiry.prompts import inquiry_prompts
from inquitree_gym.trees import Tree, builtin_ids, load_tree, parse_tree, synthetic_tree
from tests.strategies import make_tree, with_rewordings

SEEDS, RUNS = range(40), 3
LEVELS = (0, 4, 10)
RULES = {"max_turns": None, "reruns": "match", "threshold": 0.9}
"""With ``reruns="match"`` an observation holds nothing but the study and its result."""

Shown = dict[tuple[int, int, int], tuple[str, int]]
"""Text and outcome by seed, study and run."""


def uneven() -> Tree:
    """Three studies, with 3 wordings of each result, with 2, and with 1."""
    document = with_rewordings(make_tree([[], [0]], [2, 1], tree_id="uneven"), 2).model_dump(mode="json")
    studies = (study for subtopic in document["subtopics"] for study in subtopic["studies"])
    for study, count in zip(studies, (3, 2, 1), strict=True):
        study["result"]["texts"] = {key: texts[:count] for key, texts in study["result"]["texts"].items()}
    return parse_tree(json.dumps(document).encode())


TREES = {
    "uneven": uneven,
    "synthetic": lambda: synthetic_tree(0, {"subtopics": 4}),
    "synthetic, 3 poles": lambda: synthetic_tree(7, {"subtopics": 3, "topology": "chain", "poles": 3}),
    **{name: lambda name=name: load_tree(name) for name in builtin_ids()},
}


def visits(engine: Engine) -> Iterator[tuple[int, int]]:
    """Yield each study with its subtopic, in an order that the prerequisites allow."""
    visited = 0
    while open_ones := [i for i, needs in enumerate(engine.prerequisites) if not (needs & ~visited | visited >> i & 1)]:
        visited |= 1 << open_ones[0]
        yield from ((open_ones[0], study) for study in engine.studies_of[open_ones[0]])


@cache
def made(name: str) -> Tree:
    return TREES[name]()


@cache
def shown_in_text(name: str, level: int) -> Shown:
    """Run every study three times for every seed, and return what the environment in free text shows."""
    tree = made(name)
    engine = Engine(tree, Rules(fake_level=level, **RULES))
    renderer, found = ObservationRenderer(tree, inquiry_prompts(), engine), {}
    for seed in SEEDS:
        event = engine.start(seed)
        for subtopic, study in visits(engine):
            redo = [Reading(decision=Decision.REDO)] * (RUNS - 1)
            course = [Reading(subtopic, 1.0), Reading(study, 1.0), *redo, Reading(decision=Decision.EXPLORE)]
            for reading in course:
                event = engine.advance(event.state, reading)
                if event.kind == ObservationKind.RESULT:
                    found[seed, study, event.state.runs[study]] = renderer.render(event), event.fake
    return found


@pytest.mark.parametrize("name", TREES)
def test_of_two_showings_of_one_outcome_a_fake_is_repeated_just_where_the_true_result_would_be(name: str):
    plain = shown_in_text(name, 0)
    for level in LEVELS:
        shown = shown_in_text(name, level)
        told = 0
        for (seed, study, run), (text, outcome) in shown.items():
            before, outcome_before = shown[seed, study, 1]
            if run > 1 and outcome == outcome_before:
                told += outcome > 0
                true, true_before = plain[seed, study, run][0], plain[seed, study, 1][0]
                assert (text == before) == (true == true_before), (seed, study, run, outcome)
        assert (told > 0) == (level > 0)


def test_a_run_takes_a_wording_by_seed_study_and_run_alone():
    tree = uneven()
    assert [len(study.outcomes[0]) for study in tree.studies] == [3, 2, 1]
    repeated = defaultdict(list)
    engine = Engine(tree, Rules(fake_level=5, **RULES))
    for seed in range(4_000):
        for study, count in enumerate((3, 2, 1)):
            outcomes = {engine.fake_shown(seed, study, run) > 0 for run in (1, 2)}
            wordings = [draw_one(seed, engine.fake_keys[study], run, count) for run in (1, 2)]
            assert set(wordings) <= set(range(count))
            if len(outcomes) == 1:
                repeated[count, *outcomes].append(wordings[0] == wordings[1])
    for (count, _), same in repeated.items():
        share = 1 / count
        assert abs(np.mean(same) - share) <= 4 * math.sqrt(share * (1 - share) / len(same))


class Letters:
    """An embedder of one's own that needs no model: counts of pairs of letters."""

    name, dim, threshold, digest = "pairs of letters", 1024, 0.9, "4" * 64

    def embed(self, texts: list[str]) -> np.ndarray:
        counts = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(counts, texts, strict=True):
            codes = np.frombuffer(text.lower().encode(), np.uint8).astype(int)
            np.add.at(row, (codes[:-1] * 31 + codes[1:]) % self.dim, 1.0)
            row[0] += 1e-3
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.mark.parametrize("name", TREES)
def test_arrays_show_the_same_texts(name: str):
    tree = made(name)
    n, studies = len(tree.subtopics), len(tree.studies)
    rules = {**RULES, "threshold": 0.99}
    redo, explore = n + studies, n + studies + 1
    for level in (0, 7):
        env = InquiryBatchEnv(len(SEEDS), tree=tree, embedder=Letters(), observation="index", fake_level=level, **rules)
        env.reset(seed=list(SEEDS))
        expected, found = shown_in_text(name, level), 0
        for subtopic, study in visits(Engine(tree, Rules(**rules))):
            for run, action in enumerate([subtopic, n + study, *[redo] * (RUNS - 1), explore]):
                env.step(np.full(len(SEEDS), action))
                if 0 < run <= RUNS:
                    assert env.texts() == [expected[seed, study, run][0] for seed in SEEDS]
                    found += 1
        assert found == RUNS * studies
