"""Grids of episodes: the parts of a run that several commands asked for, and their union."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

_AXES = ("players", "trees", "fake_levels")


class Grid(BaseModel):
    """Every combination of some players, trees, fake levels and consecutive seeds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    players: tuple[tuple[str, str], ...] = Field(min_length=1)
    """Agents, each with the label of its model; the label is empty for an agent that asks none."""
    trees: tuple[str, ...] = Field(min_length=1)
    fake_levels: tuple[int, ...] = Field(min_length=1)
    first_seed: int = Field(ge=0)
    seeds: int = Field(ge=1)

    @property
    def size(self) -> int:
        """Number of episodes."""
        return len(self.players) * len(self.trees) * len(self.fake_levels) * self.seeds

    @property
    def end(self) -> int:
        """First seed after the last one."""
        return self.first_seed + self.seeds

    def covers(self, other: Grid) -> bool:
        """Return whether every episode of another grid is one of this."""
        in_axes = all(set(getattr(self, axis)) >= set(getattr(other, axis)) for axis in _AXES)
        return in_axes and self.first_seed <= other.first_seed and other.end <= self.end


def hull(grids: Iterable[Grid]) -> Grid:
    """Return the smallest grid that covers all given ones; values keep their order of first appearance."""
    grids = list(grids)
    first, end = min(each.first_seed for each in grids), max(each.end for each in grids)
    axes = {axis: tuple(dict.fromkeys(value for each in grids for value in getattr(each, axis))) for axis in _AXES}
    return Grid(**axes, first_seed=first, seeds=end - first)


def joined(grids: Iterable[Grid]) -> tuple[Grid, ...]:
    """Return fewer grids of the same episodes: two are joined if they differ in one respect, or one covers the other.

    >>> one = Grid(players=(("random", ""),), trees=("paper8",), fake_levels=(0,), first_seed=0, seeds=3)
    >>> [each.seeds for each in joined([one, one.model_copy(update={"first_seed": 3, "seeds": 2})])]
    [5]
    """
    found: list[Grid] = []
    for grid in grids:
        while (partner := next((each for each in reversed(found) if _make_one_grid(each, grid)), None)) is not None:
            found.remove(partner)
            grid = hull((partner, grid))
        found.append(grid)
    return tuple(found)


def _make_one_grid(one: Grid, other: Grid) -> bool:
    if one.covers(other) or other.covers(one):
        return True
    differing = sum(set(getattr(one, axis)) != set(getattr(other, axis)) for axis in _AXES)
    if (one.first_seed, one.seeds) == (other.first_seed, other.seeds):
        return differing == 1
    return differing == 0 and one.first_seed <= other.end and other.first_seed <= one.end
