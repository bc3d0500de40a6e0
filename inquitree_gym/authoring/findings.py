"""Findings about a tree, the figures of an audit, and what a person decided on each finding.

They stand in a side file beside the tree, ``tree.findings.json`` for ``tree.json``. It is saved after each decision.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable
from operator import not_
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from inquitree_gym.errors import AuthoringError, OptionError, Severity
from inquitree_gym.files import MAX_TASK, read_input, write_whole
from inquitree_gym.trees.catalogue import SIDE_FILES, is_path
from inquitree_gym.trees.fields import MAX_TEXT, FrozenModel
from inquitree_gym.trees.reading import dump_document, validated
from inquitree_gym.trees.schema import Tree

FINDINGS, SOURCES = SIDE_FILES
EDGES = ("superfluous-edge", "circular-edge", "missing-edge")
"""Rules about a prerequisite, whose text is its id."""

Words = Annotated[str, Field(max_length=MAX_TEXT)]
Choice = Literal["open", "accepted", "edited", "rejected"]
Status = Literal["read", "unreadable", "contradictory", "refused", "failed", "not asked"]
"""End of a request: its reply was read, could not be read, contradicts itself, refuses to answer, never came, or was
not asked for."""


class Finding(FrozenModel):
    """Something that may be wrong with a tree."""

    node: str = Field(max_length=64)
    """Id of the node, or ``topic``."""
    text: Words
    """The text of the tree that it is about, word for word. The id of a prerequisite for the rules `EDGES`."""
    rule: str = Field(min_length=1, max_length=64)
    severity: Severity
    proposal: Words | None = None
    """Text in its place; of a missing edge, the reason for it. None if there is no proposal."""
    why: Words = Field(default="", exclude_if=not_)
    """Reason, in the words of the one who found it."""


class RowDecision(FrozenModel):
    """Choice that a person made on a row."""

    row: int = Field(ge=0)
    """Index of the row."""
    choice: Choice
    text: Words | None = None
    """The person's own text, of an edited row."""
    by: str = Field(max_length=200)
    at: str
    """Time in ISO 8601, UTC."""


class AuditFigure(FrozenModel):
    """Share of answers that an audit counted."""

    name: str
    """``recall``, ``sound``, ``hits`` or ``false alarms``."""
    count: int = Field(ge=0)
    n: int = Field(ge=1)
    model: str


class Asked(FrozenModel):
    """Request of an audit that was not read as one answer, with its reply."""

    name: str
    status: Status
    why: str
    reply: str
    model: str


class Findings(FrozenModel):
    """Content of a side file: rows, decisions in order, and what the audits counted."""

    format: Literal["findings/1"] = "findings/1"
    tree: str
    """Id of the tree."""
    digest: str
    """Digest of the tree at the last audit."""
    rows: tuple[Finding, ...] = ()
    decisions: tuple[RowDecision, ...] = ()
    """All decisions in order. The last one about a row counts. Undoing takes the last one back."""
    figures: tuple[AuditFigure, ...] = ()
    unread: tuple[Asked, ...] = ()

    @property
    def states(self) -> tuple[RowDecision | None, ...]:
        """Decision on each row. None for an open one."""
        found: dict[int, RowDecision] = {decision.row: decision for decision in self.decisions}
        return tuple(found.get(row) for row in range(len(self.rows)))

    @property
    def open_rows(self) -> list[int]:
        """Indices of the rows without a decision."""
        return [row for row, decision in enumerate(self.states) if decision is None or decision.choice == "open"]

    def decide(self, row: int, choice: Choice, by: str, text: str | None = None) -> Findings:
        """Return the record with one more decision, made now.

        Raises:
            OptionError: there is no such row, the choice is ``edited`` without a text, or another one comes with one.
        """
        if not 0 <= row < len(self.rows):
            raise OptionError(f"row must be a number from 1 to {len(self.rows)}, got {row + 1}. Name one of these.")
        if (choice == "edited") != bool(text and text.strip()):
            raise OptionError(
                f"an edited row must have a text and no other row may, got {choice} with {text!r:.60}. "
                "Write the text, or accept or reject the row."
            )
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        decision = RowDecision(row=row, choice=choice, text=text.strip() if text else None, by=by, at=at)
        return self.model_copy(update={"decisions": (*self.decisions, decision)})

    def undo(self) -> Findings:
        """Return the record without its last decision.

        Raises:
            OptionError: there is none.
        """
        if not self.decisions:
            raise OptionError("there is no decision to undo; decide on a row first")
        return self.model_copy(update={"decisions": self.decisions[:-1]})

    def with_rows(self, found: Iterable[Finding]) -> Findings:
        """Return the record with further rows. One with the node, rule and text of an earlier row is left out."""
        rows = {(row.node, row.rule, row.text): row for row in self.rows}
        for row in found:
            rows.setdefault((row.node, row.rule, row.text), row)
        return self.model_copy(update={"rows": tuple(rows.values())})


class Quotation(FrozenModel):
    """Passage of a source behind a node, and the id of its fact in the provenance."""

    fact: str | None = None
    quotation: str
    place: str


_QUOTATIONS = TypeAdapter(dict[str, list[Quotation]])


def side_file(tree: str | os.PathLike[str], end: str = FINDINGS) -> Path:
    """Return the side file of a tree: ``tree.findings.json`` beside ``tree.json``, and here for an id."""
    return Path(tree).expanduser().with_suffix(end) if is_path(tree) else Path(f"{tree}{end}")


def read_findings(file: Path, tree: Tree) -> Findings:
    """Return the record in a side file, or an empty one if there is no file.

    Raises:
        TreeError: the file is invalid. Every fault is listed.
        AuthoringError: it belongs to another tree, or decides on a row that it lacks.
    """
    if not file.exists():
        return Findings(tree=tree.id, digest=tree.digest)
    found = validated(Findings, read_input(file, limit=MAX_TASK, error=OptionError), str(file))
    if found.tree != tree.id:
        raise AuthoringError(
            f"'{file}' must be about the tree '{tree.id}', got '{found.tree}'. Move the file away, or give its tree."
        )
    if any(decision.row >= len(found.rows) for decision in found.decisions):
        raise AuthoringError(f"'{file}' decides on a row that it does not hold; restore the file from a copy")
    return found


def write_findings(file: Path, findings: Findings) -> None:
    """Write a side file as a whole.

    Raises:
        OptionError: it cannot be written.
    """
    try:
        write_whole(file, dump_document(findings).encode())
    except OSError as error:
        raise OptionError(f"cannot write '{file}': {error.strerror}; check the folder and its rights") from error


def read_quotations(file: Path) -> dict[str, list[Quotation]]:
    """Return the quotations of sources by node, or none if there is no file.

    Raises:
        OptionError: the file is no mapping of nodes to lists of ``{"quotation", "place"}``.
    """
    if not file.exists():
        return {}
    try:
        return _QUOTATIONS.validate_json(read_input(file, limit=MAX_TASK, error=OptionError))
    except ValueError as error:
        raise OptionError(
            f"'{file}' must map ids of nodes to lists of objects with quotation and place: {error}. Mend or remove it."
        ) from None
