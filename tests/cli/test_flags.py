"""Flags of the settings of kinds, made of the fields of these settings."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
import typer

from inquitree_gym.cli.flags import (
    AGENT,
    FORMULAS,
    JUDGE,
    REPORT,
    SETTINGS,
    kind_parameters,
    kind_values,
    values_by_kind,
    with_kind_flags,
)
from inquitree_gym.errors import OptionError
from inquitree_gym.inquiry.settings import InquirySettings

EVERY = (SETTINGS, AGENT, JUDGE, FORMULAS, REPORT)


@with_kind_flags(*EVERY)
def verb(context: typer.Context, seeds: int = 5, **_flags: Any) -> None:
    """Do nothing."""


def values(env: str, group: str = SETTINGS, **flags: Any) -> dict[str, Any]:
    return kind_values(env, group, dict.fromkeys(kind_parameters(*EVERY)) | flags, flags)


def test_a_verb_has_a_flag_for_every_field_of_every_kind():
    parameters = signature(verb).parameters
    assert list(parameters)[:2] == ["context", "seeds"]
    assert parameters.keys() - {"context", "seeds"} == kind_parameters(*EVERY)
    assert {"fake_level", "reader_base_url", "belief", "memory"} <= parameters.keys()
    assert {"repeats", "undirected", "auc", "example"} <= parameters.keys()
    assert "_flags" not in parameters


@pytest.mark.parametrize(
    ("env", "group", "flags", "expected"),
    [
        ("inquiry", SETTINGS, {}, {}),
        ("inquiry", SETTINGS, {"fake_level": "0, 3"}, {"fake_level": ("0", "3")}),
        ("inquiry", SETTINGS, {"max_turns": "3n"}, {"max_turns": "3n"}),
        ("inquiry", SETTINGS, {"rules": "paper"}, {"rules": "paper"}),
        (
            "inquiry", SETTINGS, {"rules": "paper", "rule": ["redo_turn=false", "feedback=hint"]},
            {"rules": {"preset": "paper", "redo_turn": False, "feedback": "hint"}},
        ),
        ("inquiry", SETTINGS, {"rule": ["redo_turn=true"]}, {"rules": {"redo_turn": True}}),
        (
            "inquiry", SETTINGS, {"reader": "llm:x/y", "reader_base_url": "http://h"},
            {"reader": {"model": "x/y", "base_url": "http://h"}},
        ),
        ("inquiry", AGENT, {"belief": True}, {"belief": True}),
        ("projection", SETTINGS, {"levels": "null,question"}, {"levels": ("null", "question")}),
        ("projection", AGENT, {"memory": "conversation"}, {"memory": "conversation"}),
    ],
)  # fmt: skip
def test_flags_become_settings(env: str, group: str, flags: dict[str, Any], expected: dict[str, Any]):
    assert values(env, group, **flags) == expected


@pytest.mark.parametrize(
    ("env", "group", "flags", "told"),
    [
        ("projection", SETTINGS, {"fake_level": "3"}, "--fake-level is a flag of --env inquiry, not of"),
        ("inquiry", AGENT, {"memory": "none"}, "--memory is a flag of --env projection, not of"),
        ("inquiry", SETTINGS, {"rule": ["feedback"]}, "--rule must be NAME=VALUE, such as .*, got .feedback."),
        ("inquiry", SETTINGS, {"reader_base_url": "http://h"}, "--reader-base-url without a model does nothing"),
    ],
)  # fmt: skip
def test_flags_that_would_do_nothing_are_refused(env: str, group: str, flags: dict[str, Any], told: str):
    with pytest.raises(OptionError, match=told):
        values(env, group, **flags)


@pytest.mark.parametrize("rule", ["world=11010", "world=any"])
def test_the_id_of_a_world_is_text(rule: str):
    found = InquirySettings.model_validate(values("inquiry", rule=[rule]))
    assert found == InquirySettings.model_validate({"world": rule.removeprefix("world=")})
    assert found.rules == {"world": rule.removeprefix("world=")}


def test_each_of_several_kinds_takes_its_own_flags_with_the_types_of_its_table():
    kinds, flags = ("inquiry", "projection"), {"repeats": "3", "variants": False, "undirected": "-1"}
    given = dict.fromkeys(kind_parameters(JUDGE)) | flags
    expected = {"inquiry": {"repeats": 3, "variants": False}, "projection": {"undirected": -1}}
    assert values_by_kind(kinds, JUDGE, given, flags) == expected
    assert values_by_kind(kinds, FORMULAS, {"variant": "strict", "auc": None}, {"variant"}) == {
        "inquiry": {},
        "projection": {"variant": "strict"},
    }
    with pytest.raises(OptionError, match="--repeats: "):
        values_by_kind(kinds, JUDGE, given | {"repeats": "0"}, flags)
    with pytest.raises(OptionError, match="--repeats is a flag of --env inquiry, not of --env projection; leave"):
        values_by_kind(["projection"], JUDGE, given, flags)
