"""Buffers that the transition function works on: a row of integers per inquiry, and a table of integers per tree.

A row is `ROW_HEAD` numbers of the inquiry and its last event, then a column per subtopic slot (S) or study slot (K):
visits (S), runs (K), result shown last (K), true result seen (K), highest hint told (S + K), earned credit (S + K).

A table is `TABLE_HEAD` numbers of the tree and its rules, then the subtopic of each study (K), the first study of each
subtopic (S + 1), the fakes (K), wordings (K) and hash key (K) of each study, and the prerequisites: where those of each
subtopic start in the list that follows (S + 1), and that list.

Hash keys are 64-bit words, kept as signed integers. A seed takes two columns, so that rows can be of 32 bits.
"""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING

from inquitree_gym.seeds import hash_text, signed

if TYPE_CHECKING:
    from inquitree_gym.inquiry.engine.rules import Rules
    from inquitree_gym.trees.schema import Tree

# Columns of a row. Those up to SEED_LOW are the state, those from KIND on the last event.
(
    TREE, PHASE, TURN, SUBTOPIC, STUDY, HINT_LEVEL, TARGET, LEFT, SEED_HIGH, SEED_LOW,
    KIND, NODE, FAKE, WORDING, ACCEPTED, FORCED, SHOWN_HINT, LIMITED, REASON, DECISION, CREDIT, AGAIN,
) = range(22)  # fmt: skip
ROW_HEAD = 22

# Columns of a table.
(
    SUBTOPICS, STUDIES, N, LIMIT, LEVEL, HIGHEST_FAKE, BARE, WAITS, RECALLS, REDO_TURN, REVISITS,
    READINGS, MASKS, TEXTS, REWARDS,
) = range(15)  # fmt: skip
TABLE_HEAD = 15

NO_LIMIT = -1


def row_width(subtopics: int, studies: int) -> int:
    """Return the columns of a row with this many slots."""
    return ROW_HEAD + 3 * subtopics + 5 * studies


def tree_table(tree: Tree, rules: Rules, subtopics: int, studies: int) -> list[int]:
    """Return the table of ``tree`` under ``rules`` with this many slots."""
    index = {subtopic.id: i for i, subtopic in enumerate(tree.subtopics)}
    sizes = [len(subtopic.studies) for subtopic in tree.subtopics]
    needs = [[index[name] for name in subtopic.prerequisites] for subtopic in tree.subtopics]
    varied = rules.replication == "varied"
    limit = rules.turn_limit(len(index))
    head = [
        subtopics, studies, len(index), NO_LIMIT if limit is None else limit, rules.fake_level,
        signed(((rules.fake_level << 64) - 1) // 10), rules.bare_decisions, rules.feedback == "reason",
        rules.reruns == "redo", rules.redo_turn, rules.named_at_result == "any", 0, 0, 0, 0,
    ]  # fmt: skip
    return [
        *map(int, head),
        *_padded([i for i, size in enumerate(sizes) for _ in range(size)], studies),
        *_padded(list(accumulate(sizes, initial=0)), subtopics + 1),
        *_padded([len(study.fakes) for study in tree.studies], studies),
        *_padded([min(map(len, study.wordings)) if varied else 1 for study in tree.studies], studies),
        *_padded([signed(hash_text(f"{tree.id}\n{study.id}")) for study in tree.studies], studies),
        *_padded(list(accumulate(map(len, needs), initial=0)), subtopics + 1),
        *chain.from_iterable(needs),
    ]


def _padded(values: list[int], length: int) -> list[int]:
    return values + [0] * (length - len(values))


def compact(row: list[int], subtopics: int, studies: int, n: int, m: int) -> list[int]:
    """Return a row with slots for ``subtopics`` and ``studies`` as one for a tree with n and m of them."""
    blocks = [(subtopics, n)] + [(studies, m)] * 3 + [(subtopics, n), (studies, m)] * 2
    found, at = row[:ROW_HEAD], ROW_HEAD
    for slots, used in blocks:
        found += row[at : at + used]
        at += slots
    return found
