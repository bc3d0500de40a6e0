"""Logs read again: against the environment itself, and against whoever might have gone on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inquitree_gym.analysis.aggregate import as_plain
from inquitree_gym.analysis.load import MissingEpisode
from inquitree_gym.analysis.rethreshold import (
    GRID,
    RematchedEpisode,
    coverage_bounds,
    rematch_episode,
    rematch_run,
    threshold_for,
)  # fmt: skip
from inquitree_gym.baselines import BaselineAgent, RandomMenuAgent, ReplayAgent
from inquitree_gym.embeddings import MiniLMEmbedder, tree_vectors
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.engine import Decision, Engine, Phase, Reading, Rules, State
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.errors import LogError, OptionError
from inquitree_gym.log import Episode
from inquitree_gym.report.rethreshold import (
    changed_turns,
    changes_table,
    rematch_chart,
    rematch_summaries,
    rematch_table,
    threshold_curve,
)  # fmt: skip
from inquitree_gym.rollout import play
from inquitree_gym.runner.run import run_study
from inquitree_gym.runner.specs import EpisodeSpec
from inquitree_gym.runner.study import StudyConfig, make_study
from inquitree_gym.trees import Tree, load_tree
from tests.report.html import Page
from tests.scoring.test_trajectory import enter, episode_of
from tests.strategies import make_tree, trees

CELL = EpisodeSpec("random-menu", "paper8", 4, 0)
RULES = [
    {}, {"explore": "direct"}, {"candidates": "admissible", "study_turn": True}, {"on_last_hint": "repeat"},
    {"bare_decisions": False, "feedback": "reason", "fake_key": 1}, {"rules": "paper"},
]  # fmt: skip


class LetterEmbedder:
    """Another real embedder: how often each letter stands in a text."""

    name, digest, dim, threshold = "letters", "11" * 32, 128, None

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked = list(texts)
        return unit_rows(np.array([[text.lower().count(chr(code)) for code in range(128)] for text in texts], float))


@pytest.fixture(scope="module")
def paper() -> Tree:
    return load_tree("paper8")


def played(paper: Tree, minilm: MiniLMEmbedder, seed: int = 0, **rules) -> Episode:
    env = InquiryEnv(paper, embedder=minilm, **{"fake_level": 4, "max_turns": 30, **rules})
    return play(env, RandomMenuAgent(paper), seed)


# Against the environment


def first_difference(episode: Episode, env: InquiryEnv) -> int | None:
    """Play the logged actions in an environment that reads otherwise; return the first turn that leads elsewhere."""
    again = play(env, _Stubborn(episode.actions), episode.header.seed)
    for one, other in zip(episode.turns, again.turns, strict=False):
        shown = [
            (t.event.kind, t.event.state, t.event.node, t.event.fake, t.event.limit, t.event.hint_level)
            for t in (one, other)
        ]
        if shown[0] != shown[1]:
            return one.turn
    return None


class _Stubborn(BaselineAgent):
    """Says its actions in turn, and something unreadable once it has no more."""

    def __init__(self, actions: Sequence[str]) -> None:
        super().__init__()
        self._actions = actions

    def act(self, observation, info):
        return self._actions[info["turn"]] if info["turn"] < len(self._actions) else "?"


@pytest.mark.e2e
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("threshold", [0.2, 0.44, 0.46, 0.7])
def test_the_first_departure_is_where_the_environment_departs(paper, minilm, rules, threshold):
    for seed in range(3):
        episode = played(paper, minilm, seed, **rules)
        env = InquiryEnv(paper, embedder=minilm, **{**episode.header.rules, "threshold": threshold})
        turn = rematch_episode(episode, tree_vectors(paper, minilm), CELL).departs(threshold)
        assert (turn and turn.turn) == first_difference(episode, env)


@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.97])
def test_another_embedder_reads_as_the_environment_does_with_it(paper, minilm, threshold):
    letters = LetterEmbedder()
    episode = played(paper, minilm)
    env = InquiryEnv(paper, embedder=letters, **{**episode.header.rules, "threshold": threshold})
    again = rematch_episode(episode, tree_vectors(paper, letters), CELL)
    turn = again.departs(threshold)
    assert (turn and turn.turn) == first_difference(episode, env)
    assert len({each.similarity for each in again.turns}) > 2


def test_read_by_its_own_embedder_at_its_own_threshold_nothing_changes_and_nothing_is_embedded(paper, minilm):
    class Named(LetterEmbedder):
        digest = minilm.digest

        def embed(self, texts):
            raise AssertionError("nothing is to be embedded")

    for rules in RULES:
        again = rematch_episode(played(paper, minilm, **rules), tree_vectors(paper, Named()), CELL)
        assert again.turns
        assert again.departs(0.45) is None
        assert list(changed_turns([again], 0.45)) == []
        assert again.bounds(0.45) == (again.coverage, again.coverage)


def test_what_an_episode_needs_is_embedded_in_one_batch(paper, minilm):
    env = InquiryEnv(paper, embedder=minilm, max_turns=8)
    said = ReplayAgent([f"Something new, number {i}, is proposed" for i in range(8)] + ["1. It rose."])
    letters = LetterEmbedder()
    rematch_episode(play(env, said, 0), tree_vectors(paper, letters), CELL)
    assert len(letters.asked) == 8


# Bounds


def wander(engine: Engine, state: State, draw: st.DataObject) -> Iterator[State]:
    """Go on from a state at random."""
    while state.phase < Phase.CONCLUSION and state.turn < 60:
        choices = engine.candidates(state) or (-1,)
        reading = Reading(
            draw.draw(st.sampled_from(choices)),
            draw.draw(st.sampled_from([0.0, 1.0])),
            draw.draw(st.sampled_from(list(Decision))),
        )
        if state.phase != Phase.RESULT:
            reading = reading._replace(decision=Decision.NONE)
        state = engine.advance(state, reading).state
        yield state


def best(engine: Engine, state: State) -> State:
    """Go on without a failure, always to a subtopic not yet seen, and return where that ends."""
    return [state, *best_way(engine, state)][-1]


def best_way(engine: Engine, state: State) -> Iterator[State]:
    while state.phase < Phase.CONCLUSION and state.visited.bit_count() < engine.n:
        if state.phase == Phase.SUBTOPIC:
            reading = Reading(engine.studies_of[state.subtopic][0], 1.0)
        else:
            fresh = next(i for i in engine.admissible(state) if not state.visited >> i & 1)
            at_result = state.phase == Phase.RESULT
            reading = Reading(fresh, 1.0, Decision.EXPLORE if at_result else Decision.NONE)
        state = engine.advance(state, reading).state
        yield state


@settings(max_examples=60)
@given(
    tree=trees(max_subtopics=6), draw=st.data(), explore=st.sampled_from(["hub", "direct"]), study_turn=st.booleans(),
    preset=st.sampled_from(["default", "paper"]), limit=st.one_of(st.none(), st.integers(1, 40)),
)  # fmt: skip
def test_no_way_on_leaves_the_bounds_and_the_best_one_reaches_the_upper(tree, draw, explore, study_turn, preset, limit):
    own = {"threshold": 0.5, "explore": explore, "study_turn": study_turn, "max_turns": limit}
    rules = Rules.preset(preset).override(own)
    engine = Engine(tree, rules)
    states = [engine.start(0).state, *wander(engine, engine.start(0).state, draw)]
    for state in states[:: max(1, len(states) // 4)]:
        low, high = coverage_bounds(engine, state)
        assert low <= states[-1].visited.bit_count() / engine.n <= high
        assert best(engine, state).visited.bit_count() / engine.n == high


@pytest.mark.parametrize("study_turn", [False, True])
@pytest.mark.parametrize("explore", ["hub", "direct"])
def test_the_upper_bound_is_reached_from_everywhere_on_the_best_way(explore: str, study_turn: bool):
    tree = make_tree([[], [0], [1]], [1, 1, 1])
    for limit in range(1, 14):
        engine = Engine(tree, Rules(threshold=0.5, explore=explore, study_turn=study_turn, max_turns=limit))
        for state in (engine.start(0).state, *best_way(engine, engine.start(0).state)):
            assert best(engine, state).visited.bit_count() / engine.n == coverage_bounds(engine, state).high


@pytest.mark.weights
def test_an_episode_that_departs_has_the_bounds_of_the_moment_after(paper, minilm):
    episode = played(paper, minilm, seed=1)
    again = rematch_episode(episode, tree_vectors(paper, minilm), CELL)
    turn = again.departs(0.97)
    assert turn is not None
    low, high = again.bounds(0.97)
    before = {t.event.node for t in episode.turns[: turn.turn - 1] if t.event.kind == "subtopic"}
    entered = len(before) + turn.refused.outcome.startswith("forced s")
    assert low in (len(before) / 5, entered / 5)
    assert low <= high


# What is refused


@pytest.mark.weights
def test_a_log_that_does_not_follow_its_own_rules_is_refused(paper, minilm):
    episode = played(paper, minilm)
    header = episode.header.model_copy(update={"rules": {**episode.header.rules, "threshold": 0.99}})
    with pytest.raises(LogError, match="contradicts the log's own rules"):
        rematch_episode(Episode(header, episode.turns, episode.footer), tree_vectors(paper, minilm), CELL)


def test_a_log_that_names_no_candidate_is_refused(paper, minilm):
    episode = played(paper, minilm)
    first = episode.turns[0]
    odd = first.model_copy(update={"reading": first.reading.model_copy(update={"candidate": "s99"})})
    with pytest.raises(LogError, match="names 's99', which was no candidate"):
        rematch_episode(Episode(episode.header, (odd,), episode.footer), tree_vectors(paper, minilm), CELL)


def test_another_version_of_the_tree_is_refused(paper, minilm):
    with pytest.raises(LogError, match="another version of paper8"):
        rematch_episode(episode_of(make_tree([[]], [1]), enter("s1")), tree_vectors(paper, minilm), CELL)


def test_thresholds(minilm):
    assert threshold_for(minilm, None) == 0.45
    assert threshold_for(LetterEmbedder(), 0.3) == 0.3
    with pytest.raises(OptionError, match=r"no threshold has been calibrated for the embedder 'letters'.*--threshold"):
        threshold_for(LetterEmbedder(), None)
    with pytest.raises(OptionError, match=r"from -1 to 1, not 1\.5"):
        threshold_for(minilm, 1.5)


# Runs


@pytest.fixture(scope="module")
def study() -> StudyConfig:
    return make_study(agents=("random-menu", "oracle"), trees=("paper8",), fake_levels=(4,), seeds=3, threshold=0.4)


@pytest.fixture(scope="module")
def found(study: StudyConfig, tmp_path_factory) -> list[RematchedEpisode]:
    folder = tmp_path_factory.mktemp("run")
    run_study(study, folder)
    torn = folder / "episodes" / "paper8_oracle_f4_s2.jsonl"
    torn.write_bytes(torn.read_bytes()[:-5])
    told: list[EpisodeSpec] = []
    again = rematch_run(folder, progress=told.append)
    assert len(told) == 6
    return again


def test_whole_episodes_of_a_run_are_read_again(study: StudyConfig, found: list[RematchedEpisode]):
    assert [each.spec.agent for each in found] == ["random-menu"] * 3 + ["oracle"] * 2
    assert {(each.threshold, each.read_by) for each in found} == {(0.4, "inquitree-reader-1")}


def test_a_run_without_a_whole_episode_says_so(study: StudyConfig, tmp_path: Path):
    run_study(study, tmp_path)
    for file in (tmp_path / "episodes").iterdir():
        file.unlink()
    with pytest.raises(LogError, match="holds no finished episode yet"):
        rematch_run(tmp_path)


@pytest.mark.weights
def test_agents_are_summed_up_apart(found: list[RematchedEpisode]):
    menu, oracle = rematch_summaries(found, 0.6)
    assert (menu.agent, menu.episodes, oracle.departing, oracle.changes) == ("random-menu", 3, 0, {})
    assert menu.departing == sum(each.departs(0.6) is not None for each in found) > 0
    assert sum(menu.changes.values()) == len(list(changed_turns(found, 0.6)))
    assert oracle.followed.mean == oracle.logged.mean == oracle.low.mean == oracle.high.mean == 1
    assert menu.low.mean <= menu.logged.mean <= menu.high.mean
    assert menu.followed.mean < 1
    json.dumps(as_plain([menu, oracle]))


def test_changes_say_whether_they_are_exact(found: list[RematchedEpisode]):
    by_log: dict[str, list] = {}
    for change in changed_turns(found, 0.6):
        by_log.setdefault(change.log, []).append(change)
    for changes in by_log.values():
        departures = [change.turn for change in changes if change.departs]
        assert [change.exact for change in changes] == [change.turn <= min(departures) for change in changes]
        assert all(change.before != change.now or change.departs for change in changes)


def test_the_curve_says_of_every_threshold_what_the_lines_say(found: list[RematchedEpisode]):
    points = threshold_curve(found)
    assert [point.threshold for point in points] == list(GRID)
    for point in points[::10]:
        table = rematch_summaries(found, point.threshold)
        assert point.departing == pytest.approx(sum(line.departing for line in table) / 5)
        assert point.changed == pytest.approx(
            sum(sum(line.changes.values()) for line in table) / sum(line.read for line in table)
        )
        bounds = np.mean([each.bounds(point.threshold) for each in found], axis=0)
        assert (point.low, point.high) == pytest.approx(tuple(bounds))
    assert points[20].changed == 0, "0.40 is the threshold of the run"


def test_an_episode_at_which_nothing_is_matched_stays_as_it_is():
    empty = RematchedEpisode(CELL, "t", 0.5, (), 1)
    (line,) = rematch_summaries([empty], 0.9)
    assert (line.departing, line.low.mean, line.followed.mean) == (0, 0.5, 1)
    assert {(point.changed, point.low, point.high) for point in threshold_curve([empty])} == {(0, 0.5, 0.5)}


def test_tables_and_the_picture(found: list[RematchedEpisode]):
    table = rematch_summaries(found, 0.6)
    assert [len(line) for line in rematch_table(table)] == [8] * 3
    assert [line[0] for line in changes_table(table)][1:] == ["random-menu"] * len(table[0].changes)
    drawn = Page(rematch_chart(found, 0.6).document())
    for wanted in ("threshold τ", "coverage, bounds", "τ of the log, 0.4", "τ in question, 0.6"):
        assert wanted in drawn.text


def test_a_log_that_contradicts_its_rules_is_told_and_the_others_are_read(study: StudyConfig, tmp_path: Path):
    run_study(study, tmp_path)
    bad = sorted((tmp_path / "episodes").iterdir())[0]
    bad.write_bytes(bad.read_bytes().replace(b'"accepted":true', b'"accepted":false', 1))
    with pytest.raises(LogError, match="contradicts the log's own rules"):
        rematch_run(tmp_path)
    told: list[MissingEpisode] = []
    assert len(rematch_run(tmp_path, on_damaged=told.append)) == 5
    assert [(each.name, each.status) for each in told] == [(bad.name, "damaged")]
    assert f"'{bad.name}': turn" in told[0].error
