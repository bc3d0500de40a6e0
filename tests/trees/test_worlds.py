"""Synthetic worlds: valid projection tasks whose signs follow from the procedure as far as the settings say."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.errors import OptionError
from inquitree_gym.projection.tasks import parse_task
from inquitree_gym.projection.worlds import synthetic_world, world_numbers
from inquitree_gym.seeds import hash_words, splitmix64
from inquitree_gym.trees import WorldSettings, synthetic_task
from inquitree_gym.trees.disclosure import LEVELS, ProjectionTask

SEEDS = st.integers(0, 2**63 - 1)
SETTINGS = st.builds(
    WorldSettings,
    claims=st.integers(1, 12) | st.tuples(st.integers(1, 4), st.integers(4, 9)),
    deducible=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
)
FACTS = (
    r"Earlier work has established that a rise in (?P<a>.+) (?P<verb>raises|lowers) (?P<b>the .+)\.",
    r"A previous trial showed that a rise in (?P<a>.+) (?P<verb>increases|decreases) (?P<b>the .+)\.",
    r"It is taken as given that (?P<b>.+) (?P<verb>rises|falls) with a rise in (?P<a>.+)\.",
)
UP = {"raises", "increases", "rises"}
DIRECTED = re.compile(r"\b(raises|lowers|increased?s?|decreased?s?|falls|rises)\b")


def stated(task: ProjectionTask) -> dict[tuple[str, str], int]:
    """The signs that the steps of a procedure state, read from their words."""
    found = [match for step in task.disclosure.procedure for form in FACTS if (match := re.fullmatch(form, step))]
    return {(each["a"], each["b"]): 1 if each["verb"] in UP else -1 for each in found}


def deduced(task: ProjectionTask) -> list[int]:
    """The sign of every claim as the product along a chain of stated links; 0 if none leads to it."""
    links, factor = stated(task), task.claims[0].independent.removeprefix("a rise in ")
    known = {factor: 1}
    for _ in links:
        known |= {b: known[a] * sign for (a, b), sign in links.items() if a in known}
    return [known.get(claim.dependent, 0) for claim in task.claims]


def true_signs(task: ProjectionTask) -> list[int]:
    return [1 if claim.relation == "increases" else -1 for claim in task.claims]


@given(SEEDS, SETTINGS)
@settings(max_examples=60, deadline=None)
def test_a_reader_of_the_procedure_deduces_exactly_the_deducible_signs(seed, chosen):
    task = synthetic_task(seed, chosen)
    numbers = world_numbers(np.array([seed], np.uint64), chosen)
    count = int(numbers.claims[0])
    assert true_signs(task) == numbers.signs[0, :count].tolist()
    assert deduced(task) == (numbers.signs * numbers.deducible)[0, :count].tolist()
    assert not numbers.signs[0, count:].any()
    assert not numbers.deducible[0, count:].any()


@given(SEEDS, SETTINGS)
@settings(max_examples=40, deadline=None)
def test_a_world_is_a_valid_task_in_the_form_of_the_disclosures(seed, chosen):
    task = synthetic_task(seed, chosen)
    assert parse_task(task.model_dump_json().encode()) == task
    told = task.disclosure
    assert len(told.topic.split()) <= 4
    assert len(told.question.split()) <= 9
    assert told.question.endswith("?")
    assert re.fullmatch(r"If .+, then there is no change in .+\.", told.null_hypothesis)
    assert re.fullmatch(r"If .+, then there is an? (in|de)crease in .+\.", told.hypothesis)
    assert re.fullmatch(r"This study finds that .+\.", told.outcome)
    assert not DIRECTED.search(" ".join([*told.texts_of("question"), told.null_hypothesis]))
    assert len({claim.dependent for claim in told.claims}) == len(told.claims)
    for claim in told.claims:
        assert claim.text.removesuffix(".")[1:] in told.outcome
        assert len(claim.contraries) == 1
        assert claim.text not in claim.contraries


@given(SEEDS, SETTINGS, st.data())
@settings(max_examples=40, deadline=None)
def test_no_disclosed_byte_depends_on_a_sign_that_does_not_follow(seed, chosen, data):
    world = synthetic_world(seed, chosen)
    open_effects = [link.effect for link in world.links if not link.is_stated]
    turned = data.draw(st.sets(st.sampled_from(open_effects))) if open_effects else set()
    sign = {variable.short: -1 if variable.short in turned else 1 for variable in world.outcomes}
    links = tuple(link._replace(sign=link.sign * sign.get(link.effect, 1)) for link in world.links)
    signs = tuple(each * sign[variable.short] for each, variable in zip(world.signs, world.outcomes, strict=True))
    one, other = world.task(), replace(world, links=links, signs=signs).task()
    assert [one.disclosure.texts_of(level) for level in LEVELS] == [
        other.disclosure.texts_of(level) for level in LEVELS
    ]
    assert sum(a != b for a, b in zip(one.claims, other.claims, strict=True)) == len(turned)


def test_the_outcome_and_the_hypothesis_say_the_true_signs():
    task = synthetic_task(11, WorldSettings(claims=7))
    signs = true_signs(task)
    assert set(signs) == {1, -1}, "a world without both directions would not tell"
    assert [
        1 if verb == "increases" else -1 for verb in re.findall(r"increases|decreases", task.disclosure.outcome)
    ] == signs
    found = re.findall(r"increase|decrease", task.disclosure.hypothesis)
    assert [1 if verb == "increase" else -1 for verb in found] == signs


def test_a_seed_gives_the_same_bytes_everywhere():
    assert synthetic_task(4).digest == "f9b08b76d058fca78b6c5d1366c392e28ea1043278e2461931b594e495bf3569"
    assert (
        synthetic_task(2**63 - 1, WorldSettings(claims=(2, 9), deducible=0.4)).digest
        == "0596acce4e4a13ba38c4cdd0f0ef36de96934f14b2fc2b2c07a5181d639ce6d0"
    )


def test_worlds_in_numbers_are_those_of_single_seeds():
    chosen = WorldSettings(claims=(1, 50), deducible=0.37)
    seeds = np.array([0, 1, 7, 2**62 + 5, 2**63 - 1], np.uint64)
    together = world_numbers(seeds, chosen)
    for i in range(len(seeds)):
        for all_of, one in zip(together, world_numbers(seeds[i : i + 1], chosen), strict=True):
            np.testing.assert_array_equal(all_of[i], one[0])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_the_share_of_deducible_claims_is_as_set(share):
    numbers = world_numbers(np.arange(20_000, dtype=np.uint64), WorldSettings(claims=3, deducible=share))
    assert set(numbers.deducible.sum(axis=1).tolist()) <= {int(np.floor(3 * share)), int(np.ceil(3 * share))}
    assert numbers.deducible.mean() == pytest.approx(share, abs=0.01)
    np.testing.assert_allclose(numbers.deducible.mean(axis=0), share, atol=0.02)


def test_signs_and_counts_are_drawn_evenly_and_one_without_the_others():
    numbers = world_numbers(np.arange(20_000, dtype=np.uint64), WorldSettings(claims=(2, 5), deducible=0.5))
    assert np.bincount(numbers.claims, minlength=6)[2:] == pytest.approx(5_000, rel=0.06)
    full = numbers.claims == 5
    signs, known = numbers.signs[full].astype(float), numbers.deducible[full].astype(float)
    together = np.corrcoef(np.concatenate([signs, known], axis=1), rowvar=False)
    np.testing.assert_array_less(np.abs(together[:5, 5:]), 0.06)
    np.testing.assert_array_less(np.abs(together[:5, :5] - np.eye(5)), 0.06)
    assert np.abs(signs.mean(axis=0)).max() < 0.06


def test_what_is_stated_of_an_open_claim_tells_nothing_about_its_sign():
    agreement = []
    for seed in range(600):
        world = synthetic_world(seed, WorldSettings(claims=4, deducible=0.0))
        first = {link.effect: link.sign for link in world.links if link.is_stated}
        last = [link for link in world.links if not link.is_stated]
        assert len(last) == 4
        assert [first[link.cause] * link.sign for link in last] == list(world.signs)
        agreement += [first[link.cause] * sign for link, sign in zip(last, world.signs, strict=True)]
    assert abs(np.mean(agreement)) < 4 / np.sqrt(len(agreement))


@pytest.mark.parametrize(
    ("given_settings", "said"),
    [
        ({"claims": 0}, "claims must be an integer from 1 to 50"),
        ({"claims": (5, 51)}, "claims must be an integer from 1 to 50"),
        ({"claims": True}, "claims must be an integer"),
        ({"deducible": 1.2}, "deducible must be a number from 0 to 1, got 1.2"),
        ({"deducible": "all"}, "deducible must be a number from 0 to 1, got 'all'"),
    ],
)
def test_settings_out_of_range_are_refused(given_settings, said):
    with pytest.raises(OptionError, match=said):
        WorldSettings(**given_settings)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4))
def test_hashes_in_arrays_equal_those_of_single_numbers(words):
    hashed = np.zeros(1, np.uint64)
    for word in words:
        hashed = hash_words(hashed, np.array([word], np.uint64))
    assert int(hashed[0]) == splitmix64(*words)
