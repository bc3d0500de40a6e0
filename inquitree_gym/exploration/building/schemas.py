"""The eight databases, and what papers are written with, from data files."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any

from inquitree_gym.exploration.library import Database


def _data(name: str) -> dict[str, Any]:
    file = resources.files("inquitree_gym").joinpath("exploration", "building", "data", f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def databases() -> dict[str, Database]:
    """Return the databases by name, each after those that its links lead to."""
    return {name: Database.model_validate_json(json.dumps(schema)) for name, schema in _data("schemas").items()}


@cache
def paper_templates() -> dict[str, tuple[str, ...]]:
    """Return the sentences of papers by what they say, several wordings of each."""
    return {name: tuple(wordings) for name, wordings in _data("papers").items()}
