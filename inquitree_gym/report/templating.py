"""HTML pages and prose from Jinja2 templates.

Logs are untrusted: pages escape every value, fetch nothing and run no script but their own.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import OptionError
from inquitree_gym.report.tables import cell, escaped, markdown

if TYPE_CHECKING:
    from jinja2 import Environment

PROSE, MARKDOWN = PLAIN = ("prose.txt", "report.md")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of a page without a script: it may load nothing."""
FRAMES = "; frame-src 'self' file:"
"""Addition for a page that shows other pages of the same place."""


def render(
    template: str, *, styles: tuple[str, ...], script: str | None = None, frames: bool = False, **values: Any
) -> str:
    """Return an HTML page; ``styles`` and ``script`` name files beside the template that the page embeds.

    The content security policy allows this one script by its hash, so no other would run even if a value were not
    escaped.
    """
    from markupsafe import Markup

    templates = _environment()
    code = "" if script is None else templates.get_template(script).render()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = POLICY + (f"; script-src 'sha256-{digest}'" if code else "") + (FRAMES if frames else "")
    embedded = {"policy": policy, "styles": styles, "script": Markup(code), "version": version("inquitree-gym")}
    return templates.get_template(template).render(**embedded, **values)


def render_markdown(**values: Any) -> str:
    """Return the report as Markdown."""
    return _environment().get_template(MARKDOWN).render(**values)


def paragraphs(block: str, **values: Any) -> tuple[str, ...]:
    """Return one block of the report's prose as plain text, by paragraph; the values are not escaped."""
    template = _environment().get_template(PROSE)
    text = "".join(template.blocks[block](template.new_context(values)))
    return tuple(" ".join(each.split()) for each in text.split("\n\n") if each.strip())


def write_text(file: Path, text: str) -> None:
    """Write a UTF-8 file and its folder; a lone surrogate becomes a question mark; see `write_bytes`."""
    write_bytes(file, text.encode("utf-8", "replace"))


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file and its folder; a reader sees the old content or the new one, never a part.

    Raises:
        OptionError: the file cannot be written.
    """
    part = file.with_name(f"{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(file)
    except OSError as error:
        raise OptionError(f"cannot write '{file}': {error.strerror}; choose another place with --out") from error


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=lambda name: name not in PLAIN,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cell=lambda value: cell(value).text, escaped=escaped, markdown=markdown)
    return environment
