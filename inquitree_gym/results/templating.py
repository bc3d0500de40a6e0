"""HTML pages and prose from Jinja2 templates.

Logs are untrusted: pages escape every value, fetch nothing and run no script but their own.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import OptionError, plural, visible
from inquitree_gym.files import write_whole
from inquitree_gym.results.tables import cell, escaped, markdown

if TYPE_CHECKING:
    from jinja2 import Environment

PROSE, OWN_PROSE, MARKDOWN = "prose.txt", "kind.txt", "report.md"
PLAIN = (".txt", ".md")
"""Suffixes of the templates of plain text."""
FOLDER = "page_templates"
"""Folder of the templates of pages in the package of a kind."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of a page without a script: it may load nothing."""
CONNECTS = "; connect-src 'self'; img-src data:"
"""Addition for a page that its own server answers. Its icon is an empty one, so that none is asked for."""
FRAMES = "; frame-src 'self' file:"
"""Addition for a page that shows other pages of the same place."""


def render(
    template: str, *, styles: tuple[str, ...], script: str | None = None, frames: bool = False, package: str = "",
    connects: bool = False, **values: Any,
) -> str:  # fmt: skip
    """Return an HTML page. ``styles`` and ``script`` name files beside the template that the page embeds.

    Templates of the kind whose package is named are found as well. A page that ``connects`` may ask its own server.

    The content security policy allows this one script by its hash, so no other would run even if a value were not
    escaped.
    """
    from markupsafe import Markup

    templates = _environment(package)
    code = "" if script is None else templates.get_template(script).render()
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        POLICY
        + (f"; script-src 'sha256-{digest}'" if code else "")
        + (FRAMES if frames else "")
        + (CONNECTS if connects else "")
    )
    embedded = {
        "policy": policy,
        "styles": styles,
        "script": Markup(code),
        "version": version("inquitree-gym"),
        "connects": connects,
    }
    return templates.get_template(template).render(**embedded, **values)


def render_markdown(**values: Any) -> str:
    """Return the report as Markdown."""
    return _environment().get_template(MARKDOWN).render(**values)


def has_block(block: str, package: str) -> bool:
    """Return whether the prose of a kind has a block."""
    templates = _environment(package)
    return OWN_PROSE in templates.list_templates() and block in templates.get_template(OWN_PROSE).blocks


def paragraphs(block: str, *, package: str = "", **values: Any) -> tuple[str, ...]:
    """Return one block of the common prose, or of a kind's package, as plain text by paragraph. Escapes no value."""
    template = _environment(package).get_template(OWN_PROSE if package else PROSE)
    text = "".join(template.blocks[block](template.new_context(values)))
    return tuple(" ".join(each.split()) for each in text.split("\n\n") if each.strip())


def write_text(file: Path, text: str) -> None:
    """Write a UTF-8 file and its folder, control characters escaped and lone surrogates replaced. See `write_bytes`."""
    write_bytes(file, visible(text).encode("utf-8", "replace"))


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file and its folder, of which a reader never sees a part. Raise `OptionError` if that fails."""
    try:
        write_whole(file, content)
    except OSError as error:
        raise OptionError(f"cannot write '{file}': {error.strerror}; choose another place with --out") from error


@cache
def _environment(package: str = "") -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(__package__)]
    if package and files(package).joinpath(FOLDER).is_dir():
        loaders.append(PackageLoader(package, FOLDER))
    environment = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=lambda name: not str(name).endswith(PLAIN),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(cell=lambda value: cell(value).text, plural=plural, escaped=escaped, markdown=markdown)
    return environment
