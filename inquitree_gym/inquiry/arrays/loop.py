"""One step of many inquiries, in the Python that Numba compiles. `compiled` compiles it.

The functions take a range of inquiries, and NamedTuples of flat buffers: arrays where they are compiled, memory views
of the same arrays where they aren't. `step` works block by block, so that the rows of a block stay in the processor's
cache for all that is done with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from inquitree_gym.inquiry.engine import rows as at
from inquitree_gym.inquiry.engine import transition as turn
from inquitree_gym.inquiry.engine.transition import advance, begin
from inquitree_gym.inquiry.engine.values import Phase
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees.schema import HINT_LEVELS

BLOCK = 64
"""Inquiries in a block."""
CONTEXTS = 2
"""Reading contexts before those of the subtopics: the topic, and a result."""
ANSWER = 3
"""Numbers of a reading in a menu: candidate, decision, 1 if it is near enough."""
WORD_BITS = 62
"""Subtopics in a word of an index observation: a signed 64-bit integer holds every pattern and their number."""
DECISIONS = 3
"""Menu actions that are decisions."""
TEXT_HEAD = 2
"""Numbers before the kinds in a table of texts: the text of the limit, and the most wordings of a result."""
RESULT_STATES = 3
"""Texts of one result in one wording: with subtopics left to visit, with none left, and at the turn limit."""
PHASES = len(Phase)

Buffer = Any
"""A flat array, or a memory view of one."""


class Inquiries(NamedTuple):
    """Buffers of a vector of inquiries."""

    rows: Buffer
    width: int
    """Columns of a row."""
    actions: int
    """Number of menu actions."""
    slots: int
    """Slots for subtopics in an observation."""
    dim: int
    """Length of the text part of the features. -1 for index observations."""
    reads: bool
    """True to look the readings of actions up, False where they are given."""
    over: Buffer
    """True for an inquiry that is over and not yet started again."""
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
    """`ANSWER` numbers for each reading context and action of each tree."""
    texts: Buffer
    """Numbers of texts by observation. See `tables.text_numbers`."""
    needs: Buffer
    """For each tree: conclusion items, place of the first grade, number of texts that have grades; then for each item
    its groups of results, and for each group its studies, each list behind its length."""
    grades: Buffer
    """Grade of each item by text, NaN if unknown: texts of the menu, then conclusions by their claims on all items."""
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
    """1 for an open action, a row of ``actions`` for each inquiry."""
    numbers: Buffer
    """Number of the text that is shown."""
    observations: Buffer
    rewards: Buffer
    ended: Buffer
    """True where an episode ended in this step."""


def step(
    first: int, end: int, played: Inquiries, tables: Tables, actions: Sequence[int], readings: Buffer, told: Told
) -> None:  # fmt: skip
    """Take the inquiries ``first`` to ``end`` - 1 one turn further, and start those that were over."""
    rows, width, over, ended, rewards = played.rows, played.width, played.over, told.ended, told.rewards
    for start in range(first, end, BLOCK):
        stop = min(end, start + BLOCK)
        if played.reads:
            read_actions(start, stop, played, tables, actions, readings)
        advance(rows, start, stop, width, tables.trees, readings)
        for i in range(start, stop):
            if over[i]:
                restart(i, played, tables)
            elif rows[i * width + at.PHASE] == turn.AT_END:
                over[i] = ended[i] = True
                rewards[i] = reward(i, actions[i], played, tables)
        show(start, stop, played, tables, told)


def go_on(order: Sequence[int], played: Inquiries, tables: Tables, told: Told) -> None:
    """Start the next episodes of some inquiries."""
    for k in range(len(order)):
        restart(order[k], played, tables)
        show(order[k], order[k] + 1, played, tables, told)


def read_actions(
    first: int, end: int, played: Inquiries, tables: Tables, actions: Sequence[int], readings: Buffer
) -> None:  # fmt: skip
    """Look the readings of menu actions up."""
    rows, width, n_actions, trees, menus = played.rows, played.width, played.actions, tables.trees, tables.readings
    for i in range(first, end):
        row = i * width
        phase = rows[row + at.PHASE]
        to = i * turn.READING
        readings[to], readings[to + 1], readings[to + 2], readings[to + 3] = -1, 0, 0, 0
        if phase in (turn.AT_TOPIC, turn.AT_SUBTOPIC, turn.AT_RESULT):
            context = 0 if phase == turn.AT_TOPIC else 1
            if phase == turn.AT_SUBTOPIC:
                context = CONTEXTS + rows[row + at.SUBTOPIC]
            read = trees[rows[row + at.TREE] + at.READINGS] + (context * n_actions + actions[i]) * ANSWER
            for place in range(ANSWER):
                readings[to + place] = menus[read + place]


def next_seed(first: int, episode: int) -> int:
    """Return the seed of the k-th episode after a seeded one, as a signed word."""
    word = splitmix64(first & 0xFFFFFFFFFFFFFFFF, episode)
    return word - (1 << 64) if word >> 63 else word


def draw_choice(seed: int, count: int) -> int:
    """Return which of ``count`` trees an episode is played on."""
    return splitmix64(seed & 0xFFFFFFFFFFFFFFFF, count) % count


def restart(i: int, played: Inquiries, tables: Tables) -> None:
    """Start the next episode of an inquiry."""
    played.episodes[i] += 1
    seed = next_seed(played.first_seeds[i], played.episodes[i])
    table, count = played.own[i], len(played.choices)
    if table < 0:
        table = played.choices[draw_choice(seed, count) if count > 1 else 0]
    begin(played.rows, i * played.width, played.width, tables.trees, table, seed)
    played.over[i] = False


def show(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write infos, numbers of texts and observations of inquiries."""
    tell(first, end, played, tables, told)
    number_texts(first, end, played, tables, told)
    observe(first, end, played, tables, told)


def tell(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write the infos of inquiries."""
    rows, width, n_actions, trees = played.rows, played.width, played.actions, tables.trees
    phases, turns, hint_levels = told.phases, told.turns, told.hint_levels
    accepted, forced, masks = told.accepted, told.forced, told.masks
    for action in range(first * n_actions, end * n_actions):
        masks[action] = 0
    for i in range(first, end):
        row = i * width
        phase, table = rows[row + at.PHASE], rows[row + at.TREE]
        phases[i], turns[i], hint_levels[i] = phase, rows[row + at.TURN], rows[row + at.HINT_LEVEL]
        accepted[i], forced[i] = rows[row + at.ACCEPTED] != 0, rows[row + at.FORCED] != 0
        n, studies = trees[table + at.N], table + at.TABLE_HEAD + trees[table + at.STUDIES]
        mask, first_study = i * n_actions, n_actions - 1 - DECISIONS - trees[table + at.STUDIES]
        start, stop = n_actions - 1, n_actions
        if phase == turn.AT_TOPIC:
            start, stop = 0, n
        elif phase == turn.AT_SUBTOPIC:
            entered = studies + rows[row + at.SUBTOPIC]
            start, stop = first_study + trees[entered], first_study + trees[entered + 1]
        elif phase == turn.AT_RESULT:
            start, stop = n_actions - 1 - DECISIONS, n_actions - 1
        elif phase == turn.AT_STUDY:
            for action in range(mask, mask + n):
                masks[action] = 1
            for action in range(mask + first_study, mask + first_study + trees[studies + n]):
                masks[action] = 1
            start = n_actions - 1 - DECISIONS
        for action in range(mask + start, mask + stop):
            masks[action] = 1


def number_texts(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write the number of the text that each of these inquiries shows."""
    numbers = told.numbers
    rows, width, trees, codes = played.rows, played.width, tables.trees, tables.texts
    for i in range(first, end):
        row = i * width
        kind, texts = rows[row + at.KIND], trees[rows[row + at.TREE] + at.TEXTS]
        if rows[row + at.LIMITED] and kind != turn.RESULT_SHOWN:
            numbers[i] = codes[texts]
            continue
        variant = 1 if rows[row + at.LEFT] == 0 else 0
        if kind == turn.RESULT_SHOWN:
            wording = rows[row + at.FAKE] * codes[texts + 1] + rows[row + at.WORDING]
            state = 2 if rows[row + at.LIMITED] else variant
            variant = (2 * wording + rows[row + at.AGAIN]) * RESULT_STATES + state
        elif kind == turn.SUBTOPIC_SHOWN:
            variant = rows[row + at.AGAIN]
        elif rows[row + at.HINT_LEVEL]:
            variant = rows[row + at.HINT_LEVEL]
        elif kind == turn.WAITING:
            variant = 0
        of_kind = texts + TEXT_HEAD + 2 * kind
        place = codes[of_kind] + (rows[row + at.NODE] + 1) * codes[of_kind + 1] + variant
        numbers[i] = codes[texts + place]


def observe(first: int, end: int, played: Inquiries, tables: Tables, told: Told) -> None:
    """Write observations: rows of a `FeatureLayout`, or the number of the text and the visited subtopics as words."""
    rows, width, slots, dim = played.rows, played.width, played.slots, played.dim
    out, numbers, vectors = told.observations, told.numbers, tables.vectors
    if dim < 0:
        words = (slots + WORD_BITS - 1) // WORD_BITS
        for i in range(first, end):
            to, visits = i * (1 + words), i * width + at.ROW_HEAD
            out[to] = numbers[i]
            for word in range(words):
                bits = 0
                for slot in range(word * WORD_BITS, min(slots, (word + 1) * WORD_BITS)):
                    bits |= int(rows[visits + slot] > 0) << (slot - word * WORD_BITS)
                out[to + 1 + word] = bits
        return
    size = PHASES + 1 + slots + dim
    for i in range(first, end):
        row, to = i * width, i * size
        for place in range(to, to + PHASES):
            out[place] = 0
        out[to + rows[row + at.PHASE]] = 1
        out[to + PHASES] = rows[row + at.HINT_LEVEL] / HINT_LEVELS
        for slot in range(slots):
            out[to + PHASES + 1 + slot] = int(rows[row + at.ROW_HEAD + slot] > 0)
        to, vector = to + PHASES + 1 + slots, numbers[i] * dim
        for place in range(dim):
            out[to + place] = vectors[vector + place]


def reward(i: int, action: int, played: Inquiries, tables: Tables) -> float:
    """Return Q/|C| (Eq. 9) of an inquiry that is over. NaN if the judge has not graded the text yet."""
    rows, trees, conclusion, needs, grades = played.rows, tables.trees, played.actions - 1, tables.needs, tables.grades
    row = i * played.width
    table = rows[row + at.TREE]
    subtopics, studies = trees[table + at.SUBTOPICS], trees[table + at.STUDIES]
    shown = row + at.ROW_HEAD + subtopics + studies
    place = trees[table + at.REWARDS]
    items, first, known = needs[place], needs[place + 1], needs[place + 2]
    place += 3
    text, power, groups = action, 1, place
    if text == conclusion:
        for _ in range(items):
            claim, n_groups, groups = 0, needs[groups], groups + 1
            for _ in range(n_groups):
                n_studies, groups = needs[groups], groups + 1
                for s in range(groups, groups + n_studies):
                    outcome = rows[shown + needs[s]]
                    claim = max(claim, 0 if outcome < 0 else 1 if outcome == 0 else 2)
                groups += n_studies
            # Texts beyond the table are all the same: they are graded one at a time.
            text, power = min(text + claim * power, known), min(power * 3, known)
    total = 0.0
    for item in range(items):
        n_groups, place, met = needs[place], place + 1, 0
        for _ in range(n_groups):
            n_studies, place, proven = needs[place], place + 1, 0
            for s in range(place, place + n_studies):
                proven = max(proven, rows[shown + studies + needs[s]])
            met += proven
            place += n_studies
        total += (grades[first + text * items + item] if text < known else math.nan) * met / n_groups
    return float(total / items)
