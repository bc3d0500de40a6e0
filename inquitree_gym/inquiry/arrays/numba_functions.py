"""The loops and the engine's function as Numba compiles them. Importing this module imports Numba."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from inquitree_gym.inquiry.arrays import loop
from inquitree_gym.inquiry.engine import transition

_GOLDEN, _FIRST, _SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@numba.njit(inline="always")
def _mix(mixed: Any, word: Any) -> Any:
    """Chain one more word onto a hash. See `splitmix64`: compiled integers wrap, so nothing is masked."""
    mixed = (mixed ^ np.uint64(word)) + _GOLDEN
    mixed = (mixed ^ (mixed >> _S30)) * _FIRST
    mixed = (mixed ^ (mixed >> _S27)) * _SECOND
    return mixed ^ (mixed >> _S31)


@overload(transition.draw_fake)
def _draw_fake(seed: Any, key: Any, run: Any, highest: Any, fakes: Any) -> Any:
    def draw(seed: Any, key: Any, run: Any, highest: Any, fakes: Any) -> Any:
        word = _mix(_mix(_mix(np.uint64(0), seed), key), run)
        if word > np.uint64(highest):
            return 0
        return 1 + np.int64(_mix(np.uint64(0), word) % np.uint64(fakes))

    return draw


@overload(transition.draw_one)
def _draw_one(seed: Any, key: Any, place: Any, count: Any) -> Any:
    def draw(seed: Any, key: Any, place: Any, count: Any) -> Any:
        return np.int64(_mix(_mix(_mix(_mix(np.uint64(0), seed), key), 0), place) % np.uint64(count))

    return draw


@overload(loop.next_seed)
def _next_seed(first: Any, episode: Any) -> Any:
    def draw(first: Any, episode: Any) -> Any:
        return np.int64(_mix(_mix(np.uint64(0), first), episode))

    return draw


@overload(loop.draw_choice)
def _draw_choice(seed: Any, count: Any) -> Any:
    def draw(seed: Any, count: Any) -> Any:
        return np.int64(_mix(_mix(np.uint64(0), seed), count) % np.uint64(count))

    return draw


@intrinsic
def _pointers(context: Any, buffers: Any) -> Any:
    """Take the pointers of the arrays in a NamedTuple. `Batch` keeps the arrays alive."""
    kinds = [types.CPointer(each.dtype) if isinstance(each, types.Array) else each for each in buffers.types]
    found = types.NamedTuple(kinds, buffers.instance_class)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = cgutils.unpack_tuple(builder, arguments[0])
        bare = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(buffers.types, values, strict=True)
        ]
        return context.make_tuple(builder, found, bare)

    return found(buffers), generate


@overload(loop.pointers)
def _bare(buffers: Any) -> Any:
    def bare(buffers: Any) -> Any:
        return _pointers(buffers)

    return bare


for inner in (
    transition.outcome_of, transition.begin, transition.advance, loop.advance_all, loop.read_actions, loop.restart,
    loop.show, loop.mask_words, loop.observe_index, loop.observe_features,
):  # fmt: skip
    register_jitable(inner)
