"""Rendering of prompt templates. Node texts are values and are never parsed as templates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from inquitree_gym.errors import OptionError, suggest

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE_NAMES = (
    "start", "topic", "subtopic", "study", "result", "subtopic_hint", "study_hint", "ask_again", "conclusion", "limit",
    "end", "declined", "subtopic_tie", "study_tie",
)  # fmt: skip
"""Templates of the observations of an environment."""
AGENT_TEMPLATE_NAMES = (
    "llm_system", "llm_correction", "llm_dropped", "sceptic_system", "sceptic_check", "sceptic_note",
)  # fmt: skip
"""Templates of the messages from an agent to language models."""
BELIEF_TEMPLATE = "llm_belief"
"""Template that follows ``llm_system`` for an agent that asks for beliefs; the prompts of the others do not have it."""
MAX_TEMPLATE_BYTES = 100_000


class Prompts:
    """Prompt templates of the package, which a folder of templates may override."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, names: Sequence[str] = TEMPLATE_NAMES) -> None:
        """Load the named templates of the package, overridden by the ``.md`` files in ``folder``.

        Raises:
            OptionError: the folder is missing, or a template in it has an unknown name, is too large, is not UTF-8 text
                or has a syntax error; every such file is listed.
        """
        self.folder = None if folder is None else Path(os.path.expanduser(folder))
        self._sources = {name: _packaged(name) for name in names}
        if self.folder is not None:
            own = _overrides(self.folder, names)
            self._sources |= own
            self._check_syntax(own)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the names and sources of all templates, in hex."""
        return hashlib.sha256(repr(sorted(self._sources.items())).encode()).hexdigest()

    def render(self, name: str, **values: object) -> str:
        """Return the template ``name`` filled with values.

        Raises:
            OptionError: the template does not exist, uses an unknown value, fails, or violates the sandbox.
        """
        from jinja2 import TemplateError

        if name not in self._sources:
            raise OptionError(f"no template '{name}'{suggest(name, self._sources)}; known: {', '.join(self._sources)}")
        try:
            return self._environment.get_template(name).render(values).strip()
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
        if faults:
            raise OptionError("\n".join(faults))

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        from jinja2 import DictLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # No autoescape: the output is plain text for a model, not HTML.
        environment = ImmutableSandboxedEnvironment(
            loader=DictLoader(self._sources), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip
        # An observation depends on its values alone, and a template has no endless loops.
        environment.globals.clear()
        del environment.filters["random"]
        return environment

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_sources": self._sources}


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath("templates", f"{name}.md").read_text(encoding="utf-8")


def _overrides(folder: Path, names: Sequence[str]) -> dict[str, str]:
    if not os.path.isdir(folder):
        raise OptionError(f"no folder of templates at '{folder}'; give an existing one or None")
    found, faults = {}, []
    for file in sorted(folder.glob("*.md")):
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
