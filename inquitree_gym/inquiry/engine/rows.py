"""Buffers that the transition function works on: a row of integers per inquiry, and a table of integers per tree.

A row is `ROW_HEAD` numbers of the inquiry and its last event, then a column per subtopic slot (S) or study slot (K):
visits (S), runs (K), result shown last (K), true result seen (K), highest hint told (S + K), earned credit (S + K).
The pole of each axis (A) comes last: the world.

A table is `TABLE_HEAD` numbers of the tree and its rules, then the subtopic of each study (K), the first study of each
subtopic (S + 1), the fakes (K), wordings (K) and hash key (K) of each study, the axes that a study reads, each with the
number of its poles (4 K), the number of poles of each axis and of those that it can have here, the first of these and
the distance to the next (4 A), and the prerequisites: where those of each subtopic start in the list that follows
(S + 1), and that list. A study has two axes at most. -1 stands for no axis, which has one pole, and in a tree without
axes for one of the study's own, whose poles are its results.

Hash keys are 64-bit words, kept as signed integers. A seed takes two columns, so that rows can be of 32 bits.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING

from inquitree_gym.seeds import hash_text, signed
from inquitree_gym.trees.worlds import world_set

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inquitree_gym.inquiry.engine.rules import Rules
    from inquitree_gym.trees.schema import Tree
    from inquitree_gym.trees.worlds import WorldSet

# Columns of a row. Those up to SEED_LOW are the state, those from KIND on the last event.
(
    TREE, PHASE, TURN, SUBTOPIC, STUDY, HINT_LEVEL, TARGET, LEFT, SEED_HIGH, SEED_LOW,
    KIND, NODE, FAKE, OUTCOME, WORDING, ACCEPTED, FORCED, SHOWN_HINT, LIMITED, REASON, DECISION, CREDIT, AGAIN,
) = range(23)  # fmt: skip
ROW_HEAD = 23

# Columns of a table.
(
    SUBTOPICS, STUDIES, AXES, N, WORLD_KEY, PARITY, LIMIT, LEVEL, HIGHEST_FAKE, BARE, WAITS, RECALLS, REDO_TURN,
    REVISITS, READINGS, MASKS, TEXTS, REWARDS,
) = range(18)  # fmt: skip
TABLE_HEAD = 18

NO_LIMIT = NO_AXIS = -1


def row_width(subtopics: int, studies: int, axes: int) -> int:
    """Return the columns of a row with this many slots."""
    return ROW_HEAD + 3 * subtopics + 5 * studies + axes


def tree_table(tree: Tree, rules: Rules, subtopics: int, studies: int, axes: int) -> list[int]:
    """Return the table of ``tree`` under ``rules`` with this many slots."""
    index = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
    sizes = [len(subtopic.studies) for subtopic in tree.subtopics]
    needs = [[index[name] for name in subtopic.requires] for subtopic in tree.subtopics]
    varied = rules.replication == "varied"
    limit = rules.turn_limit(len(index))
    drawn = world_set(tree, rules.world)
    head = [
        subtopics, studies, axes, len(index), signed(drawn.key), drawn.parity, NO_LIMIT if limit is None else limit,
        rules.fake_level, signed(((rules.fake_level << 64) - 1) // 10), rules.bare_decisions,
        rules.feedback == "reason", rules.reruns == "redo", rules.redo_turn, rules.named_at_result == "any", 0, 0, 0, 0,
    ]  # fmt: skip
    return [
        *map(int, head),
        *_padded([i for i, size in enumerate(sizes) for _ in range(size)], studies),
        *_padded(list(accumulate(sizes, initial=0)), subtopics + 1),
        *_padded(_fakes(tree), studies),
        *_padded([len(study.outcomes[0]) if varied else 1 for study in tree.studies], studies),
        *_padded([signed(hash_text(f"{tree.id}\n{study.id}")) for study in tree.studies], studies),
        *_padded(list(chain.from_iterable(_readers(tree))), 4 * studies),
        *_padded(_poles(tree, drawn), 4 * axes),
        *_padded(list(accumulate(map(len, needs), initial=0)), subtopics + 1),
        *chain.from_iterable(needs),
    ]


def _readers(tree: Tree) -> Iterator[tuple[int, ...]]:
    """Yield two axes for each study, each with its number of poles."""
    for study, axes in zip(tree.studies, tree.reads, strict=True):
        found = [(axis, len(tree.axes[axis].poles)) for axis in axes]
        if not tree.axes:
            found = [(NO_AXIS, len(study.outcomes))]
        yield tuple(chain.from_iterable([*found, *[(NO_AXIS, 1)] * (2 - len(found))]))


def _fakes(tree: Tree) -> list[int]:
    """Return the number of fakes of each study: its outcomes with one axis changed."""
    return [first + second - 2 for _, first, _, second in _readers(tree)]


def _poles(tree: Tree, drawn: WorldSet) -> list[int]:
    found: list[int] = []
    for axis, poles in zip(tree.axes, drawn.poles, strict=True):
        found += [len(axis.poles), len(poles), poles[0], poles[-1] - poles[0] if len(poles) == 2 else 1]
    return found


def _padded(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def compact(row: list[int], slots: tuple[int, int, int], used: tuple[int, int, int]) -> list[int]:
    """Return a row with slots for subtopics, studies and axes as one for a tree that has just as many as are used."""
    subtopics, studies, axes = zip(slots, used, strict=True)
    blocks = [subtopics, *[studies] * 3, *[subtopics, studies] * 2, axes]
    found, at = row[:ROW_HEAD], ROW_HEAD
    for width, length in blocks:
        found += row[at : at + length]
        at += width
    return found
