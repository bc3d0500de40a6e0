"""The measurements behind the validity report: reading, surface, shortcuts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import MiniLMEmbedder
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.trajectory import read_trajectory
from inquitree_gym.rollout import play
from inquitree_gym.trees import builtin_ids, load_tree
from research.fake_detectability import ResultTexts, separations
from research.proposals import ProposalSet
from research.shortcuts import SHORTCUTS, ShortcutAgent
from research.static.proposals import load_proposals
from research.thresholds import THRESHOLD_GRID, MatchedProposal, leave_one_out, match_all, rates, sweep

pytestmark = pytest.mark.weights

shipped = pytest.mark.parametrize("name", builtin_ids())


def proposal(kind: str, similarity: float, right: bool = True, tree: str = "paper8") -> MatchedProposal:
    nodes = load_tree("paper8").subtopics
    return MatchedProposal(tree, "s1", False, kind, "", nodes, 0, index=not right, similarity=similarity)


@shipped
def test_every_node_of_a_tree_has_the_proposals_it_needs(name: str):
    (found,) = [each for each in load_proposals() if each.tree == name]
    tree = load_tree(name)
    for node in (*tree.subtopics, *tree.studies):
        beside = [each for each in found.proposals if each.target == node.id and each.origin == "written"]
        kinds = sorted(each.kind for each in beside if not each.also)
        assert kinds == ["near_miss", "off_target", "right", "right", "right", "vague"], node.id


def test_rates_count_what_a_threshold_does():
    read = [
        proposal("right", 0.6), proposal("right", 0.5, right=False), proposal("right", 0.3), proposal("right", 0.45),
        proposal("vague", 0.45), proposal("vague", 0.44), proposal("near_miss", 0.9), proposal("off_target", 0.1),
    ]  # fmt: skip
    at = rates(read, 0.45)
    assert (at.understood, at.misread, at.refused) == (0.5, 0.25, 0.25)
    assert (at.vague, at.near_miss, at.off_target) == (0.5, 1.0, 0.0)
    assert at.balance == pytest.approx(0.5 - (0.25 + 0.5 + 1.0 + 0.0 + 0.0) / 5)
    assert [each.threshold for each in sweep(read)] == list(THRESHOLD_GRID)


def test_a_tree_left_out_has_no_say_in_its_threshold():
    easy = [proposal("right", 0.7, tree="a"), proposal("vague", 0.6, tree="a")]
    other = [proposal("right", 0.4, tree="b"), proposal("vague", 0.3, tree="b")]
    left = {each.tree: each for each in leave_one_out(easy + other)}
    assert left["a"].threshold <= 0.4
    assert left["b"].threshold > 0.6
    assert left["b"].understood == 0


def test_proposals_are_read_against_their_family(minilm: MiniLMEmbedder):
    tree = load_tree("paper12")
    subtopic, study = tree.subtopics[1], tree.subtopics[1].studies[1]
    written = [(subtopic.id, subtopic.text), (study.id, study.text), (tree.subtopics[0].id, subtopic.text)]
    document = {
        "tree": "paper12",
        "proposals": [{"target": target, "kind": "right", "text": text} for target, text in written],
    }
    read = match_all([ProposalSet.model_validate(document)], minilm)
    assert [(each.is_study, each.right_node) for each in read] == [(False, True), (True, True), (False, False)]
    assert all(each.similarity > 0.6 for each in read)


def test_an_empty_folder_and_a_bad_set_are_told(tmp_path: Path):
    with pytest.raises(OptionError, match="no proposals"):
        load_proposals(tmp_path)
    (tmp_path / "bad.json").write_text(json.dumps({"tree": "paper8", "proposals": [{"target": "s1"}]}))
    with pytest.raises(OptionError, match=r"bad\.json"):
        load_proposals(tmp_path)


@pytest.mark.parametrize("name", SHORTCUTS)
def test_a_shortcut_earns_nothing_unaided_but_by_echoing_the_topic(name: str):
    tree = load_tree("paper12")
    env = InquiryEnv(tree, max_turns=3 * len(tree.subtopics))
    path = read_trajectory(play(env, ShortcutAgent(name, tree), seed=0), tree)
    if name != "topic-echo":
        assert path.unaided_coverage == 0
        assert path.accepted == 0
    assert path.coverage < 0.5


def test_fakes_with_a_cue_are_told_apart_and_fakes_without_are_not():
    generator = np.random.default_rng(0)
    trees = tuple(f"t{i}" for i in range(6) for _ in range(20))
    fake = np.tile([True, False], 60)
    words = ["rise", "fall", "more", "less", "early", "late", "left", "right"]
    plain = [" ".join(generator.choice(words, 5)) for _ in fake]
    cued = [f"{text} surprisingly" if is_fake else text for text, is_fake in zip(plain, fake, strict=True)]
    noise = generator.normal(size=(len(fake), 8)).astype(np.float32)
    bag, embedding = separations(ResultTexts(trees, tuple(cued), fake, noise)).values()
    assert bag.mean == pytest.approx(1.0)
    assert abs(embedding.mean - 0.5) < 0.2
    assert abs(separations(ResultTexts(trees, tuple(plain), fake, noise))["bag of words"].mean - 0.5) < 0.2
