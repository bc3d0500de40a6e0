"""The 30 papers of the InquiTree pool, names of trees and tasks, and the locations of their files."""

# ruff: noqa: E501  (titles are kept on one line)
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from glob import escape, glob
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn


class CatalogueEntry(NamedTuple):
    """One paper of the pool."""

    id: str
    subtopics: int
    """Number of subtopics of the paper's tree, from Table 5 of InquiTree."""
    title: str
    journal: str
    doi: str | None
    """None for a paper whose tree may not be distributed."""
    distributable: bool


_SHIPPED: dict[int, tuple[int, str, str, str]] = {
    1: (8, "Grid cells accurately track movement during path integration-based navigation despite switching reference frames", "Nature Neuroscience", "10.1038/s41593-025-02054-6"),
    2: (4, "Hippocampal spatio-predictive cognitive maps adaptively guide reward generalization", "Nature Neuroscience", "10.1038/s41593-023-01283-x"),
    3: (7, "Constructing future behavior in the hippocampal formation through composition and replay", "Nature Neuroscience", "10.1038/s41593-025-01908-3"),
    4: (10, "A flexible hippocampal population code for experience relative to reward", "Nature Neuroscience", "10.1038/s41593-025-01985-4"),
    5: (7, "Shared computational principles for language processing in humans and deep language models", "Nature Neuroscience", "10.1038/s41593-022-01026-4"),
    7: (7, "The cortical representation of language timescales is shared between reading and listening", "Communications Biology", "10.1038/s42003-024-05909-z"),
    8: (5, "Brains and algorithms partially converge in natural language processing", "Communications Biology", "10.1038/s42003-022-03036-1"),
    10: (7, "Dopamine-independent effect of rewards on choices through hidden-state inference", "Nature Neuroscience", "10.1038/s41593-023-01542-x"),
    11: (6, "Dopamine transients follow a striatal gradient of reward time horizons", "Nature Neuroscience", "10.1038/s41593-023-01566-3"),
    12: (7, "Maintaining and updating accurate internal representations of continuous variables with a handful of neurons", "Nature Neuroscience", "10.1038/s41593-024-01766-5"),
    17: (4, "Reduced neural feedback signaling despite robust neuron and gamma auditory responses during human sleep", "Nature Neuroscience", "10.1038/s41593-022-01107-4"),
    18: (6, "Longitudinal measures of monkey brain structure and activity through adolescence predict cognitive maturation", "Nature Neuroscience", "10.1038/s41593-025-02076-0"),
    20: (8, "BOLD signal changes can oppose oxygen metabolism across the human cortex", "Nature Neuroscience", "10.1038/s41593-025-02132-9"),
    24: (6, "Concept neurons in the human medial temporal lobe flexibly represent abstract relations between concepts", "Nature Communications", "10.1038/s41467-021-26327-3"),
    25: (8, "Mapping the sequence specificity of heterotypic amyloid interactions enables the identification of aggregation modifiers", "Nature Communications", "10.1038/s41467-022-28955-9"),
    27: (7, "Microglia regulate sleep through calcium-dependent modulation of norepinephrine transmission", "Nature Neuroscience", "10.1038/s41593-023-01548-5"),
    28: (5, "Ketamine activates adult-born immature granule neurons to rapidly alleviate depression-like behaviors in mice", "Nature Communications", "10.1038/s41467-022-30386-5"),
    29: (8, "Recurrent pattern completion drives the neocortical representation of sensory inference", "Nature Neuroscience", "10.1038/s41593-025-02055-5"),
}  # fmt: skip
"""Number of subtopics, title, journal and DOI of the papers whose trees are distributed."""
_WITHHELD: dict[int, tuple[int, str, str]] = {
    6: (12, "Semantic reconstruction of continuous language from non-invasive brain recordings", "Nature Neuroscience"),
    9: (6, "Estrogen modulates reward prediction errors and reinforcement learning", "Nature Neuroscience"),
    13: (7, "Unattended working memory items are coded by persistent activity in human medial temporal lobe neurons", "Nature Human Behaviour"),
    14: (13, "Representation and computation in visual working memory", "Nature Neuroscience"),
    15: (6, "Cortical evidence accumulation for visual perception occurs irrespective of reports", "Nature Communications"),
    16: (7, "Mesoscale cortical mechanisms of perceptual conflict resolution in binocular rivalry", "Nature Human Behaviour"),
    19: (9, "Psychedelics Promote Neuroplasticity Through Activation of Intracellular 5-HT2A Receptors", "Science"),
    21: (7, "Neural basis of concurrent deliberation toward a choice and confidence judgment", "Nature Neuroscience"),
    22: (12, "Dopamine Signaling in the Suprachiasmatic Nucleus Enables Weight Gain Associated with Hedonic Feeding", "Current Biology"),
    23: (5, "Decoupling geographical constraints from human mobility", "Nature Human Behaviour"),
    26: (7, "Stress-Induced Metabolic Disorder in Peripheral CD4+ T Cells Leads to Anxiety-like Behavior", "Cell"),
    30: (7, "The cerebellum directly modulates the substantia nigra dopaminergic activity", "Nature Neuroscience"),
}  # fmt: skip
"""Number of subtopics, title and journal of the others, after the paper's Table 5."""


def _entry(number: int) -> CatalogueEntry:
    if number in _SHIPPED:
        return CatalogueEntry(f"paper{number}", *_SHIPPED[number], distributable=True)
    return CatalogueEntry(f"paper{number}", *_WITHHELD[number], doi=None, distributable=False)


CATALOGUE = {entry.id: entry for entry in map(_entry, range(1, 31))}
"""All 30 papers by id, in paper order."""
RESTRICTED = tuple(entry.id for entry in CATALOGUE.values() if not entry.distributable)
"""Ids of the papers whose trees may not be distributed."""


TASK_FORMAT: Literal["projection/1"] = "projection/1"
"""Format of a file that holds a projection task without a tree."""
SIDE_FILES = (".findings.json", ".sources.json")
"""Ends of the names of files that belong to a tree file: what may be wrong with it, and quotations of its sources, which
stay with its author."""
TREES_VARIABLE = "INQUITREE_TREES"
"""Environment variable that names the folders with user trees, separated as in PATH."""


def builtin_ids() -> tuple[str, ...]:
    """Return the ids of the shipped trees, in paper order."""
    ids = [entry.name.removesuffix(".json") for entry in _data().iterdir() if entry.name.endswith(".json")]
    return tuple(sorted(ids, key=lambda name: int(name.removeprefix("paper"))))


WITHHELD_ENTRY_POINT = "inquitree_gym.trees.catalogue:refuse"
"""Entry point of the ids whose trees may not be distributed. Gymnasium lists them apart, as those of the catalogue."""


def withheld(kind: str, views: Sequence[str] = ("-v0", "-menu-v0")) -> Iterator[dict[str, Any]]:
    """Yield the registrations of papers whose trees may not be distributed, unless the user brings a file.

    Args:
        kind: beginning of the ids.
        views: ends of the ids of one paper.
    """
    refusal = {"entry_point": WITHHELD_ENTRY_POINT, "vector_entry_point": WITHHELD_ENTRY_POINT}
    own = user_files()
    for name in RESTRICTED:
        if name not in own:
            for view in views:
                yield {"id": f"{kind}-{name}{view}", "kwargs": {"tree": name}, **refusal}


def refuse(tree: str, **_keywords: Any) -> NoReturn:
    """Raise the error of `load_tree` for a tree that may not be distributed, whatever the keywords of the environment."""
    from inquitree_gym.errors import UnknownTreeError
    from inquitree_gym.trees.load import load_tree

    load_tree(tree)
    raise UnknownTreeError(
        f"'{tree}.json' must be in a folder named by {TREES_VARIABLE} when inquitree_gym is imported, got it later. "
        "Start Python again."
    )


def builtin_file(tree_id: str) -> Traversable:
    """Return the file of a shipped tree."""
    return _data().joinpath(f"{tree_id}.json")


def user_files() -> dict[str, Path]:
    """Return the tree files in the folders of `INQUITREE_TREES`, by file name without suffix. The first folder wins.

    Hidden files, `SIDE_FILES` and unreadable folders are skipped.
    """
    found: dict[str, Path] = {}
    for folder in _user_folders():
        for file in map(Path, sorted(glob(os.path.join(escape(folder), "*.json")))):
            if not file.name.endswith(SIDE_FILES):
                found.setdefault(file.stem, file)
    return found


def is_path(name: str | os.PathLike[str]) -> bool:
    """Return whether the name of a tree or task is a path rather than an id."""
    return isinstance(name, os.PathLike) or Path(name).suffix == ".json" or os.sep in name


def task_name(name: str) -> str:
    """Return the name of a tree or task in a run: an id as it is, of a path the file name without its suffix."""
    return Path(name).stem if is_path(name) else name


def is_task_file(name: str | os.PathLike[str]) -> bool:
    """Return whether a name is the path of a file that has the format of a projection task."""
    from inquitree_gym.errors import LogError
    from inquitree_gym.files import MAX_TASK, open_input

    if not is_path(name):
        return False
    with suppress(LogError), open_input(os.path.expanduser(name), limit=MAX_TASK, error=LogError) as stream:
        return TASK_FORMAT.encode() in stream.read(200)
    return False


def expand_names(names: Sequence[str], groups: Mapping[str, Callable[[], Sequence[str]]]) -> tuple[str, ...]:
    """Return ids and paths, each once. ``12`` stands for ``paper12``.

    Args:
        names: ids, paper numbers, paths and names of groups.
        groups: names that stand for several ids, with the functions that list these.

    Raises:
        OptionError: two of them have the same name in a run.
    """
    from inquitree_gym.errors import OptionError

    ids = [each for name in names for each in (groups[name]() if name in groups else (name,))]
    unique = dict.fromkeys(f"paper{int(name)}" if name.isascii() and name.isdigit() else name for name in ids)
    first: dict[str, str] = {}
    for name in unique:
        if (twin := first.setdefault(task_name(name), name)) != name:
            raise OptionError(f"'{twin}' and '{name}' would share their logs; rename one of the files")
    return tuple(unique)


def first_user_folder() -> Path | None:
    """Return the first folder of `INQUITREE_TREES` that exists. None if there is none."""
    return next((Path(folder) for folder in _user_folders() if os.path.isdir(folder)), None)


def missing_folders() -> list[str]:
    """Return the entries of `INQUITREE_TREES` that are not folders."""
    return [folder for folder in _user_folders() if not os.path.isdir(folder)]


def _user_folders() -> Iterator[str]:
    return map(os.path.expanduser, filter(None, os.environ.get(TREES_VARIABLE, "").split(os.pathsep)))


def _data() -> Traversable:
    return resources.files("inquitree_gym").joinpath("trees", "data")
