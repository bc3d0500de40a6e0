"""Compilation of one tree under one set of rules into state and transition tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Decision, Engine, Kind, Phase, Reading, State
from inquitree_gym.envs.batch.encoding import (
    REDO,
    REJECTED,
    WORD_BITS,
    Branch,
    Context,
    Counts,
    Ints,
    Op,
    StateIndex,
    StateKey,
    StateTable,
    hint_pools,
    initial_branches,
    initial_counts,
    n_counters,
    transition,
    unlocked,
)  # fmt: skip
from inquitree_gym.envs.menu import Menu
from inquitree_gym.envs.observations import ObservationKey, observation_keys
from inquitree_gym.envs.runtime import TreeRuntime
from inquitree_gym.errors import OptionError
from inquitree_gym.matching import SIMILARITY_TOLERANCE, readable
from inquitree_gym.trees import HINT_LEVELS

MAX_ENTRIES = 1 << 26
"""Largest transition table of one tree, in entries: half a GiB."""
_REJECT = transition(Op.REJECT)
_TO_TOPIC, _TO_CONCLUSION = transition(Op.GOTO, StateIndex.TOPIC), transition(Op.GOTO, StateIndex.CONCLUSION)


class TextReader:
    """Matches texts in every reading context of one tree."""

    def __init__(self, runtime: TreeRuntime, states: StateIndex) -> None:
        """Read with ``runtime``'s matcher, into transitions between ``states``."""
        self.branches = initial_branches()
        """Numbers of the branches found so far."""
        self._runtime = runtime
        self._states = states
        self._engine = engine = runtime.engine
        self._state = engine.start(0).state._replace(visited=(1 << engine.n) - 1)
        self._subtopics, self._studies = tuple(range(engine.n)), tuple(range(len(engine.subtopic_of)))
        self._threshold = -1.0 if engine.rules.threshold is None else engine.rules.threshold
        self._direct = engine.rules.explore == "direct"
        self._admissible = engine.rules.candidates == "admissible"

    def state(self, context: int) -> State:
        """Return an engine state of this context. All subtopics are visited, so all are candidates."""
        if context >= Context.SUBTOPIC:
            return self._state._replace(phase=Phase.SUBTOPIC, subtopic=context - Context.SUBTOPIC)
        return self._state._replace(phase=Phase.RESULT if context == Context.RESULT else Phase.TOPIC)

    def read(self, text: str) -> Ints:
        """Return the branch numbers of ``text``, shape ``(contexts,)``."""
        self._settle(readable(text))
        found = np.full(Context.SUBTOPIC + self._engine.n, REJECTED)
        for context in (Context.TOPIC, Context.RESULT):
            found[context] = self._read(context, text)
        for study, similarity in reversed(self._rank_studies(text)):  # the nearest of each subtopic comes last
            if similarity >= self._threshold:
                branch = Branch.always(run_study(self._engine, self._states, study))
                found[Context.SUBTOPIC + self._engine.subtopic_of[study]] = self.number(branch)
        return found

    def number(self, branch: Branch) -> int:
        """Return the number of ``branch``; a new one gets the next."""
        return self.branches.setdefault(branch, len(self.branches))

    def _rank_subtopics(self, text: str) -> tuple[tuple[int, float], ...]:
        return self._runtime.matcher.match_subtopics(readable(text), self._subtopics, len(self._subtopics)).top

    def _rank_studies(self, text: str) -> tuple[tuple[int, float], ...]:
        return self._runtime.matcher.match_studies(readable(text), self._studies, len(self._studies)).top

    def _settle(self, text: str) -> None:
        """Embed ``text`` alone if it came from a batch and its last bits could decide the reading."""
        if self._runtime.vectors.is_rough(text):
            for ranking in (self._rank_subtopics(text), self._rank_studies(text)):
                similarities = np.array([self._threshold, *(similarity for _, similarity in ranking)])
                if (np.diff(np.sort(similarities)) < SIMILARITY_TOLERANCE).any():
                    self._runtime.vectors.settle(text)
                    return

    def _read(self, context: int, text: str) -> int:
        """Return the branch number of ``text`` at the topic or at a result."""
        reading = self._runtime.matcher.read(self.state(context), text)
        if context == Context.TOPIC:
            return self._name(reading, text, locked=_REJECT, none=_REJECT)
        if reading.decision == Decision.NONE:
            return self._name(reading, text, locked=_TO_TOPIC, none=_REJECT, unvisited_only=True)
        if reading.decision == Decision.REDO:
            return REDO
        if reading.decision == Decision.EXPLORE and self._direct:
            return self._name(reading, text, locked=_TO_TOPIC, none=_TO_TOPIC)
        target = _TO_TOPIC if reading.decision == Decision.EXPLORE else _TO_CONCLUSION
        return self.number(Branch.always(target))

    def _name(self, reading: Reading, text: str, *, locked: int, none: int, unvisited_only: bool = False) -> int:
        """Return the branch number of a text that may name a subtopic.

        Args:
            reading: the matcher's reading of the text.
            text: the text itself.
            locked: transition if the nearest subtopic lacks a prerequisite and no other one may count instead.
            none: transition if no subtopic is near enough.
            unvisited_only: reject a subtopic that was visited.
        """
        following = none
        number = self.number(Branch.always(following))
        for subtopic in reversed(self._named(reading, text)):
            enters = self._direct or not unvisited_only
            target = transition(Op.VISIT, self._states.of(Kind.SUBTOPIC, subtopic)) if enters else _TO_TOPIC
            branch = Branch.always(target)
            if unvisited_only or self._engine.prerequisites[subtopic]:
                otherwise = following if self._admissible else locked
                branch = Branch(subtopic, otherwise, target, _REJECT if unvisited_only else target)
            number = self.number(branch)
            following = transition(Op.FALLBACK, number)
        return number

    def _named(self, reading: Reading, text: str) -> list[int]:
        """Return the subtopics that ``text`` can be taken for, nearest first."""
        if reading.candidate < 0 or reading.similarity < self._threshold:
            return []
        if not self._admissible:
            return [reading.candidate]
        return [subtopic for subtopic, similarity in self._rank_subtopics(text) if similarity >= self._threshold]


class _Row(NamedTuple):
    """Behaviour that states with the same row of the transition table share."""

    context: int
    on_reject: int
    on_redo: int = 0


@dataclass(frozen=True, slots=True)
class RowTable:
    """Properties of the rows of a transition table, each an array of shape ``(rows,)``."""

    context: Ints
    on_reject: Ints
    """Number of the branch that replaces `REJECTED`."""
    on_redo: Ints
    """Number of the branch that replaces `REDO`."""

    def branches(self, by_context: Ints) -> Ints:
        """Expand branch numbers of shape ``(contexts, …)`` to the rows, shape ``(rows, …)``."""
        found = by_context[self.context]
        for number, instead in ((REJECTED, self.on_reject), (REDO, self.on_redo)):
            np.copyto(found, instead.reshape(-1, *[1] * (found.ndim - 1)), where=found == number)
        return found


@dataclass(frozen=True, slots=True)
class CompiledTree:
    """Tables of one tree under one set of rules; states, rows and branches are numbered from 0."""

    runtime: TreeRuntime
    menu: Menu
    reader: TextReader
    states: StateTable
    rows: RowTable
    branches: Counts
    """Branch numbers, shape ``(rows, menu texts)``."""
    masks: NDArray[np.int8]
    """Open actions once every subtopic was visited, shape ``(states, actions)``."""
    hint_pools: Ints
    """Counter columns of the nodes that a first hint may lead to, shape ``(1 + subtopics, nodes)``: all subtopics, then
    the studies of each. Short rows are padded with their first node."""
    unlocks: Ints
    """Counter columns of the subtopics that need subtopic i, in row 1 + i; row 0 is empty. Padded with the sink."""
    initial_counts: Counts
    """Counters at the start of an episode: minus the number of prerequisites of a subtopic, else 0."""


def compile_tree(runtime: TreeRuntime, menu: Menu) -> CompiledTree:
    """Compile ``runtime``'s tree for the actions of ``menu``.

    Raises:
        OptionError: the table would have more than `MAX_ENTRIES` entries.
    """
    engine, states = runtime.engine, StateIndex(runtime.engine)
    row_of_state = [_row(engine, states, key) for key in states.keys]
    rows = {row: number for number, row in enumerate(dict.fromkeys(row_of_state))}
    if len(rows) * menu.size.actions > MAX_ENTRIES:
        raise OptionError(
            f"{runtime.tree.id} needs a table of {len(rows):,} times {menu.size.actions:,} entries, and at most "
            f'{MAX_ENTRIES:,} are made; play so large a tree with vectorization_mode="sync"'
        )
    reader = TextReader(runtime, states)
    row_table = RowTable(
        np.array([row.context for row in rows]),
        np.array([reader.number(Branch.always(row.on_reject)) for row in rows]),
        np.array([reader.number(Branch.always(row.on_redo)) for row in rows]),
    )
    by_context = np.stack([reader.read(text) for text in menu.texts], axis=1)
    return CompiledTree(
        runtime=runtime,
        menu=menu,
        reader=reader,
        states=_state_table(runtime, menu, states, row_of_state, rows),
        rows=row_table,
        branches=row_table.branches(by_context).astype(np.int32),
        masks=_masks(engine, menu, reader, states, row_of_state),
        hint_pools=hint_pools(engine, menu.size),
        unlocks=unlocked(engine, menu.size),
        initial_counts=initial_counts(engine, menu.size),
    )


def run_study(engine: Engine, states: StateIndex, study: int, *, forced: bool = False) -> int:
    """Return the transition of running ``study``."""
    if engine.rules.study_turn:
        return transition(Op.VISIT, states.of(Kind.STUDY, study, forced=forced))
    return _show_result(engine, states, study, forced=forced)


def _show_result(engine: Engine, states: StateIndex, study: int, *, forced: bool = False) -> int:
    op = Op.SHOW if engine.rules.fake_level else Op.VISIT
    return transition(op, states.of(Kind.RESULT, study, forced=forced))


def _row(engine: Engine, states: StateIndex, key: StateKey) -> _Row:
    """Return the reading context of a state and its transitions on a rejected action and on a redo."""
    shown = key.observation
    match key.phase:
        case Phase.TOPIC:
            return _Row(Context.TOPIC, _reject(engine, states, shown))
        case Phase.SUBTOPIC:
            owner = shown.node if shown.kind == Kind.SUBTOPIC else engine.subtopic_of[shown.node]
            return _Row(Context.SUBTOPIC + owner, _reject(engine, states, shown))
        case Phase.STUDY:
            return _Row(Context.NO_MATCH, _show_result(engine, states, shown.node))
        case Phase.RESULT:
            ask_again = transition(Op.GOTO, states.ask_again(shown.node))
            return _Row(Context.RESULT, ask_again, run_study(engine, states, shown.node))
        case Phase.CONCLUSION:
            return _Row(Context.NO_MATCH, transition(Op.END, states.end))
    return _Row(Context.NO_MATCH, transition(Op.GOTO, StateIndex.START))


def _reject(engine: Engine, states: StateIndex, shown: ObservationKey) -> int:
    """Return the transition of an action that names no candidate at the topic or at a subtopic."""
    match shown.kind:
        case Kind.START:
            return transition(Op.GOTO, states.hint(Kind.SUBTOPIC_HINT, engine.prerequisites.index(0), 1))
        case Kind.TOPIC:
            return transition(Op.HINT, states.hint(Kind.SUBTOPIC_HINT, 0, 1))
        case Kind.SUBTOPIC:
            studies = engine.studies_of[shown.node]
            return transition(Op.HINT if len(studies) > 1 else Op.GOTO, states.hint(Kind.STUDY_HINT, studies[0], 1))
    if shown.hint_level < HINT_LEVELS or engine.rules.on_last_hint == "repeat":
        return transition(Op.GOTO, states.hint(shown.kind, shown.node, min(shown.hint_level + 1, HINT_LEVELS)))
    if shown.kind == Kind.STUDY_HINT:
        return run_study(engine, states, shown.node, forced=True)
    return transition(Op.VISIT, states.of(Kind.SUBTOPIC, shown.node, forced=True))


def _state_table(
    runtime: TreeRuntime, menu: Menu, states: StateIndex, row_of_state: Sequence[_Row], rows: Mapping[_Row, int]
) -> StateTable:
    """Return the properties of all states, given the row of each and the number of each row."""
    engine, first_study, keys = runtime.engine, menu.size.subtopics, states.keys
    texts = {key: number for number, key in enumerate(observation_keys(runtime.tree))}
    kind = np.array([key.observation.kind for key in keys])
    index = np.array([key.observation.node for key in keys])
    entered, shown = kind == Kind.SUBTOPIC, kind == Kind.RESULT
    counted = entered | (kind == (Kind.STUDY if engine.rules.study_turn else Kind.RESULT))
    of_study = np.isin(kind, (Kind.STUDY, Kind.STUDY_HINT, Kind.RESULT, Kind.ASK_AGAIN))
    node = np.where(of_study, first_study + index, np.maximum(index, 0))
    word, bit = np.divmod(node, WORD_BITS)
    return StateTable(
        row=np.array([rows[row] for row in row_of_state]),
        text=np.array([texts[key.observation.plain()] for key in keys]),
        context=np.array([row.context for row in row_of_state]),
        on_reject=np.array([row.on_reject for row in row_of_state]),
        at_limit=np.array([states.at_limit(state) for state in range(len(keys))]),
        counter=np.where(counted, node, n_counters(menu.size) - 1),
        word=word,
        bit=np.where(entered | shown, 1 << bit, 0),
        node=node,
        hint_pool=np.where(kind == Kind.STUDY_HINT, 1 + np.array(engine.subtopic_of)[index], 0),
        unlocks=np.where(entered, 1 + index, 0),
        n_fakes=np.where(shown, np.array(engine.fakes_of)[index], 0),
        phase=np.array([key.phase for key in keys]),
        hint_level=np.array([key.observation.hint_level for key in keys]),
        accepted=np.array([key.accepted for key in keys]),
        forced=np.array([key.forced for key in keys]),
    )


def _masks(
    engine: Engine, menu: Menu, reader: TextReader, states: StateIndex, row_of_state: Sequence[_Row]
) -> NDArray[np.int8]:
    kinds = [(row.context, key.phase) for row, key in zip(row_of_state, states.keys, strict=True)]
    masks = {kind: menu.mask(engine, reader.state(kind[0])._replace(phase=kind[1])) for kind in dict.fromkeys(kinds)}
    return np.stack([masks[kind] for kind in kinds]).astype(np.int8)
