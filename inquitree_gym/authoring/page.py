"""Page of a review, served on the loopback address. See `loopback`."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib import resources
from typing import Any

from inquitree_gym.authoring.findings import EDGES, Findings, Quotation
from inquitree_gym.errors import OptionError
from inquitree_gym.loopback import FRAMED_BY_NONE, PageServer
from inquitree_gym.trees.drawing import diagram
from inquitree_gym.trees.schema import Tree

POLICY = (
    "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; " + FRAMED_BY_NONE
)

Save = Callable[[Findings], Tree]


def page_state(tree: Tree, findings: Findings, quotations: Mapping[str, list[Quotation]]) -> dict[str, Any]:
    """Return what the page shows, as plain values: the drawing of the tree, and each row with its decision."""
    homes = {subtopic.id: subtopic.id for subtopic in tree.subtopics}
    homes |= {study.id: subtopic.id for subtopic in tree.subtopics for study in subtopic.studies}
    places = {text: path for path, text in tree.texts().items()}
    rows = []
    for finding, decision in zip(findings.rows, findings.states, strict=True):
        rows.append(
            finding.model_dump(mode="json")
            | {
                "why": finding.why,
                "home": homes.get(finding.node, ""),
                "place": finding.node if finding.rule in EDGES else places.get(finding.text, finding.node),
                "quotations": [each.model_dump() for each in quotations.get(finding.node, ())],
                "decision": None if decision is None else decision.model_dump(mode="json"),
            }
        )
    return {
        "id": tree.id,
        "title": tree.paper.title,
        "topic": tree.topic,
        "reviewed": tree.reviewed,
        "diagram": asdict(diagram(tree)),
        "rows": rows,
        "decisions": len(findings.decisions),
    }


class ReviewServer(PageServer):
    """Server of the page. Every decision is saved before it is answered."""

    def __init__(
        self, tree: Tree, findings: Findings, quotations: Mapping[str, list[Quotation]], by: str, save: Save,
        port: int = 0,
    ) -> None:  # fmt: skip
        """Listen on a port. See `PageServer` for the errors."""
        self.tree, self.findings, self._quotations = tree, findings, quotations
        self._by, self._save, self._lock = by, save, threading.Lock()
        super().__init__(port)

    def page(self, name: str) -> tuple[str, str] | None:
        """See `PageServer.page`."""
        nonce = secrets.token_urlsafe(16)
        page = resources.files(__package__).joinpath("review.html").read_text(encoding="utf-8")
        return (page.replace("NONCE", nonce), POLICY.format(nonce)) if not name else None

    def state(self) -> dict[str, Any]:
        """See `page_state`."""
        return page_state(self.tree, self.findings, self._quotations)

    def act(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an order of the page: decide, undo or finish. Return the new state.

        Raises:
            OptionError: the order is none, or does not fit the rows.
        """
        with self._lock:
            match order:
                case {"do": "decide", "row": int(row), "choice": "accepted" | "edited" | "rejected" as choice}:
                    text = order.get("text")
                    found = self.findings.decide(row, choice, self._by, text if isinstance(text, str) else None)
                case {"do": "undo"}:
                    found = self.findings.undo()
                case {"do": "finish"}:
                    self.end()
                    return self.state()
                case _:
                    raise OptionError("an order must be decide, undo or finish; reload the page")
            self.tree, self.findings = self._save(found), found
            return self.state()
