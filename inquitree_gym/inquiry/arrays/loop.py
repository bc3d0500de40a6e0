"""Loops over the rows of many inquiries, in the Python that Numba compiles. `compiled` compiles them.

Every function takes ``order``, the inquiries that it is about, and NamedTuples of flat buffers: arrays where it is
compiled, memory views of the same arrays where it isn't.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from typing import Any, NamedTuple

from inquitree_gym.inquiry.engine.rows import (
    ACCEPTED,
    AGAIN,
    FAKE,
    FORCED,
    HINT_LEVEL,
    KIND,
    LEFT,
    LIMITED,
    NODE,
    PHASE,
    READINGS,
    REWARDS,
    ROW_HEAD,
    STUDIES,
    SUBTOPIC,
    SUBTOPICS,
    TABLE_HEAD,
    TEXTS,
    TREE,
    TURN,
    WORDING,
    N,
)  # fmt: skip
from inquitree_gym.inquiry.engine.transition import (
    AT_RESULT,
    AT_STUDY,
    AT_SUBTOPIC,
    AT_TOPIC,
    READING,
    RESULT_SHOWN,
    SUBTOPIC_SHOWN,
    WAITING,
    begin,
)  # fmt: skip
from inquitree_gym.inquiry.engine.values import Phase
from inquitree_gym.seeds import splitmix64
from inquitree_gym.trees.schema import HINT_LEVELS

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
    """Numbers of texts by observation. See `TextNumbers`."""


class Grades(NamedTuple):
    """Evidence and grades that the rewards of written conclusions are computed from."""

    needs: Buffer
    """For each tree: conclusion items, place of the first grade, number of texts that have grades; then for each item
    its groups of results, and for each group its studies, each list behind its length."""
    grades: Buffer
    """Grade of each item by text, NaN if unknown: texts of the menu, then conclusions by their claims on all items."""


class Told(NamedTuple):
    """Infos of all inquiries."""

    phases: Buffer
    turns: Buffer
    hint_levels: Buffer
    accepted: Buffer
    forced: Buffer
    masks: Buffer
    """1 for an open action, a row of ``actions`` for each inquiry."""


def read_actions(
    order: Sequence[int], played: Inquiries, tables: Tables, actions: Sequence[int], readings: MutableSequence[int]
) -> None:
    """Look the readings of menu actions up."""
    rows, width, n_actions, trees, menus = played.rows, played.width, played.actions, tables.trees, tables.readings
    for k in range(len(order)):
        i = order[k]
        row = i * width
        phase = rows[row + PHASE]
        to = i * READING
        readings[to], readings[to + 1], readings[to + 2], readings[to + 3] = -1, 0, 0, 0
        if phase in (AT_TOPIC, AT_SUBTOPIC, AT_RESULT):
            context = 0 if phase == AT_TOPIC else 1
            if phase == AT_SUBTOPIC:
                context = CONTEXTS + rows[row + SUBTOPIC]
            read = trees[rows[row + TREE] + READINGS] + (context * n_actions + actions[i]) * ANSWER
            for place in range(ANSWER):
                readings[to + place] = menus[read + place]


def next_seed(first: int, episode: int) -> int:
    """Return the seed of the k-th episode after a seeded one, as a signed word."""
    word = splitmix64(first & 0xFFFFFFFFFFFFFFFF, episode)
    return word - (1 << 64) if word >> 63 else word


def draw_choice(seed: int, count: int) -> int:
    """Return which of ``count`` trees an episode is played on."""
    return splitmix64(seed & 0xFFFFFFFFFFFFFFFF, count) % count


def restart(order: Sequence[int], played: Inquiries, tables: Tables) -> None:
    """Start the next episodes of these inquiries."""
    rows, width, trees, over = played.rows, played.width, tables.trees, played.over
    first_seeds, episodes, own, choices = played.first_seeds, played.episodes, played.own, played.choices
    count = len(choices)
    for k in range(len(order)):
        i = order[k]
        episodes[i] += 1
        seed = next_seed(first_seeds[i], episodes[i])
        table = own[i]
        if table < 0:
            table = choices[draw_choice(seed, count) if count > 1 else 0]
        begin(rows, i * width, width, trees, table, seed)
        over[i] = False


def tell(order: Sequence[int], played: Inquiries, tables: Tables, told: Told) -> None:
    """Write the infos of these inquiries."""
    rows, width, n_actions, trees = played.rows, played.width, played.actions, tables.trees
    phases, turns, hint_levels = told.phases, told.turns, told.hint_levels
    accepted, forced, masks = told.accepted, told.forced, told.masks
    conclusion = n_actions - 1
    for k in range(len(order)):
        i = order[k]
        row = i * width
        phase, table = rows[row + PHASE], rows[row + TREE]
        phases[i], turns[i], hint_levels[i] = phase, rows[row + TURN], rows[row + HINT_LEVEL]
        accepted[i], forced[i] = rows[row + ACCEPTED] != 0, rows[row + FORCED] != 0
        mask = i * n_actions
        for action in range(mask, mask + n_actions):
            masks[action] = 0
        studies = trees[table + STUDIES]
        first_study, first_of = conclusion - DECISIONS - studies, table + TABLE_HEAD + studies
        start, stop = conclusion, n_actions
        if phase == AT_TOPIC:
            start, stop = 0, trees[table + N]
        elif phase == AT_SUBTOPIC:
            entered = first_of + rows[row + SUBTOPIC]
            start, stop = first_study + trees[entered], first_study + trees[entered + 1]
        elif phase == AT_RESULT:
            start, stop = conclusion - DECISIONS, conclusion
        elif phase == AT_STUDY:
            for action in range(mask, mask + trees[table + N]):
                masks[action] = 1
            for action in range(mask + first_study, mask + first_study + trees[first_of + trees[table + N]]):
                masks[action] = 1
            start = conclusion - DECISIONS
        for action in range(mask + start, mask + stop):
            masks[action] = 1


def number_texts(order: Sequence[int], played: Inquiries, tables: Tables, numbers: MutableSequence[int]) -> None:
    """Write the number of the text that each of these inquiries shows."""
    rows, width, trees, codes = played.rows, played.width, tables.trees, tables.texts
    for k in range(len(order)):
        i = order[k]
        row = i * width
        kind, texts = rows[row + KIND], trees[rows[row + TREE] + TEXTS]
        if rows[row + LIMITED] and kind != RESULT_SHOWN:
            numbers[i] = codes[texts]
            continue
        variant = 1 if rows[row + LEFT] == 0 else 0
        if kind == RESULT_SHOWN:
            wording = rows[row + FAKE] * codes[texts + 1] + rows[row + WORDING]
            state = 2 if rows[row + LIMITED] else variant
            variant = (2 * wording + rows[row + AGAIN]) * RESULT_STATES + state
        elif kind == SUBTOPIC_SHOWN:
            variant = rows[row + AGAIN]
        elif rows[row + HINT_LEVEL]:
            variant = rows[row + HINT_LEVEL]
        elif kind == WAITING:
            variant = 0
        of_kind = texts + TEXT_HEAD + 2 * kind
        place = codes[of_kind] + (rows[row + NODE] + 1) * codes[of_kind + 1] + variant
        numbers[i] = codes[texts + place]


def observe_index(
    order: Sequence[int], played: Inquiries, numbers: Sequence[int], slots: int, out: MutableSequence[int]
) -> None:
    """Write index observations: the number of the text, then the visited subtopics as words of `WORD_BITS` bits."""
    rows, width, words = played.rows, played.width, (slots + WORD_BITS - 1) // WORD_BITS
    for k in range(len(order)):
        i = order[k]
        to, visits = i * (1 + words), i * width + ROW_HEAD
        out[to] = numbers[i]
        for word in range(words):
            bits = 0
            for slot in range(word * WORD_BITS, min(slots, (word + 1) * WORD_BITS)):
                if rows[visits + slot]:
                    bits |= 1 << (slot - word * WORD_BITS)
            out[to + 1 + word] = bits


def observe_features(
    order: Sequence[int], played: Inquiries, numbers: Sequence[int], vectors: Sequence[float],
    shape: tuple[int, int], out: MutableSequence[float],
) -> None:  # fmt: skip
    """Write the rows of a `FeatureLayout`. ``shape`` is its subtopics and the length of its text part."""
    rows, width = played.rows, played.width
    slots, dim = shape
    size = PHASES + 1 + slots + dim
    for k in range(len(order)):
        i = order[k]
        row, to = i * width, i * size
        for place in range(to, to + PHASES + 1 + slots):
            out[place] = 0.0
        out[to + rows[row + PHASE]] = 1.0
        out[to + PHASES] = rows[row + HINT_LEVEL] / HINT_LEVELS
        for slot in range(slots):
            if rows[row + ROW_HEAD + slot]:
                out[to + PHASES + 1 + slot] = 1.0
        to, vector = to + PHASES + 1 + slots, numbers[i] * dim
        for place in range(dim):
            out[to + place] = vectors[vector + place]


def score(
    order: Sequence[int], played: Inquiries, tables: Tables, grades: Grades, actions: Sequence[int],
    rewards: MutableSequence[float],
) -> None:  # fmt: skip
    """Write Q/|C| (Eq. 9) of inquiries that are over. NaN where the judge has not graded the text yet."""
    rows, width, trees, conclusion = played.rows, played.width, tables.trees, played.actions - 1
    lists, known_grades = grades.needs, grades.grades
    for k in range(len(order)):
        i = order[k]
        row = i * width
        table = rows[row + TREE]
        subtopics, studies = trees[table + SUBTOPICS], trees[table + STUDIES]
        shown = row + ROW_HEAD + subtopics + studies
        place = trees[table + REWARDS]
        items, first, known = lists[place], lists[place + 1], lists[place + 2]
        place += 3
        text, power, groups = actions[i], 1, place
        if text == conclusion:
            for _ in range(items):
                claim, n_groups, groups = 0, lists[groups], groups + 1
                for _ in range(n_groups):
                    n_studies, groups = lists[groups], groups + 1
                    for s in range(groups, groups + n_studies):
                        outcome = rows[shown + lists[s]]
                        claim = max(claim, 0 if outcome < 0 else 1 if outcome == 0 else 2)
                    groups += n_studies
                # Texts beyond the table are all the same: they are graded one at a time.
                text, power = min(text + claim * power, known), min(power * 3, known)
        total = 0.0
        for item in range(items):
            n_groups, place, met = lists[place], place + 1, 0
            for _ in range(n_groups):
                n_studies, place, proven = lists[place], place + 1, 0
                for s in range(place, place + n_studies):
                    proven = max(proven, rows[shown + studies + lists[s]])
                met += proven
                place += n_studies
            total += (known_grades[first + text * items + item] if text < known else math.nan) * met / n_groups
        rewards[i] = total / items
