"""Spellings in which models return the codes of a judge."""

from __future__ import annotations

import re

TYPOGRAPHIES = [
    *(f"REASON {code}: It says so.\n{{label}} {code}: {{value}}" for code in (
        "{a}\u2010{b}", "{a}\u2011{b}", "{a}\u2012{b}", "{a}–{b}", "{a}—{b}", "{a}\u2212{b}", "{a} - {b}", "{a}－{b}",
        "({a}-{b})", "[{a}-{b}]", "（{a}–{b}）", "**[{a}\u2011{b}]**",
    )),
    "REASON {a}-{b}： It says so.\n{label} {a}-{b}：{value}",
    "REASON {a}-{b}: It says so.\n{label} {a}-{b}: [{value}]",
    "REASON {a}-{b}: It says so.\n{label} {a}-{b} ({value})",
    "REASON {a}-{b} — It says so.\n{label} {a}-{b} — {value}",
    "| CODE | REASON | {label} |\n|---|:--|--:|\n| {a}\u2011{b} | It says so. | **{value}** |",
    "CODE | {label} | REASON\n--- | --- | ---\n`{a}-{b}` | {value} | It says so.",
    "| REASON {a}-{b} | It says so. |\n| {label} {a}–{b} | {value} |",
    "| REASON | {a}-{b} | It says so. |\n| {label} | {a}-{b} | {value} |",
]  # fmt: skip
TWO_VALUES = ["{}, {}", "{} or {}", "{} | {}", "**{}** to {}"]


def typeset(template: str, label: str, value: str, code: re.Pattern[str], request: str) -> str:
    """Return the reply that gives every code of a request the same value in one spelling."""
    codes = [found.group(1).split("-") for found in code.finditer(request)]
    return "\n".join(template.format(a=a, b=b, label=label, value=value) for a, b in codes)
