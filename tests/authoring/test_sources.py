"""Springer Nature's open-access interface, played by a server on loopback."""

from __future__ import annotations

import datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from inquitree_gym.authoring import SpringerNature
from inquitree_gym.authoring.sources import SPRINGER_KEY
from inquitree_gym.errors import OptionError, ServiceError
from tests.servers import Answer, Service

SINCE = datetime.date(2026, 5, 1)
RECORD = {
    "title": "Yeast in dough",
    "creators": [{"creator": "Baker, A."}, {"creator": "Miller, B."}],
    "publicationName": "Journal of Loaves",
    "publicationDate": "2026-05-17",
    "doi": "10.1000/1",
    "copyright": "CC BY 4.0",
}
ARTICLE = (
    b"<response><records><article><front><p>Front.</p></front><body><sec><title>Methods</title><p>We added "
    b"<italic>yeast</italic>.</p><p>We  weighed it.</p></sec></body></article></records></response>"
)


def source(service: Service) -> SpringerNature:
    return SpringerNature("my-key", base_url=service.address)


def test_recent_papers_come_with_their_record_and_text(service: Service):
    service.planned.extend(
        [
            Answer(200, {"records": [RECORD, RECORD | {"doi": "10.1000/2"}]}),
            Answer(200, ARTICLE),
            Answer(200, b"<response><records/></response>"),  # an article without a text is left out
            Answer(200, {"records": []}),
        ]
    )
    (paper,) = source(service).recent("sour dough", SINCE)
    assert paper.text == "We added yeast.\n\nWe weighed it."
    assert (paper.paper.title, paper.paper.journal, paper.paper.doi) == (
        "Yeast in dough",
        "Journal of Loaves",
        "10.1000/1",
    )
    assert (paper.paper.published.date, paper.paper.licence) == ("2026-05-17", "CC BY 4.0")
    assert paper.paper.authors == ("Baker, A.", "Miller, B.")
    assert paper.address == "https://doi.org/10.1000/1"


def test_requests_carry_query_date_key_and_page(service: Service):
    service.planned.extend([Answer(200, {"records": [RECORD]}), Answer(200, ARTICLE), Answer(200, {"records": []})])
    list(source(service).recent("sour dough", SINCE))
    asked = [(urlsplit(each.path).path, parse_qs(urlsplit(each.path).query)) for each in service.requests]
    assert [path for path, _ in asked] == ["/v1/json", "/v1/jats", "/v1/json"]
    assert asked[0][1]["q"][0].startswith('"sour dough" onlinedatefrom:2026-05-01')
    assert [values["s"] for _, values in asked] == [["1"], ["1"], ["2"]]
    assert {values["api_key"][0] for _, values in asked} == {"my-key"}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(401, {}), "answered 401; check the key"),
        (Answer(429, {}), "answered 429; try again later"),
        (Answer(200, b"<html>"), "no JSON"),
        (Answer(200, {"records": []}, missing=50), "cannot be reached"),
    ],
)
def test_what_goes_wrong_is_told_without_the_key(answer: Answer, message: str, service: Service):
    service.planned.append(answer)
    with pytest.raises(ServiceError, match=message) as error:
        list(source(service).recent("dough", SINCE))
    assert "my-key" not in str(error.value)


def test_a_text_that_is_no_jats_is_told(service: Service):
    service.planned.extend([Answer(200, {"records": [RECORD]}), Answer(200, b"<article")])
    with pytest.raises(ServiceError, match="no JATS"):
        list(source(service).recent("dough", SINCE))


def test_without_a_key_it_says_where_keys_come_from(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(SPRINGER_KEY, raising=False)
    with pytest.raises(OptionError, match=f"set {SPRINGER_KEY}"):
        SpringerNature()
    monkeypatch.setenv(SPRINGER_KEY, "from-the-environment")
    assert SpringerNature() is not None
