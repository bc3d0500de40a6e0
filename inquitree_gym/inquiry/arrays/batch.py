"""`Batch`: the rows of many inquiries, and the step that takes them all one turn further."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.envs.arrays import EpisodeSeeds
from inquitree_gym.envs.spaces import Bools, Ints
from inquitree_gym.inquiry.arrays.compiled import functions
from inquitree_gym.inquiry.arrays.loop import Inquiries, Moves, Told, mask_words
from inquitree_gym.inquiry.arrays.observers import Observer
from inquitree_gym.inquiry.arrays.tables import TreePool, TreeTables
from inquitree_gym.inquiry.engine import Event, Phase, State
from inquitree_gym.inquiry.engine import rows as at
from inquitree_gym.inquiry.engine.transition import READING, begin
from inquitree_gym.inquiry.menu import MenuSize


class Batch:
    """Buffers of many inquiries."""

    def __init__(self, num_envs: int, size: MenuSize, pool: TreePool, observer: Observer, threads: int) -> None:
        """Allocate the rows of ``num_envs`` inquiries for menus of ``size``, which ``threads`` threads step."""
        self._functions, self._pool, self._observer, self._size = functions(), pool, observer, size
        self.num_envs = num_envs
        self.rows: NDArray[np.int32] = np.zeros((num_envs, at.Slots(*size).width), np.int32)
        """State and last event of each inquiry. See `inquitree_gym.inquiry.engine.rows`."""
        self.over: Bools = np.zeros(num_envs, np.bool_)
        """True for inquiries that are over and not yet started again."""
        self.seeds = EpisodeSeeds(num_envs)
        self.own: Ints = np.full(num_envs, -1)
        """Start of the table of each inquiry's own tree, -1 for a tree drawn from ``choices``."""
        self.choices: Ints = np.zeros(0, np.int64)
        """Starts of the tables of the trees to draw from."""
        self._readings: NDArray[np.int32] = np.zeros((num_envs, READING), np.int32)
        self.told = self._new_told(observer.new(num_envs))
        """Results of the last step or reset, each an array with an entry or a row for each inquiry."""
        bounds = np.linspace(0, num_envs, min(threads, num_envs) + 1).astype(int).tolist()
        self._parts = list(pairwise(bounds))
        self._threads = ThreadPoolExecutor(threads - 1) if threads > 1 and self._functions.compiled else None
        self.load()

    @property
    def nbytes(self) -> int:
        """Bytes that the inquiries take between steps, without tables and observations."""
        arrays = (*vars(self).values(), *vars(self.seeds).values(), *self.told[:-3], *self.told[-2:])
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))

    def load(self, *, reads: bool = True) -> None:
        """Take the tables of the pool, which has changed, and the trees to play. ``reads``: see `Inquiries.reads`."""
        view, seeds, slots = self.view, self.seeds, at.Slots(*self._size)
        tables = self._pool.tables._replace(vectors=self._observer.vectors)
        self._tables = type(tables)(*map(view, tables))
        own = self.over, seeds.first.view(np.int64), seeds.episode.view(np.int64), self.own, self.choices
        self._played = Inquiries(
            view(self.rows), self.rows.shape[1], self._size.actions, self._size.subtopics,
            slots.tally, slots.tally + slots.tally_width, self._observer.tallied, self._observer.dim, reads,
            len(self.choices), *map(view, own),
        )  # fmt: skip

    def view(self, array: NDArray[Any]) -> Any:
        """Return an array as a buffer. See `Functions.view`."""
        return self._functions.view(array)

    def start(self, envs: Ints, tables: Ints) -> None:
        """Start episodes with the seeds that are set, on the trees whose tables begin at ``tables``."""
        width, trees = self.rows.shape[1], memoryview(self._pool.tables.trees)  # of Python's integers
        seeds = self.seeds.current(envs).view(np.int64).tolist()
        for env, table, seed in zip(envs.tolist(), tables.tolist(), seeds, strict=True):
            row = [0] * width
            begin(row, 0, width, trees, table, seed)
            self.rows[env] = row
        self.over[envs] = False

    def masks(self) -> NDArray[np.int8]:
        """Return 1 for every open action, shape ``(num_envs, actions)``."""
        masks: NDArray[np.int8] = self.told.masks.view(np.int8)[:, : self._size.actions]
        return masks

    def observe(self, *, copy: bool = True) -> None:
        """Write infos and observations of all inquiries, into new arrays or, without ``copy``, into the same ones."""
        self.told = self._new_told(self._observer.new(self.num_envs) if copy else self.told.observations)
        self._functions.show_all(0, self.num_envs, self._played, self._tables, Told(*map(self.view, self.told)))

    def step(self, actions: Ints, *, copy: bool, readings: NDArray[np.int32] | None = None) -> Ints:
        """Take one turn in each inquiry, and start those that were over.

        Args:
            actions: menu actions, shape ``(num_envs,)``.
            copy: write observations into a new array.
            readings: readings in place of those of the menu, shape ``(num_envs, 4)``.

        Returns: the inquiries that are over now.
        """
        self.told = self._new_told(self._observer.new(self.num_envs) if copy else self.told.observations)
        given = self.view(self._readings if readings is None else readings)
        told, shared = Told(*map(self.view, self.told)), (self._played, self._tables, Moves(self.view(actions), given))
        if self._threads is None:
            self._functions.step(0, self.num_envs, *shared, told)
        else:
            own, *others = self._parts
            jobs = [self._threads.submit(self._functions.step, *part, *shared, told) for part in others]
            self._functions.step(*own, *shared, told)
            for job in jobs:
                job.result()
        ended: Ints = self.told.ended.nonzero()[0]
        return ended

    def go_on(self, envs: Ints) -> None:
        """Start the next episodes of these inquiries, and write their infos and observations."""
        self._functions.go_on(self.view(envs), self._played, self._tables, Told(*map(self.view, self.told)))

    def _new_told(self, observations: NDArray[Any]) -> Told:
        n, whole = self.num_envs, np.int64
        return Told(
            np.empty(n, whole), np.empty(n, whole), np.empty(n, whole), np.empty(n, np.bool_), np.empty(n, np.bool_),
            np.empty((n, mask_words(self._size.actions)), whole), np.empty(n, whole), observations, np.zeros(n),
            np.zeros(n, np.bool_),
        )  # fmt: skip

    def tree(self, env: int) -> TreeTables:
        """Return the tree of an inquiry."""
        return self._pool.at(int(self.rows[env, at.TREE]))

    def event(self, env: int) -> Event:
        """Return the last event of an inquiry, and with it its state."""
        engine = self.tree(env).runtime.engine
        return Event(State(at.compact(self.rows[env].tolist(), at.Slots(*self._size), engine.slots), engine.slots))

    def move_trees(self, starts: Ints, old: Ints) -> None:
        """Take over tables that begin at ``starts`` now where they began at ``old`` before."""
        if len(old):
            self.rows[:, at.TREE] = starts[old.searchsorted(self.rows[:, at.TREE])]

    def coverage(self) -> NDArray[np.float64]:
        """Return the share of subtopics that have been visited, shape ``(num_envs,)``."""
        n = self._pool.tables.trees[self.rows[:, at.TREE] + at.N]
        return np.asarray(1.0 - self.rows[:, at.LEFT] / n)

    def hinted(self) -> Bools:
        """Return whether the last event gave a hint that was shown, shape ``(num_envs,)``."""
        return np.asarray((self.rows[:, at.SHOWN_HINT] > 0) & (self.rows[:, at.LIMITED] == 0))

    def runs(self, envs: Ints, studies: Ints) -> Ints:
        """Return how often these inquiries ran these studies."""
        return self.rows[envs, at.ROW_HEAD + self._size.subtopics + studies].astype(np.int64)

    def decisions(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return the inquiries that decide on a result, its study, the runs of that study, and 1 if it is a fake.

        Each array has the shape ``(inquiries at a result,)``.
        """
        envs = (self.told.phases == Phase.RESULT).nonzero()[0]
        studies = self.rows[envs, at.STUDY]
        shown = self.rows[envs, at.ROW_HEAD + self._size.subtopics + self._size.studies + studies]
        return envs, studies, self.runs(envs, studies), (shown > 0).astype(np.int64)
