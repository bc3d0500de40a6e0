"""Fill the templates. Node texts go in as values and are never read as templates themselves."""

from __future__ import annotations

import hashlib
import os
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from inquitree_gym.errors import OptionError, suggest

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE_NAMES = (
    "start", "topic", "subtopic", "study", "result", "subtopic_hint", "study_hint", "ask_again", "conclusion", "limit",
    "end",
)  # fmt: skip
MAX_TEMPLATE_BYTES = 100_000


class Prompts:
    """The templates of this package, with those of a folder in their place where it has any."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        """Take the package's templates, overridden by the ``.md`` files of ``folder``.

        Raises:
            OptionError: the folder is missing, or holds a template of an unknown name or size.
        """
        self.folder = None if folder is None else Path(folder).expanduser()
        self._sources = {name: _packaged(name) for name in TEMPLATE_NAMES}
        if self.folder is not None:
            self._sources |= _overrides(self.folder)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and sources of all templates, in hex."""
        return hashlib.sha256(repr(sorted(self._sources.items())).encode()).hexdigest()

    def render(self, name: str, **values: object) -> str:
        """Fill the template ``name``.

        Raises:
            OptionError: the template is at fault: syntax, an unknown value, or something the sandbox forbids.
        """
        from jinja2 import TemplateError

        try:
            return self._environment.get_template(name).render(values).strip()
        except TemplateError as error:
            raise OptionError(
                f"template '{name}.md' in '{self.folder}': {error}; known values: {', '.join(values)}"
            ) from error

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        from jinja2 import DictLoader, StrictUndefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # Plain text for a model, not HTML: escaping would change what the agent reads.
        return ImmutableSandboxedEnvironment(
            loader=DictLoader(self._sources), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_sources": self._sources}


def _packaged(name: str) -> str:
    return resources.files(__package__).joinpath("templates", f"{name}.md").read_text(encoding="utf-8")


def _overrides(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise OptionError(f"no folder of templates at '{folder}'; give an existing one or None")
    found = {}
    for file in sorted(folder.glob("*.md")):
        if file.stem not in TEMPLATE_NAMES:
            raise OptionError(
                f"'{file}' is no template{suggest(file.stem, TEMPLATE_NAMES)}; known: {', '.join(TEMPLATE_NAMES)}"
            )
        if file.stat().st_size > MAX_TEMPLATE_BYTES:
            raise OptionError(f"'{file}' is larger than {MAX_TEMPLATE_BYTES:,} bytes, too large for a template")
        found[file.stem] = file.read_text(encoding="utf-8")
    return found
