"""Settings of a study of inquiries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator, model_validator

from inquitree_gym.kind_settings import AgentSettings, KindSettings, TableField, as_tuple
from inquitree_gym.protocols import Scalar

PRESET = "preset"
"""Name of the preset among the rules."""
LOCAL, LLM_PREFIX = "local", "llm:"
OWN_FIELDS = ("fake_level", "max_turns", "threshold")
"""Rules that have fields of their own."""

FakeLevel = Annotated[int, Field(ge=0, le=10)]


def _limit(given: Any) -> int | str | None:
    from inquitree_gym.inquiry.engine.rules import parse_limit

    return parse_limit(given)


def _by_name(given: Any) -> Any:
    return {PRESET: given} if isinstance(given, str) else given


def _reader_table(given: Any) -> Any:
    """Return the settings of a reader's name."""
    if given == LOCAL:
        return None
    if isinstance(given, str):
        name = given.removeprefix(LLM_PREFIX)
        if name == given or not name:
            raise ValueError(f"a reader must be '{LOCAL}' or '{LLM_PREFIX}MODEL', got {given!r:.80}")
        return {"model": name}
    return given


class InquiryAgentSettings(AgentSettings):
    """Settings of the agents that lead an inquiry with a model."""

    belief: bool = Field(default=False, description="Ask models what they believe of each result.")


class InquirySettings(KindSettings):
    """Settings of a study of inquiries. See `KindSettings` for the methods."""

    grid: ClassVar[tuple[str, ...]] = ("fake_level",)
    short: ClassVar[Mapping[str, str]] = {"fake_level": "f"}
    model_agents: ClassVar[tuple[str, ...]] = ("llm", "sceptic", "recall")
    agent: ClassVar[type[AgentSettings]] = InquiryAgentSettings
    hidden_rules: ClassVar[tuple[str, ...]] = ("world",)

    fake_level: Annotated[tuple[FakeLevel, ...], BeforeValidator(as_tuple)] = Field(
        default=(0,), min_length=1, description="Fake levels: results are fake with probability LEVEL/10."
    )
    embedder: str = Field(default="inquitree-reader-2", description="Embedder that reads the actions.")
    reader: Annotated[
        dict[str, Any] | None, BeforeValidator(_reader_table), TableField("model", prefix=LLM_PREFIX, server=True)
    ] = Field(default=None, description="Reader of the actions: local, or llm:MODEL to ask a model what they mean.")
    threshold: float | None = Field(
        default=None, ge=-1, le=1, description="Similarity threshold τ; by default the embedder's calibrated one."
    )
    rules: Annotated[
        dict[str, bool | int | float | str], BeforeValidator(_by_name), TableField(PRESET, pairs="rule")
    ] = Field(
        default_factory=dict, description="Preset of the rules, default or paper, or a table of rules that override it."
    )
    max_turns: Annotated[int | str | None, BeforeValidator(_limit)] = Field(
        default="3n",
        description="Turn limit: a number, a formula such as 3n+3, or none; by default 3n, in the preset paper 11n.",
    )

    @model_validator(mode="before")
    @classmethod
    def _world_of_rules(cls, given: Any) -> Any:
        """Put a world that is given like a field among the rules. One of digits, which are its id, is text."""
        rules = _by_name(given.get("rules") or {}) if isinstance(given, dict) else None
        if not isinstance(rules, dict) or "world" not in rules | given:
            return given
        world = given.get("world", rules.get("world"))
        others = {name: value for name, value in given.items() if name != "world"}
        return {**others, "rules": {**rules, "world": str(world) if type(world) is int else world}}

    @model_validator(mode="before")
    @classmethod
    def _limit_of_rules(cls, given: Any) -> Any:
        """Take the turn limit of the preset where none is given."""
        rules = _by_name(given.get("rules")) if isinstance(given, dict) else None
        if not isinstance(rules, dict) or "max_turns" in given or rules.get(PRESET) != "paper":
            return given
        return {**given, "max_turns": _expanded({PRESET: rules[PRESET]})["max_turns"]}

    @field_validator("rules")
    @classmethod
    def _check_rules(cls, rules: dict[str, Any]) -> dict[str, Any]:
        if own := sorted(rules.keys() & set(OWN_FIELDS)):
            raise ValueError(f"{', '.join(own)} cannot be among the rules; give each as a separate setting")
        kept = {name: value for name, value in rules.items() if (name, value) != (PRESET, "default")}
        if kept:
            _all_rules(kept)
        return kept

    def all_rules(self) -> dict[str, Any]:
        """Return all rules. Those with fields of their own have their defaults."""
        return _all_rules(self.rules)

    def chosen_rules(self) -> dict[str, Any]:
        """Return the rules that are set, those of the preset included."""
        return _expanded(self.rules)

    def options(self, cell: Mapping[str, Scalar], task: Any) -> dict[str, Any]:
        """Return the rules that are set, the fake level, and the turn limit. See `poles_in` for the errors."""
        from inquitree_gym.trees.worlds import poles_in

        rules = self.chosen_rules()
        poles_in(task, rules.get("world", "any"))
        return {**rules, **cell, "max_turns": self.max_turns}

    def services(self) -> tuple[Mapping[str, Any], ...]:
        """Return the settings of the reader's model."""
        return () if self.reader is None else (self.reader,)

    def fixed(self) -> dict[str, Any]:
        """Return all settings outside the grid, with all rules, and with the threshold that the embedder has."""
        from inquitree_gym.embeddings import load_embedder
        from inquitree_gym.runs.specs import ModelSettings

        threshold = load_embedder(self.embedder).threshold if self.threshold is None else self.threshold
        reader = None if self.reader is None else ModelSettings(**self.reader).fixed_settings
        return super().fixed() | {"rules": self.all_rules(), "threshold": threshold, "reader": reader}

    @property
    def limit(self) -> str:
        """Turn limit by its name."""
        from inquitree_gym.inquiry.engine.rules import limit_label

        return limit_label(self.max_turns)

    @property
    def prompts(self) -> str:
        """Prompts of the preset."""
        return str(self.rules.get(PRESET, "default"))


def _expanded(rules: Mapping[str, Any]) -> dict[str, Any]:
    if not rules:
        return {}
    from inquitree_gym.inquiry.engine.rules import expand_preset

    return expand_preset(rules, PRESET)


def _all_rules(rules: Mapping[str, Any]) -> dict[str, Any]:
    from inquitree_gym.inquiry.engine import Rules

    return Rules().override(_expanded(rules)).as_dict()


SETTINGS = InquirySettings
