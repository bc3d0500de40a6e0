"""The transition function of an inquiry."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine.rules import CREDITS, Decision, Event, ObservationKind, Phase, Reading, Reason, State
from inquitree_gym.seeds import seed_of_agent, splitmix64
from inquitree_gym.trees.schema import HINT_LEVELS, Tree

if TYPE_CHECKING:
    from inquitree_gym.inquiry.engine.rules import Rules

_WORD = (1 << 64) - 1
WORDING = 0
"""Word in place of a run, which is counted from 1, that is hashed before the run to draw a wording."""


class Engine:
    """The rules applied to one tree. An engine is stateless, so one serves any number of inquiries."""

    def __init__(self, tree: Tree, rules: Rules) -> None:
        """Compile ``tree`` under ``rules``.

        Raises:
            OptionError: ``rules.threshold`` is None.
        """
        if rules.threshold is None:
            raise OptionError("the engine needs a threshold; pass Rules(threshold=...) or take the embedder's default")
        index = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
        self.rules = rules
        self.n = len(tree.subtopics)
        self.prerequisites = tuple(sum(1 << index[name] for name in s.prerequisites) for s in tree.subtopics)
        """Bit set of the prerequisites of each subtopic."""
        self.subtopic_of = tuple(i for i, s in enumerate(tree.subtopics) for _ in s.studies)
        self.studies_of = tuple(
            tuple(k for k, owner in enumerate(self.subtopic_of) if owner == i) for i in range(self.n)
        )
        self.fakes_of = tuple(len(study.fakes) for study in tree.studies)
        self.fake_keys = tuple(_fake_key(tree.id, study.id) for study in tree.studies)
        """64-bit word of each study that the draws of its fakes and wordings depend on."""
        varied = rules.replication == "varied"
        self.wordings_of = tuple(min(map(len, study.wordings)) if varied else 1 for study in tree.studies)
        """Number of wordings in which every result of each study is shown."""
        self.turn_limit = rules.turn_limit(self.n)
        self._tree_id = tree.id
        self._threshold = rules.threshold
        self._takes_bare, self._waits = rules.bare_decisions, rules.feedback == "reason"
        self._recalls = rules.reruns == "redo"
        self._all = tuple(range(self.n))
        self._handlers = (
            self._at_topic, self._at_subtopic, self._at_study, self._at_result, self._at_conclusion, self._at_end
        )  # fmt: skip

    def start(self, seed: int) -> Event:
        """Return the first event of an episode. ``seed`` (0 to 2^64 - 1) determines its fake results."""
        studies = len(self.subtopic_of)
        state = State(
            Phase.TOPIC, 0, -1, -1, 0, -1, 0, (0,) * self.n, (0,) * studies, (-1,) * studies, 0,
            (0,) * (self.n + studies), (-1,) * (self.n + studies), seed & _WORD,
        )  # fmt: skip
        return Event(state, ObservationKind.START)

    def candidates(self, state: State) -> tuple[int, ...]:
        """Return the indices that an action is matched with: studies at SUBTOPIC, subtopics at TOPIC and RESULT."""
        if state.phase == Phase.SUBTOPIC:
            return self.studies_of[state.subtopic]
        if state.phase in (Phase.TOPIC, Phase.RESULT):
            return self._all
        return ()

    def admissible(self, state: State) -> tuple[int, ...]:
        """Return the subtopics whose prerequisites have all been visited."""
        locked = ~state.visited
        return tuple(i for i, needs in enumerate(self.prerequisites) if not needs & locked)

    def advance(self, state: State, reading: Reading) -> Event:
        """Return the event that follows an action.

        Raises:
            ValueError: the episode is over, or the reading names a study of another subtopic.
        """
        event = self._handlers[state.phase](state, reading)
        after = event.state
        if self.turn_limit is not None and after.turn >= self.turn_limit and after.phase < Phase.CONCLUSION:
            return event._replace(state=after._replace(phase=Phase.CONCLUSION, hint_level=0, target=-1), limit=True)
        return event

    def fake_shown(self, seed: int, study: int, run: int) -> int:
        """Return the result that the ``run``-th run of ``study`` shows: 0 for the true one, i for the i-th fake.

        The draw is a hash of seed, tree, study and run, so it depends on nothing else, and the fakes of a lower level
        are a subset of those of a higher one.
        """
        draw = splitmix64(seed, self.fake_keys[study], run)
        if draw * 10 >= self.rules.fake_level << 64:
            return 0
        return 1 + splitmix64(draw) % self.fakes_of[study]

    def agent_seed(self, seed: int) -> int:
        """Return the seed for the agent of an episode with ``seed``, from 0 to 2^63 - 1.

        It is a one-way hash of seed and tree. So one seed gives independent agents on different trees, and no agent
        learns the seed of its fakes.
        """
        return seed_of_agent(seed, self._tree_id)

    def wording_shown(self, seed: int, study: int, run: int) -> int:
        """Return the wording of what the ``run``-th run of ``study`` shows, be it true or a fake.

        The draw is a hash of its own, so that no wording says anything about a result.
        """
        count = self.wordings_of[study]
        return splitmix64(seed, self.fake_keys[study], WORDING, run) % count if count > 1 else 0

    def _at_topic(self, state: State, reading: Reading) -> Event:
        choice = reading.candidate
        if reading.decision == Decision.CONCLUDE and self._takes_bare:
            return self._conclude(state)
        if choice < 0 or reading.similarity < self._threshold:
            return self._fail(state, Reason.BELOW_THRESHOLD)
        if self.prerequisites[choice] & ~state.visited:
            reason = Reason.PREREQUISITE_UNMET
            return self._postpone(state, reason) if self._waits else self._fail(state, reason)
        return self._enter(state, choice, repeats=reading.repeats)

    def _at_subtopic(self, state: State, reading: Reading) -> Event:
        if reading.decision and self._takes_bare:
            if reading.decision == Decision.CONCLUDE:
                return self._conclude(state)
            if reading.decision == Decision.EXPLORE:
                return self._decline(state)
        if reading.candidate < 0 or reading.similarity < self._threshold:
            return self._fail(state, Reason.BELOW_THRESHOLD)
        if self.subtopic_of[reading.candidate] != state.subtopic:
            raise ValueError(
                f"study {reading.candidate} is not in subtopic {state.subtopic}; choose one of candidates(state)"
            )
        return self._run(state, reading.candidate, repeats=reading.repeats)

    def _at_study(self, state: State, reading: Reading) -> Event:
        return self._show(state, state.study, state.runs)

    def _at_result(self, state: State, reading: Reading) -> Event:
        decision = reading.decision
        names = reading.candidate >= 0 and reading.similarity >= self._threshold
        if decision == Decision.NONE:
            if not names or (state.visited >> reading.candidate & 1 and self.rules.named_at_result == "unvisited"):
                return self._wait(state)
            decision = Decision.EXPLORE
        if decision == Decision.REDO:
            return self._run(state, state.study, decision=decision)
        if decision == Decision.CONCLUDE:
            return self._conclude(state)
        return Event(_move(state, Phase.TOPIC), ObservationKind.TOPIC, accepted=True, decision=decision)

    def _at_conclusion(self, state: State, reading: Reading) -> Event:
        return Event(_move(state, Phase.END), ObservationKind.END, accepted=True)

    def _at_end(self, state: State, reading: Reading) -> Event:
        raise ValueError("the episode is over; start a new one")

    def _conclude(self, state: State) -> Event:
        return Event(
            _move(state, Phase.CONCLUSION), ObservationKind.CONCLUSION, accepted=True, decision=Decision.CONCLUDE
        )

    def _decline(self, state: State) -> Event:
        """Take the last entry back, so that it leaves nothing but its hints."""
        left = state.visits[state.subtopic] - 1
        visited = state.visited if left else state.visited & ~(1 << state.subtopic)
        credit = state.credit if left else _with(state.credit, state.subtopic, -1)
        visits = _with(state.visits, state.subtopic, left)
        after = _move(state, Phase.TOPIC)._replace(visited=visited, visits=visits, credit=credit)
        return Event(after, ObservationKind.DECLINED, state.subtopic, accepted=True, decision=Decision.EXPLORE)

    def _postpone(self, state: State, reason: Reason) -> Event:
        """Let a proposal wait, which takes a turn and leaves the hints as they are."""
        return Event(state._replace(turn=state.turn + 1), ObservationKind.WAIT, reason=reason)

    def _wait(self, state: State) -> Event:
        reason = Reason.UNREADABLE_DECISION
        return Event(_move(state, Phase.RESULT), ObservationKind.ASK_AGAIN, node=state.study, reason=reason)

    def _fail(self, state: State, reason: Reason) -> Event:
        """Give the next hint, or make the forced move after the last one."""
        at_topic = state.phase == Phase.TOPIC
        target = state.target if state.target >= 0 else self._hint_target(state)
        if state.hint_level == HINT_LEVELS:
            return self._enter(state, target, reason) if at_topic else self._run(state, target, reason)
        level = state.hint_level + 1
        node = target if at_topic else self.n + target
        told = _with(state.told, node, max(level, state.told[node]))
        after = state._replace(turn=state.turn + 1, hint_level=level, target=target, told=told)
        kind = ObservationKind.SUBTOPIC_HINT if at_topic else ObservationKind.STUDY_HINT
        return Event(after, kind, node=target, hint_level=level, reason=reason)

    def _hint_target(self, state: State) -> int:
        if state.phase == Phase.TOPIC:
            return min(self.admissible(state), key=state.visits.__getitem__)
        return min(self.studies_of[state.subtopic], key=state.runs.__getitem__)

    # A reason marks a forced move; without one, the action was accepted. Positional fields are faster.

    def _earn(self, state: State, node: int, lost: bool) -> tuple[int, ...]:
        """Fix the credit of a node at its first choice. It is ``lost`` by a forced move or a repeated text."""
        return _with(state.credit, node, 0 if lost else CREDITS[state.told[node]])

    def _enter(
        self,
        state: State,
        subtopic: int,
        reason: Reason = Reason.NONE,
        decision: Decision = Decision.NONE,
        *,
        repeats: bool = False,
    ) -> Event:
        first = not state.visits[subtopic]
        credit = self._earn(state, subtopic, repeats or bool(reason)) if first else state.credit
        after = State(
            Phase.SUBTOPIC, state.turn + 1, subtopic, state.study, 0, -1, state.visited | 1 << subtopic,
            _with(state.visits, subtopic, state.visits[subtopic] + 1), state.runs, state.shown, state.proven,
            state.told, credit, state.seed,
        )  # fmt: skip
        return Event(after, ObservationKind.SUBTOPIC, subtopic, 0, not reason, bool(reason), 0, False, reason, decision)

    def _run(
        self,
        state: State,
        study: int,
        reason: Reason = Reason.NONE,
        decision: Decision = Decision.NONE,
        *,
        repeats: bool = False,
    ) -> Event:
        if state.runs[study] and self._recalls and decision != Decision.REDO:
            after = _move(state, Phase.RESULT)._replace(study=study)
            return Event(after, ObservationKind.RECALL, study, 0, not reason, bool(reason), reason=reason)
        if not state.runs[study]:
            state = state._replace(credit=self._earn(state, self.n + study, repeats or bool(reason)))
        runs = _with(state.runs, study, state.runs[study] + 1)
        if decision == Decision.REDO and self.rules.redo_turn:
            after = _move(state, Phase.STUDY)._replace(study=study, runs=runs)
            return Event(after, ObservationKind.REDO, study, accepted=True, decision=decision)
        return self._show(state, study, runs, reason, decision)

    def _show(
        self,
        state: State,
        study: int,
        runs: tuple[int, ...],
        reason: Reason = Reason.NONE,
        decision: Decision = Decision.NONE,
    ) -> Event:
        fake = self.fake_shown(state.seed, study, runs[study]) if self.rules.fake_level else 0
        wording = self.wording_shown(state.seed, study, runs[study])
        after = State(
            Phase.RESULT, state.turn + 1, state.subtopic, study, 0, -1, state.visited, state.visits, runs,
            _with(state.shown, study, fake), state.proven | (0 if fake else 1 << study), state.told, state.credit,
            state.seed,
        )  # fmt: skip
        return Event(
            state=after,
            kind=ObservationKind.RESULT,
            node=study,
            fake=fake,
            accepted=not reason,
            forced=bool(reason),
            reason=reason,
            decision=decision,
            wording=wording,
            credit=min(state.credit[self.subtopic_of[study]], state.credit[self.n + study]),
        )


def _fake_key(tree: str, study: str) -> int:
    return int.from_bytes(blake2b(f"{tree}\n{study}".encode(), digest_size=8).digest(), "big")


def _move(state: State, phase: Phase) -> State:
    """Take a turn to another phase, and reset the hints."""
    return State(
        phase, state.turn + 1, state.subtopic, state.study, 0, -1, state.visited, state.visits, state.runs,
        state.shown, state.proven, state.told, state.credit, state.seed,
    )  # fmt: skip


def _with(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])
