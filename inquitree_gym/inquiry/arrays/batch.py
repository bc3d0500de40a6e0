"""`Batch`: the rows of many inquiries, and the step that takes them all one turn further."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import EpisodeSeeds
from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.inquiry.arrays.compiled import functions
from inquitree_gym.inquiry.arrays.loop import Grades, Inquiries, Tables, Told
from inquitree_gym.inquiry.arrays.observers import Observer
from inquitree_gym.inquiry.arrays.tables import TreePool, TreeTables
from inquitree_gym.inquiry.engine import Event, Phase, State
from inquitree_gym.inquiry.engine.rows import (
    LEFT,
    LIMITED,
    REWARDS,
    ROW_HEAD,
    SEED,
    SHOWN_HINT,
    STUDY,
    TREE,
    N,
    compact,
    row_width,
)  # fmt: skip
from inquitree_gym.inquiry.engine.transition import READING, begin
from inquitree_gym.inquiry.judges.quality import conclusion_quality
from inquitree_gym.inquiry.menu import MenuSize

BLOCK = 1024
"""Inquiries that are taken through all parts of a step together, while their rows are in the processor's cache."""


class InfoArrays(NamedTuple):
    """Infos of all inquiries, each an array with one entry, or one row of the mask, for each."""

    phase: Ints
    turn: Ints
    hint_level: Ints
    accepted: Bools
    forced: Bools
    action_mask: NDArray[np.int8]


class Batch:
    """Buffers of many inquiries."""

    def __init__(self, num_envs: int, size: MenuSize, pool: TreePool, observer: Observer, threads: int) -> None:
        """Allocate the rows of ``num_envs`` inquiries for menus of ``size``, which ``threads`` threads step."""
        self._functions, self._pool, self._observer, self._size = functions(), pool, observer, size
        self.num_envs = num_envs
        self.rows: Ints = np.zeros((num_envs, row_width(*size)), np.int64)
        """State and last event of each inquiry. See `inquitree_gym.inquiry.engine.rows`."""
        self.over: Bools = np.zeros(num_envs, np.bool_)
        """True for inquiries that are over and not yet started again."""
        self.seeds = EpisodeSeeds(num_envs)
        self.own: Ints = np.full(num_envs, -1)
        """Start of the table of each inquiry's own tree, -1 for a tree drawn from ``choices``."""
        self.choices: Ints = np.zeros(0, np.int64)
        """Starts of the tables of the trees to draw from."""
        self.infos: InfoArrays = self._new_infos()
        """Infos after the last step or reset."""
        self.observations: NDArray[Any] = observer.new(num_envs)
        """Observations after the last step or reset."""
        self._numbers: Ints = np.zeros(num_envs, np.int64)
        self.readings: Ints = np.zeros((num_envs, READING), np.int64)
        order = np.arange(num_envs)
        self._blocks = [order[first : first + BLOCK] for first in range(0, num_envs, BLOCK)]
        self._threads = ThreadPoolExecutor(threads) if threads > 1 and self._functions.compiled else None
        self.load()

    @property
    def nbytes(self) -> int:
        """Bytes that the inquiries take between steps, without tables and observations."""
        arrays = (*vars(self).values(), *vars(self.seeds).values())
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray)) - self.observations.nbytes

    @property
    def text_numbers(self) -> Ints:
        """Number of the text that each inquiry shows."""
        return self._numbers

    def load(self) -> None:
        """Take the tables of the pool, which has changed, and the trees to play."""
        view = self.view
        self._tables = Tables(*map(view, self._pool.tables))
        self._grades = Grades(*map(view, self._pool.grades))
        episodes, first = self.seeds.episode.view(np.int64), self.seeds.first.view(np.int64)
        self._played = Inquiries(
            view(self.rows), self.rows.shape[1], self._size.actions, view(self.over), view(first), view(episodes),
            view(self.own), view(self.choices),
        )  # fmt: skip

    def view(self, array: NDArray[Any]) -> Any:
        """Return an array as a buffer. See `Functions.view`."""
        return self._functions.view(array)

    def start(self, envs: Ints, tables: Ints) -> None:
        """Start episodes with the seeds that are set, on the trees whose tables begin at ``tables``."""
        width = self.rows.shape[1]
        trees = self._pool.tables.trees
        for table in np.unique(tables).tolist():
            row = [0] * width
            begin(row, 0, width, [int(number) for number in trees[: table + 3]], table, 0)
            self.rows[envs[tables == table]] = row
        self.rows[envs, SEED] = self.seeds.current(envs).view(np.int64)
        self.over[envs] = False

    def observe(self, *, copy: bool = True) -> None:
        """Write infos and observations of all inquiries, into new arrays or, without ``copy``, into the same ones."""
        self._renew(copy=copy)
        for block in self._blocks:
            self._tell(block)

    def step(self, actions: Ints, *, copy: bool, readings: Ints | None = None) -> tuple[Ints, NDArray[np.float64]]:
        """Take one turn in each inquiry, and start those that were over.

        Args:
            actions: menu actions, shape ``(num_envs,)``.
            copy: write observations into a new array.
            readings: readings in place of those of the menu, shape ``(num_envs, 4)``.

        Returns: the inquiries that are over now, and the rewards of all.
        """
        self._renew(copy=copy)
        arguments = [(block, actions, readings) for block in self._blocks]
        if self._threads is None:
            for each in arguments:
                self._step_block(*each)
        else:
            list(self._threads.map(self._step_block, *zip(*arguments, strict=True)))
        rewards = np.zeros(self.num_envs)
        ended = (self.infos.phase == Phase.END).nonzero()[0]
        if ended.size:
            self._score(ended, actions, rewards)
            self.over[ended] = True
        return ended, rewards

    def restart(self, envs: Ints) -> None:
        """Start the next episodes of these inquiries, and write their infos and observations."""
        self._functions.restart(self.view(envs), self._played, self._tables)
        self._tell(envs)

    def _renew(self, *, copy: bool) -> None:
        self.infos = self._new_infos()
        if copy:
            self.observations = self._observer.new(self.num_envs)

    def _new_infos(self) -> InfoArrays:
        n = self.num_envs
        return InfoArrays(
            np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_),
            np.empty(n, np.bool_), np.empty((n, self._size.actions), np.int8),
        )  # fmt: skip

    def _step_block(self, block: Ints, actions: Ints, readings: Ints | None) -> None:
        """Take the inquiries of a block, which follow each other, one turn further."""
        run, first, end = self._functions, int(block[0]), int(block[-1]) + 1
        if readings is None:
            readings = self.readings
            run.read_actions(self.view(block), self._played, self._tables, self.view(actions), self.view(readings))
        width = self.rows.shape[1]
        over = block[self.over[first:end]]
        run.advance(self.view(self.rows), first, end, width, self._tables.trees, self.view(readings))
        if over.size:
            run.restart(self.view(over), self._played, self._tables)
        self._tell(block)

    def _tell(self, envs: Ints) -> None:
        run, order, played, tables = self._functions, self.view(envs), self._played, self._tables
        run.tell(order, played, tables, Told(*map(self.view, self.infos)))
        run.number_texts(order, played, tables, self.view(self._numbers))
        self._observer.write(run, order, played, self.view(self._numbers), self.observations)

    def _score(self, ended: Ints, actions: Ints, rewards: NDArray[np.float64]) -> None:
        view = self.view
        self._functions.score(view(ended), self._played, self._tables, self._grades, view(actions), view(rewards))
        for env in ended[np.isnan(rewards[ended])].tolist():
            tree = self.tree(env)
            first = self._pool.grades.needs[self._pool.tables.trees[self.rows[env, TREE] + REWARDS] + 1]
            rewards[env] = grade(tree, self.event(env).state, int(actions[env]), self._pool.grades.grades, int(first))

    def tree(self, env: int) -> TreeTables:
        """Return the tree of an inquiry."""
        return self._pool.at(int(self.rows[env, TREE]))

    def event(self, env: int) -> Event:
        """Return the last event of an inquiry, and with it its state."""
        engine = self.tree(env).runtime.engine
        row = compact(self.rows[env].tolist(), *self._size, engine.n, len(engine.subtopic_of))
        return Event(State(row, engine.n))

    def move_trees(self, starts: Ints, old: Ints) -> None:
        """Take over tables that begin at ``starts`` now where they began at ``old`` before."""
        if len(old):
            self.rows[:, TREE] = starts[old.searchsorted(self.rows[:, TREE])]

    def coverage(self) -> NDArray[np.float64]:
        """Return the share of subtopics that have been visited, shape ``(num_envs,)``."""
        n = self._pool.tables.trees[self.rows[:, TREE] + N]
        return np.asarray(1.0 - self.rows[:, LEFT] / n)

    def hinted(self) -> Bools:
        """Return whether the last event gave a hint that was shown, shape ``(num_envs,)``."""
        return np.asarray((self.rows[:, SHOWN_HINT] > 0) & (self.rows[:, LIMITED] == 0))

    def runs(self, envs: Ints, studies: Ints) -> Ints:
        """Return how often these inquiries ran these studies."""
        return self.rows[envs, ROW_HEAD + self._size.subtopics + studies]

    def decisions(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the inquiries that decide on a result, its study, the runs of that study, and 1 if it is a fake.

        Each array has the shape ``(inquiries at a result,)``.
        """
        envs = (self.infos.phase == Phase.RESULT).nonzero()[0]
        studies = self.rows[envs, STUDY]
        shown = self.rows[envs, ROW_HEAD + sum(self._size) + studies]
        return envs, studies, self.runs(envs, studies), (shown > 0).astype(np.int64)


def grade(tree: TreeTables, state: State, action: int, grades: NDArray[np.float64], first: int) -> float:
    """Return Q/|C| of the text of ``action`` in ``state``, and keep the grades of that text if the table has room.

    Args:
        tree: the tree and its judge.
        state: state of an inquiry that is over.
        action: the menu action that ended it.
        grades: grades of all trees. See `Grades`.
        first: place of the tree's first grade.
    """
    menu, judge = tree.menu, tree.runtime.judge
    concludes = action == menu.conclusion
    verdicts = judge.judge(menu.conclude(state) if concludes else menu.texts[action])
    unscored = any(verdict.score is None for verdict in verdicts)
    text = action + (menu.pattern(state) if concludes else 0)
    if text < tree.needs[2]:
        at = first + text * len(verdicts)
        grades[at : at + len(verdicts)] = [0.0 if unscored else verdict.score for verdict in verdicts]
    quality = conclusion_quality(tree.runtime.task, state.proven, verdicts, tree.runtime.rules.evidence)
    return 0.0 if quality is None else quality / len(verdicts)
