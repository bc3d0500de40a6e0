"""The transition function of an inquiry: every rule once, over flat integers.

`advance` keeps to the Python that Numba compiles and that plain Python runs on lists. A text environment calls it
uncompiled on one row, an array environment compiled on all rows. `rows` lays out the buffers. It is one long function
by intent: a compiled call that passes arrays on costs more than all rules of a turn.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from inquitree_gym.inquiry.engine.rows import (
    ACCEPTED,
    AGAIN,
    AXES,
    BARE,
    COUNT_BITS,
    COUNTS,
    CREDIT,
    DECISION,
    FAKE,
    FORCED,
    HIGHEST_FAKE,
    HINT_LEVEL,
    ITEM,
    ITEMS,
    ITEMS_AT,
    KIND,
    LEFT,
    LEVEL,
    LIMIT,
    LIMITED,
    MARKS_AT,
    MOST_POLES,
    MOST_TALLIED,
    NODE,
    OF_AXIS,
    OUTCOME,
    PARITY,
    PHASE,
    POINTS,
    REASON,
    RECALLS,
    REDO_TURN,
    REVISITS,
    ROW_HEAD,
    SEED_HIGH,
    SEED_LOW,
    SHOWN_HINT,
    STUDIES,
    STUDY,
    SUBTOPIC,
    SUBTOPICS,
    TABLE_HEAD,
    TARGET,
    TREE,
    TURN,
    UNRUN,
    VISIT_BITS,
    WAITS,
    WORDING,
    WORLD_KEY,
    M,
    N,
)  # fmt: skip
from inquitree_gym.inquiry.engine.values import CREDITS, PHASE_OF, Decision, ObservationKind, Phase, Reason
from inquitree_gym.seeds import WORD, splitmix64
from inquitree_gym.trees.fields import HINT_LEVELS

# Plain integers: enum members are slower to look up and to compare.
AT_TOPIC, AT_SUBTOPIC, AT_STUDY, AT_RESULT, AT_CONCLUSION, AT_EXAM, AT_END = map(int, Phase)
DECIDES_NOTHING, DECIDES_REDO, DECIDES_CONCLUDE, DECIDES_EXPLORE = map(int, Decision)
BELOW_THRESHOLD, PREREQUISITE_UNMET, UNREADABLE_DECISION, UNREADABLE_SHEET = map(int, list(Reason)[1:])
(
    TOPIC_SHOWN,
    SUBTOPIC_SHOWN,
    RESULT_SHOWN,
    CONCLUSION_SHOWN,
    END_SHOWN,
    DECLINED,
    REDONE,
    WAITING,
    RECALLED,
    ASKED_AGAIN,
    EXAM_SHOWN,
    EXAM_ASKED_AGAIN,
) = (
    int(ObservationKind[name])
    for name in (
        "TOPIC", "SUBTOPIC", "RESULT", "CONCLUSION", "END", "DECLINED", "REDO", "WAIT", "RECALL", "ASK_AGAIN", "EXAM",
        "EXAM_AGAIN",
    )
)  # fmt: skip
SUBTOPIC_HINTED, STUDY_HINTED = int(ObservationKind.SUBTOPIC_HINT), int(ObservationKind.STUDY_HINT)
FAILS, RUNS = -1, -2
"""Effects of an action that are resolved to a kind of observation: a failed choice, and the choice of a study."""
READING = 4
"""Numbers of a reading: candidate (-1 for none), decision, 1 if the candidate is near enough, and 1 if the text repeats
one that was shown before. In the exam the candidate is an option of the item, and any decision asks once more."""


def draw_fake(seed: int, key: int, run: int, highest: int, fakes: int) -> int:
    """Return the outcome that a run shows: 0 for the true one, i for the i-th fake.

    Args:
        seed: seed of the episode.
        key: hash key of the study.
        run: times that the study was run, this one included.
        highest: highest draw, as an unsigned word, that shows a fake.
        fakes: number of fakes of the study.
    """
    draw = splitmix64(seed, key, run)
    return 1 + splitmix64(draw) % fakes if draw <= highest & WORD else 0


def draw_one(seed: int, key: int, place: int, count: int) -> int:
    """Return one of ``count`` values from 0: the wording of a run's result, whatever it is, or the pole of an axis.

    Args:
        seed: seed of the episode.
        key: hash key of the study, or of the set of worlds.
        place: times that the study was run, or index of the axis.
        count: number of wordings, or of poles that the axis can have.
    """
    return splitmix64(seed, key, 0, place) % count


def outcome_of(rows: Sequence[int], world: int, tables: Sequence[int], readers: int, fake: int) -> int:
    """Return the place of a result among the outcomes of its study: that of the world, or with one axis changed.

    Args:
        rows: rows of inquiries.
        world: place of the first pole of the inquiry's world.
        tables: tables of trees.
        readers: place of the study's axes.
        fake: 0 for the true result, i for the i-th fake: the first axis one pole further, and so on.
    """
    outcome = 0
    for k in range(readers, readers + 4, 2):
        count = tables[k + 1]
        pole = rows[world + tables[k]] if tables[k] >= 0 else 0
        if 0 < fake < count:
            pole = (pole + fake) % count
        fake -= count - 1
        outcome = outcome * count + pole
    return outcome


def begin(rows: MutableSequence[int], row: int, width: int, tables: Sequence[int], table: int, seed: int) -> None:
    """Write the row of a new inquiry on the tree whose table begins at ``table``. ``seed`` is a signed word."""
    for k in range(row, row + width):
        rows[k] = 0
    subtopics, studies, axes = tables[table + SUBTOPICS], tables[table + STUDIES], tables[table + AXES]
    shown = row + ROW_HEAD + subtopics + studies
    world = row + ROW_HEAD + 3 * subtopics + 5 * studies
    for k in range(shown, shown + studies):
        rows[k] = -1
    for k in range(world - subtopics - studies, world):
        rows[k] = -1

    # The world: a pole for each axis. Where their parity is asked for, the last axis with two poles sees to it.
    axis_at, total, last = table + TABLE_HEAD + subtopics + 1 + 8 * studies, 0, -1
    for axis in range(axes):
        of = axis_at + OF_AXIS * axis
        if tables[of]:
            drawn = draw_one(seed, tables[table + WORLD_KEY], axis, tables[of + 1]) if tables[of + 1] > 1 else 0
            rows[world + axis] = tables[of + 2] + drawn * tables[of + 3]
            if tables[of] == 2:
                total, last = total + rows[world + axis], world + axis
    if tables[table + PARITY] >= 0 and total % 2 != tables[table + PARITY]:
        rows[last] = 1 - rows[last]
    rows[row + TREE], rows[row + LEFT], rows[row + UNRUN] = table, tables[table + N], tables[table + M]
    rows[row + SEED_HIGH], rows[row + SEED_LOW] = seed >> 32, ((seed + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    rows[row + SUBTOPIC] = rows[row + STUDY] = rows[row + TARGET] = rows[row + NODE] = rows[row + CREDIT] = -1


def advance(  # noqa: C901  (one function for the sake of speed)
    rows: MutableSequence[int], first: int, end: int, width: int, tables: Sequence[int], readings: Sequence[int]
) -> None:
    """Take one turn in each of the inquiries ``first`` to ``end`` - 1, except for those that are over.

    Args:
        rows: rows of ``width`` columns, which are overwritten.
        first: the first inquiry.
        end: the one after the last.
        width: columns of a row.
        tables: tables of all trees.
        readings: `READING` numbers for each inquiry, those of inquiry i from ``i * READING`` on.
    """
    for i in range(first, end):
        row = i * width
        if rows[row + PHASE] == AT_END:
            continue
        candidate, decision = readings[i * READING], readings[i * READING + 1]
        near, repeats = readings[i * READING + 2], readings[i * READING + 3]
        table, phase, turn = rows[row + TREE], rows[row + PHASE], rows[row + TURN] + 1
        subtopics, studies = tables[table + SUBTOPICS], tables[table + STUDIES]
        visits = row + ROW_HEAD
        runs = visits + subtopics
        told = runs + 3 * studies
        credits = told + subtopics + studies
        owners = table + TABLE_HEAD
        first_study = owners + studies
        fakes = first_study + subtopics + 1
        readers = fakes + 3 * studies
        axes = tables[table + AXES]
        axis_at = readers + 4 * studies
        needs = axis_at + OF_AXIS * axes
        world = credits + subtopics + studies
        earned = world + axes
        tally = earned + axes
        visited = tally + (MOST_POLES * axes + COUNTS - 1) // COUNTS
        needed = needs + subtopics + 1
        node, decided, reason, forced, credit, again = -1, 0, 0, 0, -1, 0
        fake = outcome = wording = shown_hint = limited = 0

        # What the action does.
        if phase == AT_TOPIC:
            if decision == DECIDES_CONCLUDE and tables[table + BARE]:
                kind, decided = CONCLUSION_SHOWN, decision
            elif not near:
                # With everything visited there is nothing to hint at: the answer says what is left to run.
                asked = tables[table + WAITS] and rows[row + LEFT] == 0
                kind, reason = (TOPIC_SHOWN if asked else FAILS), BELOW_THRESHOLD
            else:
                kind, node = SUBTOPIC_SHOWN, candidate
                for k in range(tables[needs + candidate], tables[needs + candidate + 1]):
                    if rows[visits + tables[needed + k]] == 0:
                        kind, reason = (WAITING if tables[table + WAITS] else FAILS), PREREQUISITE_UNMET
        elif phase == AT_SUBTOPIC:
            if decision == DECIDES_CONCLUDE and tables[table + BARE]:
                kind, decided = CONCLUSION_SHOWN, decision
            elif decision == DECIDES_EXPLORE and tables[table + BARE]:
                kind, decided, node = DECLINED, decision, rows[row + SUBTOPIC]
            elif not near:
                kind, reason = FAILS, BELOW_THRESHOLD
            else:
                kind, node = RUNS, candidate
        elif phase == AT_RESULT:
            if decision == DECIDES_NOTHING and near and (tables[table + REVISITS] or rows[visits + candidate] == 0):
                decision = DECIDES_EXPLORE
            decided, node = decision, rows[row + STUDY]
            if decision == DECIDES_NOTHING:
                kind, reason = ASKED_AGAIN, UNREADABLE_DECISION
            elif decision == DECIDES_REDO:
                kind = RUNS
            else:
                kind, node = (CONCLUSION_SHOWN if decision == DECIDES_CONCLUDE else TOPIC_SHOWN), -1
        elif phase == AT_STUDY:
            kind, node = RESULT_SHOWN, rows[row + STUDY]
        elif phase == AT_CONCLUSION:
            kind = END_SHOWN
            if tables[table + ITEMS]:
                kind, node = EXAM_SHOWN, 0
        elif decision != DECIDES_NOTHING and rows[row + KIND] != EXAM_ASKED_AGAIN:
            # The whole exam takes one turn, and one more where it is asked for again at once.
            turn -= int(rows[row + ITEM] > 0)
            kind, node, reason = EXAM_ASKED_AGAIN, rows[row + ITEM], UNREADABLE_SHEET
        else:
            item = table + tables[table + ITEMS_AT] + 4 * rows[row + ITEM]
            if 0 <= candidate < tables[item + 1] * tables[item + 3]:
                for k in range(item, item + 4, 2):
                    pole = candidate // tables[item + 3] if k == item else candidate % tables[item + 3]
                    axis = tables[k]
                    if axis >= 0:
                        worth = axis_at + OF_AXIS * axis + (4 if pole == rows[world + axis] else 5)
                        rows[row + POINTS] += rows[earned + axis] * tables[worth]
            turn -= int(rows[row + ITEM] > 0)
            rows[row + ITEM] += 1
            kind = END_SHOWN
            if rows[row + ITEM] < tables[table + ITEMS]:
                kind, node = EXAM_SHOWN, rows[row + ITEM]

        # The next hint, or the forced move after the last one.
        if kind == FAILS:
            chosen, start, stop = visits, 0, tables[table + N]
            if phase == AT_SUBTOPIC:
                entered = first_study + rows[row + SUBTOPIC]
                chosen, start, stop = runs, tables[entered], tables[entered + 1]
            node = rows[row + TARGET]
            if node < 0:
                for k in range(start, stop):
                    locked = False
                    if phase == AT_TOPIC:
                        for j in range(tables[needs + k], tables[needs + k + 1]):
                            locked = locked or rows[visits + tables[needed + j]] == 0
                    if not locked and (node < 0 or rows[chosen + k] < rows[chosen + node]):
                        node = k
            shown_hint = rows[row + HINT_LEVEL] + 1
            if shown_hint > HINT_LEVELS:
                kind, forced, shown_hint = (SUBTOPIC_SHOWN if phase == AT_TOPIC else RUNS), 1, 0
            else:
                kind = SUBTOPIC_HINTED if phase == AT_TOPIC else STUDY_HINTED
                place = told + node + (0 if phase == AT_TOPIC else subtopics)
                rows[place] = max(rows[place], shown_hint)
                rows[row + HINT_LEVEL], rows[row + TARGET] = shown_hint, node
        if kind == WAITING:
            node = -1
        elif shown_hint == 0:
            rows[row + HINT_LEVEL], rows[row + TARGET] = 0, -1

        # Entering a subtopic, running a study, showing its result.
        if kind == SUBTOPIC_SHOWN:
            if rows[visits + node] == 0:
                rows[row + LEFT] -= 1
                lost = repeats or forced or rows[credits + node] == 0
                rows[credits + node] = 0 if lost else CREDITS[rows[told + node]]
                rows[visited + node // VISIT_BITS] |= 1 << node % VISIT_BITS
            again = int(rows[visits + node] > 0)
            rows[visits + node] += 1
            rows[row + SUBTOPIC] = node
        elif kind == RUNS:
            rows[row + STUDY] = node
            if rows[runs + node] and tables[table + RECALLS] and decided != DECIDES_REDO:
                kind = RECALLED
            else:
                if rows[runs + node] == 0:
                    rows[row + UNRUN] -= 1
                    hinted = rows[told + subtopics + node]
                    rows[credits + subtopics + node] = 0 if repeats or forced else CREDITS[hinted]
                rows[runs + node] += 1
                kind = REDONE if decided == DECIDES_REDO and tables[table + REDO_TURN] else RESULT_SHOWN
        elif kind == DECLINED:
            rows[visits + node] -= 1
            if rows[visits + node] == 0:
                rows[row + LEFT] += 1
                rows[credits + node] = 0 if rows[credits + node] == 0 else -1
                rows[visited + node // VISIT_BITS] ^= 1 << node % VISIT_BITS
        if kind == RESULT_SHOWN:
            run = rows[runs + node]
            seed = (rows[row + SEED_HIGH] << 32) | (rows[row + SEED_LOW] & 0xFFFFFFFF)
            key = tables[fakes + 2 * studies + node]
            if tables[table + LEVEL] and tables[fakes + node]:
                fake = draw_fake(seed, key, run, tables[table + HIGHEST_FAKE], tables[fakes + node])
            if tables[fakes + studies + node] > 1:
                wording = draw_one(seed, key, run, tables[fakes + studies + node])
            outcome = outcome_of(rows, world, tables, readers + 4 * node, fake)
            if not fake:
                rows[runs + 2 * studies + node] = 1
            rows[runs + studies + node] = fake
            credit = min(rows[credits + tables[owners + node]], rows[credits + subtopics + node])
            again = int(run > 1)
            marks = table + tables[table + MARKS_AT]
            for k in range(tables[marks + node], tables[marks + node + 1]):
                mark = marks + studies + 1 + 3 * k
                axis = tables[mark]
                pole = outcome // tables[mark + 1] % tables[mark + 2]
                stated = axis * MOST_POLES + pole
                bit = COUNT_BITS * (stated % COUNTS)
                if rows[tally + stated // COUNTS] >> bit & MOST_TALLIED < MOST_TALLIED:
                    rows[tally + stated // COUNTS] += 1 << bit
                rows[earned + axis] = max(rows[earned + axis], credit)

        # The phase that follows, and the turn limit.
        phase = PHASE_OF[kind]
        if turn >= tables[table + LIMIT] >= 0 and phase < AT_CONCLUSION:
            phase, limited = AT_CONCLUSION, 1
            rows[row + HINT_LEVEL], rows[row + TARGET] = 0, -1
        rows[row + PHASE], rows[row + TURN], rows[row + KIND], rows[row + NODE] = phase, turn, kind, node
        rows[row + FAKE], rows[row + OUTCOME], rows[row + WORDING] = fake, outcome, wording
        rows[row + CREDIT], rows[row + AGAIN] = credit, again
        rows[row + ACCEPTED], rows[row + FORCED], rows[row + SHOWN_HINT] = int(reason == 0), forced, shown_hint
        rows[row + LIMITED], rows[row + REASON], rows[row + DECISION] = limited, reason, decided
