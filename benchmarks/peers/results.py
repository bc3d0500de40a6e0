"""What a run found, as tables and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from roster import BATCH, COMPARED, OURS, PEERS, SINGLE, Peer, Setting
from venvs import Installation

sys.path.insert(1, str(Path(__file__).parents[1]))
from measure import Spread, ratios, spread

AIM = 20.0
"""Times a peer that simulates a world that a single environment of ours is to be."""


class Key(NamedTuple):
    """What was measured."""

    peer: str
    setting: str


@dataclass
class Results:
    """Everything that a run found; filled as it goes."""

    seconds: float
    rounds: int
    loads: list[float]
    rates: dict[Key, list[float]] = field(default_factory=dict)
    """Steps per second, by round."""
    failures: dict[Key, str] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    installations: dict[str, Installation] = field(default_factory=dict)

    def fail(self, key: Key, error: str) -> None:
        """Note that a setting failed; what it had measured before is dropped."""
        self.rates.pop(key, None)
        self.failures[key] = error

    def settings(self, peers: Sequence[Peer]) -> Iterator[tuple[Key, Setting]]:
        """Yield what was asked for, whether it ran or not."""
        for peer in peers:
            for setting in peer.settings:
                key = Key(peer.name, setting.name)
                if key in self.rates or key in self.failures:
                    yield key, setting

    def ahead(self, ours: str, key: Key) -> Spread | None:
        """Return how many times as fast as ``key`` one of ours is, or None where one of the two did not run."""
        mine = self.rates.get(Key(OURS.name, ours))
        return ratios(mine, self.rates[key]) if mine and key in self.rates else None

    def as_json(self) -> dict[str, Any]:
        """Return everything, with every single measurement."""
        return {
            "seconds": self.seconds,
            "rounds": self.rounds,
            "loads": self.loads,
            "versions": self.versions,
            "installed": {
                name: {"seconds": round(made.seconds, 1), "megabytes": round(made.megabytes)}
                for name, made in self.installations.items()
            },
            "rates": {f"{key.peer}/{key.setting}": rates for key, rates in self.rates.items()},
            "failures": {f"{key.peer}/{key.setting}": error for key, error in self.failures.items()},
        }


def as_markdown(found: Results, machine: str) -> str:
    """Return the tables, and what one step of each setting is."""
    steps = [f"- {key.peer}, {key.setting}: {setting.step}." for key, setting in found.settings((OURS, *PEERS))]
    return "\n\n".join((_own(found), _others(found), machine, "\n".join(steps), _installed(found))) + "\n"


def _own(found: Results) -> str:
    lines = [["inquitree-gym", "steps/s"]]
    lines += [[key.setting, _rate(found, key)] for key, _ in found.settings((OURS,))]
    return _table(lines)


def _others(found: Results) -> str:
    lines = [
        [
            "peer",
            "world",
            "steps/s",
            *(f"{name} ÷ peer" for name in COMPARED),
            f"text, menu ≥ {AIM:.0f} ×",
            "batch faster",
        ]
    ]
    for key, setting in found.settings(PEERS):
        lines.append(
            [
                f"{key.peer}, {key.setting}",
                "yes" if setting.world else "no",
                _rate(found, key),
                *(_times(found.ahead(name, key)) for name in COMPARED),
                _met([found.ahead(name, key) for name in SINGLE], AIM) if setting.world else "–",
                _met([found.ahead(BATCH, key)], 1.0),
            ]
        )
    return _table(lines)


def _installed(found: Results) -> str:
    lines = [["environment", "versions", "installation", "size"]]
    for name in dict.fromkeys((*found.versions, *found.installations)):
        made = found.installations.get(name)
        versions = ", ".join(" ".join(pair) for pair in found.versions.get(name, {}).items()) or "–"
        cost = (f"{made.seconds:.0f} s", f"{made.megabytes:.0f} MB") if made else ("–", "–")
        lines.append([name, versions, *cost])
    return _table(lines)


def _rate(found: Results, key: Key) -> str:
    if key in found.failures:
        return f"does not run: {found.failures[key]}".replace("|", "\\|")
    rates = spread(found.rates[key])
    return rates.show(",.0f" if rates.median >= 10 else ".1f")


def _times(ratio: Spread | None) -> str:
    """Return how many times as fast, or what part of it: ``25 [24, 26]``, ``1/40 [1/41, 1/38]``."""
    if ratio is None:
        return "–"
    if ratio.median >= 0.1:
        return ratio.show(",.0f" if ratio.median >= 10 else ".1f")
    low, median, high = (f"1/{1 / value:,.0f}" for value in ratio)
    return f"{median} [{low}, {high}]"


def _met(found: Sequence[Spread | None], aim: float) -> str:
    if any(ratio is None for ratio in found):
        return "–"
    return "yes" if all(ratio is not None and ratio.median >= aim for ratio in found) else "no"


def _table(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with columns of even width, the first line as its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    return "\n".join([rows[0], "| " + " | ".join("-" * width for width in widths) + " |", *rows[1:]])
