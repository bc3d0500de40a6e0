"""Checks without which a tree cannot be played: unique ids and texts, references to existing nodes, no cycle."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from inquitree_gym.errors import Fault
from inquitree_gym.trees.rules import fault

if TYPE_CHECKING:
    from inquitree_gym.trees.schema import Tree

MAX_CYCLES = 20
"""Largest number of cycles reported at once; each takes a walk over the graph."""


def playability_faults(tree: Tree) -> Iterator[Fault]:
    """Yield every fault of a tree whose fields are valid by themselves."""
    yield from _duplicates(tree)
    yield from _repeated_paraphrases(tree)
    yield from _dangling(tree)
    yield from _dangling_clues(tree)
    yield from _dangling_support(tree)
    yield from _cycles(tree)


def _duplicates(tree: Tree) -> Iterator[Fault]:
    seen = {"topic"}
    for node in (*tree.subtopics, *tree.studies, *tree.conclusions):
        if node.id in seen:
            path = f"{tree.paths[node.id]}.id"
            yield fault("T111", node.id, path, "this id is used more than once; ids are unique in a tree")
        seen.add(node.id)
    first: dict[str, str] = {}
    for node in (*tree.subtopics, *tree.studies):
        if (twin := first.setdefault(node.text, node.id)) != node.id:
            message = f"has the same text as {twin}; no action could tell them apart"
            yield fault("T112", node.id, f"{tree.paths[node.id]}.text", message)


def _repeated_paraphrases(tree: Tree) -> Iterator[Fault]:
    for family in tree.families:
        first = {node.text.casefold(): f"the text of {node.id}" for node in family}
        for node in family:
            for i, paraphrase in enumerate(node.paraphrases):
                place = f"paraphrase {i + 1} of {node.id}"
                if (twin := first.setdefault(paraphrase.casefold(), place)) != place:
                    path = f"{tree.paths[node.id]}.paraphrases[{i}]"
                    yield fault("T113", node.id, path, f"paraphrase {i + 1} repeats {twin}; reword or remove it")


def _dangling(tree: Tree) -> Iterator[Fault]:
    subtopics = {subtopic.id for subtopic in tree.subtopics}
    studies = {study.id for study in tree.studies}
    for subtopic in tree.subtopics:
        path = f"{tree.paths[subtopic.id]}.prerequisites"
        for i, name in enumerate(subtopic.prerequisites):
            if name not in subtopics:
                message = f"prerequisite '{name}' is not a subtopic of this tree"
                yield fault("T114", subtopic.id, f"{path}[{i}]", message)
        if len(set(subtopic.prerequisites)) < len(subtopic.prerequisites):
            yield fault("T114", subtopic.id, path, "a prerequisite is listed twice")
    for item in tree.conclusions:
        for i, group in enumerate(item.needs):
            for k, name in enumerate(group):
                if name not in studies:
                    path = f"{tree.paths[item.id]}.needs[{i}][{k}]"
                    yield fault("T116", item.id, path, f"needs '{name}', which is not a study of this tree")


def _dangling_clues(tree: Tree) -> Iterator[Fault]:
    studies = {study.id for study in tree.studies}
    for study in tree.studies:
        for i, fake in enumerate(study.fakes):
            path = f"{tree.paths[study.id]}.fakes[{i}].told_by"
            for k, name in enumerate(fake.told_by):
                if name not in studies - {study.id}:
                    message = f"fake {i + 1} is told by '{name}', which is no other study of this tree"
                    yield fault("T118", study.id, f"{path}[{k}]", message)
            if len(set(fake.told_by)) < len(fake.told_by):
                yield fault("T118", study.id, path, f"fake {i + 1} is told by a study that is listed twice")


def _dangling_support(tree: Tree) -> Iterator[Fault]:
    sources: set[str] = set()
    for i, source in enumerate(tree.provenance.sources):
        if source.id in sources:
            message = f"source {source.id} is used more than once; ids are unique in a tree"
            yield fault("T117", "provenance", f"provenance.sources[{i}].id", message)
        sources.add(source.id)
    for i, support in enumerate(tree.provenance.support):
        path = f"provenance.support[{i}]"
        if support.node not in tree.paths:
            message = f"supports '{support.node}', which is not a node of this tree"
            yield fault("T117", "provenance", f"{path}.node", message)
        for k, name in enumerate(support.sources):
            if name not in sources:
                message = f"{support.node} cites {name}, which is not among the sources"
                yield fault("T117", "provenance", f"{path}.sources[{k}]", message)


def _cycles(tree: Tree) -> Iterator[Fault]:
    known = {subtopic.id for subtopic in tree.subtopics}
    graph = {subtopic.id: [name for name in subtopic.prerequisites if name in known] for subtopic in tree.subtopics}
    for _ in range(MAX_CYCLES):
        try:
            TopologicalSorter(graph).prepare()
            return
        except CycleError as error:
            cycle = error.args[1][::-1]
        message = f"prerequisites form a cycle: {' → '.join(cycle)}; none of them could ever be entered"
        yield fault("T115", cycle[0], f"{tree.paths[cycle[0]]}.prerequisites", message)
        for name in cycle:
            graph.pop(name, None)
