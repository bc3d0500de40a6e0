"""One tree under one set of rules, compiled: what follows from every menu text at every place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.engine import Engine, Kind, Phase
from inquitree_gym.envs.batch.encoding import Bools, Ints, Layout, Move, Spot, effect
from inquitree_gym.envs.batch.reader import ANY, AT_RESULT, AT_SUBTOPIC, AT_TOPIC, Reactions, Reader, plain, run, show
from inquitree_gym.envs.menu import Mask, Menu, MenuSize
from inquitree_gym.envs.observations import ObservationKey, observation_keys
from inquitree_gym.envs.runtime import TreeRuntime
from inquitree_gym.errors import OptionError
from inquitree_gym.trees import HINT_LEVELS

Numbers = NDArray[np.int32]

MAX_ENTRIES = 1 << 26
"""Most entries in the table of one tree: half a GiB."""
WORD = 62
"""Bits of a word: a signed 64-bit integer holds them and the number of their patterns."""


class Places(NamedTuple):
    """What the places are: one array per column, by place."""

    row: Ints
    """Row of the table: what an action leads to."""
    text: Ints
    """Number of the text among all those of the tree."""
    group: Ints
    """What an action is read as."""
    refused: Ints
    """Effect of an action that is not accepted."""
    at_limit: Ints
    """The place to be instead once the turn limit is reached."""
    slot: Ints
    """Where it counts to have come here: a subtopic's visits, a study's runs, or nothing."""
    word: Ints
    """Where it is marked to have come here, the subtopic as visited or the study as seen: the number of a word,"""
    bit: Ints
    """and the bit in it, or 0."""
    node: Ints
    """The subtopic, or after all slots for subtopics the study, that the text is about; 0 where it is about none."""
    pool: Ints
    """At the first hint to the first of a pool: number of the pool."""
    frees: Ints
    """Where a subtopic was entered: number of the pool of those that it is a prerequisite of."""
    fakes: Ints
    """At a result: how many fakes there are of it."""
    phase: Ints
    hint_level: Ints
    accepted: Bools
    forced: Bools


class Rows(NamedTuple):
    """How the rows of a table answer: arrays by row."""

    group: Ints
    refused: Numbers
    """Reaction instead of `Reactions.REFUSE`."""
    redone: Numbers
    """Reaction instead of `Reactions.REDO`."""

    def reactions(self, read: Ints) -> Ints:
        """Return reactions by row, shape ``(rows, …)``, given those by group, shape ``(groups, …)``."""
        found = read[self.group]
        for symbol, instead in ((Reactions.REFUSE, self.refused), (Reactions.REDO, self.redone)):
            np.copyto(found, instead.reshape(-1, *[1] * (found.ndim - 1)), where=found == symbol)
        return found


class Compiled(NamedTuple):
    """A tree under one set of rules, in numbers of its own."""

    places: Places
    rows: Rows
    table: Numbers
    """Reactions by row and menu text, shape ``(rows, texts)``; places that lead alike share a row."""
    open: Mask
    """What the menu allows where every subtopic was visited, shape ``(rows, actions)``."""
    pools: Ints
    """Slots that a hint may lead to, shape ``(1 + subtopics, nodes)``: all subtopics, then the studies of each; a pool
    with less of them is filled up with its first."""
    frees: Ints
    """Slots of the subtopics that each subtopic is a prerequisite of, shape ``(1 + subtopics, nodes)``, after those of
    nothing; filled up with the slot of nothing."""
    standings: Numbers
    """Counts of an episode that starts, by slot: minus the prerequisites of a subtopic, else 0."""
    reader: Reader
    menu: Menu


class Slots(NamedTuple):
    """Where an inquiry counts: visits by subtopic, then runs by study, then two slots of no node."""

    size: MenuSize

    @property
    def nothing(self) -> int:
        """The slot that is never counted in."""
        return self.size.subtopics + self.size.studies

    @property
    def sink(self) -> int:
        """The slot that is never looked at."""
        return self.nothing + 1

    @property
    def words(self) -> int:
        """How many words hold a bit for every node."""
        return -(-self.nothing // WORD)


class _Row(NamedTuple):
    """How a place answers."""

    group: int
    refused: int
    redone: int = 0


def compile_play(play: TreeRuntime, menu: Menu) -> Compiled:
    """Compile ``play`` for the actions of ``menu``.

    Raises:
        OptionError: the table would hold more than `MAX_ENTRIES` entries.
    """
    engine, layout = play.engine, Layout(play.engine)
    spots = tuple(layout.spots())
    answers = [_answer(engine, layout, spot) for spot in spots]
    rows = {answer: number for number, answer in enumerate(dict.fromkeys(answers))}
    if len(rows) * menu.size.actions > MAX_ENTRIES:
        raise OptionError(
            f"{play.tree.id} needs a table of {len(rows):,} times {menu.size.actions:,} entries, and at most "
            f'{MAX_ENTRIES:,} are made; play so large a tree with vectorization_mode="sync"'
        )
    reader = Reader(play, layout)
    number = reader.reactions.number
    columns = ([row.group, number(plain(row.refused)), number(plain(row.redone))] for row in rows)
    kinds = Rows(*np.array(list(columns)).T)
    phases = {answer: spot.phase for answer, spot in zip(answers, spots, strict=True)}
    return Compiled(
        _places(play, menu, spots, answers, rows),
        kinds,
        kinds.reactions(np.stack([reader.read(text) for text in menu.texts], axis=1)).astype(np.int32),
        np.stack([menu.mask(engine, reader.state(row.group)._replace(phase=phases[row])) for row in rows]),
        _pools(engine, menu.size),
        _frees(engine, menu.size),
        _standings(engine, menu.size),
        reader,
        menu,
    )


def _answer(engine: Engine, layout: Layout, spot: Spot) -> _Row:
    """Return how a place answers: how an action is read, and what follows if it is refused."""
    match spot.phase:
        case Phase.TOPIC:
            return _Row(AT_TOPIC, _topic_refuses(engine, layout, spot.view))
        case Phase.SUBTOPIC:
            owner = spot.view.node if spot.view.kind == Kind.SUBTOPIC else engine.subtopic_of[spot.view.node]
            return _Row(AT_SUBTOPIC + owner, _subtopic_refuses(engine, layout, spot.view))
        case Phase.STUDY:
            return _Row(ANY, show(engine, layout, spot.view.node))
        case Phase.RESULT:
            asked_again = effect(Move.GO, layout.asked_again(spot.view.node))
            return _Row(AT_RESULT, asked_again, run(engine, layout, spot.view.node))
    return _Row(ANY, effect(Move.END, layout.END) if spot.phase == Phase.CONCLUSION else effect(Move.GO, layout.START))


def _topic_refuses(engine: Engine, layout: Layout, view: ObservationKey) -> int:
    if view.kind == Kind.START:
        return effect(Move.GO, layout.hint(engine.prerequisites.index(0), 1))
    if view.kind == Kind.TOPIC:
        return effect(Move.AIM, layout.hint(0, 1))
    if view.hint_level == HINT_LEVELS and engine.rules.on_last_hint == "advance":
        return effect(Move.ACT, layout.subtopic(view.node, forced=True))
    return effect(Move.GO, layout.hint(view.node, min(view.hint_level + 1, HINT_LEVELS)))


def _subtopic_refuses(engine: Engine, layout: Layout, view: ObservationKey) -> int:
    if view.kind == Kind.SUBTOPIC:
        studies = engine.studies_of[view.node]
        return effect(Move.GO if len(studies) == 1 else Move.AIM, layout.study_hint(studies[0], 1))
    if view.hint_level == HINT_LEVELS and engine.rules.on_last_hint == "advance":
        return run(engine, layout, view.node, forced=True)
    return effect(Move.GO, layout.study_hint(view.node, min(view.hint_level + 1, HINT_LEVELS)))


def _places(
    play: TreeRuntime, menu: Menu, spots: Sequence[Spot], answers: Sequence[_Row], rows: Mapping[_Row, int]
) -> Places:
    """Return what the places are, given what each answers and the number of each answer."""
    texts = {view: number for number, view in enumerate(observation_keys(play.tree))}
    layout = Layout(play.engine)

    def columns(place: int, spot: Spot, answer: _Row) -> tuple[int, ...]:
        view = spot.view
        reading = rows[answer], texts[view.plain()], answer.group, answer.refused, _at_limit(layout, place, spot)
        marks = _marks(play.engine, menu.size, view)
        return *reading, *marks, spot.phase, view.hint_level, spot.accepted, spot.forced

    return Places(*(np.array(column) for column in zip(*map(columns, range(len(spots)), spots, answers), strict=True)))


def _at_limit(layout: Layout, place: int, spot: Spot) -> int:
    if spot.phase >= Phase.CONCLUSION:
        return place
    if spot.view.kind == Kind.RESULT:
        return layout.result(spot.view.node, spot.view.fake, limit=True, forced=spot.forced)
    return layout.LIMIT + spot.accepted + 2 * spot.forced


def _marks(engine: Engine, size: MenuSize, view: ObservationKey) -> tuple[int, int, int, int, int, int, int]:
    """Return a place's slot, word, bit, node, pool, frees and fakes."""
    sink = Slots(size).sink
    study = size.subtopics + view.node
    match view.kind:
        case Kind.SUBTOPIC:
            return view.node, view.node // WORD, 1 << view.node % WORD, view.node, 0, 1 + view.node, 0
        case Kind.SUBTOPIC_HINT:
            return sink, 0, 0, view.node, 0, 0, 0
        case Kind.STUDY:
            return study, 0, 0, study, 0, 0, 0
        case Kind.STUDY_HINT:
            return sink, 0, 0, study, 1 + engine.subtopic_of[view.node], 0, 0
        case Kind.RESULT:
            slot = sink if engine.rules.study_turn else study
            return slot, study // WORD, 1 << study % WORD, study, 0, 0, engine.fakes_of[view.node]
        case Kind.ASK_AGAIN:
            return sink, 0, 0, study, 0, 0, 0
    return sink, 0, 0, 0, 0, 0, 0


def _pools(engine: Engine, size: MenuSize) -> Ints:
    studies = [[size.subtopics + k for k in found] for found in engine.studies_of]
    return _filled([list(range(engine.n)), *studies], None)


def _frees(engine: Engine, size: MenuSize) -> Ints:
    freed = [[i for i, needs in enumerate(engine.prerequisites) if needs >> each & 1] for each in range(engine.n)]
    return _filled([[], *freed], Slots(size).sink)


def _filled(pools: Sequence[Sequence[int]], filler: int | None) -> Ints:
    """Return lists as rows of one array; shorter ones are filled up with ``filler``, or None with their own first."""
    length = max(1, *map(len, pools))
    return np.array([[*pool, *[pool[0] if filler is None else filler] * (length - len(pool))] for pool in pools])


def _standings(engine: Engine, size: MenuSize) -> Numbers:
    found = np.zeros(Slots(size).sink + 1, np.int32)
    found[: size.subtopics] = -1
    found[: engine.n] = [-needs.bit_count() for needs in engine.prerequisites]
    return found
