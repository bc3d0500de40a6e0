"""Blind proposals, their readings, and rules that are fitted on other trees."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.local import READER_THRESHOLD
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from research.blind.__main__ import PLAIN, tables
from research.blind.labels import label_agreement
from research.blind.readings import SECOND_LABELS, SHARES, Reading, blind_sets, read_cases, shares
from research.blind.rules import (
    Fit,
    balances,
    best_threshold,
    by_margin,
    by_outside_class,
    by_similarity,
    gain,
    separation,
    try_rule,
)
from research.proposals import TOPIC, MatchingCase, Proposal, ProposalSet, matched, matching_cases
from tests.strategies import make_tree

IDS = Path(__file__).parents[2] / "research" / "validity" / "ids.json"
TREES = [make_tree([[], [], []], [2, 1, 1], tree_id=f"tree{number}") for number in range(6)]


def reading(tree: Tree, similarities: Sequence[float], target: str = "", at: str = TOPIC, **more: object) -> Reading:
    kind = "right" if target else "foreign"
    said = Proposal.model_validate({"target": target, "at": at, "kind": kind, "text": "Say.", **more})
    (case,) = matching_cases([ProposalSet(tree=tree.id, proposals=(said,))], lambda name: tree)
    best = int(np.argmax(similarities))
    return Reading(matched(case, best, similarities[best]), np.array(similarities, np.float32))


def everywhere(make: Callable[[Tree], Sequence[Reading]]) -> list[Reading]:
    return [each for tree in TREES for each in make(tree)]


def test_every_tree_has_the_same_number_of_written_proposals_about_its_nodes():
    sets = blind_sets()
    assert [each.tree for each in sets] == list(builtin_ids())
    cases = matching_cases(sets, load_tree)
    written = {each.tree: sum(said.origin == "written" for said in each.proposals) for each in sets}
    assert written == dict.fromkeys(builtin_ids(), 34)
    assert len({(case.tree, case.is_study, case.text) for case in cases}) == len(cases)
    by_author = {case.author: {each.tree for each in cases if each.author == case.author} for case in cases}
    players = dict.fromkeys(("p9", "p10", "p11", "p12"), 4)
    assert {author: len(trees) for author, trees in by_author.items()} == {"p7": 9, "p8": 9, **players}


def test_two_labellers_agree():
    found = label_agreement(blind_sets(), SECOND_LABELS)
    assert {name: each.texts for name, each in found.items()} == {"topic": 24 + 81, "design": 51 + 60}
    assert all(0.8 < each.kappa < each.same < 1 for each in found.values())


def test_shares_are_of_ideas_and_of_designs_with_and_without_a_meaning():
    tree = TREES[0]
    found = [
        (reading(tree, [0.9, 0.1, 0.1], "s1"), True),
        (reading(tree, [0.9, 0.1, 0.1], "s2", also=("s1",)), False),
        (reading(tree, [0.9, 0.1, 0.1], "s3"), True),
        (reading(tree, [0.9, 0.1, 0.1], "s3"), False),
        (reading(tree, [0.9, 0.1, 0.1]), True),
        (reading(tree, [0.9, 0.1], "s1a", at="s1"), True),
        (reading(tree, [0.9, 0.1], "s1b", at="s1"), True),
        (reading(tree, [0.9], "s2a", at="s2"), False),
        (reading(tree, [0.9, 0.1], at="s1"), False),
    ]
    means = [each.mean for each in shares((each.found, taken) for each, taken in found)]
    assert dict(zip([share.name for share in SHARES], means, strict=True)) == pytest.approx(
        {
            "nearest subtopic right": 0.5, "understood": 0.25, "misread": 0.25, "refused": 0.5,
            "foreign idea taken": 1, "nearest study right": 0.5, "design understood": 1 / 3, "design misread": 1 / 3,
            "foreign design taken": 0,
        }
    )  # fmt: skip


def test_the_best_threshold_lies_between_what_is_meant_and_what_is_not():
    found = [reading(TREES[0], [value, 0], "s1a", at="s1") for value in (0.8, 0.6)]
    found += [reading(TREES[0], [value, 0], at="s1") for value in (0.4, 0.2)]
    scores = by_similarity(found)(found)
    assert best_threshold(found, scores) == pytest.approx(0.5)
    assert best_threshold(found, scores + 1) == pytest.approx(1.5)
    assert separation(found, scores.tolist(), is_study=True) == 1
    assert separation(found, (-scores).tolist(), is_study=True) == 0


def test_a_threshold_is_not_chosen_on_the_tree_where_it_is_tried():
    found = everywhere(lambda tree: [reading(tree, [0.6, 0, 0], "s1"), reading(tree, [0.4, 0, 0])])
    odd = [reading(TREES[0], [0.48, 0, 0], "s1"), reading(TREES[0], [0.1, 0, 0])]
    tried = try_rule([*odd, *found[2:]], by_similarity, "both")
    assert tried.accepted == [False, False] + [True, False] * 5
    assert tried.thresholds["both"] == pytest.approx((0.44, 0.5)), "the other trees' thresholds know the odd one"


def test_two_places_have_thresholds_of_their_own():
    found = everywhere(
        lambda tree: [
            reading(tree, [0.6, 0, 0], "s1"), reading(tree, [0.5, 0, 0]),
            reading(tree, [0.4, 0], "s1a", at="s1"), reading(tree, [0.3, 0], at="s1"),
        ]
    )  # fmt: skip
    apart, together = try_rule(found, by_similarity, "topic", "study"), try_rule(found, by_similarity, "both")
    assert apart.accepted == [True, False, True, False] * len(TREES)
    assert [apart.thresholds[place][0] for place in ("topic", "study")] == pytest.approx([0.55, 0.35])
    topics, studies = (
        gain(balances(found, apart.accepted, is_study=place), balances(found, together.accepted, is_study=place))
        for place in (False, True)
    )
    assert (topics.mean, topics.trees, studies.mean) == (pytest.approx(0.5), len(TREES), pytest.approx(0))


def test_the_balance_counts_what_is_misread_and_what_is_foreign_at_half():
    said = [("s1", True), ("s1", True), ("s2", True), ("s3", False), ("", True), ("", False)]
    found = [reading(TREES[0], [0.9, 0.1, 0.1], target) for target, _ in said]
    found.append(reading(TREES[1], [0.9, 0.1, 0.1], "s1"))
    accepted = [*(taken for _, taken in said), True]
    assert balances(found, accepted, is_study=False) == {"tree0": pytest.approx(2 / 4 - (1 / 4 + 1 / 2) / 2)}
    assert balances(found, accepted, is_study=True) == {}


@pytest.mark.parametrize("fit", [by_margin, by_outside_class])
def test_a_rule_may_prefer_what_is_far_from_the_second_candidate(fit: Fit):
    found = everywhere(
        lambda tree: [
            *(reading(tree, [value, 0.1, 0], "s1") for value in (0.7, 0.6, 0.5, 0.4)),
            *(reading(tree, [value, 0.1, 0]) for value in (0.45, 0.3, 0.2)),
            *(reading(tree, [value, value, 0]) for value in (0.6, 0.5)),
        ]
    )
    new = [reading(TREES[0], similarities) for similarities in ([0.55, 0.1, 0], [0.55, 0.55, 0], [0.35, 0.1, 0])]
    alone, twin, far = fit(found)(new)
    assert 1 > alone > max(twin, far) > 0
    tried = try_rule(found, fit, "topic")
    assert separation(found, tried.scores, is_study=False) > separation(
        found, by_similarity(found)(found).tolist(), is_study=False
    )


@pytest.mark.weights
def test_the_tables_show_the_readings_of_both_readers():
    sets = [each for each in blind_sets() if each.tree in ("paper4", "paper20", "paper24")]
    cases: list[MatchingCase] = matching_cases(sets, load_tree)
    said = [*cases, *matching_cases([_canonical("paper24")], load_tree)]
    readings = {name: read_cases(said, load_embedder(name)) for name in (DEFAULT_EMBEDDER, PLAIN)}
    for found in readings.values():
        assert [each.found.text for each in found] == [case.text for case in said]
        assert all(each.found.right_node and each.found.similarity > READER_THRESHOLD for each in found[len(cases) :])
    shown = {title: [*rows] for title, rows in tables(readings)}
    agreement, groups, thresholds, rules, misread = shown.values()
    assert [row[0] for row in agreement] == ["texts", "topic", "design"]
    authors = [f"author {name}" for name in ("p7", "p8", "p10", "p12", "p9", "first")]
    heads = ["all", "label sure", "written", "played", *authors, "paper4", "paper20", "paper24"]
    assert [row[0] for row in groups[1:]] == heads
    assert {"understood", "nearest study right"} <= set(groups[0])
    accepted = [float(row[2]) + float(row[3]) for row in thresholds[1:]]
    assert accepted == sorted(accepted, reverse=True)
    assert accepted[0] > accepted[-1]
    assert [row[0] for row in rules[1:]] == [DEFAULT_EMBEDDER] * 5 + [PLAIN] * 5
    assert all(float(row[3]) >= 0.55 for row in misread[1:])
    assert len(misread) > 1


def _canonical(name: str) -> ProposalSet:
    nodes = load_tree(name).subtopics
    return ProposalSet(tree=name, proposals=tuple(Proposal(target=n.id, kind="right", text=n.text) for n in nodes))


def test_ids_of_earlier_nodes_name_present_ones():
    for name, ids in json.loads(IDS.read_text(encoding="utf-8")).items():
        present = load_tree(name)
        named = [new for new in ids.values() if new is not None]
        assert set(named) <= {node.id for node in (*present.subtopics, *present.studies)}, name
        assert len(set(named)) == len(named), name
