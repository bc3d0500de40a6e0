"""Rules of an inquiry that can be switched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from inquitree_gym.engine.ruleset import RuleSet
from inquitree_gym.errors import OptionError, suggest
from inquitree_gym.trees.schema import HINT_LEVELS

Candidates = Literal["all", "admissible"]
LastHint = Literal["advance", "repeat"]
Explore = Literal["hub", "direct"]
Decisions = Literal["phrases", "tokens"]
Feedback = Literal["hint", "reason"]
OnTie = Literal["nearest", "ask"]
FakeKey = Literal[1, 2]
Replication = Literal["exact", "varied"]
NamedAtResult = Literal["unvisited", "any"]
Evidence = Literal["groups", "results"]
Preset = Literal["default", "paper"]

TIE_MARGIN = 0.03
"""Default of ``tie_margin``."""

_CHOICES = {
    "candidates": Candidates, "on_last_hint": LastHint, "explore": Explore, "decisions": Decisions,
    "feedback": Feedback, "on_tie": OnTie, "fake_key": FakeKey, "replication": Replication,
    "named_at_result": NamedAtResult, "evidence": Evidence,
}  # fmt: skip
"""Rules that are one of several values."""
_OF_EPISODE = ("threshold", "fake_level", "max_turns")
"""Rules that no preset sets: they are settings of an experiment."""
_PAPER: dict[str, Any] = {
    "candidates": "all", "on_last_hint": "advance", "study_turn": False, "redo_turn": True, "explore": "hub",
    "decisions": "tokens", "bare_decisions": False, "named_at_result": "any", "feedback": "hint", "on_tie": "nearest",
    "tie_margin": 0.03, "fake_key": 2, "replication": "exact", "evidence": "results",
}  # fmt: skip
"""The preset ``paper``. It is frozen: another reading of the paper gets another name."""
_FORMERLY: dict[str, Any] = {"bare_decisions": False, "fake_key": 1}
"""Values of rules in logs that were written before the rules existed, where they differ from the defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(RuleSet):
    """Rules of an inquiry. The defaults are our reading of the paper; `preset` has the paper's own as printed."""

    threshold: float | None = None
    """Minimum cosine similarity of an accepted choice, τ in [-1, 1]; None takes the embedder's calibrated default."""
    fake_level: int = 0
    """Probability of a fake result in tenths; 0 to 10."""
    max_turns: int | Literal["default"] | None = "default"
    """Number of turns until the limit prompt; "default" means n(2H + 3), None means no limit."""
    candidates: Literal["all", "admissible"] = "all"
    """Candidates of a choice: "all" subtopics, including locked ones, or only the "admissible" ones."""
    on_last_hint: Literal["advance", "repeat"] = "advance"
    """Effect of a failure after the last hint: "advance" makes the forced move, "repeat" repeats the hint."""
    study_turn: bool = False
    """Show the study in a separate turn before its result."""
    redo_turn: bool = False
    """Answer the decision to redo in a separate turn, with a text of its own, before the new result."""
    explore: Literal["hub", "direct"] = "hub"
    """Effect of an explore decision that names a subtopic: "hub" returns to the topic, "direct" enters it."""
    decisions: Literal["phrases", "tokens"] = "phrases"
    """Texts that count as decisions: exact "tokens" such as redo_study, or also "phrases" that mean the same."""
    bare_decisions: bool = True
    """Take a text that is nothing but a decision as one at the topic (conclude) and at a subtopic (conclude; explore,
    which declines the subtopic and takes its entry back)."""
    feedback: Literal["hint", "reason"] = "hint"
    """Answer to a failed choice: a "hint" alone, or the hint and the "reason": too early, or nothing of the kind."""
    on_tie: Literal["nearest", "ask"] = "nearest"
    """Effect of a choice whose two nearest candidates are almost equally near: the "nearest" is taken, or the agent is
    "ask"ed once which one it means."""
    tie_margin: float = TIE_MARGIN
    """Difference in similarity, 0 to 2, below which two candidates count as equally near."""
    fake_key: Literal[1, 2] = 2
    """Use of the episode's seed: with 2, the hash that draws the fakes knows tree and study, and the agent gets a seed
    of its own. 1 is for logs from before this rule: the hash knows only the study's place in its tree, and the agent
    gets the episode's seed."""
    replication: Literal["exact", "varied"] = "exact"
    """True result of a study that is run again: the "exact" text, or "varied" wordings in turn, where the tree has
    any."""
    named_at_result: Literal["unvisited", "any"] = "unvisited"
    """Subtopics that a text without a decision may name at a result, which counts as exploring: "unvisited" ones,
    unless the text speaks of repeating; or "any", visited or not and whatever else the text says."""
    evidence: Literal["groups", "results"] = "groups"
    """Unit of p (Eq. 8): "groups" of results, each met by any one of its results, or all required "results" singly."""

    def __post_init__(self) -> None:
        """Validate every rule.

        Raises:
            OptionError: a rule is out of range.
        """
        threshold = self.threshold
        if threshold is not None and not (_is_real(threshold) and -1 <= threshold <= 1):
            raise OptionError(f"threshold is a number from -1 to 1 or None, not {threshold!r}")
        if not (_is_integer(self.fake_level) and 0 <= self.fake_level <= 10):
            raise OptionError(f"fake_level is a whole number from 0 to 10, not {self.fake_level!r}")
        turns = self.max_turns
        if turns is not None and turns != "default" and not (_is_integer(turns) and turns >= 1):
            raise OptionError(f"max_turns is a whole number from 1, None or 'default', not {turns!r}")
        for name in ("study_turn", "redo_turn", "bare_decisions"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} is True or False, not {getattr(self, name)!r}")
        if not (_is_real(self.tie_margin) and 0 <= self.tie_margin <= 2):
            raise OptionError(f"tie_margin is a number from 0 to 2, not {self.tie_margin!r}")
        for name, kind in _CHOICES.items():
            if getattr(self, name) not in get_args(kind) or isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} is one of {get_args(kind)}, not {getattr(self, name)!r}")

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

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> Rules:
        """Return the rules in the header of a log; a rule that the log does not name has the effect it had then.

        Raises:
            OptionError: a rule is unknown or out of range.
        """
        return cls().override(_FORMERLY | dict(values))

    @staticmethod
    def unnamed(values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules that the header of a log does not name but whose effect then was not today's default."""
        return {name: value for name, value in _FORMERLY.items() if name not in values}

    @property
    def label(self) -> str:
        """Name of the preset with the choices that differ from it: ``paper``, ``default, explore=direct``.

        Threshold, fake level and turn limit are no part of it.
        """
        named = {name: self._differences(name) for name in get_args(Preset)}
        nearest = min(named, key=lambda name: len(named[name]))
        return ", ".join([nearest, *named[nearest]])

    def _differences(self, preset: str) -> list[str]:
        theirs = Rules.preset(preset).as_dict()
        mine = {name: value for name, value in self.as_dict().items() if name not in _OF_EPISODE}
        return [f"{name}={value}" for name, value in mine.items() if value != theirs[name]]

    def fewest_turns(self, n: int) -> int:
        """Return L of a full traversal without failures: 3n, or 2n + 1 with ``explore="direct"`` (appendix B)."""
        return (2 * n + 1 if self.explore == "direct" else 3 * n) + n * self.study_turn

    def most_turns(self, n: int) -> int | None:
        """Return L if every choice takes the forced move: n(2H + 3), or None without forced moves (appendix B)."""
        return None if self.on_last_hint == "repeat" else n * (2 * HINT_LEVELS + 3 + self.study_turn)

    def turn_limit(self, n: int) -> int | None:
        """Return the number of turns until the limit prompt, or None for no limit."""
        return n * (2 * HINT_LEVELS + 3 + self.study_turn) if self.max_turns == "default" else self.max_turns


def expand_preset(options: Mapping[str, Any], key: str = "rules") -> dict[str, Any]:
    """Replace the preset that ``options[key]`` names by its rules, which the other options override.

    Raises:
        OptionError: no preset has this name.
    """
    if key not in options:
        return dict(options)
    preset = Rules.preset(options[key]).as_dict()
    given = {name: value for name, value in options.items() if name != key}
    return {name: value for name, value in preset.items() if name not in _OF_EPISODE} | given


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
