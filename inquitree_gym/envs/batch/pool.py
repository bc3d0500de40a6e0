"""What `InquiryBatchEnv` can play: trees under rules, compiled when first asked for and kept in one set of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from inquitree_gym.engine import Rules
from inquitree_gym.envs.batch.compiler import Compiled, compile_play
from inquitree_gym.envs.batch.encoding import Ints
from inquitree_gym.envs.batch.kernel import Core
from inquitree_gym.envs.batch.observing import Observer
from inquitree_gym.envs.batch.tables import Tables
from inquitree_gym.envs.menu import Menu, MenuSize
from inquitree_gym.envs.observations import observation_keys
from inquitree_gym.envs.runtime import RuntimeCache
from inquitree_gym.trees import Tree

MAX_OTHERS = 64
"""Plays kept ready besides those that the environment was made with."""

_Key = tuple[Tree, Rules]


class Repertoire:
    """Compiled plays, by tree and rules."""

    def __init__(self, plays: RuntimeCache, size: MenuSize, observer: Observer, inquiries: int) -> None:
        """Compile ``plays`` for menus of ``size`` and inquiries shown by ``observer``; nothing yet."""
        self._plays = plays
        self._size = size
        self._observer = observer
        self.inquiries = inquiries
        """How many inquiries there are."""
        self._compiled: dict[_Key, Compiled] = {}
        """In the order of their numbers."""
        self._texts: dict[tuple[int, int], str] = {}
        """By number of the play and of the text, those that were looked at."""
        self._own = 0
        self.core: Core | None = None
        """The inquiries, once there is something to play."""

    def numbers(self, trees: Sequence[Tree], rules: Rules, others: Ints | None = None) -> Ints:
        """Return the numbers of ``trees`` under ``rules``; those first asked for never change.

        Args:
            trees: what is to be played.
            rules: how.
            others: numbers of plays in progress that go on; their inquiries are told when these change.

        Raises:
            OptionError: a tree does not fit into the menu, is too big for a table, or cannot be shown.
        """
        wanted = dict.fromkeys((tree, rules) for tree in trees)
        missing = [key for key in wanted if key not in self._compiled]
        if missing:
            made = {key: compile_play(self._plays.get(*key), Menu(key[0], self._size)) for key in missing}
            self._take_in(made, wanted, set() if others is None else set(others.tolist()))
        order = {key: number for number, key in enumerate(self._compiled)}
        return np.array([order[tree, rules] for tree in trees])

    def texts(self, core: Core) -> list[str]:
        """Return the text that each inquiry shows."""
        numbers = core.tables.places.text.take(core.place)
        shown = list(zip(core.play.tolist(), numbers.tolist(), strict=True))
        for play, number in set(shown).difference(self._texts):
            played = core.tables.plays[play].reader.play
            view = tuple(observation_keys(played.tree))[number - core.tables.first_texts[play]]
            self._texts[play, number] = played.observations.render_key(view)
        return [self._texts[each] for each in shown]

    def _take_in(self, made: dict[_Key, Compiled], wanted: Iterable[_Key], others: set[int]) -> None:
        keys = list(self._compiled)
        if len(keys) + len(made) > self._own + MAX_OTHERS:
            keys = [key for number, key in enumerate(keys) if number < self._own or number in others or key in wanted]
        compiled = {**{key: self._compiled[key] for key in keys}, **made}
        plays = tuple(compiled.values())
        tables = Tables(self._size, plays, self._observer.number(plays))
        if self.core is None:
            self.core = Core(self.inquiries, tables, marks=self._observer.marks)
            self._own = len(compiled)
        else:
            new = {key: number for number, key in enumerate(compiled)}
            self.core.renumber(tables, np.array([new.get(key, 0) for key in self._compiled]))
        self._compiled = compiled
        self._texts.clear()
