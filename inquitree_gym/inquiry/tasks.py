"""Tasks of inquiries: research trees, by id or path."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from inquitree_gym.errors import Fault, OptionError, TreeError, plural
from inquitree_gym.protocols import Outline, Tasks
from inquitree_gym.trees.catalogue import CATALOGUE, builtin_ids, expand_names, is_task_file, user_files
from inquitree_gym.trees.load import load_tree
from inquitree_gym.trees.reading import dump_document
from inquitree_gym.trees.schema import Embed, Tree
from inquitree_gym.trees.worlds import count_worlds

_UNKNOWN = dict.fromkeys(("reviewed", "worlds", "depth", "width", "tier", "year", "journal", "doi"))


class TreeTasks(Tasks[Tree]):
    """Research trees. See `protocols.Tasks` for the methods."""

    noun = "tree"
    columns = ("id", "n", "worlds", "depth", "width", "tier", "year", "journal", "title")

    @property
    def schema(self) -> Any:
        """Schema of a tree."""
        return Tree

    @property
    def diagrams(self) -> Mapping[str, Callable[[Tree], str]]:
        """Pictures of the graph."""
        from inquitree_gym.trees.drawing import mermaid, svg

        return {"mermaid": mermaid, "svg": svg}

    def expand(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return ids and paths. ``all`` stands for every shipped tree."""
        return expand_names(names, {"all": builtin_ids})

    def load(self, task: str | os.PathLike[str] | Tree) -> Tree:
        """See `load_tree`."""
        return load_tree(task)

    def dump(self, task: Tree) -> bytes:
        """Return the canonical document."""
        return dump_document(task).encode()

    def lint(self, task: Tree, embedder: Any = None) -> Sequence[Fault]:
        """See `lint_tree`."""
        from inquitree_gym.trees.lint import lint_tree

        return lint_tree(task, None if embedder is None else _vectors(task, embedder))

    def mend(self, document: bytes, where: str) -> tuple[bytes, Sequence[str]]:
        """See `mended`."""
        from inquitree_gym.trees.aids import mended

        tree, changes = mended(document, where)
        return self.dump(tree), changes

    def aids(self, task: Tree, embedder: Any = None) -> Mapping[str, Sequence[list[str]]]:
        """Return tables that help an author."""
        from inquitree_gym.inquiry.players import player_tables
        from inquitree_gym.trees.aids import author_tables

        tables = author_tables(task, None if embedder is None else _vectors(task, embedder))
        try:
            return player_tables(task) | tables
        except OptionError as error:
            return {"Exam of simulated players": [["not simulated"], [str(error)]]} | tables

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Yield all papers of the pool, with those whose trees may not be distributed, and the user's trees."""
        own = [name for name, file in user_files().items() if name not in CATALOGUE and not is_task_file(file)]
        for name in (*CATALOGUE, *own):
            yield _entry(name)

    def outline(self, task: Tree, spoil: bool) -> Outline:
        """Return the graph as a tree: each subtopic is a branch of its deepest prerequisite and names the others."""
        from inquitree_gym.trees.drawing import depths, layers

        depth = depths(task)
        children: dict[str, list[Outline]] = {}
        top: list[Outline] = []
        for subtopic in reversed([subtopic for row in layers(task) for subtopic in row]):
            needs = sorted(subtopic.requires, key=lambda name: (-depth[name], name))
            also = f"  (also needs {', '.join(needs[1:])})" if needs[1:] else ""
            studies = [
                Outline(f"{study.id}  {study.text}", f"→ {study.outcomes[0][0]}" if spoil else "")
                for study in subtopic.studies
            ]
            place = children.setdefault(needs[0], []) if needs else top
            parts = (*studies, *children.get(subtopic.id, ()))
            place.insert(0, Outline(f"{subtopic.id} · {subtopic.name}{also}", subtopic.text, parts))
        items = tuple(Outline(f"{item.id}  {item.options[0]}") for item in task.conclusions)
        ending = (Outline("Conclusions", parts=items),) if spoil else ()
        return Outline(f"{task.id} · {task.paper.title}", parts=(Outline(task.topic), *top, *ending))


def _vectors(task: Tree, embedder: Any) -> Embed:
    """Return the function that gives texts their vectors, those of the tree from the cache."""
    from inquitree_gym.embeddings.vectors import TextVectors

    vectors = TextVectors(task.digest, tuple(task.texts().values()), embedder)
    return lambda texts: vectors.matrix(tuple(texts))


def _entry(name: str) -> dict[str, Any]:
    """Return one line of ``inquitree list``."""
    from inquitree_gym.trees.drawing import depths, layers

    entry = CATALOGUE.get(name)
    if entry is not None and name not in builtin_ids() and name not in user_files():
        known = {"n": entry.subtopics, "playable": False, "title": entry.title}
        return {"id": name, **known, **_UNKNOWN, "journal": entry.journal}
    try:
        tree = load_tree(name)
    except TreeError as error:
        title = f"(cannot be played: {plural(len(error.faults), 'fault')}; see inquitree check {error.where})"
        return {"id": name, "n": None, "playable": False, "title": title, **_UNKNOWN}
    return {
        "id": name,
        "n": len(tree.subtopics),
        "playable": True,
        "reviewed": TASKS.is_reviewed(tree),
        "title": tree.paper.title,
        "worlds": count_worlds(tree),
        "depth": 1 + max(depths(tree).values()),
        "width": max(map(len, layers(tree))),
        "tier": tree.provenance.tier,
        "year": tree.paper.year,
        "journal": tree.paper.journal,
        "doi": tree.paper.doi,
    }


TASKS = TreeTasks()
