"""Compilation of one tree under one set of rules into state and transition tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.spaces import Ints
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.arrays.encoding import (
    REDO,
    REJECTED,
    WORD_BITS,
    Branch,
    Context,
    Counts,
    Op,
    StateIndex,
    StateKey,
    StateTable,
    hint_pools,
    initial_counts,
    n_counters,
    transition,
    unlocked,
)
from inquitree_gym.inquiry.arrays.reading import TextReader, run_branch, run_study, show_result
from inquitree_gym.inquiry.engine import Engine, ObservationKind, Phase
from inquitree_gym.inquiry.menu import Menu
from inquitree_gym.inquiry.observations import ObservationKey, observation_keys
from inquitree_gym.inquiry.runtime import TreeRuntime
from inquitree_gym.trees import HINT_LEVELS

MAX_ENTRIES = 1 << 26
"""Largest transition table of one tree, in entries: half a GiB."""


class _Row(NamedTuple):
    """Behaviour that states with the same row of the transition table share."""

    context: int
    on_reject: int
    rejected: Branch
    """Branch of an action that is not accepted: the transition ``on_reject``, unless a forced move leads to a study
    that was run before."""
    on_redo: int = 0
    on_locked: int = 0


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
    """Tables of one tree under one set of rules. States, rows and branches are numbered from 0."""

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
    """Counter columns of the subtopics that need subtopic i, in row 1 + i. Row 0 is empty. Padded with the sink."""
    initial_counts: Counts
    """Counters at the start of an episode: for a subtopic minus the number of its prerequisites, else 0."""


def compile_tree(runtime: TreeRuntime, menu: Menu) -> CompiledTree:
    """Compile ``runtime``'s tree for the actions of ``menu``.

    Raises:
        OptionError: the table would have more than `MAX_ENTRIES` entries.
    """
    engine, states = runtime.engine, StateIndex(runtime.engine)
    reader = TextReader(runtime, states)
    row_of_state = [_row(engine, states, key) for key in states.keys]
    rows = {row: number for number, row in enumerate(dict.fromkeys(row_of_state))}
    if len(rows) * menu.size.actions > MAX_ENTRIES:
        raise OptionError(
            f"{runtime.task.id} needs a table of {len(rows):,} times {menu.size.actions:,} entries, and at most "
            f'{MAX_ENTRIES:,} are made; play so large a tree with vectorization_mode="sync"'
        )
    row_table = RowTable(
        np.array([row.context for row in rows]),
        np.array([reader.number(row.rejected) for row in rows]),
        np.array([reader.number(Branch.always(row.on_redo)) for row in rows]),
    )
    by_context = np.stack([reader.read(text) for text in menu.texts], axis=1)
    return CompiledTree(
        runtime=runtime,
        menu=menu,
        reader=reader,
        states=_state_table(runtime, menu, states, row_of_state, rows, reader),
        rows=row_table,
        branches=row_table.branches(by_context).astype(np.int32),
        masks=_masks(engine, menu, reader, states, row_of_state),
        hint_pools=hint_pools(engine, menu.size),
        unlocks=unlocked(engine, menu.size),
        initial_counts=initial_counts(engine, menu.size),
    )


def _row(engine: Engine, states: StateIndex, key: StateKey) -> _Row:
    """Return the reading context of a state and its transitions on a rejected action and on a redo."""
    shown = key.observation
    match key.phase:
        case Phase.TOPIC:
            rejected = locked = _reject(engine, states, key)
            if engine.rules.feedback == "reason":
                locked = transition(Op.GOTO, states.wait(shown.hint_level, _target(key)))
            return _Row(Context.TOPIC, rejected, Branch.always(rejected), on_locked=locked)
        case Phase.SUBTOPIC:
            rejected, forced = _reject(engine, states, key), shown.hint_level == HINT_LEVELS
            branch = run_branch(engine, states, _target(key), forced=True) if forced else Branch.always(rejected)
            return _Row(Context.SUBTOPIC + _owner(engine, shown), rejected, branch)
        case Phase.STUDY:
            return _plain_row(Context.NO_MATCH, show_result(engine, states, shown.node))
        case Phase.RESULT:
            ask_again = transition(Op.GOTO, states.ask_again(shown.node))
            return _plain_row(Context.RESULT, ask_again, run_study(engine, states, shown.node, again=True))
        case Phase.CONCLUSION:
            return _plain_row(Context.NO_MATCH, transition(Op.END, states.end))
    return _plain_row(Context.NO_MATCH, transition(Op.GOTO, StateIndex.START))


def _plain_row(context: int, on_reject: int, on_redo: int = 0) -> _Row:
    return _Row(context, on_reject, Branch.always(on_reject), on_redo)


def _owner(engine: Engine, shown: ObservationKey) -> int:
    """Return the subtopic of an observation at a subtopic."""
    return shown.node if shown.kind == ObservationKind.SUBTOPIC else engine.subtopic_of[shown.node]


def _target(key: StateKey) -> int:
    """Return the node that the hints so far lead to. -1 before the first."""
    hinted = key.observation.kind in (ObservationKind.SUBTOPIC_HINT, ObservationKind.STUDY_HINT)
    return key.observation.node if hinted else key.target


def _reject(engine: Engine, states: StateIndex, key: StateKey) -> int:
    """Return the transition of an action that names no candidate, at the topic or a subtopic."""
    shown, level = key.observation, key.observation.hint_level
    hint = ObservationKind.SUBTOPIC_HINT if key.phase == Phase.TOPIC else ObservationKind.STUDY_HINT
    if shown.kind == ObservationKind.START:
        return transition(Op.GOTO, states.hint(hint, engine.prerequisites.index(0), 1))
    if not level:
        nodes = range(engine.n) if hint == ObservationKind.SUBTOPIC_HINT else engine.studies_of[_owner(engine, shown)]
        op = Op.HINT if len(nodes) > 1 or hint == ObservationKind.SUBTOPIC_HINT else Op.GOTO
        return transition(op, states.hint(hint, nodes[0], 1))
    target = _target(key)
    if level < HINT_LEVELS:
        return transition(Op.GOTO, states.hint(hint, target, level + 1))
    if hint == ObservationKind.STUDY_HINT:
        return run_study(engine, states, target, forced=True)
    return transition(Op.VISIT, states.of(ObservationKind.SUBTOPIC, target, forced=True))


_WITH_A_BIT = (ObservationKind.SUBTOPIC, ObservationKind.RESULT, ObservationKind.DECLINED)
"""Observations in states that change the bit of a node."""
_COUNTED = (ObservationKind.SUBTOPIC, ObservationKind.REDO, ObservationKind.RESULT)
"""Observations in states that count a visit or a run."""
_OF_STUDY = (
    ObservationKind.STUDY_HINT,
    ObservationKind.REDO,
    ObservationKind.RESULT,
    ObservationKind.RECALL,
    ObservationKind.ASK_AGAIN,
)
"""Observations whose node is a study."""


def _state_table(
    runtime: TreeRuntime,
    menu: Menu,
    states: StateIndex,
    row_of_state: Sequence[_Row],
    rows: Mapping[_Row, int],
    reader: TextReader,
) -> StateTable:
    """Return the properties of all states, given the row of each and the number of each row."""
    engine, first_study, keys = runtime.engine, menu.size.subtopics, states.keys
    texts = {key: number for number, key in enumerate(observation_keys(runtime.task, runtime.engine.rules))}
    kind = np.array([key.observation.kind for key in keys])
    index = np.array([key.observation.node for key in keys])
    entered, shown, declined = (kind == each for each in _WITH_A_BIT)
    counted = np.isin(kind, _COUNTED)
    node = np.where(np.isin(kind, _OF_STUDY), first_study + index, np.maximum(index, 0))
    word, bit = np.divmod(node, WORD_BITS)
    return StateTable(
        row=np.array([rows[row] for row in row_of_state]),
        text=np.array([texts[key.observation.plain()] for key in keys]),
        context=np.array([row.context for row in row_of_state]),
        on_reject=np.array([row.on_reject for row in row_of_state]),
        on_locked=np.array([row.on_locked for row in row_of_state]),
        again=np.array([states.again(state) for state in range(len(keys))]),
        nothing_left=np.array([states.nothing_left(state) for state in range(len(keys))]),
        at_limit=np.array([states.at_limit(state) for state in range(len(keys))]),
        counter=np.where(counted, node, n_counters(menu.size) - 1),
        word=word,
        bit=np.where(entered | shown | declined, 1 << bit, 0),
        node=node,
        hint_pool=np.where(kind == ObservationKind.STUDY_HINT, 1 + np.array(engine.subtopic_of)[index], 0),
        unlocks=np.where(entered | declined, 1 + index, 0),
        n_fakes=np.where(shown, np.array(engine.fakes_of)[index], 0),
        n_wordings=np.where(shown, np.array(engine.wordings_of)[index], 1),
        fake_key=np.where(shown, np.array(engine.fake_keys, np.uint64)[index], np.uint64(0)),
        phase=np.array([key.phase for key in keys]),
        hint_level=np.array([key.observation.hint_level for key in keys]),
        hinted=np.isin(kind, (ObservationKind.SUBTOPIC_HINT, ObservationKind.STUDY_HINT)),
        accepted=np.array([key.accepted for key in keys]),
        forced=np.array([key.forced for key in keys]),
    )


def _masks(
    engine: Engine, menu: Menu, reader: TextReader, states: StateIndex, row_of_state: Sequence[_Row]
) -> NDArray[np.int8]:
    kinds = [(row.context, key.phase) for row, key in zip(row_of_state, states.keys, strict=True)]
    masks = {kind: menu.mask(engine, reader.state(kind[0])._replace(phase=kind[1])) for kind in dict.fromkeys(kinds)}
    return np.stack([masks[kind] for kind in kinds]).astype(np.int8)
