"""Studies of projections by a model that projects and judges by heart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from inquitree_gym.runner import StudyConfig
from inquitree_gym.runner.check import make_study
from inquitree_gym.trees.reading import dump_document
from tests.servers import Body, Service
from tests.tasks import make_task

TASK = make_task()
RIGHT = TASK.disclosure.outcome
CODE = re.compile(r"^([CP]\d+-[0-9A-F]{6})\b", re.MULTILINE)


def task_file(folder: Path, **changes: Any) -> Path:
    """A file with the task about bread."""
    file = folder / f"{TASK.id}.json"
    file.write_text(dump_document(make_task(**changes)), encoding="utf-8")
    return file


class Aligner:
    """Projects one sentence, finds every true claim in it and no other, and rates each pair."""

    def __init__(self, rating: str = "1") -> None:
        self.rating = rating

    def __call__(self, body: Body) -> str:
        if not judges(body):
            return RIGHT
        told = body["messages"][-1]["content"]
        codes = list(dict.fromkeys(CODE.findall(told)))
        if "true claims" in told:
            return json.dumps({code: f"The claim under {code}." for code in codes})
        if "further claims" in told:
            return "[]"
        return "\n".join(f"REASON {code}: said.\nRATING {code}: {self.rating}" for code in codes)


def judges(body: Body) -> bool:
    return body["messages"][0]["content"].startswith("You compare what somebody projected")


def projections(*agents: str, **given: object) -> StudyConfig:
    """A study of the projections of one agent about one paper, unless more is given."""
    plain = {"env": "projection", "agents": agents or ("oracle",), "trees": ("2",), "seeds": 1}
    return make_study(**{**plain, **given})


def asked(service: Service, **settings: Any) -> dict[str, Any]:
    """Settings of a model at ``service``."""
    return {"model": "gpt-4o-mini", "base_url": service.address, "retries": 0, **settings}
