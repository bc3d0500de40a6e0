"""Synthetic trees: always sound, always the same, and what they find is a function of the world alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.errors import OptionError
from inquitree_gym.fiction.documents import MAX_SEED, SCIENCES, STREAMS, RandomStream
from inquitree_gym.inquiry.exam import exam_of, exam_return
from inquitree_gym.inquiry.generator.causal_model import Relation, axis_count, draw_model
from inquitree_gym.inquiry.generator.generate import draw_prerequisites
from inquitree_gym.inquiry.generator.text import Measurements
from inquitree_gym.sheets import Sheet
from inquitree_gym.trees import Difficulty, Fault, Tree, dump_tree, parse_tree, synthetic_tree, tree_seed
from inquitree_gym.trees.lint import lint_tree
from inquitree_gym.trees.worlds import worlds

KNOWN = {
    (0, ()): "0c06f8518d9157d854ac3df06a7c00fc44734826bd76f81be536f8f9b9a73747",
    (
        9223372036854775807,
        (("subtopics", 30), ("topology", "layered"), ("poles", 3), ("nearness", 0.3), ("shuffled", True)),
    ): "52b26a5c2e956c48f0c56b6c86398d866c8878c6f741822d015b9e7f27640d26",
}
"""Digests by seed and settings: a change here is a change of every synthetic tree, and takes a new version."""
SPLITS = ("train", "test")
TOPOLOGIES = ("independent", "chain", "dag", "layered")
NUMBER = re.compile(r"(?<![\w.])[+-]?\d+(?:\.\d+)?")


@st.composite
def difficulties(draw: st.DrawFn, most: int = 14) -> Difficulty:
    poles = draw(st.integers(2, 3))
    topology = draw(st.sampled_from((*TOPOLOGIES, "mixed")))
    fewest = draw(st.integers(1, most))
    return Difficulty(
        subtopics=(fewest, draw(st.integers(fewest, most))),
        topology=topology,
        density=None if topology in ("independent", "chain") else draw(st.floats(0, 1)),
        studies=draw(st.integers(1, 3)),
        poles=poles,
        null_share=draw(st.floats(0, 1 / poles)),
        effect=draw(st.floats(0.05, 4)),
        noise=draw(st.floats(0, 0.3)),
        nearness=draw(st.sampled_from((0.0, 0.5, 1.0))),
        shuffled=draw(st.booleans()),
        fields=tuple(draw(st.sets(st.sampled_from(tuple(SCIENCES)), min_size=1))),
    )


def relations(count: int, **settings_: Any) -> Iterator[Relation]:
    """Yield the relations of so many hidden models."""
    for seed in range(count):
        parents = [(), (0,), (1,), (1, 2), (2, 3), (2, 3, 4)]
        yield from draw_model(parents, Difficulty(**settings_), seed).relations


ADVICE = {"T302", "T901", "T902", "T908", "T909", "T911", "T913"}
"""Rules for authors of trees of papers, which small, large or noiseless synthetic trees break."""


def errors(faults: list[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.severity == "error" and fault.code not in ADVICE]


def values(words: dict[str, str]) -> dict[str, float]:
    return {name: float(word) for name, word in words.items() if NUMBER.fullmatch(word)}


def scaled(change: float) -> float:
    return 1 + change if change >= 0 else 1 / (1 - change)


@pytest.mark.e2e
@settings(max_examples=40)
@given(st.integers(0, MAX_SEED), difficulties())
def test_a_synthetic_tree_passes_every_check_that_needs_no_embedder(seed: int, difficulty: Difficulty):
    tree = synthetic_tree(seed, difficulty)
    assert errors(lint_tree(tree)) == []
    assert parse_tree(dump_tree(tree).encode()) == tree
    fewest, most = difficulty.subtopics
    assert fewest <= len(tree.subtopics) <= most
    assert len(tree.axes) == axis_count(len(tree.subtopics))
    assert {len(axis.poles) for axis in tree.axes} == {difficulty.poles}
    readers = [[study.id for study in tree.studies if axis.id in study.result.axes] for axis in tree.axes]
    homes = [{name.rstrip("abcdefghijklmnopqrstuvwxyz") for name in found} for found in readers]
    assert {len(found) for found in readers} == {difficulty.studies + (len(tree.subtopics) > 1)}
    assert {len(found) for found in homes} == {min(2, len(tree.subtopics))}, "once more in another subtopic"
    assert any(not study.result.axes for study in tree.studies), "a control"
    assert {axis for item in tree.conclusions for axis in item.axes} == {axis.id for axis in tree.axes}


@pytest.mark.e2e
@pytest.mark.parametrize("subtopics", [1, 2, 150])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_any_number_of_subtopics_makes_a_sound_tree(topology, subtopics):
    tree = synthetic_tree(11, {"topology": topology, "subtopics": subtopics})
    assert len(tree.subtopics) == subtopics
    assert errors(lint_tree(tree)) == []


@pytest.mark.weights
def test_ladders_rise_siblings_differ_and_nothing_leaks_under_the_default_embedder(minilm: MiniLMEmbedder):
    for seed in (1, 4):
        assert errors(lint_tree(synthetic_tree(seed, {"subtopics": 5}), minilm.embed)) == []


@pytest.mark.e2e
def test_a_tree_is_the_same_on_every_platform_and_in_every_process():
    code = """
from inquitree_gym.trees import synthetic_tree
import json, sys
print(json.dumps([synthetic_tree(seed, dict(settings)).digest for seed, settings in json.loads(sys.argv[1])]))
"""
    calls = json.dumps([[seed, list(map(list, chosen))] for seed, chosen in KNOWN])
    for hash_seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code, calls], env=env, check=True, capture_output=True, text=True)
        assert dict(zip(KNOWN, json.loads(done.stdout), strict=True)) == KNOWN


def test_the_source_of_a_tree_names_the_call_that_makes_it_again():
    tree = synthetic_tree(90, {"subtopics": [2, 5], "topology": "chain", "fields": ["weather"]})
    (source,) = tree.provenance.sources
    assert source.address.startswith("generated:")
    query = parse_qs(urlsplit(source.address).query)
    assert synthetic_tree(int(query["seed"][0]), json.loads(query["difficulty"][0])) == tree
    assert tree.paper.doi == ""
    assert {support.strength for support in tree.provenance.support} == {"unconfirmed"}


@pytest.mark.e2e
def test_train_and_test_never_share_a_tree():
    seeds = {split: {tree_seed(number, split) for number in (*range(50), 2**62 - 1, 2**64 - 1)} for split in SPLITS}
    assert seeds["train"].isdisjoint(seeds["test"])
    assert all(seed % 2 == 0 for seed in seeds["train"])
    assert all(seed % 2 == 1 for seed in seeds["test"])
    assert max(map(max, seeds.values())) <= MAX_SEED
    train, test = (
        {subtopic.text for seed in sorted(found)[:20] for subtopic in synthetic_tree(seed).subtopics}
        for found in seeds.values()
    )
    assert train.isdisjoint(test)


@pytest.mark.e2e
def test_a_prerequisite_is_a_causal_need():
    for seed in range(30):
        settings_ = Difficulty(subtopics=12, topology="layered", density=0.8)
        tree = synthetic_tree(seed, settings_)
        parents = [[int(name[1:]) - 1 for name in subtopic.requires] for subtopic in tree.subtopics]
        model = draw_model([tuple(own) for own in parents], settings_, seed)
        for subtopic, relation, own in zip(tree.subtopics, model.relations, parents, strict=True):
            established = [model.relations[j].outcome for j in own]
            assert [cause for cause in relation.causes if not cause.is_factor] == established
            assert all(cause.short in subtopic.text for cause in established)
            assert relation.outcome.thing in subtopic.text


@given(st.integers(1, 60), st.sampled_from(TOPOLOGIES), st.floats(0, 1), st.integers(0, 2**32))
def test_no_prerequisite_is_implied_by_another_and_each_comes_before(count, topology, density, seed):
    parents = draw_prerequisites(count, topology, density, RandomStream(seed, "shape"))
    assert len(parents) == count
    ancestors: list[set[int]] = []
    for i, own in enumerate(parents):
        assert all(j < i for j in own)
        assert not any(j in ancestors[k] for j in own for k in own)
        ancestors.append(set(own).union(*(ancestors[j] for j in own)))
    if topology in ("independent", "chain"):
        assert [len(own) for own in parents] == [int(topology == "chain" and i > 0) for i in range(count)]


@pytest.mark.e2e
@settings(max_examples=20)
@given(st.integers(0, MAX_SEED), difficulties(8))
def test_every_fixed_sheet_is_worth_nothing_over_all_worlds(seed: int, difficulty: Difficulty):
    tree = synthetic_tree(seed, difficulty)
    exam = exam_of(tree)
    sheet = Sheet(tuple(0 for _ in tree.conclusions))
    total = sum(exam_return(exam, sheet, world, [1.0] * len(tree.axes)) for world in worlds(tree))
    assert total == pytest.approx(0, abs=1e-9)


@pytest.mark.e2e
@pytest.mark.parametrize("poles", [2, 3])
def test_every_effect_is_as_often_one_pole_as_another(poles: int):
    found = [Counter() for _ in range(poles)]
    for relation in relations(1_500, poles=poles, null_share=0.15):
        effects = [f"{relation.kind} {mechanism.effect}" for mechanism in relation.mechanisms]
        assert len(set(effects)) == poles
        for place, effect in enumerate(effects):
            found[place][effect] += 1
    for effect in set().union(*found):
        counts = [each[effect] for each in found]
        assert max(counts) - min(counts) < 7 * np.mean(counts) ** 0.5, effect


@pytest.mark.e2e
@pytest.mark.parametrize("null_share", [0.0, 0.1, 0.5])
def test_null_effects_have_their_share(null_share: float):
    found = relations(500, null_share=null_share)
    drawn = [mechanism.effect == "null" for each in found for mechanism in each.mechanisms]
    assert np.mean(drawn) == pytest.approx(null_share, abs=0.03 if null_share else 0)


def test_beyond_ten_subtopics_some_relations_hold_in_every_world():
    for count, axes in ((1, 1), (8, 8), (9, 8), (10, 8), (11, 11), (40, 12)):
        assert len(synthetic_tree(5, {"subtopics": count}).axes) == axes


def test_results_are_what_the_model_predicts():
    """Without noise a result is the resting value, changed as the mechanism of its pole says."""
    for number, relation in enumerate(relations(40, noise=0)):
        measurements = Measurements(relation, RandomStream(number, "numbers"))
        for mechanism in relation.mechanisms:
            read, base = values(measurements.words(mechanism, 40)), relation.outcome.base
            assert read["c"] == base
            if relation.kind in ("linear", "threshold"):
                expected = {"t": mechanism.response(1.0)}
            elif relation.kind == "mediation":
                free, clamped = mechanism.response(1.0, 1.0), mechanism.response(1.0, 0.0)
                expected = {"t": free, "b": clamped, "h": free - clamped}
            elif relation.kind == "moderation":
                changes = [mechanism.response(1.0, level) for level in (0.0, 1.0)]
                assert [read["p1"], read["p2"]] == [round(100 * (scaled(change) - 1)) for change in changes]
                expected = {}
            else:
                expected = {"t": mechanism.response(*[1.0] * len(relation.causes))}
            for name, change in expected.items():
                assert read[name] == pytest.approx(base * scaled(change), abs=0.051), (relation.kind, mechanism)


def test_a_step_is_found_where_it_is():
    steps = [relation for relation in relations(40, noise=0, null_share=0) if relation.kind == "threshold"]
    for relation in steps:
        for mechanism in relation.mechanisms:
            read = values(Measurements(relation, RandomStream(0, "numbers")).words(mechanism, 40))
            top = relation.causes[0].base
            assert mechanism.response(read["hi"] / top) == mechanism.response(1.0) != 0
            assert mechanism.response(read["lo"] / top) == 0


def test_studies_and_fields_are_taken_from_their_settings():
    tree = synthetic_tree(8, {"studies": 3})
    own = Counter(axis for study in tree.studies for axis in study.result.axes)
    assert set(own.values()) == {4}
    several = synthetic_tree(8, {"studies": (1, 3), "subtopics": 12})
    assert set(Counter(axis for study in several.studies for axis in study.result.axes).values()) == {2, 3, 4}
    subjects = {synthetic_tree(seed, {"fields": ("weather", "botany")}).paper.title for seed in range(20)}
    assert {title.split(": ")[1].split(" of ")[0] for title in subjects} == {"winds, clouds and seas", "plants"}


def test_a_shuffled_tree_is_the_same_graph_in_another_order():
    tree, other = (synthetic_tree(6, {"subtopics": 20, "shuffled": shuffled}) for shuffled in (False, True))

    def edges(tree: Tree) -> set[tuple[str, str]]:
        texts = {subtopic.id: subtopic.text for subtopic in tree.subtopics}
        return {(texts[name], subtopic.text) for subtopic in tree.subtopics for name in subtopic.requires}

    def backward(tree: Tree) -> int:
        place = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
        return sum(place[name] > place[subtopic.id] for subtopic in tree.subtopics for name in subtopic.requires)

    assert edges(tree) == edges(other)
    assert backward(tree) == 0 < backward(other)
    assert {study.outcomes for study in tree.studies} == {study.outcomes for study in other.studies}


def test_every_name_of_a_tree_is_its_own_and_rarely_one_of_another():
    seen: list[set[str]] = []
    for seed in range(120):
        model = draw_model([(), (), (0,), (1,), (2, 3)], Difficulty(), seed)
        variables = [relation.outcome for relation in model.relations]
        variables += [cause for relation in model.relations for cause in relation.causes if cause.is_factor]
        names = [variable.short for variable in variables]
        assert len(set(names)) == len(names)
        seen.append({variable.full for variable in variables})
    assert sum(not one.isdisjoint(other) for one, other in combinations(seen, 2)) == 0


def test_items_ask_for_one_axis_or_two_and_need_all_that_reads_them():
    tree = synthetic_tree(17, {"poles": 3, "subtopics": 12})
    assert {len(item.axes) for item in tree.conclusions} == {1, 2}
    for item in tree.conclusions:
        assert len(set(item.options)) == 3 ** len(item.axes)
        for axis, group in zip(item.axes, item.needs, strict=True):
            assert set(group) == {study.id for study in tree.studies if axis in study.result.axes}


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"subtopics": 0}, "subtopics must be an integer from 1 to 1,000"),
        ({"subtopics": (5, 3)}, "pair"),
        ({"subtopics": True}, "subtopics"),
        ({"subtopics": (1, 2, 3)}, "subtopics"),
        ({"topology": "ring"}, "topology must be one of"),
        ({"density": 1.5, "topology": "layered"}, "density must be a number from 0 to 1"),
        ({"density": 0.5, "topology": "chain"}, "density has no effect on the topology 'chain'"),
        ({"studies": 4}, "studies must be an integer from 1 to 3"),
        ({"shuffled": 1}, "shuffled must be True or False"),
        ({"poles": 1}, "poles must be an integer from 2 to 3"),
        ({"poles": 2.0}, "poles"),
        ({"null_share": 0.6}, "null_share must be at most 1/poles = 0.500"),
        ({"null_share": 0.4, "poles": 3}, "0.333"),
        ({"effect": 0}, "effect must be a number from 0.05 to 4"),
        ({"noise": float("nan")}, "noise must be a number from 0 to 0.3"),
        ({"nearness": "high"}, "nearness must be a number"),
        ({"fields": ()}, "fields must be a sequence of one or more of"),
        ({"fields": ("botany", "alchemy")}, "fields"),
        ({"fields": "botany"}, "fields"),
        ({"subtopic": 3}, "unknown setting 'subtopic' (did you mean 'subtopics'?)"),
        ([("subtopics", 3)], "difficulty must be a Difficulty or a mapping"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(settings_, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        synthetic_tree(0, settings_)


@pytest.mark.parametrize("seed", [-1, MAX_SEED + 1, 1.0, True, "1"])
def test_a_seed_out_of_range_is_refused(seed):
    with pytest.raises(OptionError, match=r"integer from 0 to 2\^63 - 1"):
        synthetic_tree(seed)


def test_draws_are_even_and_streams_differ():
    stream = RandomStream(7, "world")
    assert np.mean([stream.uniform() for _ in range(4_000)]) == pytest.approx(0.5, abs=0.03)
    assert Counter(stream.below(3) for _ in range(3_000)).most_common()[-1][1] > 900
    assert {stream.between(2, 4) for _ in range(100)} == {2, 3, 4}
    bells = [stream.bell() for _ in range(4_000)]
    assert (np.mean(bells), np.std(bells)) == (pytest.approx(0, abs=0.06), pytest.approx(1, abs=0.05))
    assert max(map(abs, bells)) <= 3
    assert sorted(stream.shuffled(range(9))) == list(range(9))
    assert len(
        {RandomStream(seed, stream).uniform() for stream in STREAMS for seed in (0, 1, 2**32, 2**32 + 1)}
    ) == 4 * len(STREAMS)
    assert all(one != other for one, other in pairwise(RandomStream(7, stream).uniform() for stream in STREAMS))


def test_the_page_shows_a_tree_as_it_is():
    page = " ".join((Path(__file__).parents[2] / "docs" / "synthetic.md").read_text(encoding="utf-8").split())
    subtopic = synthetic_tree(24, {"subtopics": 3, "topology": "chain"}).subtopics[-1]
    study = subtopic.studies[0]
    shown = (subtopic.text, study.text, *(wordings[0] for wordings in study.outcomes))
    assert all(text in page.replace(" > ", " ") for text in shown)
    assert [name for name in (*Difficulty.names(), *SCIENCES) if f"`{name}`" not in page.replace('"', "")] == []
