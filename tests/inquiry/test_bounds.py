"""Random-agent bounds: the exact laws, what is played, and what is shown of both."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from inquitree_gym.baselines import RandomAgent, RandomMenuAgent
from inquitree_gym.cli import app
from inquitree_gym.embeddings import ReaderEmbedder, tree_vectors
from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.inquiry.bounds.distribution import (
    MenuReadings,
    TurnDistribution,
    analytic_mean,
    expected_turns,
    full_chance,
    random_distribution,
    visited_sets,
)
from inquitree_gym.inquiry.bounds.report import LEGEND, bounds_as_plain, bounds_summary, bounds_table, draw_bounds
from inquitree_gym.inquiry.bounds.traversal import (
    AGENTS,
    FLOOR,
    HELD,
    HINTED,
    RANDOM,
    AgentTurns,
    SamplingPlan,
    Traversal,
    TreeTurns,
    ideal_readings,
    measure_topology,
    measure_tree,
    menu_readings,
    misread,
    traverse,
)
from inquitree_gym.inquiry.engine import Engine, Phase, Rules, State
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.menu import CONCLUDE
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from tests.strategies import make_tree, trees

DOCS = Path(__file__).parents[2] / "docs"
INDEPENDENT, CHAIN, FORK = ([0, 0, 0], [0, 1, 2], [0, 1, 1])
"""Prerequisites of three subtopics, as bits."""
shipped = pytest.mark.parametrize("name", builtin_ids())


def chain(n: int) -> list[int]:
    return [1 << (i - 1) if i else 0 for i in range(n)]


def ideal_engine(tree: Tree) -> Engine:
    return Engine(tree, Rules(threshold=0.5, **HINTED))


def real(tree: Tree, embedder: ReaderEmbedder) -> tuple[Engine, MenuReadings]:
    engine = Engine(tree, Rules(threshold=embedder.threshold, **HINTED))
    return engine, menu_readings(engine, tree_vectors(tree, embedder))


def enumerated(engine: Engine) -> dict[int, float]:
    """Return the law of L of ``random`` by following every draw through the engine, whole states and all."""
    readings, law = ideal_readings(engine), defaultdict(float)
    level = {engine.start(0).state: 1.0}
    while level:
        following: dict[State, float] = defaultdict(float)
        for state, p in level.items():
            if state.phase == Phase.CONCLUSION:
                law[state.turn] += p
                continue
            actions = draws_of_random(engine, state)
            for action in actions:
                following[engine.advance(state, readings.at(state)[action]).state] += p / len(actions)
        level = following
    return law


def draws_of_random(engine: Engine, state: State) -> list[int]:
    left = [i for i, visits in enumerate(state.visits) if not visits]
    if state.phase == Phase.TOPIC:
        return left
    if state.phase == Phase.SUBTOPIC:
        return [engine.n + k for k in engine.studies_of[state.subtopic]]
    return [engine.n + len(engine.subtopic_of) + (1 if left else 2)]


@settings(max_examples=30)
@given(tree=trees(max_subtopics=4))
def test_the_law_of_random_is_what_every_draw_through_the_engine_adds_up_to(tree: Tree):
    engine = ideal_engine(tree)
    law = random_distribution(engine.prerequisites)
    found = enumerated(engine)
    assert dict(zip(law.turns.tolist(), law.weights.tolist(), strict=True)) == pytest.approx(found)


@given(tree=trees())
def test_random_stays_within_its_bounds_and_a_chain_is_slowest(tree: Tree):
    n, needs = len(tree.subtopics), ideal_engine(tree).prerequisites
    law, slowest = random_distribution(needs), random_distribution(chain(n))
    assert law.weights.sum() == pytest.approx(1)
    assert 3 * n <= law.turns.min() <= law.turns.max() <= 3 * n + 4 * (n - 1) < n * 11
    assert all(law.above(turns) <= slowest.above(turns) + 1e-12 for turns in range(3 * n, 7 * n))


def test_expected_turns_of_a_choice_and_the_analytic_mean_of_a_graph():
    assert (expected_turns(1), expected_turns(0)) == (1, 5)
    assert expected_turns(0.5) == pytest.approx(sum(0.5**failures for failures in range(5)))
    assert analytic_mean(INDEPENDENT) == 9
    assert analytic_mean(FORK) == pytest.approx(3 * (2 + expected_turns((1 + 1 / 2 + 1 / 2) / 3)))
    assert analytic_mean(CHAIN) == pytest.approx(3 * (2 + expected_turns((1 + 1 / 2 + 1 / 3) / 3)))
    assert analytic_mean([2, 4, 0]) == pytest.approx(analytic_mean(CHAIN))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_the_two_ends_have_closed_forms(n: int):
    slowest, quickest = random_distribution(chain(n)), random_distribution([0] * n)
    assert slowest.mean == pytest.approx(2 * n + sum(expected_turns(1 / left) for left in range(1, n + 1)))
    assert (quickest.turns.tolist(), quickest.sd) == ([3 * n], 0)


def test_too_many_sets_have_no_exact_law():
    assert random_distribution(FORK, max_sets=4) is not None
    assert random_distribution(FORK, max_sets=1) is None
    assert visited_sets(FORK) == [0b000, 0b001, 0b011, 0b101, 0b111]
    assert visited_sets(FORK, max_sets=4) is None
    assert full_chance(ideal_engine(make_tree([[], [0]], [1, 1])), MenuReadings((), (), ()), max_sets=2) is None


def test_distributions_know_their_mean_spread_and_quantiles():
    law = TurnDistribution.from_sample([3, 5, 5, 11])
    assert (law.turns.tolist(), law.weights.tolist(), law.episodes) == ([3, 5, 11], [0.25, 0.5, 0.25], 4)
    assert (law.mean, law.sd) == (6, 3)
    assert [law.quantile(share) for share in (0.05, 0.25, 0.26, 0.75, 0.76, 1)] == [3, 3, 5, 5, 11, 11]
    assert (law.above(5), law.above(11), law.above(2.5)) == (0.25, 0, 1)
    assert law.half == pytest.approx(1.96 * 3 / 3**0.5, abs=1e-3)
    exact = TurnDistribution(law.turns, law.weights)
    assert exact.half == 0
    assert exact.quantile_interval(0.5) == (5, 5)


def test_a_mixture_weighs_its_parts_alike():
    exact, sampled = (
        TurnDistribution(np.array([1, 2]), np.array([0.5, 0.5])),
        TurnDistribution.from_sample([2] * 9 + [4]),
    )
    both = TurnDistribution.mixture([exact, sampled])
    assert both.turns.tolist() == [1, 2, 4]
    assert both.weights == pytest.approx([0.25, 0.7, 0.05])
    assert both.episodes == 10
    assert TurnDistribution.mixture([exact, exact]).episodes is None


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.05, 0.5, 0.95]))
def test_the_interval_of_a_quantile_holds_it_and_narrows(seed: int, share: float):
    rng = np.random.default_rng(seed)
    few, many = (TurnDistribution.from_sample(rng.integers(0, 10_000, size).tolist()) for size in (100, 10_000))
    for law in (few, many):
        low, high = law.quantile_interval(share)
        assert low <= law.quantile(share) <= high
    assert np.subtract(*many.quantile_interval(share)) > np.subtract(*few.quantile_interval(share))


@shipped
def test_on_a_shipped_tree_every_menu_text_is_read_as_itself(name: str, reader: ReaderEmbedder):
    tree = load_tree(name)
    engine, readings = real(tree, reader)
    assert misread(engine, readings) == []
    for k, owner in enumerate(engine.subtopic_of):
        reading = readings.subtopic[owner][engine.n + k]
        assert reading.candidate == k
        assert reading.similarity >= engine.rules.threshold
    assert [reading.decision.name for reading in readings.result[-3:]] == ["REDO", "EXPLORE", "CONCLUDE"]


class Held(RandomMenuAgent):
    """The floor that draws anew where it would conclude too early."""

    needs_privileged = True

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        while (action := super().act(observation, info)) == CONCLUDE and 0 in info["privileged"]["visits"]:
            pass
        return action


@pytest.mark.parametrize("name", builtin_ids()[::5])
def test_what_is_traversed_is_what_the_agent_plays_in_the_environment(name: str, reader: ReaderEmbedder):
    tree = load_tree(name)
    engine, readings = real(tree, reader)
    env = InquiryEnv(tree, embedder=reader, privileged=True, **HINTED)
    players = {RANDOM: RandomAgent(tree), FLOOR: RandomMenuAgent(tree), HELD: Held(tree)}
    for agent, player in players.items():
        for seed in (3, 4):
            path = read_trajectory(play(env, player, seed), tree)
            assert traverse(engine, readings, agent, seed) == Traversal(path.turns, path.coverage == 1)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["paper4", "paper20"])
def test_the_exact_law_agrees_with_what_is_played(name: str, reader: ReaderEmbedder):
    tree, episodes = load_tree(name), 2_000
    engine, readings = real(tree, reader)
    law = random_distribution(engine.prerequisites)
    played = [traverse(engine, readings, RANDOM, seed) for seed in SamplingPlan(episodes, 0).seeds(tree)]
    assert all(each.full for each in played)
    sample = TurnDistribution.from_sample([each.turns for each in played])
    assert set(sample.turns) <= set(law.turns)
    gaps = [abs(law.above(turns) - sample.above(turns)) for turns in law.turns]
    assert max(gaps) < 1.63 / episodes**0.5  # Kolmogorov–Smirnov at 1 %, conservative for whole numbers
    assert abs(law.mean - sample.mean) < 2 * sample.half


@pytest.mark.parametrize("needs", [[[], []], [[], [0]]], ids=["independent", "chain"])
def test_the_chance_of_a_full_traversal_by_hand(needs: list[list[int]]):
    """Two subtopics with a study each, four texts to choose from, read ideally."""
    engine = ideal_engine(make_tree(needs, [1, 1]))
    again = sum((2 / 4) ** failures for failures in range(5)) / 4  # the one visited already; forced moves lead on
    explores = 2 / 3  # to explore or to name the other, against to conclude
    expected = explores * (1 - again) / (1 - again * explores)
    assert full_chance(engine, ideal_readings(engine)) == pytest.approx(expected)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["paper2", "paper5"])
def test_the_chance_of_a_full_traversal_agrees_with_what_is_played(name: str, reader: ReaderEmbedder):
    tree, episodes = load_tree(name), 2_000
    engine, readings = real(tree, reader)
    chance = full_chance(engine, readings)
    played = [traverse(engine, readings, FLOOR, seed).full for seed in SamplingPlan(episodes, 0).seeds(tree)]
    assert abs(np.mean(played) - chance) < 3 * (chance * (1 - chance) / episodes) ** 0.5


def test_the_held_floor_always_ends_with_everything_visited_and_beyond_the_bound():
    engine = ideal_engine(make_tree([[], [0], [0, 1], []], [1, 2, 1, 3]))
    played = [traverse(engine, ideal_readings(engine), HELD, seed) for seed in range(200)]
    assert all(each.full for each in played)
    assert min(each.turns for each in played) >= 12
    assert max(each.turns for each in played) > 44


@pytest.mark.weights
def test_random_is_exact_on_a_tree_and_the_floor_is_sampled(reader: ReaderEmbedder):
    tree = load_tree("paper2")
    exact, floor, held = measure_tree(tree, reader, AGENTS, SamplingPlan(100, 0))
    assert [each.agent for each in (exact, floor, held)] == [RANDOM, FLOOR, HELD]
    assert (exact.fewest_turns, exact.most_turns, exact.subject, exact.n) == (12, 44, "paper2", 4)
    assert exact.distribution.episodes is None
    assert exact.mean.low is None
    assert floor.distribution.episodes == held.distribution.episodes == 100
    assert floor.mean.low < floor.distribution.mean < floor.mean.high
    assert floor.full.mean == pytest.approx(0.4603, abs=1e-3)
    assert exact.full.mean == held.full.mean == 1
    assert exact.above == 0
    assert 0 < floor.above < held.above
    again, other = (measure_tree(tree, reader, [FLOOR], SamplingPlan(100, seed))[0] for seed in (0, 1))
    assert again.distribution.mean == floor.distribution.mean != other.distribution.mean


def test_trees_share_no_seeds():
    one, other = (set(SamplingPlan(50, 0).seeds(load_tree(name))) for name in ("paper2", "paper3"))
    assert len(one) == len(other) == 50
    assert not one & other


def test_a_topology_is_measured_over_trees():
    (slowest,) = measure_topology("chain", 3, 5, [RANDOM], SamplingPlan(5, 0))
    assert slowest.distribution.mean == pytest.approx(6 + sum(expected_turns(1 / left) for left in (1, 2, 3)))
    assert (slowest.mean.trees, slowest.mean.low) == (5, pytest.approx(slowest.mean.mean))
    random, floor, held = measure_topology("dag", 6, 5, AGENTS, SamplingPlan(20, 0))
    assert floor.distribution.episodes == held.distribution.episodes == 100
    for each in (random, floor, held):
        assert len({part.tree for part in each.parts}) == 5
        assert each.mean.low < each.mean.mean < each.mean.high
    other = measure_topology("dag", 6, 5, [RANDOM], SamplingPlan(20, 100))[0]
    assert other.distribution.mean != random.distribution.mean


@pytest.mark.e2e
def test_what_has_no_exact_law_is_sampled_and_says_so():
    (found,) = measure_topology("dag", 60, 1, [RANDOM], SamplingPlan(3, 0))
    assert found.distribution.episodes == 3
    assert list(bounds_table(RANDOM, [found]))[1][3] == "3"
    (floor, _) = measure_topology("independent", 11, 2, [FLOOR], SamplingPlan(3, 0))
    assert not floor.parts[0].full_exact
    assert not bounds_as_plain(floor)["full_exact"]


class Blind:
    """An embedder to which all texts are one; with or without a threshold."""

    name, digest, dim = "blind", "0" * 64, 2

    def __init__(self, threshold: float | None) -> None:
        self.threshold = threshold

    def embed(self, texts: Any) -> Any:
        return np.tile(np.array([[1.0, 0.0]], np.float32), (len(texts), 1))


@pytest.mark.parametrize(
    ("threshold", "said"), [(0.5, "the text of s2 is read as s1"), (None, "no threshold has been calibrated")]
)
def test_an_embedder_that_cannot_be_played_with_is_refused(threshold, said, tmp_path, monkeypatch):
    monkeypatch.setenv("INQUITREE_CACHE", str(tmp_path))
    with pytest.raises(OptionError, match=said):
        measure_tree(load_tree("paper2"), Blind(threshold), [RANDOM], SamplingPlan(2, 0))


def bounds_of(agent: str, *samples: list[int], subject: str = "made") -> AgentTurns:
    parts = [
        TreeTurns(f"{subject}{i}", TurnDistribution.from_sample(sample), 0.5, False, 20.0)
        for i, sample in enumerate(samples)
    ]
    return AgentTurns(subject, 4, agent, tuple(parts))


def test_a_table_has_what_its_agent_needs():
    found = [bounds_of(agent, [12, 44, 46, 58]) for agent in (RANDOM, FLOOR, HELD)]
    start = ["made", "4", "[12, 44]", "4", "40.0 ± 19.3", "17.0", "12", "44", "58"]
    assert list(bounds_table(RANDOM, found))[1] == [*start, "20.0"]
    assert list(bounds_table(FLOOR, found))[1] == [*start, "50.0%", "0.500 ± 0.490"]
    assert list(bounds_table(HELD, found))[1] == [*start, "50.0%"]
    for agent in (RANDOM, FLOOR, HELD):
        heading, row = bounds_table(agent, found)
        assert len(heading) == len(row)


def test_the_summary_is_over_trees():
    found = [bounds_of(FLOOR, [12, 12 + 8 * i], subject=f"t{i}") for i in range(5)]
    heading, row = bounds_summary(found)
    assert heading == ["agent", "trees", "L/n", "stretch", "above", "P(full)"]
    assert row == [FLOOR, "5", "5.00 ± 1.96", "0.25 ± 0.25", "0.00", "0.50"]


def drawn(file: Path) -> bytes:
    by_tree = [bounds_of(agent, [12, 30, 50], subject=name) for name in ("a", "b") for agent in (RANDOM, FLOOR, HELD)]
    by_shape = [bounds_of(agent, [12, 30, 50], subject="chain") for agent in (RANDOM, FLOOR, HELD)]
    draw_bounds(file, by_tree, by_shape)
    return file.read_bytes()


@pytest.mark.e2e
def test_the_picture_is_whole_and_the_same_each_time(tmp_path: Path):
    first = drawn(tmp_path / "bounds.svg")
    assert drawn(tmp_path / "bounds.svg") == first
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert drawn(tmp_path / "bounds.png").startswith(b"\x89PNG")


@pytest.mark.parametrize(("file", "said"), [("x.abc", "its ending is none of"), ("no/x.svg", "no folder")])
def test_a_picture_that_cannot_be_is_refused(file: str, said: str, tmp_path: Path):
    with pytest.raises(InquiTreeError, match=said):
        draw_bounds(tmp_path / file, [bounds_of(RANDOM, [12, 30])], [])


def test_the_page_has_the_exact_laws():
    page = (DOCS / "bounds.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (paper\d+) \| \d+ \| \[.*\] \| exact \| (.*) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == list(builtin_ids())
    for name, shown in rows:
        needs = ideal_engine(load_tree(name)).prerequisites
        law = random_distribution(needs)
        assert law is not None
        values = (
            f"{law.mean:.1f}", f"{law.sd:.1f}", *map(law.quantile, (0.05, 0.5, 0.95)), f"{analytic_mean(needs):.1f}",
        )  # fmt: skip
        assert shown == " | ".join(map(str, values)), name


@pytest.mark.weights
def test_the_page_says_how_many_study_texts_are_taken_for_subtopics(reader: ReaderEmbedder):
    taken = studies = 0
    for name in builtin_ids():
        engine, readings = real(load_tree(name), reader)
        said = readings.topic[engine.n : -3]
        taken += sum(reading.similarity >= engine.rules.threshold for reading in said)
        studies += len(said)
    assert f"{taken} of the {studies} study texts" in (DOCS / "bounds.md").read_text(encoding="utf-8")


def bounds(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bounds", *map(str, arguments)])


@pytest.mark.e2e
def test_the_verb_measures_trees_and_topologies_and_draws(tmp_path: Path):
    figure = tmp_path / "bounds.svg"
    done = bounds("2", "paper2", "--topology", "chain", "--n", "2,3", "--episodes", 100, "--figure", figure, "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    subjects = (("paper2", 4), ("chain", 2), ("chain", 3))
    assert [(each["subject"], each["n"], each["agent"]) for each in found] == [
        (*subject, agent) for subject in subjects for agent in (RANDOM, FLOOR, HELD)
    ]
    assert [each["episodes"] for each in found] == [None, 100, 100] * 3
    assert [each["trees"] for each in found] == [1, 1, 1] + [20] * 6
    assert figure.exists()


def test_the_verb_prints_tables():
    done = bounds("--topology", "independent", "--n", 3, "--agent", "random", "--seed", 5)
    assert done.exit_code == 0
    assert "20 × exact" in done.stdout
    assert FLOOR not in done.stdout.replace(LEGEND, "")
    assert "Over trees" not in done.stdout
    assert "Over trees" in bounds("2", "17", "--agent", "random").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--n", "4"], "name their --topology too"), (["--topology", "ring"], "got 'ring'"),
        (["--topology", "chain", "--n", "four"], "must be integers"), (["--topology", "chain", "--n", "0"], "got 0"),
        (["--topology", "chain", "--n", ","], "one number or more"), (["--agent", "oracle"], "got 'oracle'"),
        (["--embedder", "nobody"], "no embedder is called 'nobody'"),
        (["--figure", "nowhere/bounds.svg"], "no folder"), (["paper99"], "no tree has the id"),
    ],
)  # fmt: skip
def test_a_wrong_use_is_told_before_anything_is_measured(arguments, said, monkeypatch):
    monkeypatch.setattr("inquitree_gym.inquiry.commands.controls.measure_tree", _never)
    monkeypatch.setattr("inquitree_gym.inquiry.commands.controls.measure_topology", _never)
    done = bounds(*arguments)
    assert isinstance(done.exception, InquiTreeError)
    assert said in str(done.exception)


def _never(*arguments: object) -> list[AgentTurns]:
    raise AssertionError("measured")
