"""One step of many inquiries, in the Python that Numba compiles. `compiled` compiles it.

The functions take a range of inquiries, and NamedTuples of flat buffers: arrays where they are compiled, memory views
of the same arrays where they aren't. `step` works block by block, so that the rows of a block stay in the processor's
cache for all that is done with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from inquitree_gym.inquiry.engine import rows as at
from inquitree_gym.inquiry.engine import transition as turn
from inquitree_gym.inquiry.engine.transition import advance, begin
from inquitree_gym.inquiry.engine.values import Phase
from inquitree_gym.seeds import signed, splitmix64
from inquitree_gym.trees.fields import HINT_LEVELS

BLOCK = 512
"""Inquiries in a block."""
CONTEXTS = len(Phase)
"""Reading contexts, and masks, before those of the subtopics: the phases. In most of these nothing is read."""
ANSWER = 4
"""Numbers of a reading in a menu: candidate, decision, 1 if it is near enough, and where to find what it repeats."""
WORD_BITS = 62
"""Subtopics in a word of an index observation: a signed 64-bit integer holds every pattern and their number."""
COUNTS = 2 * at.COUNTS
"""Numbers of the tally in a word of an index observation: those of two columns, as ``WORD_BITS`` is twice 31."""
TEXT_HEAD = 2
"""Numbers before the kinds in a table of texts: the text of the limit, and the most wordings of a result."""
RESULT_STATES = 3
"""Texts of one result in one wording: with subtopics left to visit, with none left, and at the turn limit."""

Buffer = Any
"""A flat array, a memory view of one, or a pointer to its first element."""


class Inquiries(NamedTuple):
    """Buffers of a vector of inquiries."""

    rows: Buffer
    width: int
    """Columns of a row."""
    actions: int
    """Number of menu actions."""
    slots: int
    """Slots for subtopics in an observation."""
    tally: int
    """First column of the tally."""
    visited: int
    """First column of the visited subtopics."""
    tallied: int
    """Numbers of the tally in an observation."""
    dim: int
    """Length of the text part of the features. -1 for index observations."""
    reads: bool
    """True to look the readings of actions up, False where they are given."""
    n_choices: int
    """Number of trees to draw from."""
    over: Buffer
    """1 for an inquiry that is over and not yet started again."""
    first_seeds: Buffer
    """Seed given last, as a signed word."""
    episodes: Buffer
    """Episodes begun since that seed was given."""
    own: Buffer
    """Table of the tree of each inquiry, or -1 for one drawn from ``choices``."""
    choices: Buffer
    """Tables of the trees to draw from."""


class Tables(NamedTuple):
    """Buffers that all inquiries share."""

    trees: Buffer
    """Tables of the engine. See `rows`."""
    readings: Buffer
    """`ANSWER` numbers for each reading context and action of each tree, then lists of what texts repeat.

    A list is its length, then pairs: a column of a row, and the least number there with which a text that is repeated
    was shown. It is found by its distance from the first number of the tree, 0 for none.
    """
    masks: Buffer
    """Open actions of each tree as words of eight bytes: a row for each phase, then for each subtopic."""
    texts: Buffer
    """Numbers of texts by observation. See `tables.text_numbers`."""
    vectors: Buffer
    """Text part of the features by number of text. Empty for index observations."""


class Told(NamedTuple):
    """Results of a step for all inquiries."""

    phases: Buffer
    turns: Buffer
    hint_levels: Buffer
    accepted: Buffer
    forced: Buffer
    masks: Buffer
    """Open actions of each inquiry, as words of eight bytes."""
    numbers: Buffer
    """Number of the text that is shown."""
    observations: Buffer
    rewards: Buffer
    ended: Buffer
    """1 where an episode ended in this step."""


class Moves(NamedTuple):
    """Actions of a step."""

    actions: Buffer
    readings: Buffer
    """Four numbers for each action, looked up or given. See `READING`."""


def pointers(buffers: Any) -> Any:
    """Return a NamedTuple of buffers as it is. Compiled, its arrays become bare pointers.

    Reading an array costs a test of the sign of each index, and passing it on a count of references, together more than
    half of a step.
    """
    return buffers


def step(first: int, end: int, played: Inquiries, tables: Tables, moves: Moves, told: Told) -> None:
    """Take the inquiries ``first`` to ``end`` - 1 one turn further, and start those that were over."""
    advance_all(first, end, pointers(played), pointers(tables), pointers(moves), pointers(told))


def show_all(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write infos, numbers of texts and observations of the inquiries ``first`` to ``end`` - 1."""
    show(first, end, pointers(played), pointers(tables), pointers(told))


def go_on(order: Sequence[int], played: Inquiries, tables: Tables, told: Told) -> None:
    """Start the next episodes of some inquiries."""
    bare_played, bare_tables, bare_told = pointers(played), pointers(tables), pointers(told)
    for k in range(len(order)):
        restart(order[k], bare_played, bare_tables)
        show(order[k], order[k] + 1, bare_played, bare_tables, bare_told)


def advance_all(first: int, end: int, played: Inquiries, tables: Tables, moves: Moves, told: Told) -> None:
    """Take inquiries one turn further, block by block."""
    rows, width, over, ended, rewards = played.rows, played.width, played.over, told.ended, told.rewards
    for start in range(first, end, BLOCK):
        stop = min(end, start + BLOCK)
        if played.reads:
            read_actions(start, stop, played, tables, moves)
        advance(rows, start, stop, width, tables.trees, moves.readings)
        for i in range(start, stop):
            if over[i]:
                restart(i, played, tables)
            elif rows[i * width + at.PHASE] == turn.AT_END:
                over[i] = ended[i] = 1
                rewards[i] = rows[i * width + at.POINTS] / tables.trees[rows[i * width + at.TREE] + at.WHOLE]
        show(start, stop, played, tables, told)


def read_actions(first: int, end: int, played: Inquiries, tables: Tables, moves: Moves) -> None:
    """Look the readings of menu actions up."""
    rows, width, n_actions, trees, menus = played.rows, played.width, played.actions, tables.trees, tables.readings
    actions, readings = moves.actions, moves.readings
    for i in range(first, end):
        row = i * width
        phase = rows[row + at.PHASE]
        context = CONTEXTS + rows[row + at.SUBTOPIC] if phase == turn.AT_SUBTOPIC else phase
        start, to = trees[rows[row + at.TREE] + at.READINGS], i * turn.READING
        read = start + (context * n_actions + actions[i]) * ANSWER
        readings[to], readings[to + 1], readings[to + 2] = menus[read], menus[read + 1], menus[read + 2]
        readings[to + 3] = 0
        if menus[read + 3]:
            pairs = start + menus[read + 3]
            for k in range(pairs + 1, pairs + 1 + 2 * menus[pairs], 2):
                if rows[row + menus[k]] >= menus[k + 1]:
                    readings[to + 3] = 1


def next_seed(first: int, episode: int) -> int:
    """Return the seed of the k-th episode after a seeded one, as a signed word."""
    return signed(splitmix64(first, episode))


def draw_choice(seed: int, count: int) -> int:
    """Return which of ``count`` trees an episode is played on."""
    return splitmix64(seed, count) % count


def restart(i: int, played: Inquiries, tables: Tables) -> None:
    """Start the next episode of an inquiry."""
    played.episodes[i] += 1
    seed = next_seed(played.first_seeds[i], played.episodes[i])
    table, count = played.own[i], played.n_choices
    if table < 0:
        table = played.choices[draw_choice(seed, count) if count > 1 else 0]
    begin(played.rows, i * played.width, played.width, tables.trees, table, seed)
    played.over[i] = 0


def show(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write infos, numbers of texts and observations of inquiries."""
    rows, width, trees, codes, open_actions = played.rows, played.width, tables.trees, tables.texts, tables.masks
    phases, turns, hint_levels, numbers = told.phases, told.turns, told.hint_levels, told.numbers
    accepted, forced, masks, words = told.accepted, told.forced, told.masks, mask_words(played.actions)
    for i in range(first, end):
        row = i * width
        phase, table, hint = rows[row + at.PHASE], rows[row + at.TREE], rows[row + at.HINT_LEVEL]
        phases[i], turns[i], hint_levels[i] = phase, rows[row + at.TURN], hint
        accepted[i], forced[i] = rows[row + at.ACCEPTED], rows[row + at.FORCED]
        state = CONTEXTS + rows[row + at.SUBTOPIC] if phase == turn.AT_SUBTOPIC else phase
        if phase == turn.AT_EXAM:
            state = CONTEXTS + trees[table + at.N] + rows[row + at.ITEM]
        mask = trees[table + at.MASKS] + state * words
        for word in range(words):
            masks[i * words + word] = open_actions[mask + word]
        kind, texts, limited = rows[row + at.KIND], trees[table + at.TEXTS], rows[row + at.LIMITED]
        variant = 0
        if rows[row + at.LEFT] == 0:
            variant = 2 if rows[row + at.UNRUN] == 0 else 1
        if kind == turn.RESULT_SHOWN:
            wording = rows[row + at.OUTCOME] * codes[texts + 1] + rows[row + at.WORDING]
            variant = (2 * wording + rows[row + at.AGAIN]) * RESULT_STATES + (2 if limited else min(variant, 1))
        elif kind == turn.SUBTOPIC_SHOWN:
            variant = rows[row + at.AGAIN]
        elif hint or kind == turn.WAITING:
            variant = hint
        of_kind = texts + TEXT_HEAD + 2 * kind
        place = codes[of_kind] + (rows[row + at.NODE] + 1) * codes[of_kind + 1] + variant
        numbers[i] = codes[texts] if limited and kind != turn.RESULT_SHOWN else codes[texts + place]
    if played.dim < 0:
        observe_index(first, end, played, told)
    else:
        observe_features(first, end, played, tables, told)


def mask_words(n_actions: int) -> int:
    """Return the 64-bit words that a mask of bytes takes."""
    return (n_actions + 7) // 8


def observe_index(first: int, end: int, played: Inquiries, told: Told) -> None:
    """Write the number of the text, the visited subtopics in words of `WORD_BITS` bits, and the tally in others."""
    rows, width, slots, out, numbers = played.rows, played.width, played.slots, told.observations, told.numbers
    visited, tallied = (slots + at.VISIT_BITS - 1) // at.VISIT_BITS, (played.tallied + at.COUNTS - 1) // at.COUNTS
    columns = 1 + (visited + 1) // 2 + (tallied + 1) // 2
    for i in range(first, end):
        row, to = i * width, i * columns
        out[to] = numbers[i]
        to += 1
        for start, count, bits in (
            (row + played.visited, visited, at.VISIT_BITS), (row + played.tally, tallied, at.COUNTS * at.COUNT_BITS)
        ):  # fmt: skip
            for place in range(start, start + count, 2):
                word = int(rows[place])
                if place + 1 < start + count:
                    word |= int(rows[place + 1]) << bits
                out[to] = word
                to += 1


def observe_features(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write the rows of a `FeatureLayout`."""
    rows, width, slots, dim = played.rows, played.width, played.slots, played.dim
    out, numbers, vectors = told.observations, told.numbers, tables.vectors
    tallied = played.tallied
    size = CONTEXTS + 1 + slots + tallied + dim
    for i in range(first, end):
        row, to = i * width, i * size
        for place in range(to, to + CONTEXTS):
            out[place] = 0
        out[to + rows[row + at.PHASE]] = 1
        out[to + CONTEXTS] = rows[row + at.HINT_LEVEL] / HINT_LEVELS
        for slot in range(slots):
            out[to + CONTEXTS + 1 + slot] = int(rows[row + at.ROW_HEAD + slot] > 0)
        to += CONTEXTS + 1 + slots
        for place in range(tallied):
            word = rows[row + played.tally + place // at.COUNTS]
            out[to + place] = word >> at.COUNT_BITS * (place % at.COUNTS) & at.MOST_TALLIED
        to, vector = to + tallied, numbers[i] * dim
        for place in range(dim):
            out[to + place] = vectors[vector + place]
