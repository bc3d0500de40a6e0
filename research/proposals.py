"""Labelled proposals, and how well an embedder matches them.

``python -m research.proposals TREE FILE`` measures how the proposals of a JSON file about one tree are read. The file
has the fields of `ProposalSet`, and each of its proposals those of `Proposal`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import typer
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from inquitree_gym.cli import output, run_app
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, Embedder, TreeVectors, load_embedder, tree_vectors
from inquitree_gym.embeddings.protocol import Vectors, embedded
from inquitree_gym.embeddings.vectors import Vector
from inquitree_gym.errors import OptionError
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees import Tree, load_tree
from inquitree_gym.trees.document import Candidate
from inquitree_gym.trees.schema import Embed, centroids

ProposalKind = Literal["right", "vague", "near_miss", "off_target", "foreign"]
PROPOSAL_KINDS: tuple[ProposalKind, ...] = get_args(ProposalKind)
Origin = Literal["written", "played"]
TOPIC = "topic"
WRITTEN = Path(__file__).parent / "reader" / "proposals"
"""Labelled proposals about the shipped trees that were written to train readers."""
KINDS_TAKEN: tuple[ProposalKind, ...] = ("foreign", "vague", "near_miss", "off_target")
"""Kinds of proposals that should be refused."""
MEASURES = ("nearest_subtopic", "nearest_study", "understood", "misread", "refused", *KINDS_TAKEN)
"""Shares of labelled proposals that are printed."""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Proposal(BaseModel):
    """A text that an agent might propose instead of a subtopic or study, and its meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    target: str = ""
    """Id of the subtopic or study that the text means, or beside which it was written."""
    also: tuple[str, ...] = ()
    """Further nodes of the same choice that the text means as well."""
    at: str = ""
    """``topic`` or the id of the subtopic where it was said. Needed without a target."""
    kind: ProposalKind
    """``right`` means the target. The other kinds mean no node of the tree: ``foreign`` is a sensible question or study
    about the topic, ``near_miss`` one about something else in the field, ``vague`` no particular one, ``off_target``
    nothing of the field."""
    text: str
    author: str = "first"
    origin: Origin = "written"
    locked: bool = False
    """True if the target was still locked when the text was said."""
    sure: bool = True
    """False if another careful reader might decide otherwise."""

    @model_validator(mode="after")
    def _has_a_place(self) -> Proposal:
        if not (self.target or self.at):
            raise ValueError("a proposal without a target needs 'at': topic, or the id of a subtopic")
        if self.kind == "right" and not self.target:
            raise ValueError("a right proposal needs a target")
        return self


class ProposalSet(BaseModel):
    """The proposals about one tree."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    """Id of the tree."""
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True)
class MatchingCase:
    """A proposal and its candidates: all subtopics, or the studies of one subtopic."""

    tree: str
    target: str
    is_study: bool
    kind: ProposalKind
    text: str
    candidates: tuple[Candidate, ...]
    right: int
    """Index of the target among the candidates. -1 without a target."""
    also: tuple[int, ...] = ()
    """Indices of further candidates that the text means as well."""
    author: str = "first"
    origin: Origin = "written"
    locked: bool = False
    sure: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedProposal(MatchingCase):
    """A proposal and its nearest candidate under one embedder."""

    index: int
    """Index of the nearest candidate. -1 if a reader chose none."""
    similarity: float
    """Cosine similarity to the nearest candidate."""

    @property
    def right_node(self) -> bool:
        """True if the nearest candidate is a node that the proposal means."""
        return self.index >= 0 and self.index in (self.right, *self.also)

    @property
    def nearest(self) -> str:
        """Id of the nearest candidate. Empty without one."""
        return self.candidates[self.index].id if self.index >= 0 else ""


@dataclass(frozen=True, slots=True)
class ReadingShares:
    """Shares of proposals, in [0, 1], as means over trees. The kinds are those of `Proposal`."""

    proposals: int
    nearest_subtopic: Estimate
    """Right proposals at the topic whose nearest candidate is right, at any similarity."""
    nearest_study: Estimate
    """The same for designs in a subtopic with several studies."""
    understood: Estimate
    """Right proposals at the topic that are accepted as a node that they mean."""
    misread: Estimate
    """Right proposals at the topic that are accepted as another node."""
    refused: Estimate
    """Right proposals at the topic that are not accepted."""
    foreign: Estimate
    """Proposals of this and the next kinds, at the topic or in a subtopic, that are accepted."""
    vague: Estimate
    near_miss: Estimate
    off_target: Estimate
    locked: int
    """Right proposals whose target was still locked when they were said."""
    several: int
    """Right proposals that mean several nodes."""


@dataclass(frozen=True, slots=True)
class WrongReading:
    """A proposal that is not read as it is meant."""

    text: str
    kind: ProposalKind
    meant: tuple[str, ...]
    """Ids of the nodes that it means. Empty for a proposal that should be refused."""
    read: str | None
    """Id of the node that it is accepted as. None if it is refused."""
    similarity: float
    """Similarity to the nearest candidate."""


@dataclass(frozen=True, slots=True)
class FileReadings:
    """Readings of a file of labelled proposals about one tree."""

    tree: str
    embedder: str
    threshold: float
    shares: dict[str, ReadingShares]
    """Shares of all proposals, and of each author and origin where there are several."""
    wrong: list[WrongReading]


def load_proposals(folder: Path = WRITTEN) -> list[ProposalSet]:
    """Return the proposals of all JSON files of a folder, one for each tree, in paper order.

    Raises:
        OptionError: the folder holds none, or a file is invalid.
    """
    files = sorted(folder.glob("*.json"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise OptionError(f"no proposals (*.json) in '{folder}'; give a folder with one file per tree")
    return [load_set(file) for file in files]


def load_set(file: Path) -> ProposalSet:
    """Return the proposals of one JSON file.

    Raises:
        OptionError: the file cannot be read or is invalid.
    """
    if not file.is_file():
        raise OptionError(f"no file of proposals at '{file}'; give a .json file")
    try:
        return ProposalSet.model_validate_json(file.read_bytes())
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        raise OptionError(f"'{file}' is not a valid set of proposals: {fault['msg']} at {fault['loc']}") from error


def matching_cases(sets: Sequence[ProposalSet], find: Callable[[str], Tree] = load_tree) -> list[MatchingCase]:
    """Return every proposal with its candidates. ``find`` loads a tree by id.

    Raises:
        OptionError: a target is not in its tree.
    """
    return [case for each in sets for case in _cases(each, find(each.tree))]


def case_similarities(case: MatchingCase, embed: Embed, *, paraphrases: bool = True) -> NDArray[np.float32]:
    """Return the similarity of a proposal to each candidate: to its centroid, or to its canonical text alone."""
    candidates = centroids(case.candidates, embed) if paraphrases else embed([node.text for node in case.candidates])
    return np.asarray(candidates @ embed([case.text])[0])


def measure_file(file: Path, tree: Tree, embedder: str) -> FileReadings:
    """Match the proposals of a file with their tree, at the threshold of an embedder.

    Raises:
        OptionError: the file cannot be read or is invalid, or is about another tree, or the embedder has no threshold.
    """
    reader = load_embedder(embedder)
    if reader.threshold is None:
        raise OptionError(f"no threshold has been calibrated for the embedder '{embedder}'; take another one")
    threshold = reader.threshold
    proposals = load_set(file)
    if proposals.tree != tree.id:
        raise OptionError(f"'{file}' holds proposals about {proposals.tree}, not about {tree.id}")
    cases = matching_cases([proposals], lambda name: tree)
    found = match_cases(cases, reader, find=lambda name: tree)
    groups = {"all": found}
    for field in ("author", "origin"):
        names = list(dict.fromkeys(getattr(each, field) for each in found))
        for name in names if len(names) > 1 else ():
            groups[f"{field} {name}"] = [each for each in found if getattr(each, field) == name]
    shares = {name: reading_shares(group, threshold) for name, group in groups.items()}
    wrong = [each for each in (_wrong(one, threshold) for one in found) if each is not None]
    return FileReadings(tree.id, reader.name, threshold, shares, wrong)


def _wrong(found: MatchedProposal, threshold: float) -> WrongReading | None:
    accepted = found.similarity >= threshold
    meant = tuple(found.candidates[i].id for i in (found.right, *found.also)) if found.kind == "right" else ()
    read = found.nearest if accepted else None
    as_meant = read in meant if meant else not accepted
    return None if as_meant else WrongReading(found.text, found.kind, meant, read, found.similarity)


def matched(case: MatchingCase, index: int, similarity: float) -> MatchedProposal:
    """Return a proposal whose nearest candidate is known by its index."""
    known = {each.name: getattr(case, each.name) for each in fields(case)}
    return MatchedProposal(**known, index=index, similarity=similarity)


def match_cases(
    cases: Sequence[MatchingCase], embedder: Embedder, *, find: Callable[[str], Tree] = load_tree
) -> list[MatchedProposal]:
    """Match every proposal with the centroids of its candidates.

    ``find`` loads a tree by id.
    """
    said = list(dict.fromkeys(case.text for case in cases))
    vectors = dict(zip(said, embedded(embedder, said), strict=True))
    known = {name: tree_vectors(find(name), embedder) for name in dict.fromkeys(case.tree for case in cases)}
    return [_match(case, vectors[case.text], known[case.tree]) for case in cases]


def reading_shares(proposals: Sequence[MatchedProposal], threshold: float) -> ReadingShares:
    """Return the shares at ``threshold``."""
    right = [each for each in proposals if each.kind == "right"]
    asked = [each for each in right if not each.is_study]
    designs = [each for each in right if each.is_study and len(each.candidates) > 1]
    taken = {
        kind: _share((each, each.similarity >= threshold) for each in proposals if each.kind == kind)
        for kind in KINDS_TAKEN
    }
    return ReadingShares(
        proposals=len(proposals),
        nearest_subtopic=_share((each, each.right_node) for each in asked),
        nearest_study=_share((each, each.right_node) for each in designs),
        understood=_share((each, each.right_node and each.similarity >= threshold) for each in asked),
        misread=_share((each, not each.right_node and each.similarity >= threshold) for each in asked),
        refused=_share((each, not each.similarity >= threshold) for each in asked),
        locked=sum(each.locked for each in right),
        several=sum(bool(each.also) for each in right),
        **taken,
    )


def _match(case: MatchingCase, said: Vector, known: TreeVectors) -> MatchedProposal:
    def embed(texts: Sequence[str]) -> Vectors:
        return np.stack([said if text == case.text else known.of(text) for text in texts])

    similarities = case_similarities(case, embed)
    best = int(np.argmax(similarities))
    return matched(case, best, float(similarities[best]))


def _share(flags: Iterable[tuple[MatchedProposal, bool]]) -> Estimate:
    return clustered_mean((each.tree, float(flag)) for each, flag in flags)


def _cases(proposals: ProposalSet, tree: Tree) -> Iterator[MatchingCase]:
    by_place: dict[str, tuple[Candidate, ...]] = {TOPIC: tree.subtopics}
    by_place |= {subtopic.id: subtopic.studies for subtopic in tree.subtopics}
    places = {node.id: place for place, nodes in by_place.items() for node in nodes}
    for proposal in proposals.proposals:
        place = proposal.at or places.get(proposal.target, "")
        named = [proposal.target, *proposal.also] if proposal.target else []
        ids = [node.id for node in by_place.get(place, ())]
        if not ids or not set(named) <= set(ids):
            missing = ", ".join(f"'{name}'" for name in named if name not in ids) or f"'{place}'"
            raise OptionError(f"proposals of {tree.id}: {missing} is no subtopic or study of the tree at that place")
        right, *also = [ids.index(name) for name in named] or [-1]
        yield MatchingCase(
            tree=tree.id,
            target=proposal.target,
            is_study=place != TOPIC,
            kind=proposal.kind,
            text=proposal.text,
            candidates=by_place[place],
            right=right,
            also=tuple(also),
            author=proposal.author,
            origin=proposal.origin,
            locked=proposal.locked,
            sure=proposal.sure,
        )


@app.command()
def measure(
    tree: Annotated[str, typer.Argument(help="Id or path of the tree.")],
    file: Annotated[Path, typer.Argument(help="JSON file of labelled proposals about the tree.")],
    embedder: Annotated[str, typer.Option(help="Embedder that reads them, at its threshold.")] = DEFAULT_EMBEDDER,
    as_json: output.JsonOption = False,
) -> None:
    """Measure how labelled proposals about one tree are read, and list those that are not read as they are meant."""
    found = measure_file(file, load_tree(tree), embedder)
    if as_json:
        output.print_json(found)
        return
    title = f"Proposals about {found.tree}, read by {found.embedder} at τ = {found.threshold}"
    output.print_table(title, _shares_table(found.shares))
    output.print_table("Not read as meant", _wrong_table(found.wrong))


def _shares_table(shares: dict[str, ReadingShares]) -> Iterator[list[str]]:
    yield ["share", *shares]
    for name in MEASURES:
        yield [name.replace("_", " "), *(_cell(getattr(group, name)) for group in shares.values())]


def _cell(estimate: Estimate) -> str:
    return "–" if estimate.mean is None else f"{estimate.mean:.3f} (n = {estimate.episodes})"


def _wrong_table(wrong: Sequence[WrongReading]) -> Iterator[list[str]]:
    yield ["proposal", "means", "read as", "similarity"]
    for each in wrong:
        yield [each.text, ", ".join(each.meant) or each.kind, each.read or "refused", f"{each.similarity:.3f}"]


if __name__ == "__main__":
    run_app(app)
