"""Checks of a research tree by the vectors of its texts: hints, siblings and paraphrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import Fault
from inquitree_gym.trees.document import Candidate, Study, Subtopic
from inquitree_gym.trees.fields import HINT_LEVELS
from inquitree_gym.trees.rules import MAX_FALL, MAX_SIBLING_SIMILARITY, MIN_LAST_HINT_SIMILARITY, fault
from inquitree_gym.trees.schema import Embed, Tree, centroids

Target = Subtopic | Study


def matching_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    """Yield the last hints that lead nowhere, and the texts by which siblings can't be told apart."""
    yield from _last_hint_faults(tree, embed)
    yield from _sibling_faults(tree, embed)


def targets(tree: Tree) -> list[Target]:
    """Return every target of hints: each subtopic, followed by its studies."""
    found: list[Target] = []
    for subtopic in tree.subtopics:
        found += [subtopic, *subtopic.studies]
    return found


def ladder_similarities(tree: Tree, embed: Embed, code: str) -> NDArray[np.float32]:
    """Return the similarity of every hint to its target, shape ``(targets, HINT_LEVELS)``.

    Under T501 a target is its text alone, under T502 the centroid of its wordings, as for the matcher.
    """
    nodes = targets(tree)
    vectors = embed([text for node in nodes for text in (*node.hints, node.text)])
    rungs = vectors.reshape(len(nodes), HINT_LEVELS + 1, -1)
    ends = rungs[:, -1] if code == "T501" else centroids(nodes, embed)
    return np.asarray(np.einsum("tld,td->tl", rungs[:, :-1], ends), np.float32)


def ladder_faults(tree: Tree, spaces: Mapping[str, Embed]) -> Iterator[Fault]:
    """Yield the hints that fall behind an earlier one. ``spaces`` has the vectors of T501 and, where known, of T502.

    The matcher reads by the embedder, so a clear fall there is an error whatever the characters say. A fall in
    characters is none where the embedder rises: other words are not worse words. So no two errors contradict.
    """
    climbs = {code: ladder_similarities(tree, embed, code).tolist() for code, embed in spaces.items()}
    quoted = quoting(tree)
    for i, node in enumerate(targets(tree)):
        ladders = {code: climb[i] for code, climb in climbs.items()}
        for level in range(1, HINT_LEVELS - (node.id in quoted)):
            path = f"{tree.paths[node.id]}.hints[{level}]"
            falls = list(_falls(ladders, level))
            for code, before in falls:
                bound = ladders[code][before] - MAX_FALL[code]
                message = _fall_message(node, code, ladders[code], before, level)
                yield fault(code, node.id, path, message, ladders[code][level], bound)
            if not falls and all(ladder[level] <= ladder[level - 1] for ladder in ladders.values()):
                message = f"hint {level + 1} is no closer to its target than hint {level}; say more of the target in it"
                yield fault("T505", node.id, path, message)


def quoting(tree: Tree) -> set[str]:
    """Return the ids of the nodes whose last hint holds their text word for word, and no other text of a sibling."""
    found = set()
    for family in tree.families:
        texts = {node.id: _spelt(node.text) for node in family}
        for node in family:
            named = [text for text in texts.values() if text in _spelt(node.hints[-1])]
            if texts[node.id] in named and all(text in texts[node.id] for text in named):
                found.add(node.id)
    return found


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters."""
    return re.findall(r"\w+", text.lower())


def _spelt(text: str) -> str:
    return f" {' '.join(words_of(text))} "


def _falls(ladders: Mapping[str, Sequence[float]], level: int) -> Iterator[tuple[str, int]]:
    """Yield the rules that a hint breaks, with the place of the best hint before it."""
    for code, ladder in ladders.items():
        before = int(np.argmax(ladder[:level]))
        rises = any(other[level] - other[before] > MAX_FALL[name] for name, other in ladders.items())
        if ladder[before] - ladder[level] > MAX_FALL[code] and (code == "T502" or not rises):
            yield code, before


def _fall_message(node: Target, code: str, ladder: Sequence[float], before: int, level: int) -> str:
    lack = ladder[before] - MAX_FALL[code] - ladder[level] + 0.0005  # rounded up
    space = "in characters (TF-IDF)" if code == "T501" else "under the embedder"
    message = (
        f"hint {level + 1} must be at least {lack:.3f} closer to its target {space}, got {ladder[level]:.3f} after"
    )
    message = f"{message} {ladder[before]:.3f} of hint {before + 1} (hints 1 to {HINT_LEVELS}: "
    message = f"{message}{', '.join(f'{each:.3f}' for each in ladder)}); "
    if level == HINT_LEVELS - 1:
        return f"{message}end hint {level + 1} with the text of its target, word for word"
    spare = set(words_of(node.hints[before])) & set(words_of(node.text)) - set(words_of(node.hints[level]))
    such = ", ".join(sorted(spare, key=lambda word: (-len(word), word))[:3])
    return f"{message}move words of the target from hint {before + 1} to hint {level + 1}{such and ', such as ' + such}"


def lookup(vectors: Mapping[str, NDArray[np.float32]]) -> Embed:
    """Return the function that looks up the vectors of texts."""
    return lambda texts: np.stack([vectors[text] for text in texts])


def embedded_once(tree: Tree, embed: Embed) -> Embed:
    """Return a function that gives the texts of a tree their vectors, each embedded once."""
    texts = list(dict.fromkeys(tree.texts().values()))
    return lookup(dict(zip(texts, embed(texts), strict=True)))


def _last_hint_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    bound, quoted = MIN_LAST_HINT_SIMILARITY, quoting(tree)
    for family in tree.families:
        hints = embed([node.hints[-1] for node in family])
        similarities = hints @ centroids(family, embed).T
        to_text = np.einsum("nd,nd->n", hints, embed([node.text for node in family])).tolist()
        for i, node in enumerate(family):
            if node.id in quoted:
                continue
            path = f"{tree.paths[node.id]}.hints[{HINT_LEVELS - 1}]"
            own, best = float(similarities[i, i]), float(similarities[i].max())
            if (nearest := int(similarities[i].argmax())) != i:
                message = f"its last hint is nearest to {family[nearest].id} ({best:.3f} > {own:.3f})"
                yield fault("T503", node.id, path, f"{message}; name the target outright", own, best)
            elif to_text[i] < bound:
                message = f"its last hint ({to_text[i]:.3f} < {bound}) does not name the target outright"
                yield fault("T504", node.id, path, message, to_text[i], bound)


def _sibling_faults(tree: Tree, embed: Embed) -> Iterator[Fault]:
    bound = MAX_SIBLING_SIMILARITY
    for family in tree.families:
        vectors = embed([node.text for node in family])
        for (i, one), (j, other) in combinations(enumerate(family), 2):
            if (similarity := float(vectors[i] @ vectors[j])) > bound:
                message = f"is too similar to its sibling {other.id}: {similarity:.3f} > {bound}"
                yield fault("T601", one.id, f"{tree.paths[one.id]}.text", message, similarity, bound)
        yield from _strayed_wordings(tree, family, embed)


def _strayed_wordings(tree: Tree, family: Sequence[Candidate], embed: Embed) -> Iterator[Fault]:
    """Yield the texts and paraphrases that the matcher would read as a sibling of their node."""
    nearest = centroids(family, embed)
    for i, node in enumerate(family):
        for k, row in enumerate(embed([node.text, *node.paraphrases]) @ nearest.T):
            own, best, other = float(row[i]), float(row.max()), family[int(row.argmax())]
            if other is node:
                continue
            code, name = ("T603", f"paraphrase {k}") if k else ("T602", "its text")
            path = f"{tree.paths[node.id]}." + (f"paraphrases[{k - 1}]" if k else "text")
            message = f"{name} is nearer to {other.id} ({best:.3f}) than to its own node ({own:.3f})"
            yield fault(code, node.id, path, f"{message}; reword {'it' if k else 'the paraphrases'}", own, best)
