"""HTML pages and prose from Jinja2 templates.

Logs are untrusted: pages escape every value, fetch nothing and run no script but their own.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inquitree_gym.errors import OptionError

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "templates"
PROSE = "prose.txt"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Content security policy of a page without a script: it may load nothing."""


def render(template: str, *, styles: tuple[str, ...], script: str | None = None, **values: Any) -> str:
    """Return an HTML page; ``styles`` and ``script`` name files beside the template that the page embeds.

    The content security policy allows this one script by its hash, so no other would run even if a value were not
    escaped.
    """
    from markupsafe import Markup

    code = "" if script is None else _source(script)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            policy=POLICY + (f"; script-src 'sha256-{digest}'" if code else ""),
            style=Markup("\n".join(map(_source, styles))),
            script=Markup(code),
            version=_version(),
            **values,
        )
    )


def paragraphs(block: str, **values: Any) -> tuple[str, ...]:
    """Return one block of the report's prose as plain text, by paragraph; the values are not escaped."""
    template = _environment().get_template(PROSE)
    text = "".join(template.blocks[block](template.new_context(values)))
    return tuple(" ".join(each.split()) for each in text.split("\n\n") if each.strip())


def write_text(file: Path, text: str) -> None:
    """Write a UTF-8 file and its folder; a lone surrogate becomes a question mark.

    Raises:
        OptionError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise OptionError(f"cannot write '{file}': {error.strerror}; choose another place with --out") from error


@lru_cache(maxsize=1)
def _version() -> str:
    return version("inquitree-gym")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(__package__, TEMPLATES),
        autoescape=lambda name: name != PROSE,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=16)
def _source(name: str) -> str:
    return resources.files(__package__).joinpath(TEMPLATES, name).read_text(encoding="utf-8")
