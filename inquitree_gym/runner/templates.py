"""Templates of a run that the package does not ship: a copy in its folder, named by its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from inquitree_gym.prompts import Prompts
from inquitree_gym.prompts.render import DEFAULT, PAPER
from inquitree_gym.runner.environment_kinds import KINDS
from inquitree_gym.runner.folder import write_whole
from inquitree_gym.runner.study import StudyConfig
from inquitree_gym.runner.trees import DIGITS

PROMPTS = "prompts"
"""Folder of the copies in a run folder."""


def own_templates(study: StudyConfig) -> dict[str, str]:
    """Return the templates of a study that are not the package's, by name.

    Raises:
        OptionError: their folder is missing, or a template in it is invalid.
    """
    if study.prompts_name in (DEFAULT, PAPER):
        return {}
    kind = KINDS[study.env]
    return Prompts(study.prompts_name, (*kind.templates, *kind.agent_templates)).changed


def named_by_digest(study: StudyConfig, templates: Mapping[str, str]) -> StudyConfig:
    """Return a study whose folder of templates is named as in a run folder, so that equal ones have one name."""
    if study.prompts_name in (DEFAULT, PAPER):
        return study
    digest = hashlib.sha256(repr(sorted(templates.items())).encode()).hexdigest()
    return study.model_copy(update={"prompts": f"{PROMPTS}/{digest[:DIGITS]}" if templates else DEFAULT})


def keep_templates(folder: Path, study: StudyConfig, templates: Mapping[str, str]) -> None:
    """Copy the templates of a study, named by digest, into a run folder, which has to be writable."""
    for name, text in templates.items():
        file = folder / study.prompts_name / f"{name}.md"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text)


def with_kept_templates(study: StudyConfig, folder: Path) -> StudyConfig:
    """Return a study, named by digest, that takes its templates from a run folder."""
    if study.prompts_name in (DEFAULT, PAPER):
        return study
    return study.model_copy(update={"prompts": str(folder.resolve() / study.prompts_name)})
