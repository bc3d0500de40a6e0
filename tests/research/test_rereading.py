"""Logs read again: against the environment itself, and against whoever might have gone on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from inquitree_gym.baselines import BaselineAgent, RandomMenuAgent
from inquitree_gym.embeddings import MiniLMEmbedder, tree_vectors
from inquitree_gym.embeddings.protocol import Vectors, unit_rows
from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.log import Episode
from inquitree_gym.rollout import play
from inquitree_gym.runner.check import make_study
from inquitree_gym.runner.run import run_study
from inquitree_gym.runs.specs import EpisodeSpec
from inquitree_gym.runs.study import StudyConfig
from inquitree_gym.trees import Tree, load_tree
from research.rereading.__main__ import app
from research.rereading.rematch import GRID, RematchedEpisode, rematch_episode, rematch_run  # fmt: skip
from research.rereading.summaries import changed_turns, rematch_summaries, threshold_curve  # fmt: skip
from tests.results.html import Page

CELL = EpisodeSpec("random-menu", "paper8", (("fake_level", 4),), 0)
RULES = [
    {}, {"redo_turn": True, "reruns": "match"}, {"bare_decisions": False, "feedback": "reason"}, {"rules": "paper"},
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


def played(paper: Tree, reader: MiniLMEmbedder, seed: int = 0, **rules) -> Episode:
    env = InquiryEnv(paper, embedder=reader, **{"fake_level": 4, "max_turns": 30, **rules})
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
@pytest.mark.parametrize("threshold", [0.2, 0.54, 0.56, 0.7])
def test_the_first_departure_is_where_the_environment_departs(paper, reader, rules, threshold):
    for seed in range(3):
        episode = played(paper, reader, seed, **rules)
        env = InquiryEnv(paper, embedder=reader, **{**episode.header.rules, "threshold": threshold})
        turn = rematch_episode(episode, tree_vectors(paper, reader), CELL).departs(threshold)
        assert (turn and turn.turn) == first_difference(episode, env)


def test_read_by_its_own_embedder_at_its_own_threshold_nothing_changes_and_nothing_is_embedded(paper, reader):
    class Named(LetterEmbedder):
        digest = reader.digest

        def embed(self, texts):
            raise AssertionError("nothing is to be embedded")

    for rules in RULES:
        again = rematch_episode(played(paper, reader, **rules), tree_vectors(paper, Named()), CELL)
        assert again.turns
        assert again.departs(reader.threshold) is None
        assert list(changed_turns([again], reader.threshold)) == []
        assert again.bounds(reader.threshold) == (again.coverage, again.coverage)


# What is refused


@pytest.mark.weights
def test_a_log_that_does_not_follow_its_own_rules_is_refused(paper, reader):
    episode = played(paper, reader)
    header = episode.header.model_copy(update={"rules": {**episode.header.rules, "threshold": 0.99}})
    with pytest.raises(LogError, match="contradicts the log's own rules"):
        rematch_episode(Episode(header, episode.turns, episode.footer), tree_vectors(paper, reader), CELL)


# Runs


@pytest.fixture(scope="module")
def study() -> StudyConfig:
    return make_study(agents=("random-menu", "oracle"), trees=("paper8",), fake_level=(4,), seeds=3, threshold=0.4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def found(study: StudyConfig, folder: Path) -> list[RematchedEpisode]:
    run_study(study, folder)
    torn = folder / "episodes" / "paper8_oracle_f4_s2.jsonl"
    torn.write_bytes(torn.read_bytes()[:-5])
    told: list[EpisodeSpec] = []
    again = rematch_run(folder, progress=told.append)
    assert len(told) == 6
    return again


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


@pytest.mark.weights
@pytest.mark.usefixtures("drawn")
def test_the_command_prints_what_changes_and_its_limits(found: list[RematchedEpisode], folder: Path, tmp_path: Path):
    figure = tmp_path / "f.svg"
    done = CliRunner().invoke(app, [str(folder), "--threshold", "0.6", "--figure", str(figure)])
    assert done.exit_code == 0
    for said in ("Read again by inquitree-reader-2, τ = 0.6", "accepted → refused", "coverage has only"):
        assert said in done.stdout
    drawn = Page(figure.read_text(encoding="utf-8"))
    for wanted in ("threshold τ", "coverage, bounds", "τ of the log, 0.4", "τ in question, 0.6"):
        assert wanted in drawn.text
    plain = CliRunner().invoke(app, [str(folder), "--threshold", "0.4", "--json"])
    assert json.loads(plain.stdout)["changes"] == []
    assert len(json.loads(plain.stdout)["curve"]) == len(GRID)
