"""The engine: rules and tree as one table, and the transition function called on single inquiries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.engine.rows import HIGHEST_FAKE, TABLE_HEAD, WHOLE, Slots, tree_table
from inquitree_gym.inquiry.engine.transition import advance, begin, draw_fake
from inquitree_gym.inquiry.engine.values import Decision, Event, ObservationKind, Phase, Reading, State
from inquitree_gym.inquiry.exam import draw_layout, exam_of
from inquitree_gym.seeds import WORD, seed_of_agent, signed
from inquitree_gym.sheets import Layout, Sheet

if TYPE_CHECKING:
    from inquitree_gym.inquiry.engine.rules import Rules
    from inquitree_gym.trees.schema import Tree


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
        self.n, studies = len(tree.subtopics), len(tree.studies)
        self.slots = Slots.of(tree)
        """Numbers that determine the columns of a row."""
        self.turn_limit = rules.turn_limit(self.n)
        self.table = table = tree_table(tree, rules, self.slots)
        """Tree and rules as the transition function takes them."""
        self.prerequisites = tuple(sum(1 << index[name] for name in s.requires) for s in tree.subtopics)
        """Bit set of the prerequisites of each subtopic."""
        self.subtopic_of = tuple(table[TABLE_HEAD : TABLE_HEAD + studies])
        self.studies_of = tuple(
            tuple(k for k, owner in enumerate(self.subtopic_of) if owner == i) for i in range(self.n)
        )
        fakes = TABLE_HEAD + studies + self.n + 1
        self.fakes_of = tuple(table[fakes : fakes + studies])
        self.outcomes_of = tuple(len(study.outcomes) for study in tree.studies)
        """Number of results that each study can have, over all worlds."""
        self.wordings_of = tuple(table[fakes + studies : fakes + 2 * studies])
        """Number of wordings in which every result of each study is shown."""
        self.fake_keys = tuple(key & WORD for key in table[fakes + 2 * studies : fakes + 3 * studies])
        """64-bit word of each study that the draws of its fakes and wordings depend on."""
        self.exam = exam_of(tree)
        """Exam of the tree, whatever the rules are."""
        self._n_axes = len(tree.axes)
        self._tree_id = tree.id
        self._threshold = rules.threshold
        self._all = tuple(range(self.n))

    def start(self, seed: int) -> Event:
        """Return the first event of an episode. ``seed`` (0 to 2^64 - 1) determines its world and its fake results."""
        row = [0] * self.slots.width
        begin(row, 0, len(row), self.table, 0, signed(seed))
        return Event(State(row, self.slots))

    def candidates(self, state: State) -> tuple[int, ...]:
        """Return the indices that an action is matched with: studies at SUBTOPIC, subtopics at TOPIC and RESULT."""
        phase = state.phase
        if phase == Phase.SUBTOPIC:
            return self.studies_of[state.subtopic]
        return self._all if phase in (Phase.TOPIC, Phase.RESULT) else ()

    def admissible(self, state: State) -> tuple[int, ...]:
        """Return the subtopics whose prerequisites have all been visited."""
        locked = ~state.visited
        return tuple(i for i, needs in enumerate(self.prerequisites) if not needs & locked)

    def advance(self, state: State, reading: Reading) -> Event:
        """Return the event that follows an action.

        Raises:
            ValueError: the episode is over, or the reading names a study of another subtopic.
        """
        candidate, phase = reading.candidate, state.phase
        if phase == Phase.END:
            raise ValueError("the episode is over; start a new one")
        near = candidate >= 0 and reading.similarity >= self._threshold
        if near and phase == Phase.SUBTOPIC and self.subtopic_of[candidate] != state.subtopic:
            raise ValueError(f"study {candidate} is not in subtopic {state.subtopic}; choose one of candidates(state)")
        row = list(state.row)
        advance(row, 0, 1, len(row), self.table, (candidate, reading.decision, near, reading.repeats))
        return Event(State(row, self.slots))

    def answer(self, state: State, sheet: Sheet) -> Event:
        """Return the event that follows a sheet. One without an answer is asked for once more."""
        if sheet.is_empty:
            event = self.advance(state, Reading(decision=Decision.REDO))
            if event.kind == ObservationKind.EXAM_AGAIN:
                return event
        else:
            event = self.advance(state, _option(sheet.choices[0]))
        for choice in sheet.choices[1:]:
            event = self.advance(event.state, _option(choice))
        return event

    def layout(self, state: State) -> Layout:
        """Return the order of the options of a sheet in an episode."""
        return draw_layout(self.exam, state.seed, self._tree_id, self.rules.world)

    def world(self, state: State) -> tuple[int, ...]:
        """Return the world of an episode: a pole for each axis of the tree."""
        return state.world[: self._n_axes]

    def exam_return(self, state: State) -> float:
        """Return the mean over all axes of credit times score, in [-1, 1], of the answers given so far."""
        return state.points / self.table[WHOLE]

    def fake_shown(self, seed: int, study: int, run: int) -> int:
        """Return the result that the ``run``-th run of ``study`` shows: 0 for the true one, i for the i-th fake.

        The draw is a hash of seed, tree, study and run, so it depends on nothing else, and the fakes of a lower level
        are a subset of those of a higher one.
        """
        if not (self.rules.fake_level and self.fakes_of[study]):
            return 0
        return draw_fake(seed, self.fake_keys[study], run, self.table[HIGHEST_FAKE], self.fakes_of[study])

    def agent_seed(self, seed: int) -> int:
        """Return the seed for the agent of an episode with ``seed``, from 0 to 2^63 - 1.

        It is a one-way hash of seed and tree. So one seed gives independent agents on different trees, and no agent
        learns the seed of its fakes.
        """
        return seed_of_agent(seed, self._tree_id)


def _option(choice: int | None) -> Reading:
    return Reading(-1 if choice is None else choice, 1.0)
