"""Rendering of prompt templates. Node texts are values and are never parsed as templates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from inquitree_gym.errors import OptionError, suggest

if TYPE_CHECKING:
    from inquitree_gym.prompts.sandbox import Sandbox

TEMPLATE_NAMES = (
    "start", "topic", "subtopic", "study", "result", "subtopic_hint", "study_hint", "ask_again", "conclusion", "limit",
    "end", "declined", "subtopic_tie", "study_tie", "redo",
)  # fmt: skip
"""Templates of the observations of an environment."""
PROJECTION_TEMPLATE_NAMES = ("projection", "projection_end")
"""Templates of the observations of a projection environment."""
AGENT_TEMPLATE_NAMES = (
    "llm_system", "llm_correction", "llm_dropped", "sceptic_system", "sceptic_check", "sceptic_note",
)  # fmt: skip
"""Templates of the messages from an agent to language models."""
PROJECTION_AGENT_TEMPLATE_NAMES = ("projection_system", "projection_correction", "llm_dropped")
"""Templates of the messages from an agent that projects to language models."""
BELIEF_TEMPLATE = "llm_belief"
"""Template that follows ``llm_system`` for an agent that asks for beliefs; the prompts of the others do not have it."""
DEFAULT, PAPER = "default", "paper"
"""Names of the prompts of the package."""
PAPER_TEMPLATE_NAMES = (
    "start", "topic", "subtopic", "redo", "result", "subtopic_hint", "study_hint", "ask_again", "conclusion", "limit",
    "end", "llm_system",
)  # fmt: skip
"""Templates of the shape that the paper's have: eleven of the environment and one system prompt."""
MAX_TEMPLATE_BYTES = 100_000


class Prompts:
    """Prompt templates of the package, which a folder of templates may override."""

    def __init__(self, chosen: str | os.PathLike[str] | None = None, names: Sequence[str] = TEMPLATE_NAMES) -> None:
        """Load the templates with these names.

        Args:
            chosen: ``"default"`` or None for the package's own, ``"paper"`` for those of the paper's shape, or a folder
                whose ``.md`` files replace the package's own. It may hold templates of environments and of agents.
            names: names of the templates.

        Raises:
            OptionError: the folder is missing, or a template in it has an unknown name, is too large, is not UTF-8 text
                or has a syntax error; every such file is listed.
        """
        self.folder = None if chosen in (None, DEFAULT, PAPER) else Path(os.path.expanduser(chosen))
        self._sources = {name: _packaged(name) for name in names}
        if chosen == PAPER:
            own_shape = [name for name in names if name in PAPER_TEMPLATE_NAMES]
            self._sources |= {name: _packaged(name, PAPER) for name in own_shape}
        if self.folder is not None:
            own = _overrides(self.folder, names)
            self._sources |= own
            self._check_syntax(own)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the names and sources of all templates, in hex."""
        return self.digest_without()

    def digest_without(self, *names: str) -> str:
        """Return the digest that these templates have without those with these names."""
        kept = [(name, source) for name, source in sorted(self._sources.items()) if name not in names]
        return hashlib.sha256(repr(kept).encode()).hexdigest()

    @property
    def changed(self) -> dict[str, str]:
        """Templates that differ from the default ones of the package, by name."""
        return {name: source for name, source in self._sources.items() if source != _packaged(name)}

    def render(self, name: str, **values: object) -> str:
        """Return the template ``name`` filled with values.

        Raises:
            OptionError: the template does not exist, uses an unknown value, fails, or violates the sandbox.
        """
        from jinja2 import TemplateError

        if name not in self._sources:
            raise OptionError(f"no template '{name}'{suggest(name, self._sources)}; known: {', '.join(self._sources)}")
        try:
            return self._environment.fill(name, values).strip()
        except (TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise OptionError(
                f"template '{name}.md' {self._where}: {error}; known values: {', '.join(values) or 'none'}"
            ) from error

    @property
    def _where(self) -> str:
        return "of this package" if self.folder is None else f"in '{self.folder}'"

    def _check_syntax(self, names: Iterable[str]) -> None:
        from jinja2 import TemplateSyntaxError

        faults = []
        for name in names:
            try:
                self._environment.get_template(name)
            except TemplateSyntaxError as error:
                faults.append(f"template '{name}.md' {self._where}, line {error.lineno}: {error.message}")
            except (ArithmeticError, MemoryError, RecursionError, SyntaxError, ValueError) as error:
                faults.append(f"template '{name}.md' {self._where} cannot be compiled: {error}")
        if faults:
            raise OptionError("\n".join(faults))

    @cached_property
    def _environment(self) -> Sandbox:
        from inquitree_gym.prompts.sandbox import sandbox  # Jinja is imported when a text is due

        return sandbox(tuple(self._sources.items()))

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_sources": self._sources}


@cache
def _packaged(name: str, *folder: str) -> str:
    return resources.files(__package__).joinpath("templates", *folder, f"{name}.md").read_text(encoding="utf-8")


def _overrides(folder: Path, names: Sequence[str]) -> dict[str, str]:
    if not os.path.isdir(folder):
        raise OptionError(f"no folder of templates at '{folder}'; give an existing one, '{DEFAULT}' or '{PAPER}'")
    found, faults = {}, []
    shared = {
        *TEMPLATE_NAMES, *PROJECTION_TEMPLATE_NAMES, *AGENT_TEMPLATE_NAMES, *PROJECTION_AGENT_TEMPLATE_NAMES,
        BELIEF_TEMPLATE,
    }  # fmt: skip
    for file in sorted(folder.glob("*.md")):
        if file.stem not in names and file.stem in shared and shared.issuperset(names):
            continue  # a template of the environment beside those of the agent, or the other way round
        if file.stem not in names:
            faults.append(f"'{file}' is not a known template{suggest(file.stem, names)}; known: {', '.join(names)}")
        elif not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            faults.append(f"'{file}' cannot be read: it is no file of this folder; put it there itself, not a link")
        elif file.stat().st_size > MAX_TEMPLATE_BYTES:
            faults.append(f"'{file}' is larger than {MAX_TEMPLATE_BYTES:,} bytes, too large for a template")
        else:
            try:
                found[file.stem] = file.read_text(encoding="utf-8-sig")
            except (UnicodeDecodeError, OSError) as error:
                faults.append(f"'{file}' cannot be read as UTF-8 text: {error}")
    if faults:
        raise OptionError("\n".join(faults))
    return found
