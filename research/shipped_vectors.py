"""Write the vectors that the package ships, and its record of valid trees: ``python -m research.shipped_vectors``.

Texts that the files hold already keep their vectors, texts that nothing needs any more are dropped, and the others are
embedded, so a changed template costs the changed texts only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np

from inquitree_gym.cli.output import out
from inquitree_gym.embeddings import DEFAULT_EMBEDDER, load_embedder
from inquitree_gym.embeddings.protocol import Embedder
from inquitree_gym.embeddings.vectors import KEY, PARTS, shipped_file, shipped_rows, text_key
from inquitree_gym.inquiry.env import InquiryEnv
from inquitree_gym.inquiry.menu import DECISIONS, OPTIONS
from inquitree_gym.inquiry.observations import observation_keys
from inquitree_gym.sheets import LETTERS
from inquitree_gym.trees import builtin_ids, load_tree
from inquitree_gym.trees.catalogue import builtin_file
from inquitree_gym.trees.load import CHECKED, parse_tree

COMMAND = "python -m research.shipped_vectors"
BATCH = 512
"""Texts between two writes of a file. All of them take some minutes."""


def needed_texts() -> dict[str, set[str]]:
    """Return the texts that the menu view and the matcher of the shipped trees need under the default rules, by part.

    Openings name turn limit and fake level. There are those of the default limit, of none, and of 3n + 3 turns, at
    every level.
    """
    trees = [load_tree(name) for name in builtin_ids()]
    said = {*DECISIONS, *LETTERS[:OPTIONS]}  # arrays read every action of the menu at the topic, options too
    return {
        "trees": {text for tree in trees for text in tree.texts().values()} | said,
        "observations": {text for name in builtin_ids() for text in _observations(name)},
    }


def _observations(name: str) -> Iterator[str]:
    env = InquiryEnv(name)
    (tree,) = env.tasks
    rules = env.rules.override({"exam": "items"})
    observations = env.runtimes.get(tree, rules).observations
    opening, *others = observation_keys(tree, rules)
    yield from map(observations.render_key, others)
    for limit, level in product((rules.max_turns, None, 3 * len(tree.subtopics) + 3), range(11)):
        other = env.runtimes.get(tree, rules.override({"max_turns": limit, "fake_level": level}))
        yield other.observations.render_key(opening)


def missing_texts(digest: str) -> dict[str, list[str]]:
    """Return the needed texts that the files for the model of that digest lack, by part."""
    return {
        part: sorted(text for text in texts if text_key(text) not in shipped_rows(part, digest))
        for part, texts in needed_texts().items()
    }


def write(part: str, embedder: Embedder) -> str:
    """Write the file of a part for an embedder, and return a line about it. An interrupted run keeps what it wrote."""
    needed, new = set(map(text_key, needed_texts()[part])), missing_texts(embedder.digest)[part]
    rows = {key: row for key, row in shipped_rows(part, embedder.digest).items() if key in needed}
    file = shipped_file(part, embedder.digest)
    for start in range(0, max(len(new), 1), BATCH):
        texts = new[start : start + BATCH]
        fresh = embedder.embed(texts).astype(PARTS[part])
        rows |= zip(map(text_key, texts), fresh, strict=True)
        keys = np.array(sorted(rows), KEY)
        np.savez(file, keys=keys, rows=np.stack([rows[key] for key in keys.tolist()]))
    return f"{file.name}: {len(rows):,} texts, {len(new):,} new, {file.stat().st_size / 1e6:.1f} MB"


def record_trees() -> str:
    """Record the SHA-256 of the file of each shipped tree, once all are valid, and return a line about it."""
    files = {name: builtin_file(name).read_bytes() for name in builtin_ids()}
    for name, document in files.items():
        parse_tree(document, name)
    record = Path(str(resources.files("inquitree_gym.trees").joinpath(CHECKED)))
    digests = {name: hashlib.sha256(document).hexdigest() for name, document in files.items()}
    record.write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
    return f"{record.name}: {len(digests)} trees"


if __name__ == "__main__":
    out.print(record_trees())
    for part in PARTS:
        out.print(write(part, load_embedder(DEFAULT_EMBEDDER)))
