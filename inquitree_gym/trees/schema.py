"""Research trees as all parts of the package know them.

Every `Tree` is playable in every world: ids are unique, prerequisites and evidence refer to existing nodes, the graph
is acyclic, and results and conclusion items have a text for every combination of the poles of their axes. The linter
checks quality: rising hint ladders, distinguishable siblings, texts that betray no pole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from inquitree_gym.errors import Fault
from inquitree_gym.trees.document import Candidate, Study, Subtopic, TreeDocument
from inquitree_gym.trees.fields import document_digest
from inquitree_gym.trees.rules import fault
from inquitree_gym.trees.validation import legible

MAX_CYCLES = 20
"""Largest number of cycles reported at once. Each takes a walk over the graph."""
_REPEATED = "this id is used more than once; ids are unique in a tree"


class Tree(TreeDocument):
    """A research tree that is playable in every world: a topic, a DAG of subtopics, studies and conclusion items."""

    @model_validator(mode="after")
    def _is_playable(self) -> Tree:
        if faults := list(_playability_faults(self)):
            context = {"faults": "\n".join(map(str, faults)), "list": faults}
            raise PydanticCustomError("not_playable", "{faults}", context)
        return self

    def __eq__(self, other: object) -> bool:
        """Return True for the same document. Digests tell, so that caches keyed by a tree are fast."""
        if not isinstance(other, Tree):
            return NotImplemented
        outside = (self.reviewed, self.disclosure)
        return self is other or (self.digest == other.digest and outside == (other.reviewed, other.disclosure))

    def __hash__(self) -> int:
        """Return the hash of the digest, so that caches keyed by a tree are fast."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical document without disclosure and state of review, in hex.

        It identifies the tree in logs and caches.
        """
        return document_digest(self, exclude={"disclosure", "reviewed"})

    @property
    def group(self) -> str:
        """Group in tables. Trees have none."""
        return ""

    @property
    def published(self) -> str:
        """Date of publication of the paper."""
        return self.paper.published.written

    @cached_property
    def reads(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the axes that each study reads, in the order of its outcomes. None of them in a control."""
        return tuple(tuple(self.axis_index[axis] for axis in study.result.axes) for study in self.studies)

    @cached_property
    def asks(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the axes of each conclusion item, in the order of its options."""
        return tuple(tuple(self.axis_index[axis] for axis in item.axes) for item in self.conclusions)

    def can_be_told(self, study: int) -> bool:
        """Return True if another study reads one of the axes, which can contradict any fake of this one."""
        axes = set(self.reads[study])
        return any(axes & set(others) for other, others in enumerate(self.reads) if other != study)

    def texts(self) -> dict[str, str]:
        """Return all texts that can be matched or judged, by path, such as ``s1/s1a/result/01/1``."""
        found = {"topic": self.topic}
        for subtopic in self.subtopics:
            found |= _ladder_texts(subtopic.id, subtopic)
            for study in subtopic.studies:
                path = f"{subtopic.id}/{study.id}"
                found |= _ladder_texts(path, study)
                for key, texts in study.result.texts.items():
                    place = f"{path}/result/{key}" if key else f"{path}/result"
                    found |= {f"{place}/{i}": text for i, text in enumerate(texts, 1)}
        for item in self.conclusions:
            found |= {f"{item.id}/{key}": text for key, text in item.texts.items()}
        return found


def _ladder_texts(path: str, node: Subtopic | Study) -> dict[str, str]:
    """Return the texts of a subtopic or study that are the same in every world, by path."""
    found = {path: node.text} | {f"{path}/paraphrase{i}": text for i, text in enumerate(node.paraphrases, 1)}
    return found | {f"{path}/hint{level}": hint for level, hint in enumerate(node.hints, 1)}


def _playability_faults(tree: TreeDocument) -> Iterator[Fault]:
    """Yield what makes a tree unplayable: repeated ids and texts, unknown references, cycles, missing texts."""
    yield from _duplicates(tree)
    yield from _repeated_paraphrases(tree)
    yield from _dangling(tree)
    yield from _dangling_support(tree)
    yield from _cycles(tree)
    yield from _axis_faults(tree)
    yield from _reader_faults(tree)


def _duplicates(tree: TreeDocument) -> Iterator[Fault]:
    seen = {"topic"}
    nodes = [node for family in tree.families for node in family]
    for name in (*(node.id for node in nodes), *(item.id for item in tree.conclusions)):
        if name in seen:
            yield fault("T111", name, f"{tree.node_paths[name]}.id", _REPEATED)
        seen.add(name)
    first: dict[str, str] = {}
    for node in nodes:
        if (twin := first.setdefault(node.text, node.id)) != node.id:
            message = f"has the same text as {twin}; no action could tell them apart"
            yield fault("T112", node.id, f"{tree.node_paths[node.id]}.text", message)


def _repeated_paraphrases(tree: TreeDocument) -> Iterator[Fault]:
    for family in tree.families:
        first = {node.text.casefold(): f"the text of {node.id}" for node in family}
        for node in family:
            for i, paraphrase in enumerate(node.paraphrases):
                place = f"paraphrase {i + 1} of {node.id}"
                if (twin := first.setdefault(paraphrase.casefold(), place)) != place:
                    path = f"{tree.node_paths[node.id]}.paraphrases[{i}]"
                    yield fault("T113", node.id, path, f"paraphrase {i + 1} repeats {twin}; reword or remove it")


def _dangling(tree: TreeDocument) -> Iterator[Fault]:
    subtopics, studies = set(tree.graph), {study.id for study in tree.studies}
    for subtopic, prerequisites in tree.graph.items():
        path = f"{tree.node_paths[subtopic]}.prerequisites"
        for i, name in enumerate(prerequisites):
            if name not in subtopics:
                message = f"prerequisite '{name}' is not a subtopic of this tree"
                yield fault("T114", subtopic, f"{path}[{i}]", message)
        if len(set(prerequisites)) < len(prerequisites):
            yield fault("T114", subtopic, path, "a prerequisite is listed twice")
    for node, path, name in _named_evidence(tree):
        if name not in studies:
            yield fault("T116", node, path, f"needs '{name}', which is not a study of this tree")


def _named_evidence(tree: TreeDocument) -> Iterator[tuple[str, str, str]]:
    """Yield the node, place and name of each study that a conclusion item or a disclosed claim rests on."""
    for item in tree.conclusions:
        for i, group in enumerate(item.needs):
            for k, name in enumerate(group):
                yield item.id, f"{tree.node_paths[item.id]}.needs[{i}][{k}]", name
    for i, claim in enumerate(tree.disclosure.claims if tree.disclosure else ()):
        for k, name in enumerate(claim.evidence):
            yield claim.id, f"disclosure.claims[{i}].evidence[{k}]", name


def _dangling_support(tree: TreeDocument) -> Iterator[Fault]:
    sources: set[str] = set()
    for i, source in enumerate(tree.provenance.sources):
        if source.id in sources:
            message = f"source {source.id} is used more than once; ids are unique in a tree"
            yield fault("T117", "provenance", f"provenance.sources[{i}].id", message)
        sources.add(source.id)
    for i, support in enumerate(tree.provenance.support):
        path = f"provenance.support[{i}]"
        if support.node not in tree.node_paths:
            message = f"supports '{support.node}', which is not a node of this tree"
            yield fault("T117", "provenance", f"{path}.node", message)
        for k, name in enumerate(support.sources):
            if name not in sources:
                message = f"{support.node} cites {name}, which is not among the sources"
                yield fault("T117", "provenance", f"{path}.sources[{k}]", message)


def _cycles(tree: TreeDocument) -> Iterator[Fault]:
    graph = {subtopic: [name for name in needs if name in tree.graph] for subtopic, needs in tree.graph.items()}
    for _ in range(MAX_CYCLES):
        try:
            TopologicalSorter(graph).prepare()
            return
        except CycleError as error:
            cycle = error.args[1][::-1]
        message = f"prerequisites form a cycle: {' → '.join(cycle)}; none of them could ever be entered"
        yield fault("T115", cycle[0], f"{tree.node_paths[cycle[0]]}.prerequisites", message)
        for name in cycle:
            graph.pop(name, None)


def _axis_faults(tree: TreeDocument) -> Iterator[Fault]:
    """Yield repeated ids of axes, and actual poles that are none."""
    others = set(tree.node_paths)
    for i, axis in enumerate(tree.axes):
        if axis.id in others:
            yield fault("T111", axis.id, f"axes[{i}].id", _REPEATED)
        others.add(axis.id)
        if axis.actual is not None and not 0 <= axis.actual < len(axis.poles):
            message = f"its actual pole is {axis.actual}, needs 0 to {len(axis.poles) - 1}"
            yield fault("T121", axis.id, f"axes[{i}].actual", message)
    unknown = [axis.id for axis in tree.axes if axis.actual is None]
    if 0 < len(unknown) < len(tree.axes):
        message = f"{', '.join(unknown)} have no actual pole, the other axes have; give one to all axes or to none"
        yield fault("T121", unknown[0], f"{tree.paths[unknown[0]]}.actual", message)


def _reader_faults(tree: TreeDocument) -> Iterator[Fault]:
    """Yield the faults of what reads axes: results and conclusion items."""
    for study in tree.studies:
        result, path = study.result, f"{tree.paths[study.id]}.result"
        yield from _key_faults(tree, study.id, path, result.axes, result.texts)
        counts = {key: len(wordings) for key, wordings in result.texts.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{count} for '{key}'" for key, count in counts.items())
            message = f"its result has {told}; every key needs the same number of wordings"
            yield fault("T120", study.id, f"{path}.texts", message)
    for item in tree.conclusions:
        yield from _key_faults(tree, item.id, tree.paths[item.id], item.axes, item.texts)


def _key_faults(
    tree: TreeDocument, node: str, path: str, axes: tuple[str, ...], texts: Mapping[str, object]
) -> Iterator[Fault]:
    for i, name in enumerate(axes):
        if name not in tree.axis_index:
            yield fault("T119", node, f"{path}.axes[{i}]", f"reads '{name}', which is not an axis of this tree")
    if len(set(axes)) < len(axes):
        yield fault("T119", node, f"{path}.axes", "reads an axis twice; name it once")
    if len(tree.axis_index.keys() & set(axes)) < len(axes):
        return  # nothing can be said of the texts
    known = tree.keys(axes)
    if missing := [key for key in known if key not in texts]:
        message = f"has no text for {_quoted(missing)}; write one for every combination of the poles of its axes"
        yield fault("T120", node, f"{path}.texts", message)
    if unknown := [key for key in texts if key not in known]:
        message = f"has texts for {_quoted(unknown)}, but its axes need {_quoted(known)}; remove or rename them"
        yield fault("T120", node, f"{path}.texts", message)


def _quoted(keys: Sequence[str]) -> str:
    shown = ", ".join(f"'{legible(key)}'" for key in keys[:9])
    return f"{shown} and {len(keys) - 9} more" if len(keys) > 9 else shown


Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Function from n texts to an array of shape (n, dim) with rows of unit length."""


def wordings(node: Candidate) -> tuple[str, ...]:
    """Return the canonical text of a node, then its paraphrases."""
    return node.text, *node.paraphrases


def centroids(nodes: Sequence[Candidate], embed: Embed) -> NDArray[np.float32]:
    """Return the unit-length mean vector of the wordings of each node, shape ``(len(nodes), dim)``.

    A node without paraphrases keeps the vector of its text to the last bit.
    """
    rows = embed([text for node in nodes for text in wordings(node)])
    ends = np.cumsum([len(wordings(node)) for node in nodes])
    return np.stack([_centroid(each) for each in np.split(rows, ends[:-1])])


def _centroid(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = rows.mean(axis=0)
    length = max(float(np.linalg.norm(mean)), 1e-12)  # opposite vectors cancel
    return rows[0] if len(rows) == 1 else np.asarray(mean / length, np.float32)
