"""The agent `reader`: it solves T1 and T4 from question and pages alone, which shows that they can be solved."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from typing import Any

from inquitree_gym.baselines.agent import BaselineAgent
from inquitree_gym.exploration.reading import PageRead, Question, Wanted, parts_of, read_page, read_question

Steps = Generator[str, str, Any]
"""Actions, each sent back its outcome."""
Found = list[dict[str, str]]  # keys of records that fit together so far, by letter
_TOTAL = re.compile(r"^(\d+) records found", re.MULTILINE)
_RECORD = re.compile(r"^(\S+) · ", re.MULTILINE)


class ReaderAgent(BaselineAgent):
    """Looks up what the question says of each record, follows links on pages, and answers. Gives up on T2 and T3."""

    name = "reader"

    def reset(self, seed: int) -> None:
        """Start an episode."""
        super().reset(seed)
        self._steps: Steps | None = None

    def act(self, observation: str, info: Mapping[str, Any]) -> str:
        """Return the next action of its search. Without a turn left it gives up."""
        asked, outcome = parts_of(observation)
        question = read_question(asked)
        if question is None or info["state"] != "explore":
            return "ANSWER"
        if self._steps is None:
            self._steps = _Search(question).answer()
            return next(self._steps)
        return self._steps.send(outcome)


class _Search:
    """Search for the records of one question."""

    def __init__(self, question: Question) -> None:
        self._question, self._wanted = question, question.wanted
        self._pages: dict[str, PageRead] = {}

    def answer(self) -> Steps:
        """Yield all actions, the answer at the end."""
        question, root = self._question, next(reversed(self._wanted))
        found = yield from self._solutions()
        rows = {each[root]: list[str]() for each in found}
        for key in rows:
            rows[key] = yield from self._cells(root, key)
        if question.headers:
            head = f"| {' | '.join(question.headers)} |\n|{' --- |' * len(question.headers)}"
            yield "\n".join(["ANSWER", head, *(f"| {' | '.join(row)} |" for row in rows.values())])
        unit = "".join(f" {source.column.unit}" for source in question.sources)
        yield f"ANSWER {'; '.join(': '.join(row[not question.named :]) + unit for row in rows.values())}"

    def _cells(self, root: str, key: str) -> Steps:
        """Return the name of a record, and what is asked of it, over the links that lead there."""
        first = yield from self._open(self._wanted[root].database, key)
        cells = [first.name]
        for source in self._question.sources:
            page = first
            for database, link in source.path:
                page = yield from self._open(database, page.key(link))
            cells.append(page.cell(source))
        return cells

    def _solutions(self) -> Steps:
        """Return the records that fit together: from the description that fewest fit along links to all others."""
        counts = {}
        for letter, each in self._wanted.items():
            counts[letter], _ = yield from self._look(each, first=True)
        pivot = min(counts, key=lambda letter: counts[letter])
        _, keys = yield from self._look(self._wanted[pivot])
        found: Found = [{pivot: key} for key in keys]
        links = [(owner, column, to) for owner, each in self._wanted.items() for column, to in each.links.items()]
        while found and (cut := [link for link in links if (link[0] in found[0]) != (link[2] in found[0])]):
            # The end with fewest records needs fewest actions.
            costs = [len({each.get(owner, each.get(to)) for each in found}) for owner, _, to in cut]
            owner, column, to = cut[costs.index(min(costs))]
            found = yield from (self._down if owner in found[0] else self._up)(found, owner, column, to)
        return found

    def _up(self, found: Found, owner: str, column: str, to: str) -> Steps:
        """Return what fits together with the records that lead to a known one."""
        leading = {}
        for key in dict.fromkeys(each[to] for each in found):
            _, leading[key] = yield from self._look(self._wanted[owner], f"{column} = {key}")
        return [{**each, owner: key} for each in found for key in leading[each[to]]]

    def _down(self, found: Found, owner: str, column: str, to: str) -> Steps:
        """Return what fits together with the records that known ones lead to."""
        fits, grown = dict[str, int](), list[dict[str, str]]()
        for each in found:
            page = yield from self._open(self._wanted[owner].database, each[owner])
            key = page.key(column)
            if key not in fits:
                fits[key], _ = yield from self._look(self._wanted[to], f"key = {key}")
            grown += [{**each, to: key}] * fits[key]
        return grown

    def _look(self, wanted: Wanted, *more: str, first: bool = False) -> Steps:
        """Return how many records fit a description, and their keys: all of them, or the first that a LOOKUP lists."""
        total, keys = 0, list[str]()
        while True:
            tests = [*wanted.tests, *more, *(f"key != {key}" for key in keys)]
            outcome = yield f"LOOKUP {wanted.database}: {'; '.join(tests)}"
            counted, listed = _TOTAL.search(outcome), _RECORD.findall(outcome)
            total, keys = total or int(counted[1] if counted else 0), keys + listed
            if first or not listed or len(keys) >= total:
                return total, keys

    def _open(self, database: str, key: str) -> Steps:
        """Return the page of a record. It is opened once."""
        if key not in self._pages:
            self._pages[key] = read_page(database, (yield f"OPEN {key}"))
        return self._pages[key]
