"""Rules of an inquiry, and its turn limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.ruleset import RuleSet
from inquitree_gym.trees.fields import HINT_LEVELS

Limit = int | str | None
"""A number of turns, a formula, or None for no limit."""

MOST_TURNS = 1_000_000_000
"""Largest number in a limit."""
_FORMULA = re.compile(r"([1-9][0-9]{0,5})?n(?:\+([1-9][0-9]{0,5}))?")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def parse_limit(given: object) -> Limit:
    """Return a turn limit in its shortest form: ``"40"`` is 40, ``"3n + 3"`` is ``"3n+3"``, ``"none"`` is None.

    Raises:
        OptionError: it is no limit.
    """
    if given is None or (type(given) is int and 1 <= given <= MOST_TURNS):
        return given
    text = re.sub(r"\s+", "", given).lower() if isinstance(given, str) else ""
    if text == "none":
        return None
    if _NUMBER.fullmatch(text):
        return int(text)
    if _FORMULA.fullmatch(text):
        return text
    raise OptionError(
        f"max_turns must be an integer from 1, a formula such as '3n' or '3n+3' in the number n of subtopics, or "
        f"None, got {given!r:.80}"
    )


def limit_turns(limit: Limit, n: int) -> int | None:
    """Return the turns of a parsed limit for n subtopics. None for no limit."""
    if not isinstance(limit, str):
        return limit
    found = _FORMULA.fullmatch(limit)
    assert found is not None
    factor, more = found.groups()
    return int(factor or 1) * n + int(more or 0)


def limit_label(limit: Limit) -> str:
    """Return a parsed limit in the words of reports: ``3n``, ``40`` or ``none``."""
    return "none" if limit is None else str(limit)


Decisions = Literal["phrases", "tokens"]
Feedback = Literal["hint", "reason"]
Reruns = Literal["redo", "match"]
Replication = Literal["exact", "varied"]
NamedAtResult = Literal["unvisited", "any"]
Evidence = Literal["groups", "results"]
ExamForm = Literal["sheet", "items", "none"]
Preset = Literal["default", "paper"]

_CHOICES = {
    name: get_args(kind) for name, kind in (
        ("decisions", Decisions), ("feedback", Feedback), ("reruns", Reruns), ("replication", Replication),
        ("named_at_result", NamedAtResult), ("evidence", Evidence), ("exam", ExamForm),
    )
}  # fmt: skip
"""Rules that are one of several values, with these."""
_OF_EPISODE = ("threshold", "world", "fake_level", "max_turns")
"""Rules left out of a preset's label: they are settings of an experiment. A preset sets world and turns alone."""
_PAPER: dict[str, Any] = {
    "world": "actual", "max_turns": f"{2 * HINT_LEVELS + 3}n", "redo_turn": True, "decisions": "tokens",
    "bare_decisions": False, "named_at_result": "any", "feedback": "hint", "reruns": "match", "replication": "exact",
    "evidence": "results", "exam": "none", "briefing": False,
}  # fmt: skip
"""The preset ``paper``. It is frozen: another reading of the paper gets another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(RuleSet):
    """Rules of an inquiry. The defaults are our reading of the paper. `preset` has the paper's own as printed."""

    threshold: float | None = None
    """Minimum cosine similarity of an accepted choice, τ in [-1, 1]. None takes the embedder's calibrated default."""
    world: str = "any"
    """Set of worlds that the seed draws from, of the trees that have worlds: "any", the paper's "actual" one, its
    "complement", "train", "test", or the id of a world. See `inquitree_gym.trees.worlds`."""
    fake_level: int = 0
    """Probability of a fake result in tenths. 0 to 10."""
    max_turns: Limit = "3n"
    """Turns until the limit prompt: a number, a formula in the number n of subtopics such as "3n+3", or None for no
    limit. The preset ``paper`` has n(2H + 3)."""
    redo_turn: bool = False
    """Answer the decision to redo in a separate turn, with a text of its own, before the new result."""
    decisions: Literal["phrases", "tokens"] = "phrases"
    """Texts that count as decisions: exact "tokens" such as redo_study, or also "phrases" that mean the same."""
    bare_decisions: bool = True
    """Accept a text that is nothing but a decision at the topic (conclude) and at a subtopic (conclude, or explore,
    which declines the subtopic and takes its entry back)."""
    feedback: Literal["hint", "reason"] = "reason"
    """Answer to a failed choice: with "reason", a proposal whose prerequisites are unmet has to wait, which takes a
    turn and gives no hint, and one that is no part of the inquiry is declined with a hint. "hint": hints for both."""
    reruns: Literal["redo", "match"] = "redo"
    """Way to run a study again: by a decision to "redo" alone, which is then told as another time, while a design that
    matches one is told that it was run before. Or also by any design that "match"es it, without a word."""
    replication: Literal["exact", "varied"] = "varied"
    """Wording of a result, true or fake: the "exact" text, or "varied" ones, drawn at each run, where the tree has as
    many of each result."""
    named_at_result: Literal["unvisited", "any"] = "unvisited"
    """Subtopics that a text without a decision may name at a result, which counts as exploring: "unvisited" ones,
    unless the text speaks of repeating, or "any", visited or not and whatever else the text says."""
    evidence: Literal["groups", "results"] = "groups"
    """Unit of p (Eq. 8): "groups" of results, each met by any one of its results, or all required "results" singly."""

    exam: Literal["sheet", "items", "none"] = "sheet"
    """Exam after the conclusion: a "sheet" with all items, taken in one turn, one of its "items" at a time, as in the
    discrete views, or "none"."""
    briefing: bool = True
    """Tell at the start that findings may differ from published ones, how many results are wrong, and of the exam."""

    def __post_init__(self) -> None:
        """Validate every rule.

        Raises:
            OptionError: a rule is out of range.
        """
        threshold = self.threshold
        if threshold is not None and not (_is_real(threshold) and -1 <= threshold <= 1):
            raise OptionError(f"threshold must be a number from -1 to 1 or None, got {threshold!r}")
        if not isinstance(self.world, str):
            raise OptionError(f"world must be the name of a set of worlds or the id of one, got {self.world!r:.80}")
        if not (_is_integer(self.fake_level) and 0 <= self.fake_level <= 10):
            raise OptionError(f"fake_level must be an integer from 0 to 10, got {self.fake_level!r}")
        object.__setattr__(self, "max_turns", parse_limit(self.max_turns))
        for name in ("redo_turn", "bare_decisions", "briefing"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be True or False, got {getattr(self, name)!r}")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known or isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be one of {known}, got {getattr(self, name)!r}")

    @classmethod
    def preset(cls, name: str) -> Rules:
        """Return the rules of a preset: ``"default"``, or ``"paper"`` for each choice as the paper prints it.

        Raises:
            OptionError: no preset has this name.
        """
        if name not in get_args(Preset):
            raise OptionError(
                f"unknown preset {name!r:.80}{suggest(str(name), get_args(Preset))}; known: "
                f"{', '.join(get_args(Preset))}"
            )
        return cls(**_PAPER) if name == "paper" else cls()

    @property
    def label(self) -> str:
        """Name of the preset with the choices that differ from it: ``paper``, ``default, reruns=match``.

        Threshold, fake level and turn limit are not part of it.
        """
        return _label(self)

    def fewest_turns(self, n: int) -> int:
        """Return L of a full traversal without failures: 3n (appendix B)."""
        return 3 * n

    def most_turns(self, n: int) -> int | None:
        """Return the largest L of a full traversal: n(2H + 3), if every choice takes the forced move (appendix B).

        Where failures do not end in a forced move, because proposals wait without a hint, it is the turn limit, or
        None.
        """
        return self.turn_limit(n) if self.feedback == "reason" else n * (2 * HINT_LEVELS + 3)

    def turn_limit(self, n: int) -> int | None:
        """Return the number of turns until the limit prompt, or None for no limit."""
        return limit_turns(self.max_turns, n)


@lru_cache(maxsize=256)
def _label(rules: Rules) -> str:
    named = {name: _differences(rules, Rules.preset(name)) for name in get_args(Preset)}
    nearest = min(named, key=lambda name: len(named[name]))
    return ", ".join([nearest, *named[nearest]])


def _differences(rules: Rules, preset: Rules) -> list[str]:
    theirs, mine = preset.as_dict(), rules.as_dict().items()
    return [f"{name}={value}" for name, value in mine if value != theirs[name] and name not in _OF_EPISODE]


@lru_cache(maxsize=256, typed=True)
def _logged(names: tuple[str, ...], *values: object) -> Rules:
    return Rules().override(dict(zip(names, values, strict=True)))


def logged_rules(rules: Mapping[str, Any]) -> Rules:
    """Return the rules that a log holds, which are those of many others. See `RuleSet.override` for the errors."""
    try:
        return _logged(tuple(rules), *rules.values())
    except TypeError:  # a list or a table cannot be a key, and is no value of a rule either
        return Rules().override(rules)


def expand_preset(options: Mapping[str, Any], key: str = "rules") -> dict[str, Any]:
    """Replace the preset that ``options[key]`` names by its rules, which the other options override.

    Raises:
        OptionError: no preset has this name.
    """
    if key not in options:
        return dict(options)
    given = {name: value for name, value in options.items() if name != key}
    preset = Rules.preset(options[key])
    return {name: value for name, value in preset.as_dict().items() if name not in ("threshold", "fake_level")} | given


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
