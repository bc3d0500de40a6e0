"""Tasks: trees, fake levels and seeds as frozen values with a key, the same in every adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from inquitree_gym.engine import Rules
from inquitree_gym.engine.rules import expand_preset
from inquitree_gym.errors import OptionError
from inquitree_gym.prompts.render import DEFAULT
from inquitree_gym.runner.study import ALL, MAX_EPISODES, expand_all
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.load import is_path

FakeLevels = int | str | Sequence[int]
"""One level from 0 to 10, or several, as a list or separated by commas."""
MaxTurns = int | Literal["default", "3n", "none"] | None
"""Turn limit: see `Rules.max_turns`; ``3n`` allows a full traversal without a failure, ``none`` is None as a word."""

RulesLike = str | Mapping[str, Any] | None
"""Name of a preset of rules, or rules by name; None for the default."""


@dataclass(frozen=True, slots=True)
class InquiryTask:
    """One inquiry to play. Every value is plain, so a task can be sent to another process as JSON."""

    tree: str
    """Id of the tree."""
    version: int
    """Version of the tree."""
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """Rules of the episode, as `InquiryEnv.reset` takes them; ``rules`` names a preset."""

    @property
    def key(self) -> str:
        """Name of the task, such as ``paper12@1/f3/s0``; rules that are not the default come last."""
        rules, default = dict(self.options), Rules().as_dict()
        level = rules.pop("fake_level", 0)
        others = (f"{name}={value}" for name, value in sorted(rules.items()) if value != default.get(name))
        return "/".join([f"{self.tree}@{self.version}", f"f{level}", f"s{self.seed}", *others])

    @property
    def preset(self) -> str:
        """Name of the preset of the rules, whose prompts are used."""
        return str(self.options.get("rules", DEFAULT))

    def load(self) -> Tree:
        """Return the tree.

        Raises:
            OptionError: the tree is a path, or another version of it is installed.
            TreeError: the tree is unknown, invalid, or may not be distributed.
        """
        tree = tree_by_id(self.tree)
        if tree.version != self.version:
            raise OptionError(
                f"the task is for version {self.version} of {tree.id}, but version {tree.version} is installed; "
                "make the tasks again"
            )
        return tree


def make_tasks(
    trees: str | Sequence[str] = ALL,
    *,
    seeds: int | Sequence[int] = 5,
    fake_level: FakeLevels = 0,
    max_turns: MaxTurns = "default",
    rules: RulesLike = None,
) -> tuple[InquiryTask, ...]:
    """Return a task for each tree, fake level and seed, tree by tree.

    Args:
        trees: ids or paper numbers, as a list or separated by commas; ``all`` for every shipped tree. Trees of your own
            are named by their id and found in the folders of ``INQUITREE_TREES``; a path is refused, since it may come
            from a client.
        seeds: number of seeds, 0, 1, 2, …, or the seeds themselves.
        fake_level: one level from 0 to 10, or several, as a list or separated by commas.
        max_turns: turn limit.
        rules: name of a preset, such as ``paper``, which brings its prompts; or further rules by name, as in `Rules`.

    Raises:
        OptionError: a value is out of range, a rule is unknown, or a tree is a path.
        TreeError: a tree is unknown, invalid, or may not be distributed.
    """
    names = [name.strip() for name in trees.split(",")] if isinstance(trees, str) else trees
    levels = _levels(fake_level)
    numbers = _seeds(seeds)
    found = {tree.id: tree for tree in map(tree_by_id, expand_all(names))}
    if not found or not levels:
        raise OptionError("there is no task to make; name at least one tree and one fake level")
    chosen = {"rules": rules} if isinstance(rules, str) else dict(rules or {})
    if chosen.get("rules") == DEFAULT:
        del chosen["rules"]
    if own := sorted(chosen.keys() & {"fake_level", "max_turns"}):
        raise OptionError(f"{', '.join(own)} cannot be among the rules; give each as a setting of its own")
    if (count := len(found) * len(levels) * len(numbers)) > MAX_EPISODES:
        raise OptionError(f"{count:,} tasks are more than {MAX_EPISODES:,}; choose fewer seeds")
    tasks = []
    for tree, level, seed in product(found.values(), levels, numbers):
        options = {"fake_level": level, "max_turns": _turn_limit(max_turns, tree), **chosen}
        Rules().override(expand_preset(options))
        tasks.append(InquiryTask(tree.id, tree.version, seed, options))
    return tuple(tasks)


def tree_by_id(tree: str) -> Tree:
    """Return the tree with an id or paper number.

    Raises:
        OptionError: ``tree`` is no id, but a path or something else.
        TreeError: the tree is unknown, invalid, or may not be distributed.
    """
    if not isinstance(tree, str) or is_path(tree):
        raise OptionError(
            "a tree is named by its id here, such as paper12; put a file of your own in a folder named by "
            "INQUITREE_TREES"
        )
    return load_tree(tree)


def _levels(levels: FakeLevels) -> list[int]:
    if isinstance(levels, str):
        try:
            levels = [int(level) for level in levels.split(",")]
        except ValueError:
            raise OptionError(f"fake_level is a whole number from 0 to 10, or several, not {levels!r:.80}") from None
    return list(dict.fromkeys([levels] if isinstance(levels, int) else levels))


def _seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    numbers = range(seeds) if isinstance(seeds, int) else list(dict.fromkeys(seeds))
    if not numbers or any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in numbers):
        raise OptionError(f"seeds is a number of seeds from 1, or a list of whole numbers from 0, not {seeds!r:.80}")
    return numbers


def _turn_limit(max_turns: MaxTurns, tree: Tree) -> Any:
    if max_turns == "3n":
        return 3 * len(tree.subtopics)
    return None if max_turns == "none" else max_turns
