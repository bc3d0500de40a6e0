"""Relations to text: questions with their hints, studies with their results, and what may be concluded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inquitree_gym.trees.generator.methods import METHODS, Method
from inquitree_gym.trees.generator.questions import OPENERS, QUESTIONS, STATEMENTS, SUBJECTS, TOPIC, Question
from inquitree_gym.trees.generator.rng import Lots
from inquitree_gym.trees.generator.studies import Readings, Words, direction, listed, number_of
from inquitree_gym.trees.generator.world import Mechanism, Relation, World


class Asked(NamedTuple):
    """A text that can be proposed, and its hints."""

    text: str
    hints: tuple[str, str, str, str]


class Studied(NamedTuple):
    """A study with its results: the true one, then the fakes."""

    asked: Asked
    results: tuple[str, ...]


class Account:
    """One relation in words."""

    def __init__(self, relation: Relation, world: World, way: Question, words: Lots, numbers: Lots) -> None:
        """Speak of ``relation``, asking in this ``way``; ``numbers`` are for what studies read."""
        self.relation = relation
        self._world = world
        self._way = way
        self._lots = words
        self._numbers = numbers
        self._names = _names(relation)

    def question(self) -> Asked:
        """Return what the subtopic asks."""
        text = _sentence(self._way.text, self._names)
        hints = (self._lots.pick(OPENERS), SUBJECTS[self.relation.kind], self._way.near)
        return _asked("Ask", text, tuple(_sentence(hint, self._names) for hint in hints))

    def studies(self, count: int) -> Iterator[Studied]:
        """Yield so many studies, each by a method of its own."""
        for method in self._lots.shuffled(METHODS[self.relation.kind])[:count]:
            yield self._study(method)

    def claim(self, mechanism: Mechanism) -> str:
        """Return what may be concluded where ``mechanism`` holds, without a full stop."""
        names, forms = self._names, STATEMENTS[self.relation.kind]
        form = forms.get(mechanism.outcome)
        if form is None:
            form = forms[direction(mechanism)]
            names = names | {"cause": self.relation.causes[number_of(mechanism)].short}
        return _sentence(form, names)

    def _study(self, method: Method) -> Studied:
        sample = self._lots.between(20, 90)
        names = self._names | {
            "scene": self._world.place,
            "tool": self._lots.pick(self._world.field.tools),
            "n": str(sample),
            "k": str(self._lots.between(4, 9)),
            "d": str(self._lots.between(10, 40)),
        }
        hints = tuple(_sentence(hint, names) for hint in (method.vague, method.apt, method.near))
        readings = Readings(self.relation, self._numbers)
        return Studied(
            _asked("Run the study", _sentence(method.text, names), hints),
            tuple(_sentence(method.result, names | readings.words(each, sample)) for each in self.relation.mechanisms),
        )


def topic(world: World) -> str:
    """Return the open question over a whole tree."""
    return TOPIC.format(subject=world.field.subject, scene=world.place)


def accounts(world: World, words: Lots, numbers: Lots) -> list[Account]:
    """Return every relation in words; those of one kind take turns at the ways to ask.

    A relation that is near to the one before it asks in the same way.
    """
    turns = {kind: words.shuffled(ways) for kind, ways in QUESTIONS.items()}
    found: list[Account] = []
    for relation in world.relations:
        ways = turns[relation.kind]
        if not relation.is_near:
            ways.append(ways.pop(0))
        found.append(Account(relation, world, ways[-1], words, numbers))
    return found


def _names(relation: Relation) -> Words:
    """Return the names of what a relation is about, as sentences call them."""
    first, last, outcome = relation.causes[0], relation.causes[-1], relation.outcome
    brief = _brief(relation)
    words = {
        "x": first.full if first.is_factor else first.short, "xs": first.short, "xn": brief[0], "xnoun": first.noun,
        "ms": last.short, "mn": brief[-1], "mnoun": last.noun, "u": first.unit, "top": str(first.base),
        "y": outcome.full, "ys": outcome.short, "noun": outcome.noun, "unit": outcome.unit,
        "thing": outcome.thing, "units": outcome.units,
    }  # fmt: skip
    if len(relation.causes) > 1:
        words["lists"] = listed([cause.short for cause in relation.causes])
        words["listn"] = listed(brief)
    return words | {name.capitalize(): _capital(word) for name, word in words.items()}


def _brief(relation: Relation) -> list[str]:
    """Return the causes as a protocol calls them: without their things, unless that would mix them up."""
    nouns = [cause.noun for cause in (*relation.causes, relation.outcome)]
    clear = len(set(nouns)) == len(nouns)
    return [f"the {cause.noun}" if clear and not cause.is_factor else cause.short for cause in relation.causes]


def _asked(command: str, text: str, hints: tuple[str, ...]) -> Asked:
    """Return a text with its ladder: three hints that are given, and one that names it outright."""
    vague, apt, near = hints
    return Asked(text, (vague, apt, near, f"{command}: {text[0].lower()}{text[1:]}"))


def _sentence(form: str, names: Words) -> str:
    return _capital(form.format_map(names))


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
