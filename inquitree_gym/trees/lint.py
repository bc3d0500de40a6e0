"""Linter for research trees: the rules of docs/trees-format.md from T201 on.

Every check yields `Fault`s that name their rule and node. Checks of meaning need an ``embed`` function. Without one,
only those of structure and surface run. The text of a result or conclusion item must not betray which pole is the usual
one, every axis has to be readable in several ways, and the choice of studies has to matter.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.errors import Fault, plural
from inquitree_gym.trees.courses import courses
from inquitree_gym.trees.disclosure_lint import disclosure_faults
from inquitree_gym.trees.document import Study
from inquitree_gym.trees.fields import GENERATED
from inquitree_gym.trees.meaning import embedded_once, ladder_faults, matching_faults, targets
from inquitree_gym.trees.meaning import words_of as words
from inquitree_gym.trees.rules import (
    AXES,
    MAX_COURSE_SHARE,
    MAX_EXAMINED,
    MAX_LEAK,
    MAX_LENGTH_SPREAD,
    MAX_OTHERWISE_SETTLED,
    MAX_PAIR_SHARE,
    MIN_ABSTRACT_AXES,
    MIN_CONTROLS,
    MIN_FIRST_HINT_WORDS,
    MIN_READERS,
    MIN_WORDINGS,
    RULES,
    SMALL,
    SMALL_AXES,
    SMALL_CONTROLS,
    SMALL_PAIRS,
    TURNS_BOUND,
    fault,
)
from inquitree_gym.trees.schema import Embed, Tree

_TODO = re.compile(r"\bTODO\b")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
"""A figure in a text."""
_BETRAYING = re.compile(r"\b(but|yet|still|only|surprisingly)\b", re.IGNORECASE)

_TARGET_RULES = frozenset({"T302", "T305", "T501", "T502", "T505"})
"""Rules of hints and paraphrases."""

Reader = tuple[str, Study]
"""A subtopic and a study of it."""


def lint_tree(tree: Tree, embed: Embed | None = None, *, only: Collection[str] = ()) -> list[Fault]:
    """Return all faults, of meaning only with ``embed``. An empty list for a clean tree.

    The wording of a tree with TODO texts is not checked. ``only`` names the rules to check by their codes; empty, all.
    """
    found = _faults(tree, embed, frozenset(only or RULES))
    return [fault for fault in found if not only or fault.code in only]


def _faults(tree: Tree, embed: Embed | None, wanted: frozenset[str]) -> list[Fault]:
    """Return the faults of the wanted rules, and others whose check costs little."""
    faults = [*_redundant_edges(tree), *_support_faults(tree)]
    faults += [*_size_faults(tree), *_reading_faults(tree), *_pair_faults(tree), *_control_faults(tree)]
    faults += _course_faults(tree) if "T909" in wanted else ()
    faults += [*_exam_faults(tree), *_pole_faults(tree)]
    if unfinished := list(todo_faults(tree)):
        return faults + unfinished
    known = embed and embedded_once(tree, embed)
    faults += _target_faults(tree, known) if wanted & _TARGET_RULES else ()
    faults += [*_text_faults(tree), *_wording_faults(tree)]
    if tree.disclosure is not None:
        faults += disclosure_faults(tree.disclosure, embed)
    if known is not None:
        faults += [*matching_faults(tree, known), *_leaks(tree, known)]
    return faults


def readers(tree: Tree) -> dict[str, list[Reader]]:
    """Return the subtopics and studies that read each axis."""
    found: dict[str, list[Reader]] = {axis.id: [] for axis in tree.axes}
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            for axis in study.result.axes:
                found[axis].append((subtopic.id, study))
    return found


def axes_wanted(subtopics: int) -> tuple[int, int]:
    """Return the smallest and largest number of axes of a tree from a full text, by its number of subtopics."""
    low, high = AXES
    if subtopics <= TURNS_BOUND:
        low = max(low, -(-(2 * subtopics + 1) // 3))
    return low, SMALL_AXES if subtopics <= SMALL else high


def _size_faults(tree: Tree) -> Iterator[Fault]:
    count, n = len(tree.axes), len(tree.subtopics)
    low, high = axes_wanted(n)
    low = min(low, MIN_ABSTRACT_AXES) if tree.provenance.tier == "C" else low
    if not low <= count <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        message = f"{plural(count, 'axis')}, needs {wanted} with {plural(n, 'subtopic')}; join, part or drop some"
        yield fault("T901", "", "axes", message, count, low if count < low else high)


def _reading_faults(tree: Tree) -> Iterator[Fault]:
    """Yield the axes that too few studies read, or that too few read by evidence."""
    lonely = []
    for axis, found in readers(tree).items():
        path, names = tree.paths[axis], ", ".join(study.id for _, study in found) or "none"
        if len(found) < MIN_READERS:
            message = (
                f"is read by {plural(len(found), 'study')} ({names}), needs {MIN_READERS}; let another one measure it"
            )
            yield fault("T902", axis, path, message, len(found), MIN_READERS)
        if len({subtopic for subtopic, _ in found}) == 1:
            lonely.append(axis)
        inferred = [study for _, study in found if study.result.support == "inferred"]
        if len(inferred) > 1:
            message = f"{', '.join(study.id for study in inferred)} are inferred, at most one reader may be"
            yield fault("T904", axis, path, f"{message}; find figures for the others", len(inferred), 1)
    for axis in lonely[1:]:
        message = f"is read in one subtopic alone, as {lonely[0]} is; one axis of a tree may be, by two methods"
        yield fault("T903", axis, tree.paths[axis], message, len(lonely), 1)
    for study in tree.studies:
        if study.result.support == "inferred" and any(map(NUMBER.search, _result_texts(study))):
            message = "is inferred and states figures; leave them out, or name the sheet or computation behind them"
            yield fault("T905", study.id, f"{tree.paths[study.id]}.result.support", message)


def _pair_faults(tree: Tree) -> Iterator[Fault]:
    """Yield too many results that read two axes, and those that share no axis with the others."""
    pairs = {study.id: frozenset(study.result.axes) for study in tree.studies if len(study.result.axes) == 2}
    most = len(tree.studies) * MAX_PAIR_SHARE
    most = min(most, SMALL_PAIRS) if len(tree.subtopics) <= SMALL else most
    if len(pairs) > most:
        message = f"{len(pairs)} of {len(tree.studies)} results ({', '.join(pairs)}) read two axes, at most {int(most)}"
        yield fault("T906", "", "subtopics", f"{message}; part some of them", len(pairs), int(most))
    together = frozenset[str]().union(*pairs.values())
    if len(together) != 3 and pairs and not frozenset.intersection(*pairs.values()):
        told = ", ".join(f"{name} {'+'.join(sorted(pair))}" for name, pair in pairs.items())
        message = (
            f"its results of two axes ({told}) share no axis and form no triangle; few studies would read all axes"
        )
        yield fault("T907", "", "subtopics", message)


def _control_faults(tree: Tree) -> Iterator[Fault]:
    controls = [study.id for study in tree.studies if not study.result.axes]
    least = SMALL_CONTROLS if len(tree.subtopics) <= SMALL else MIN_CONTROLS
    if len(controls) < least:
        message = f"{plural(len(controls), 'control')} ({', '.join(controls) or 'none'}), needs {least}; add plausible "
        message = f"{message}studies that read no axis"
        yield fault("T908", "", "subtopics", message, len(controls), least)


def _course_faults(tree: Tree) -> Iterator[Fault]:
    if len(tree.subtopics) > TURNS_BOUND:
        return
    steps, best, chance = courses(tree)
    if best and (share := chance / best) > MAX_COURSE_SHARE:
        message = f"at 2n turns {plural(steps, 'random study')} read {chance:.2f} axes on average, the best ones {best}"
        message = f"{message}: {share:.3f} > {MAX_COURSE_SHARE}; add controls or axes, or move studies"
        yield fault("T909", "", "subtopics", message, share, MAX_COURSE_SHARE)


def char_tfidf(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return TF-IDF vectors of character 3- to 5-grams within words, fitted on the given texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5))
    return np.asarray(vectorizer.fit_transform(texts).toarray(), np.float32)


def _redundant_edges(tree: Tree) -> Iterator[Fault]:
    for subtopic, name in implied_prerequisites(tree):
        path = f"{tree.paths[subtopic]}.prerequisites[{tree.graph[subtopic].index(name)}]"
        message = f"prerequisite '{name}' is already implied by another one; remove it"
        yield fault("T201", subtopic, path, message)


def implied_prerequisites(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield the subtopics with the prerequisites that another one implies already."""
    parents = {subtopic: set(prerequisites) for subtopic, prerequisites in tree.graph.items()}
    ancestors: dict[str, set[str]] = {}
    for node in TopologicalSorter(parents).static_order():
        ancestors[node] = parents[node].union(*(ancestors[name] for name in parents[node]))
    for subtopic, prerequisites in tree.graph.items():
        implied = set().union(*(ancestors[name] for name in prerequisites))
        yield from ((subtopic, name) for name in sorted(parents[subtopic] & implied))


def _support_faults(tree: Tree) -> Iterator[Fault]:
    """Yield the nodes without support, or with too weak a one for what they decide. Controls decide nothing."""
    supports = {support.node: (i, support) for i, support in enumerate(tree.provenance.support)}
    invented = all(source.address.startswith(GENERATED) for source in tree.provenance.sources)
    items = [item.id for item in tree.conclusions]
    scored = {*items, *(study.id for study in tree.studies if study.result.axes)}
    for node in (*(node.id for family in tree.families for node in family), *items):
        if node not in supports:
            message = "has no entry in provenance.support; add one with its sources and facts"
            yield fault("T205", node, "provenance.support", message)
            continue
        i, support = supports[node]
        if not support.sources and support.strength != "unconfirmed":
            message = "its entry in provenance.support names no source; add one, or call it unconfirmed"
            yield fault("T206", node, f"provenance.support[{i}].sources", message)
        if support.strength == "unconfirmed" and node in scored and not invented:
            message = "is scored but unconfirmed; say what a source supports, or let the study read no axis"
            yield fault("T207", node, f"provenance.support[{i}].strength", message)
    if tree.provenance.tier is None:
        yield fault("T208", "provenance", "provenance.tier", "has no evidence tier; state A, B or C")


def todo_faults(tree: Tree) -> Iterator[Fault]:
    """Yield the texts that are still to be written."""
    for path, text in _texts(tree.model_dump(mode="json")):
        if _TODO.search(text):
            within = [name for name, place in tree.paths.items() if f"{path}.".startswith(f"{place}.")]
            node = max(within, key=lambda name: len(tree.paths[name]), default="")
            yield fault("T301", node, path, f"says '{text:.60}'; write the text")


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a document with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{path}[{index}]")


def _target_faults(tree: Tree, embed: Embed | None = None) -> Iterator[Fault]:
    """Yield the faults of hints and paraphrases, by characters alone without ``embed``."""
    nodes = targets(tree)
    for node in nodes:
        if (words := len(node.hints[0].split())) < MIN_FIRST_HINT_WORDS:
            message = f"hint 1 has {words} words, needs at least {MIN_FIRST_HINT_WORDS} to tell where to look"
            yield fault("T302", node.id, f"{tree.paths[node.id]}.hints[0]", message, words, MIN_FIRST_HINT_WORDS)
    if lacking := sum(not node.paraphrases for node in nodes):
        message = f"{lacking} of {len(nodes)} subtopics and studies have no paraphrases; 5 to 8 each help the matcher"
        yield fault("T305", "", "subtopics", message, lacking, 0)
    spaces = {"T501": char_tfidf, "T502": embed}
    yield from ladder_faults(tree, {code: space for code, space in spaces.items() if space})


def _exam_faults(tree: Tree) -> Iterator[Fault]:
    """Yield axes that too few or too many items examine, and evidence that settles no item."""
    axes_of = {study.id: set(study.result.axes) for study in tree.studies}
    examined = Counter(axis for item in tree.conclusions for axis in item.axes)
    low, high = MAX_EXAMINED
    for axis in tree.axis_index:
        if not low <= (count := examined[axis]) <= high:
            message = f"is examined by {plural(count, 'conclusion item')}, needs {low} to {high}"
            yield fault("T917", axis, tree.paths[axis], message, count, low if count < low else high)
    for item in tree.conclusions:
        path = f"{tree.paths[item.id]}.needs"
        for axis in item.axes:
            if not any(all(axis in axes_of[name] for name in group) for group in item.needs):
                message = f"a choice of one study per group leaves {axis} open; add a group of studies that all read it"
                yield fault("T918", item.id, path, message)
        for i, group in enumerate(item.needs):
            for k, name in enumerate(group):
                if not axes_of[name] & set(item.axes):
                    message = f"needs {name}, which reads none of its axes ({', '.join(item.axes)}); leave it out"
                    yield fault("T919", item.id, f"{path}[{i}][{k}]", message)


def _pole_faults(tree: Tree) -> Iterator[Fault]:
    if len(tree.axes) > 1 and all(axis.actual == 0 for axis in tree.axes):
        message = "the first pole is the actual one on every axis; draw the order of the poles"
        yield fault("T915", "", "axes", message)
    otherwise = [axis.id for axis in tree.axes if axis.settled_by != "data"]
    if len(otherwise) > (most := int(len(tree.axes) * MAX_OTHERWISE_SETTLED)):
        message = f"{', '.join(otherwise)} can be settled without data, at most {most} of {len(tree.axes)} axes may be"
        yield fault("T916", "", "axes", message, len(otherwise), most)
    for axis in tree.axes:
        if len(set(map(str.casefold, axis.poles))) < len(axis.poles):
            yield fault("T913", axis.id, f"{tree.paths[axis.id]}.poles", "two of its poles are the same text")


def _result_texts(study: Study) -> list[str]:
    return [text for wordings in study.result.texts.values() for text in wordings]


def _parallel_texts(tree: Tree) -> Iterator[tuple[str, str, Mapping[str, Sequence[str]]]]:
    """Yield the id of each study and item, the place of its texts, and these by key."""
    for study in tree.studies:
        yield study.id, f"{tree.paths[study.id]}.result.texts", study.result.texts
    for item in tree.conclusions:
        yield item.id, f"{tree.paths[item.id]}.texts", {key: (text,) for key, text in item.texts.items()}


def _text_faults(tree: Tree) -> Iterator[Fault]:
    """Yield texts of one result or item that differ in form, so that a pole could be told without its meaning."""
    for node, path, texts in _parallel_texts(tree):
        named = {f"{key}[{i}]" if key else f"[{i}]": text for key, each in texts.items() for i, text in enumerate(each)}
        lengths = {place: len(text) for place, text in named.items()}
        short, long = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
        if (spread := lengths[long] / lengths[short]) > 1 + MAX_LENGTH_SPREAD:
            message = f"text {long} is {spread:.2f} times as long as text {short} ({lengths[long]} to {lengths[short]}"
            message = f"{message} characters), at most {1 + MAX_LENGTH_SPREAD}"
            yield fault("T911", node, path, message, spread, 1 + MAX_LENGTH_SPREAD)
        figures = {place: len(NUMBER.findall(text)) for place, text in named.items()}
        few, many = min(figures, key=figures.__getitem__), max(figures, key=figures.__getitem__)
        if figures[few] < figures[many]:
            message = (
                f"text {many} has {plural(figures[many], 'figure')}, text {few} has {figures[few]}; give all as many"
            )
            yield fault("T912", node, path, message, figures[many] - figures[few], 0)
        for (one, first), (other, second) in combinations(named.items(), 2):
            if words(first) == words(second):
                yield fault("T913", node, path, f"texts {one} and {other} say the same in the same words; reword one")
        for place, text in named.items():
            if found := _BETRAYING.search(text):
                message = f"text {place} says '{found.group()}', which may betray the pole that is expected"
                yield fault("T914", node, path, f"{message}; leave it out")


def _wording_faults(tree: Tree) -> Iterator[Fault]:
    for study in tree.studies:
        path = f"{tree.paths[study.id]}.result.texts"
        if (count := len(next(iter(study.result.texts.values())))) < MIN_WORDINGS:
            message = f"its result has {plural(count, 'wording')} for each key, needs {MIN_WORDINGS}"
            yield fault("T910", study.id, path, f"{message}; a repetition shows another one", count, MIN_WORDINGS)
        if same := [f"'{key}'" for key, texts in study.result.texts.items() if _repeats_figures(texts)]:
            message = f"its wordings for {', '.join(same)} state the same figures; a replication of a measurement finds"
            yield fault("T920", study.id, path, f"{message} others, within its spread")


def _repeats_figures(wordings: Sequence[str]) -> bool:
    figures = [tuple(sorted(found)) for text in wordings if (found := NUMBER.findall(text))]
    return len(set(figures)) < len(figures)


def _leaks(tree: Tree, embed: Embed) -> Iterator[Fault]:
    """Yield the texts of every world that are nearer to the results of one pole than to those of the others."""
    for subtopic in tree.subtopics:
        for study in subtopic.studies:
            shown = _shown_before(tree, subtopic.id, study)
            vectors = embed(list(shown.values()))
            for axis in study.result.axes:
                by_pole = _texts_by_pole(study, axis)
                means = np.stack([vectors @ embed(texts).T.mean(axis=1) for texts in by_pole.values()], axis=1)
                for (path, text), row in zip(shown.items(), means, strict=True):
                    second, first = np.sort(row)[-2:].tolist()
                    if first - second > MAX_LEAK:
                        pole = list(by_pole)[int(row.argmax())]
                        message = f"'{text:.60}' is nearer to results of pole {pole} of {axis} than to others, by"
                        message = f"{message} {first - second:.3f} > {MAX_LEAK}; make it neutral"
                        yield fault("T921", study.id, path, message, first - second, MAX_LEAK)


def _shown_before(tree: Tree, subtopic: str, study: Study) -> dict[str, str]:
    """Return the texts that lead to a result, by their places."""
    found = {"topic": tree.topic}
    family = next(each for each in tree.subtopics if each.id == subtopic)
    for node in (family, study):
        found[f"{tree.paths[node.id]}.text"] = node.text
        found |= {f"{tree.paths[node.id]}.hints[{i}]": hint for i, hint in enumerate(node.hints)}
    return found


def _texts_by_pole(study: Study, axis: str) -> dict[str, list[str]]:
    place = study.result.axes.index(axis)
    found: dict[str, list[str]] = defaultdict(list)
    for key, wordings in study.result.texts.items():
        found[key[place]].extend(wordings)
    return found
