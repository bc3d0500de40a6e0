"""Measurements behind the validity report: trees, matcher, local judge and reference agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.baselines import Agent
from inquitree_gym.baselines.registry import make_player
from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.embeddings.local import READER
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.judges.local import local_judge
from inquitree_gym.inquiry.results import EpisodeScore
from inquitree_gym.results.score import score_episode
from inquitree_gym.results.statistics import Estimate
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from inquitree_gym.trees.lint import char_tfidf, lint_tree
from inquitree_gym.trees.meaning import early_texts, ladder_similarities, result_leaks
from research.datasets import ConclusionSet
from research.earlier import earlier
from research.fake_detectability import result_texts, separations
from research.judge.conclusions import PlayedConclusions, load_played
from research.judge.crossval import Evidence, inputs_digest
from research.judge.crossval import read_evidence as read_judge_evidence
from research.judge.gaming import gaming_table
from research.judge_calibration import JudgedSet, judge_set
from research.played import LabelAgreement, label_agreement
from research.proposals import MatchedProposal, ProposalSet, matching_cases
from research.reader.evidence import TREES_OUT, read_evidence
from research.shortcuts import SHORTCUTS, ShortcutAgent
from research.thresholds import LeftOutThreshold, best_threshold, leave_one_out, match_all

SEEDS = 5
"""Episodes per tree of every agent that draws."""
LIMITS = ("11n", "3n")
REFERENCE_AGENTS = {"oracle": 1, "worst-case": 1, "random": SEEDS, "random-menu": SEEDS}
"""Reference agents of the report, with their numbers of seeds."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """Measurements of one tree."""

    tree: Tree
    faults: int
    """Number of errors of the linter."""
    siblings: float
    """Highest similarity of the texts of two subtopics."""
    echo: float
    """Highest similarity of the topic to a subtopic."""
    climb: NDArray[np.float32]
    """Similarity of every hint to its target, shape ``(targets, levels)``."""
    tfidf_climb: NDArray[np.float32]
    """The same under character TF-IDF."""
    leads: NDArray[np.float64]
    """Similarity to the true result minus that to the nearest fake, of each text read before a study."""
    word_leaks: int
    """Such texts with a content word of the true result that is in no fake."""


@dataclass(frozen=True, slots=True)
class Validity:
    """All measurements of the report."""

    embedder: Embedder
    facts: list[TreeFacts]
    matched: list[MatchedProposal]
    """Written proposals. Those of the reader are matched by adapters that have not seen their tree."""
    readers: dict[str, list[MatchedProposal]]
    """All proposals, by reader."""
    labels: dict[str, LabelAgreement]
    threshold: float
    """Threshold in force."""
    chosen: float
    """Threshold with the best balance on these proposals."""
    left_out: list[LeftOutThreshold]
    separations: dict[str, Estimate]
    """AUC by kind of features."""
    judged: list[JudgedSet]
    played: list[PlayedConclusions]
    """Labelled conclusions of inquiries."""
    judge: Evidence
    """The local judge on trees that its adapter has not seen."""
    gaming: dict[tuple[str, str], float]
    """Mean S that the shipped judge gives each strategy, by kind and name."""
    scores: dict[tuple[str, str], list[EpisodeScore]]
    """Scores by agent and limit."""


def measure(
    proposals: Sequence[ProposalSet], conclusions: Sequence[ConclusionSet], embedder: Embedder, report: Report
) -> Validity:
    """Measure every shipped tree.

    Args:
        proposals: labelled proposals, which calibrate the threshold.
        conclusions: labelled conclusions, which the local judge is compared with.
        embedder: reads the proposals and plays the agents.
        report: called with the name of each step.
    """
    trees = [load_tree(tree_id) for tree_id in builtin_ids()]
    facts = []
    for tree in trees:
        report(f"checking {tree.id}")
        facts.append(tree_facts(tree, embedder))
    report("matching proposals")
    readers = read_evidence(matching_cases(proposals))
    matched = readers[TREES_OUT] if embedder.name == READER else match_all(proposals, embedder)
    matched = [each for each in matched if each.origin == "written"]
    report("judging conclusions")
    judged = [judge_set(each, local_judge) for each in conclusions]
    played = load_played()
    judge = read_judge_evidence(inputs_digest(played, conclusions))
    gaming = gaming_table(trees, local_judge, lambda name: report(f"strategies about {name}"))
    report("telling fakes from true results")
    apart = separations(result_texts(trees, embedder))
    chosen = best_threshold(matched)
    threshold = chosen if embedder.threshold is None else embedder.threshold
    scores = _reference_scores(trees, embedder, threshold, report)
    left_out = leave_one_out(matched)
    labels = label_agreement(proposals)
    return Validity(
        embedder,
        facts,
        matched,
        readers,
        labels,
        threshold,
        chosen,
        left_out,
        apart,
        judged,
        played,
        judge,
        gaming,
        scores,
    )


def tree_facts(tree: Tree, embedder: Embedder) -> TreeFacts:
    """Measure one tree by itself."""
    tree, vectors = earlier(tree), tree_vectors(tree, embedder)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return vectors.matrix(tuple(texts))

    texts = vectors.matrix(tuple(subtopic.text for subtopic in tree.subtopics))
    between = texts @ texts.T - 2 * np.eye(len(texts))
    return TreeFacts(
        tree=tree,
        faults=sum(each.severity == "error" for each in lint_tree(tree, embed)),
        siblings=float(between.max()),
        echo=float((vectors.subtopics @ vectors.of(tree.topic)).max()),
        climb=ladder_similarities(tree, embed, "T502"),
        tfidf_climb=ladder_similarities(tree, char_tfidf, "T501"),
        leads=np.array([lead for _, _, lead in result_leaks(tree, embed)], np.float64),
        word_leaks=sum(bool(words) for words in leaked_words(tree)),
    )


def strictly_rising(climb: NDArray[np.float32]) -> int:
    """Return the number of ladders that rise at every step."""
    return sum(all(high > low for low, high in pairwise(row)) for row in climb)


def _reference_scores(
    trees: Sequence[Tree], embedder: Embedder, threshold: float, report: Report
) -> dict[tuple[str, str], list[EpisodeScore]]:
    found = {}
    for limit in LIMITS:
        for name, seeds in (REFERENCE_AGENTS | dict.fromkeys(SHORTCUTS, 1)).items():
            report(f"playing {name}, limit {limit}")
            scores = [_play(tree, embedder, threshold, name, seed, limit) for tree in trees for seed in range(seeds)]
            found[name, limit] = scores
    return found


def _play(tree: Tree, embedder: Embedder, threshold: float, name: str, seed: int, limit: str) -> EpisodeScore:
    rules: dict[str, Any] = {"threshold": threshold, "max_turns": limit}
    env = InquiryEnv(tree, embedder=embedder, **rules)
    agent: Agent = ShortcutAgent(name, tree) if name in SHORTCUTS else make_player(name, env)
    return score_episode(play(env, agent, seed), tree, local_judge(tree))


def leaked_words(tree: Tree) -> Iterator[set[str]]:
    """Yield, for each text shown before a study, the content words it shares with the true result but with no fake."""
    tree = earlier(tree)
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            answers = _content_words(study.result).difference(*map(_content_words, study.results[1:]))
            for early in early_texts(tree, subtopic, study):
                yield answers & _content_words(early.text)


def _content_words(text: str) -> set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return {word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in ENGLISH_STOP_WORDS}
