"""What an episode did: hand-made logs with known answers, and real episodes against the engine's own state."""

from __future__ import annotations

from typing import Any

import pytest

from inquitree_gym.baselines import RandomMenuAgent, WorstCaseAgent
from inquitree_gym.errors import LogError
from inquitree_gym.inquiry.engine import Rules
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.events import EmbedderRef, InquiryEvent, InquirySetup, ReadingRecord
from inquitree_gym.inquiry.trajectory import coverage_over_turns, read_trajectory
from inquitree_gym.inquiry.vigilance import ALL, Counts
from inquitree_gym.log import Episode, Footer, Header, TaskRef, Turn
from inquitree_gym.rollout import play
from inquitree_gym.trees import Tree, load_tree, parse_tree
from tests.strategies import make_tree

STATE_AFTER = {
    "topic": "topic", "subtopic": "subtopic", "result": "result", "subtopic_hint": "topic", "study_hint": "subtopic",
    "ask_again": "result", "conclusion": "conclusion", "end": "end", "declined": "topic",
}  # fmt: skip

UNREAD = ReadingRecord(candidate=None, similarity=0.0, decision="none", margin=None, top=())

Step = dict[str, Any]


def enter(node: str, **changes: Any) -> Step:
    return {"kind": "subtopic", "node": node, **changes}


def result(node: str, fake: int = 0, **changes: Any) -> Step:
    return {"kind": "result", "node": node, "fake": fake, **changes}


def redo(node: str, fake: int = 0, **changes: Any) -> Step:
    return result(node, fake, decision="redo", **changes)


def failed(kind: str, level: int, node: str = "s1") -> Step:
    return {"kind": kind, "node": node, "accepted": False, "hint_level": level, "reason": "below_threshold"}


EXPLORE: Step = {"kind": "topic", "decision": "explore"}
CONCLUDE: Step = {"kind": "conclusion", "decision": "conclude"}
ASKED_AGAIN: Step = {"kind": "ask_again", "accepted": False, "reason": "unreadable_decision"}
END: Step = {"kind": "end", "action": "1. It rose."}


def episode_of(tree: Tree, *steps: Step, agent: dict[str, Any] | None = None, seed: int = 0, **rules: Any) -> Episode:
    """Build a log by hand; every step names what its action led to."""
    turns = tuple(_turn(number, **step) for number, step in enumerate(steps, 1))
    header = Header(
        versions={},
        task=TaskRef(kind="inquiry", id=tree.id, version=tree.version, digest=tree.digest),
        rules=Rules(**{"threshold": 0.5, **rules}).as_dict(),
        seed=seed,
        setup=InquirySetup(embedder=EmbedderRef(name="none", digest="00")),
        prompts="00",
        agent={"name": "made"} if agent is None else agent,
        started="2026-01-01T00:00:00+00:00",
    )
    ended = bool(turns) and turns[-1].event.kind == "end"
    footer = Footer(status="concluded", observation="", turns=len(turns), episode_return=0.0, seconds=0.0)
    return Episode(header, turns, footer if ended else None)


def _turn(number: int, action: str = "said", belief: float | None = None, **event: Any) -> Turn:
    plain = {
        "node": None, "fake": 0, "accepted": True, "forced": False, "hint_level": 0, "limit": False, "reason": "none",
        "decision": "none",
    }  # fmt: skip
    state = "conclusion" if event.get("limit") else STATE_AFTER[event["kind"]]
    return Turn(
        turn=number,
        observation="shown",
        action=action,
        event=InquiryEvent(**{**plain, "reading": UNREAD, "state": state, **event}),
        reward=0.0,
        terminated=event["kind"] == "end",
        truncated=False,
        stated={} if belief is None else {"belief": belief},
        env_seconds=0.0,
    )


@pytest.fixture(scope="module")
def tree() -> Tree:
    """Three subtopics; s1 has the studies s1a and s1b."""
    return make_tree([[], [0], []], [2, 1, 1])


def test_a_perfect_episode(tree: Tree):
    steps = [enter("s1"), result("s1a"), EXPLORE, enter("s2"), result("s2a"), EXPLORE, enter("s3"), result("s3a")]
    path = read_trajectory(episode_of(tree, *steps, CONCLUDE, END), tree)
    assert (path.coverage, path.unaided_coverage, path.coverage_at_3n) == (1, 1, 1)
    assert (path.turns, path.fewest_turns, path.most_turns) == (9, 9, 9)
    assert (path.hints, path.forced, path.showings[ALL]) == (0, 0, Counts(trues=3))
    assert (path.choices, path.accepted) == (6, 6)
    assert path.proven == 0b1101
    assert path.conclusion == "1. It rose."


def test_subtopics_entered_after_a_hint_or_by_force_are_covered_but_not_unaided(tree: Tree):
    steps = [
        failed("subtopic_hint", 1), enter("s1"), *(failed("study_hint", level, "s1a") for level in (1, 2, 3, 4)),
        result("s1b", forced=True, accepted=False, reason="below_threshold"), EXPLORE,
        *(failed("subtopic_hint", level, "s3") for level in (1, 2, 3, 4)),
        enter("s3", forced=True, accepted=False, reason="prerequisite_unmet"), result("s3a"), EXPLORE, enter("s2"),
        result("s2a"),
    ]  # fmt: skip
    path = read_trajectory(episode_of(tree, *steps, CONCLUDE, END), tree)
    assert path.coverage == 1
    assert path.unaided_coverage == pytest.approx(1 / 3), "only s2 was entered on a decision without a hint"
    assert path.coverage_at_3n == pytest.approx(1 / 3)
    assert (path.hints, path.forced, path.turns) == (9, 2, 18)
    assert (path.choices, path.accepted) == (15, 4)
    assert path.proven == 0b1110


def test_a_hint_that_the_turn_limit_cut_off_was_not_given(tree: Tree):
    steps = [failed("subtopic_hint", 1), failed("subtopic_hint", 2) | {"limit": True}, END]
    assert read_trajectory(episode_of(tree, *steps), tree).hints == 1


def declined(node: str) -> Step:
    return {"kind": "declined", "node": node, "decision": "explore"}


FIRST = [enter("s1"), result("s1a"), EXPLORE]


@pytest.mark.parametrize(
    ("steps", "covered", "unaided"),
    [
        ([*FIRST, enter("s1"), result("s1b"), CONCLUDE, END], 1, 1),
        ([*FIRST, failed("subtopic_hint", 1, "s3"), *FIRST, enter("s3")], 2, 1),
        ([enter("s1"), declined("s1"), enter("s3"), result("s3a"), CONCLUDE, END], 1, 1),
        ([*FIRST, enter("s1"), declined("s1")], 1, 1),
        ([enter("s1"), declined("s1"), enter("s1")], 1, 1),
        ([failed("subtopic_hint", 1, "s3"), enter("s1"), declined("s1"), enter("s1")], 1, 0),
    ],
    ids=[
        "twice", "hint kept for later", "declined", "declined later", "declined and entered", "declined after a hint",
    ],
)  # fmt: skip
def test_subtopics_count_once_and_as_unaided_if_nothing_had_named_them(tree, steps, covered, unaided):
    episode = episode_of(tree, *steps)
    path = read_trajectory(episode, tree)
    assert (path.coverage, path.unaided_coverage) == pytest.approx((covered / 3, unaided / 3))
    assert coverage_over_turns(episode, tree)[-1] == pytest.approx(covered / 3)


@pytest.mark.parametrize(("late", "expected"), [(8, 1 / 3), (9, 0.0)])
def test_only_the_first_3n_turns_count_at_3n(tree: Tree, late: int, expected: float):
    steps = [failed("subtopic_hint", min(level, 4)) for level in range(1, late + 1)]
    path = read_trajectory(episode_of(tree, *steps, enter("s1")), tree)
    assert path.coverage_at_3n == pytest.approx(expected)
    assert path.coverage == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("rules", "bounds"),
    [({"max_turns": None}, (9, None)), ({"max_turns": 40}, (9, 40)), ({"feedback": "hint", "max_turns": 5}, (9, 33))],
)
def test_bounds_follow_the_rules_of_the_episode(tree: Tree, rules: dict, bounds: tuple):
    path = read_trajectory(episode_of(tree, enter("s1"), **rules), tree)
    assert (path.fewest_turns, path.most_turns) == bounds


def test_coverage_over_turns(tree: Tree):
    steps = [failed("subtopic_hint", 1), enter("s1"), result("s1a"), EXPLORE, enter("s1"), result("s1a"), EXPLORE]
    curve = coverage_over_turns(episode_of(tree, *steps, enter("s3"), result("s3a")), tree)
    assert curve == pytest.approx([0, *[1 / 3] * 6, 2 / 3, 2 / 3])


def test_hits_and_false_alarms(tree: Tree):
    steps = [
        enter("s1"),
        result("s1a", 2),  # a fake that is redone: a hit
        redo("s1a", 1),  # a fake that is redone after an unreadable decision: a hit
        ASKED_AGAIN,
        redo("s1a"),  # a true one that is redone: a false alarm
        redo("s1a", 1),  # a fake that is taken: a miss
        EXPLORE,
        enter("s3"),
        result("s3a"),  # a true one that is taken
        CONCLUDE,
        END,
    ]
    path = read_trajectory(episode_of(tree, *steps, fake_level=5), tree)
    assert path.showings[ALL] == Counts(3, 2, 2, 1)
    assert path.hit_rate == pytest.approx(2 / 3)
    assert path.false_alarm_rate == pytest.approx(1 / 2)
    assert path.redo_rate == pytest.approx(3 / 5)
    assert path.proven == 0b1001


def test_a_fake_proves_nothing_and_a_later_one_takes_nothing_back(tree: Tree):
    steps = [enter("s1"), result("s1a"), redo("s1a", 1), EXPLORE, enter("s3"), result("s3a", 1), CONCLUDE, END]
    assert read_trajectory(episode_of(tree, *steps, fake_level=9), tree).proven == 0b0001


@pytest.mark.parametrize("cut", [[], [{**ASKED_AGAIN, "limit": True}]], ids=["at the limit", "before it"])
@pytest.mark.parametrize("fake", [0, 1])
def test_a_result_whose_answer_the_limit_cut_off_counts_neither_way_but_is_evidence(tree, fake, cut):
    steps = [enter("s1"), result("s1a", fake, limit=not cut), *cut, END]
    path = read_trajectory(episode_of(tree, *steps, fake_level=3, max_turns=2 + len(cut)), tree)
    assert path.showings[ALL] == Counts()
    assert path.hit_rate is path.false_alarm_rate is path.redo_rate is None
    assert (path.proven, path.turns, path.conclusion) == (0 if fake else 1, 2 + len(cut), "1. It rose.")


def test_another_version_of_the_tree_is_refused(tree: Tree):
    other = tree.model_copy(update={"version": 2})
    with pytest.raises(LogError, match="score it with the tree it was played on") as caught:
        read_trajectory(episode_of(tree, enter("s1")), parse_tree(other.model_dump_json().encode()))
    assert tree.digest[:12] in str(caught.value)
    assert tree.id in str(caught.value)


@pytest.mark.parametrize("rules", [{}, {"redo_turn": True}, {"feedback": "hint", "max_turns": 23}])
@pytest.mark.parametrize("seed", range(4))
def test_the_log_tells_what_the_engine_knew(rules: dict, seed: int):
    paper = make_tree([[], [0], [1], [], [3], [], [5]], [1, 2, 1, 1, 2, 1, 1])
    env = InquiryEnv(paper, fake_level=5, **rules)
    episode = play(env, RandomMenuAgent(paper), seed)
    path, state = read_trajectory(episode, paper), env.state
    assert path.coverage == state.visited.bit_count() / 7
    assert path.proven == state.proven
    assert path.turns == state.turn - 2
    assert path.unaided_coverage <= path.coverage
    assert coverage_over_turns(episode, paper)[-1] == path.coverage
    shown = sum(turn.event.kind == "result" for turn in episode.turns)
    assert shown - path.showings[ALL].results == shown_last(episode)
    redone = sum(turn.event.decision == "redo" for turn in episode.turns)
    assert path.showings[ALL].hits + path.showings[ALL].false_alarms == redone
    assert 0 < path.choices < path.turns


def shown_last(episode: Episode) -> int:
    """1 when the limit left a result without an answer."""
    shown = ""
    for turn in episode.turns:
        shown = shown if turn.event.kind == "ask_again" else turn.event.kind
        if turn.event.limit:
            return int(shown == "result")
    return 0


@pytest.mark.parametrize("tree_id", ["paper8", "paper12"])
def test_who_is_carried_by_hints_covers_everything_and_nothing_unaided(tree_id: str):
    paper = load_tree(tree_id)
    path = read_trajectory(play(InquiryEnv(paper, privileged=True, max_turns="11n"), WorstCaseAgent(), 0), paper)
    n = len(paper.subtopics)
    assert (path.coverage, path.unaided_coverage) == (1, 0)
    assert (path.turns, path.most_turns, path.hints, path.forced) == (11 * n, 11 * n, 8 * n, 2 * n)
    assert (path.choices, path.accepted) == (10 * n, 0)
    assert path.coverage_at_3n == pytest.approx((1 + (3 * n - 5) // 11) / n)


@pytest.mark.parametrize("before", [[], [enter("s1")]], ids=["at the topic", "at a subtopic"])
def test_concluding_elsewhere_than_at_a_result_is_no_decision_on_one(tree: Tree, before: list[Step]):
    path = read_trajectory(episode_of(tree, *before, CONCLUDE, END), tree)
    assert (path.coverage, path.turns) == (len(before) / 3, len(before) + 1)
    assert path.redo_rate is None
