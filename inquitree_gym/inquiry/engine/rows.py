"""Buffers that the transition function works on: a row of integers per inquiry, and a table of integers per tree.

A row is `ROW_HEAD` numbers of the inquiry and its last event, then a column per subtopic slot (S), study slot (K) or
axis slot of the exam (A): visits (S), runs (K), result shown last (K), true result seen (K), highest hint told (S + K),
earned credit (S + K), the world (A), largest credit by axis (A). Then come words that an observation copies: results by
pole, three an axis, `COUNTS` numbers of `COUNT_BITS` bits a word, and visited subtopics, `VISIT_BITS` a word.

A table is `TABLE_HEAD` numbers of the tree and its rules, then
- the subtopic of each study (K), and the first study of each subtopic (S + 1),
- the fakes (K), wordings (K) and hash key (K) of each study,
- two axes of each study, each with the number of its poles (4 K). -1 stands for no axis, which has one pole,
- `OF_AXIS` numbers of each axis of the exam (6 A),
- the prerequisites: where those of each subtopic start in the list that follows (S + 1), and that list,
- two axes of each conclusion item, as for a study,
- the axes of the exam that each study reads: where those of each study start in the list that follows (K + 1), and that
  list of `AxisMark`.

Hash keys are 64-bit words, kept as signed integers. A seed takes two columns, so that rows can be of 32 bits.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple

from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.exam import Exam, exam_of, marks_of
from inquitree_gym.seeds import hash_text, signed
from inquitree_gym.sheets import LETTERS
from inquitree_gym.trees.worlds import world_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inquitree_gym.inquiry.engine.rules import Rules
    from inquitree_gym.trees.schema import Tree
    from inquitree_gym.trees.worlds import WorldSet

# Columns of a row. Those up to SEED_LOW are the state, those from KIND on the last event.
(
    TREE, PHASE, TURN, SUBTOPIC, STUDY, HINT_LEVEL, TARGET, LEFT, UNRUN, ITEM, POINTS, SEED_HIGH, SEED_LOW,
    KIND, NODE, FAKE, OUTCOME, WORDING, ACCEPTED, FORCED, SHOWN_HINT, LIMITED, REASON, DECISION, CREDIT, AGAIN,
) = range(26)  # fmt: skip
ROW_HEAD = 26

# Columns of a table.
(
    SUBTOPICS, STUDIES, AXES, N, M, ITEMS, ITEMS_AT, MARKS_AT, WHOLE, WORLD_KEY, PARITY, LIMIT, LEVEL, HIGHEST_FAKE,
    BARE, WAITS, RECALLS, REDO_TURN, REVISITS, READINGS, MASKS, TEXTS,
) = range(22)  # fmt: skip
TABLE_HEAD = 22
OF_AXIS = 6
"""Numbers of an axis: its poles, those that it can have here, the first of these, the distance to the next, and the
points of a right and of a wrong answer."""

NO_LIMIT = NO_AXIS = -1
FULL_CREDIT = 4
"""Quarters of a credit of 1."""
MAX_POINTS = (1 << 31) - 1
MOST_POLES = 3
"""Largest number of poles of an axis."""
COUNTS, COUNT_BITS, MOST_TALLIED = 4, 7, 127
"""Numbers of a tally in a column, the bits of each, and the largest."""
VISIT_BITS = 31
"""Subtopics in a column."""


class Slots(NamedTuple):
    """Slots of rows and tables: those of one tree, or enough for several."""

    subtopics: int
    studies: int
    axes: int
    """Axes of the exam."""

    @classmethod
    def of(cls, tree: Tree) -> Slots:
        """Return the slots of one tree."""
        return cls(len(tree.subtopics), len(tree.studies), len(exam_of(tree).poles))

    @property
    def width(self) -> int:
        """Columns of a row."""
        return self.tally + self.tally_width + -(-self.subtopics // VISIT_BITS)

    @property
    def tally(self) -> int:
        """First column of the tally."""
        return ROW_HEAD + 3 * self.subtopics + 5 * self.studies + 2 * self.axes

    @property
    def tally_width(self) -> int:
        """Columns of the tally."""
        return -(-MOST_POLES * self.axes // COUNTS)


def tree_table(tree: Tree, rules: Rules, slots: Slots) -> list[int]:
    """Return the table of ``tree`` under ``rules`` with these slots.

    Raises:
        OptionError: the exam of the tree has too many points to be counted, or no such world.
    """
    index = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
    sizes = [len(subtopic.studies) for subtopic in tree.subtopics]
    needs = [[index[name] for name in subtopic.requires] for subtopic in tree.subtopics]
    varied = rules.replication == "varied"
    limit = rules.turn_limit(len(index))
    drawn, exam, marks = world_set(tree, rules.world), exam_of(tree), marks_of(tree)
    if (most := max(map(exam.options, range(len(exam.items))))) > len(LETTERS):
        raise OptionError(f"{tree.id} has an item with {most} statements, an exam takes at most {len(LETTERS)}; cut it")
    whole = FULL_CREDIT * exam.scale * len(exam.poles)
    if whole > MAX_POINTS:
        raise OptionError(f"{tree.id} has an exam of {whole:,} points, at most {MAX_POINTS:,} can be counted; ask less")
    body = [
        *_padded([i for i, size in enumerate(sizes) for _ in range(size)], slots.studies),
        *_padded(list(accumulate(sizes, initial=0)), slots.subtopics + 1),
        *_padded(_fakes(tree), slots.studies),
        *_padded([len(study.outcomes[0]) if varied else 1 for study in tree.studies], slots.studies),
        *_padded([signed(hash_text(f"{tree.id}\n{study.id}")) for study in tree.studies], slots.studies),
        *_padded(list(chain.from_iterable(_readers(tree))), 4 * slots.studies),
        *_padded(_axes(exam, drawn), OF_AXIS * slots.axes),
        *_padded(list(accumulate(map(len, needs), initial=0)), slots.subtopics + 1),
        *chain.from_iterable(needs),
    ]
    items = list(chain.from_iterable(_pair(exam.poles, axes) for axes in exam.items))
    at = TABLE_HEAD + len(body)
    head = [
        *slots, len(index), len(tree.studies), len(exam.items) if rules.exam != "none" else 0, at, at + len(items),
        whole, signed(drawn.key), drawn.parity, NO_LIMIT if limit is None else limit, rules.fake_level,
        signed(((rules.fake_level << 64) - 1) // 10), rules.bare_decisions, rules.feedback == "reason",
        rules.reruns == "redo", rules.redo_turn, rules.named_at_result == "any", 0, 0, 0,
    ]  # fmt: skip
    starts = _padded(list(accumulate(map(len, marks), initial=0)), slots.studies + 1)
    return [*map(int, head), *body, *items, *starts, *chain.from_iterable(chain.from_iterable(marks))]


def _readers(tree: Tree) -> Iterator[tuple[int, ...]]:
    """Yield two axes for each study, each with its number of poles."""
    poles = [len(axis.poles) for axis in tree.axes]
    for axes in tree.reads:
        yield _pair(poles, axes)


def _pair(poles: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return two axes, each with its number of poles."""
    found = [(axis, poles[axis]) for axis in axes]
    return tuple(chain.from_iterable([*found, *[(NO_AXIS, 1)] * (2 - len(found))]))


def _fakes(tree: Tree) -> list[int]:
    """Return the number of fakes of each study: its outcomes with one axis changed."""
    return [first + second - 2 for _, first, _, second in _readers(tree)]


def _axes(exam: Exam, drawn: WorldSet) -> list[int]:
    found: list[int] = []
    one_world = [(0,)] * len(exam.poles)
    for poles, readers, possible in zip(exam.poles, exam.readers, drawn.poles or one_world, strict=True):
        step = possible[1] - possible[0] if len(possible) > 1 else 0
        right = exam.scale // max(readers, 1)
        found += [poles, len(possible), possible[0], step, right, -right // (poles - 1)]
    return found


def _padded(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def compact(row: list[int], slots: Slots, used: Slots) -> list[int]:
    """Return a row with more slots than are used as one of a tree that has just these."""
    subtopics, studies, axes = zip(slots, used, strict=True)
    found, at = row[:ROW_HEAD], ROW_HEAD
    for width, length in [subtopics, *[studies] * 3, *[subtopics, studies] * 2, *[axes] * 2]:
        found += row[at : at + length]
        at += width
    visited = at + slots.tally_width
    return found + row[at : at + used.tally_width] + row[visited : visited + used.width - used.tally - used.tally_width]
