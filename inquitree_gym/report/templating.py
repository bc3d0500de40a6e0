"""HTML pages from templates. What a log holds is untrusted: everything is escaped, and nothing is fetched or run."""

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
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a page may load: nothing."""


def render(template: str, *, styles: tuple[str, ...], script: str | None = None, **values: Any) -> str:
    """Fill a template; styles and script are files beside it that go into the page.

    The page forbids everything that it does not hold itself: no address is reachable from it, and no script runs but
    the one given, even if an escape were forgotten.
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


def write_text(file: Path, text: str) -> None:
    """Write a page or table; a lone surrogate, which an agent may write, becomes a question mark.

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

    loader = PackageLoader(__package__, TEMPLATES)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@lru_cache(maxsize=16)
def _source(name: str) -> str:
    return resources.files(__package__).joinpath(TEMPLATES, name).read_text(encoding="utf-8")
