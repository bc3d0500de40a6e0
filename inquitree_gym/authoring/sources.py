"""Papers to disclose: a text file, or a source that is searched for recent ones."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from xml.etree import ElementTree  # expat bounds the expansion of entities

from pydantic import ValidationError

from inquitree_gym.errors import OptionError, ServiceError, require
from inquitree_gym.files import MAX_TASK, read_text_input
from inquitree_gym.trees.fields import Paper, PublicationDate

MAX_PAPER = 400_000
"""Longest text of a paper, in characters."""
SPRINGER_URL = "https://api.springernature.com/openaccess"
SPRINGER_KEY = "SPRINGER_API_KEY"
"""Environment variable of the user's key."""
PAGE = 20
"""Records per request."""
TIMEOUT = 60.0
"""Seconds until a request is given up."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PaperText:
    """A paper: its bibliographic record and its text."""

    paper: Paper
    text: str
    address: str
    """Public address of the text, or its file."""


class PaperSource(Protocol):
    """Collection of papers that can be searched."""

    def recent(self, query: str, since: datetime.date) -> Iterator[PaperText]:
        """Yield papers about ``query`` that were published on or after a day, as the source orders them.

        Raises:
            ServiceError: the source gives no usable answer.
        """


def read_paper(file: str | os.PathLike[str], paper: Paper) -> PaperText:
    """Read the text of a paper from a plain-text file.

    Raises:
        OptionError: the file cannot be read, is empty, longer than `MAX_PAPER`, or not UTF-8 text.
    """
    path = Path(file).expanduser()
    text = read_text_input(path, limit=MAX_TASK, error=OptionError).strip()
    if not text or len(text) > MAX_PAPER:
        raise OptionError(f"'{path}' has {len(text):,} characters; give a paper of 1 to {MAX_PAPER:,}")
    return PaperText(paper, text, path.name)


def publication_date(written: str) -> PublicationDate:
    """Return a date from ``2026``, ``2026-05`` or ``2026-05-17``.

    Raises:
        OptionError: the text has none of these forms.
    """
    precision = {1: "year", 2: "month", 3: "day"}.get(len(written.split("-")), "")
    parts = [*written.split("-"), "01", "01"][:3]
    try:
        return PublicationDate.model_validate({"date": "-".join(parts), "precision": precision})
    except ValidationError:
        raise OptionError(f"'{written:.40}' is no date; write 2026-05-17, 2026-05 or 2026") from None


class SpringerNature:
    """The open-access interface of Springer Nature, behind a key of the user's own.

    It is asked for records (``/json``) and for the text of each article (``/jats``). See dev.springernature.com. Each
    text has the licence of its article. Stay within the number of requests that your key allows.
    """

    def __init__(self, key: str | None = None, *, base_url: str = SPRINGER_URL) -> None:
        """Use a key, or the one in the environment variable `SPRINGER_KEY`.

        Raises:
            OptionError: there is no key.
        """
        self._key = key or os.environ.get(SPRINGER_KEY, "")
        self._base_url = base_url.rstrip("/")
        if not self._key:
            raise OptionError(
                f"Springer Nature's open-access interface needs a key: set {SPRINGER_KEY}; keys are free at "
                "dev.springernature.com"
            )

    def recent(self, query: str, since: datetime.date) -> Iterator[PaperText]:
        """Yield articles with a text. See `PaperSource.recent`."""
        asked = f'"{query}" onlinedatefrom:{since.isoformat()} onlinedateto:{datetime.date.max.isoformat()}'
        start = 1
        while records := _json(self._get("json", asked, start)).get("records", []):
            for record in records:
                doi = str(record.get("doi", ""))
                if text := _body(self._get("jats", f"doi:{doi}", 1)):
                    yield PaperText(_paper(record), text, f"https://doi.org/{doi}")
            start += len(records)

    def _get(self, form: str, query: str, start: int) -> bytes:
        httpx = require("httpx", "llm")
        parameters = {"q": query, "s": start, "p": PAGE, "api_key": self._key}
        try:
            reply = httpx.get(f"{self._base_url}/{form}", params=parameters, timeout=TIMEOUT)
        except httpx.HTTPError as error:
            raise ServiceError(f"Springer Nature cannot be reached: {type(error).__name__}", transient=True) from None
        if reply.status_code != 200:
            advice = "check the key" if reply.status_code in (401, 403) else "try again later"
            raise ServiceError(f"Springer Nature answered {reply.status_code}; {advice}", status=reply.status_code)
        content: bytes = reply.content
        return content


def _json(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        raise ServiceError("Springer Nature answered with something that is no JSON", transient=True) from None
    return found if isinstance(found, dict) else {}


def _body(content: bytes) -> str:
    """Return the text of the first article's body, or an empty string."""
    try:
        article = ElementTree.fromstring(content)
    except ElementTree.ParseError:
        raise ServiceError("Springer Nature answered with something that is no JATS", transient=True) from None
    body = article.find(".//body")
    paragraphs = [] if body is None else (" ".join("".join(each.itertext()).split()) for each in body.iter("p"))
    return "\n\n".join(filter(None, paragraphs))[:MAX_PAPER]


def _paper(record: dict[str, Any]) -> Paper:
    published = publication_date(str(record.get("publicationDate", "")))
    authors = [str(each.get("creator", "")).strip() for each in record.get("creators", [])]
    return Paper(
        title=str(record.get("title", "")).strip() or UNKNOWN,
        authors=tuple(filter(None, authors)) or (UNKNOWN,),
        journal=str(record.get("publicationName", "")).strip() or UNKNOWN,
        year=int(published.date[:4]),
        published=published,
        doi=str(record.get("doi", "")),
        licence=str(record.get("copyright", "")).strip() or UNKNOWN,
    )
