"""Evidence that the trees are sound instruments: measured, tabulated, drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.baselines import Agent, make_agent
from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.judges import LocalJudge
from inquitree_gym.rollout import play
from inquitree_gym.scoring import EpisodeScore, score_episode
from inquitree_gym.trees import Tree, builtin_ids, load_tree
from inquitree_gym.trees.lint import answer_words, char_tfidf, ladders, leads, lint_tree
from research.validity.calibration import ConclusionSet, Judged, judge_set
from research.validity.fake_detectability import Separation, gather, separations
from research.validity.judge_crossval import SenseCheck, check_sense
from research.validity.reading import ProposalSet, ReadProposal, best_threshold, rates, read_all
from research.validity.sets import load_sets
from research.validity.shortcuts import SHORTCUTS, ShortcutAgent

SEEDS = 5
"""Episodes per tree of every agent that draws."""
LIMITS = ("default", "3n")
REFERENCE_AGENTS = {"oracle": 1, "worst-case": 1, "random": SEEDS, "random-menu": SEEDS}
"""Agents whose episodes stand in the report, with their seeds."""

Say = Callable[[str], None]


class TreeFacts(NamedTuple):
    """What was measured of one tree."""

    tree: Tree
    faults: int
    siblings: float
    """Highest similarity of two subtopics."""
    echo: float
    """Highest similarity of the topic to a subtopic."""
    climb: NDArray[np.float64]
    """Similarity of every hint to its target, shape ``(targets, levels)``."""
    tfidf_climb: NDArray[np.float64]
    """The same under character TF-IDF."""
    leads: NDArray[np.float64]
    """How much nearer each text read before a study is to its true result than to the nearest fake."""
    word_leaks: int
    """Such texts that hold a content word of the true result that stands in no fake."""


class LeftOut(NamedTuple):
    """τ chosen without a tree, and what it does on that tree."""

    tree: str
    threshold: float
    understood: float
    balance: float


@dataclass(frozen=True, slots=True)
class Validity:
    """Everything that the report shows."""

    embedder: Embedder
    facts: list[TreeFacts]
    read: list[ReadProposal]
    threshold: float
    """τ in force."""
    chosen: float
    """τ with the best balance on these proposals."""
    left_out: list[LeftOut]
    separations: list[Separation]
    judged: list[Judged]
    sense: SenseCheck
    scores: dict[tuple[str, str], list[EpisodeScore]]
    """Scores by agent and limit."""


def measure(data: Path, embedder: Embedder, say: Say) -> Validity:
    """Measure every shipped tree with the proposal and conclusion sets in ``data``; ``say`` is told what goes on.

    Raises:
        OptionError: the data are missing or at fault.
    """
    trees = [load_tree(tree_id) for tree_id in builtin_ids()]
    facts = []
    for tree in trees:
        say(f"checking {tree.id}")
        facts.append(tree_facts(tree, embedder))
    say("reading proposals")
    read = read_all(load_sets(data / "proposals", ProposalSet), embedder)
    say("judging conclusions")
    conclusions = load_sets(data / "conclusions", ConclusionSet)
    judged = [judge_set(each, lambda tree: LocalJudge(tree_vectors(tree, embedder))) for each in conclusions]
    sense = check_sense(conclusions, embedder)
    say("telling fakes from true results")
    apart = separations(gather(trees, embedder))
    chosen = best_threshold(read)
    threshold = chosen if embedder.threshold is None else embedder.threshold
    scores = dict(_reference_scores(trees, embedder, threshold, say))
    return Validity(
        embedder,
        facts,
        read,
        threshold,
        chosen,
        leave_one_out(read),
        apart,
        judged,
        sense,
        scores,
    )


def tree_facts(tree: Tree, embedder: Embedder) -> TreeFacts:
    """Measure one tree on its own."""
    vectors = tree_vectors(tree, embedder)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return vectors.matrix(tuple(texts))

    subtopics = vectors.matrix(tuple(subtopic.text for subtopic in tree.subtopics))
    between = subtopics @ subtopics.T - 2 * np.eye(len(subtopics))
    return TreeFacts(
        tree=tree,
        faults=len(lint_tree(tree, embed)),
        siblings=float(between.max()),
        echo=float((subtopics @ vectors.of(tree.topic)).max()),
        climb=_climb(tree, embed),
        tfidf_climb=_climb(tree, char_tfidf),
        leads=np.array([lead for _, _, lead in leads(tree, embed)], np.float64),
        word_leaks=sum(bool(words) for words in answer_words(tree)),
    )


def leave_one_out(read: Sequence[ReadProposal]) -> list[LeftOut]:
    """Choose τ on all trees but one and measure on that one, for each tree in turn."""
    found = []
    for tree in dict.fromkeys(each.tree for each in read):
        threshold = best_threshold([each for each in read if each.tree != tree])
        at = rates([each for each in read if each.tree == tree], threshold)
        found.append(LeftOut(tree, threshold, at.understood, at.balance))
    return found


def strictly_rising(climb: NDArray[np.float64]) -> int:
    """Return how many ladders rise at every step."""
    return sum(all(high > low for low, high in pairwise(row)) for row in climb)


def _climb(tree: Tree, embed: Callable[[Sequence[str]], NDArray[np.float32]]) -> NDArray[np.float64]:
    pairs = list(ladders(tree))
    size = len(pairs[0][1]) + 1
    vectors = embed([text for node, hints in pairs for text in (*hints, node.text)])
    rungs = vectors.reshape(len(pairs), size, -1)
    return np.asarray(np.einsum("tld,td->tl", rungs[:, :-1], rungs[:, -1]), np.float64)


def _reference_scores(
    trees: Sequence[Tree], embedder: Embedder, threshold: float, say: Say
) -> Iterator[tuple[tuple[str, str], list[EpisodeScore]]]:
    for limit in LIMITS:
        for name, seeds in (REFERENCE_AGENTS | dict.fromkeys(SHORTCUTS, 1)).items():
            say(f"playing {name}, limit {limit}")
            yield (
                (name, limit),
                [_played(tree, embedder, threshold, name, seed, limit) for tree in trees for seed in range(seeds)],
            )


def _played(tree: Tree, embedder: Embedder, threshold: float, name: str, seed: int, limit: str) -> EpisodeScore:
    vectors = tree_vectors(tree, embedder)
    agent: Agent = ShortcutAgent(name, tree) if name in SHORTCUTS else make_agent(name, vectors)
    turns = 3 * len(tree.subtopics) if limit == "3n" else "default"
    rules: dict[str, Any] = {"threshold": threshold, "max_turns": turns}
    env = InquiryEnv(tree, embedder=embedder, privileged=agent.needs_privileged, **rules)
    return score_episode(play(env, agent, seed), tree, LocalJudge(vectors))
