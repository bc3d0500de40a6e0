"""Texts of synthetic trees: questions, protocols, measured results and conclusions of one relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import sqrt
from typing import Any

from inquitree_gym.fiction.documents import (
    CONTROL,
    ELSEWHERE,
    FIRST_HINTS,
    KINDS,
    QuestionTemplate,
    RandomStream,
    StudyTemplate,
    listed,
)
from inquitree_gym.inquiry.generator.causal_model import DOSES, CausalModel, Mechanism, Relation

Words = dict[str, str]
"""Values of the placeholders in a template."""

NULL_NOISE = 0.1
"""Spread of an unaffected outcome, as a share of a large effect times the noise."""
REDRAWS = 20
"""Most draws of figures for a third wording that differs from the first. Without noise it may not."""
_ORDINALS = ("first", "second", "third")


class RelationText:
    """Writes the texts of one relation."""

    def __init__(
        self,
        relation: Relation,
        model: CausalModel,
        question: QuestionTemplate,
        wording: RandomStream,
        numbers: RandomStream,
    ) -> None:
        self.relation = relation
        self._model = model
        self._question = question
        self._wording = wording
        self._numbers = numbers
        self._templates = KINDS[relation.kind]
        self._words = _relation_words(relation)

    def question(self) -> dict[str, Any]:
        """Return the text and hints of the subtopic."""
        hints = (self._wording.choice(FIRST_HINTS), self._templates.second_hint, self._question.third_hint)
        return _with_hints("Ask", self._question.text, hints, self._words)

    def studies(self, count: int) -> Iterator[dict[str, Any]]:
        """Yield texts, hints and results of studies, each with a different method."""
        for template in self._wording.shuffled(self._templates.studies)[:count]:
            yield self._study(template)

    def control(self) -> dict[str, Any]:
        """Return a study of the measurement itself, which says nothing of any relation."""
        return self._study(CONTROL, held=True)

    def elsewhere(self, study: dict[str, Any]) -> dict[str, Any]:
        """Return one of the studies as another subtopic has it."""
        first, second, third, _ = study["hints"]
        text, third = (
            ELSEWHERE.format(units=self._words["units"], protocol=said[0].lower() + said[1:])
            for said in (study["text"], third)
        )
        return study | {"text": text, "hints": (first, second, third, f"Run the study: {text[0].lower()}{text[1:]}")}

    def conclusion(self, mechanism: Mechanism) -> str:
        """Return the conclusion that follows from a mechanism, without a full stop."""
        words, forms = self._words, self._templates.conclusions
        form = forms.get(mechanism.effect)
        if form is None:
            form = forms[mechanism.direction]
            words = words | {"cause": self.relation.causes[mechanism.number].short}
        return _sentence(form, words)

    def _study(self, template: StudyTemplate, *, held: bool = False) -> dict[str, Any]:
        """Return a study with its result by pole, or ``held`` with one that is the same under all poles."""
        sample = self._wording.between(20, 90)
        words = self._words | {
            "scene": self._model.place,
            "tool": self._wording.choice(self._model.science.tools),
            "n": str(sample),
            "k": str(self._wording.between(4, 9)),
            "d": str(self._wording.between(10, 40)),
        }
        measurements = Measurements(self.relation, self._numbers)
        poles = self.relation.mechanisms[: 1 if held else None]
        texts = {
            str(pole) if len(poles) > 1 else "": _wordings(
                template, words, partial(measurements.words, mechanism, sample)
            )
            for pole, mechanism in enumerate(poles)
        }
        return _with_hints("Run the study", template.text, template.hints, words) | {"texts": texts}


def _wordings(template: StudyTemplate, words: Words, measure: Callable[[], Words]) -> tuple[str, ...]:
    """Return a result in the two forms of a template, and in the first one with other figures, where they vary."""
    first, second, third = (
        _sentence(form, words | measure()) for form in (template.result, template.reworded, template.result)
    )
    for _ in range(REDRAWS):
        if third != first:
            break
        third = _sentence(template.result, words | measure())
    return first, second, third


class Measurements:
    """Simulates the measurements of one study: one resting value under every mechanism, and noise on every change."""

    def __init__(self, relation: Relation, stream: RandomStream) -> None:
        self._relation = relation
        self._stream = stream
        self._rest = relation.outcome.base * (1 + self._null_change())

    def words(self, mechanism: Mechanism, sample: int) -> Words:
        """Return the numbers and phrases of a result under a mechanism, for a given sample size."""
        common = {
            "c": self._value(0.0),
            "q": str(self._stream.between(sample * 7 // 10, sample * 19 // 20)),
            "e": f"{self._stream.between(11, 29) / 10}",
        }
        phrases = KINDS[self._relation.kind].phrases
        key = mechanism.effect if mechanism.effect in phrases else mechanism.direction
        return common | _MEASURE[self._relation.kind](self, mechanism) | phrases.get(key, {})

    def linear(self, mechanism: Mechanism) -> Words:
        """Measure the outcome at the highest dose."""
        change = self._measured(mechanism.response(1.0))
        return {"t": self._value(change), "p": _percent(change).lstrip("+-"), "r": self._correlation(change)}

    def threshold(self, mechanism: Mechanism) -> Words:
        """Measure the outcome at the highest dose, and find the threshold."""
        change = self._measured(mechanism.response(1.0))
        return {"t": self._value(change)} | _doses(self._relation, mechanism)

    def mediation(self, mechanism: Mechanism) -> Words:
        """Measure with the mediator free, with it clamped, and with the mediator alone."""
        free, clamped = mechanism.response(1.0, 1.0), mechanism.response(1.0, 0.0)
        total, direct, indirect = map(self._measured, (free, clamped, free - clamped))
        values = {"t": self._value(total), "b": self._value(direct), "h": self._value(indirect)}
        return values | {"r": self._correlation(total), "s": self._correlation(direct)}

    def moderation(self, mechanism: Mechanism) -> Words:
        """Measure the effect under a low and under a high moderator."""
        low, high = (self._measured(mechanism.response(1.0, level)) for level in (0.0, 1.0))
        return {"p1": _percent(low), "p2": _percent(high)}

    def attribution(self, mechanism: Mechanism) -> Words:
        """Measure the effect of each cause alone, and of all causes without it."""
        count = len(self._relation.causes)
        alone = [self._measured(mechanism.response(*(float(i == j) for i in range(count)))) for j in range(count)]
        return {
            "effects": listed([_percent(change) for change in alone]),
            "weights": listed([f"{change / self._relation.large:+.2f}" for change in alone]),
            "remains": listed([self._value(sum(alone) - change) for change in alone]),
            "t": self._value(sum(alone)),
            "who": _attributed(mechanism),
        }

    def _measured(self, change: float) -> float:
        """Return a change with proportional noise, which keeps its sign. A zero change gets additive noise."""
        return change * (1 + self._relation.noise * self._stream.bell()) if change else self._null_change()

    def _null_change(self) -> float:
        return self._relation.noise * NULL_NOISE * self._relation.large * self._stream.bell()

    def _value(self, change: float) -> str:
        return f"{self._rest * _ratio(change):.1f}"

    def _correlation(self, change: float) -> str:
        """Return the correlation if all other variation amounts to half a large effect."""
        return f"{change / sqrt(change**2 + (self._relation.large / 2) ** 2):+.2f}"


_MEASURE: dict[str, Callable[[Measurements, Mechanism], Words]] = {
    "linear": Measurements.linear,
    "threshold": Measurements.threshold,
    "mediation": Measurements.mediation,
    "moderation": Measurements.moderation,
    "attribution": Measurements.attribution,
}


def relation_texts(model: CausalModel, wording: RandomStream, numbers: RandomStream) -> list[RelationText]:
    """Return a text writer for each relation.

    Relations of one kind take turns at the question templates. A near relation reuses that of the previous one.
    """
    turns = {kind: wording.shuffled(templates.questions) for kind, templates in KINDS.items()}
    texts: list[RelationText] = []
    for relation in model.relations:
        templates = turns[relation.kind]
        if not relation.is_near:
            templates.append(templates.pop(0))
        texts.append(RelationText(relation, model, templates[-1], wording, numbers))
    return texts


def _relation_words(relation: Relation) -> Words:
    """Return the placeholders that name the causes and the outcome. See ``data/sentences.toml``."""
    first, last, outcome = relation.causes[0], relation.causes[-1], relation.outcome
    brief = _brief_causes(relation)
    words = {
        "x": first.full if first.is_factor else first.short, "xs": first.short, "xn": brief[0], "xnoun": first.noun,
        "ms": last.short, "mn": brief[-1], "mnoun": last.noun, "u": first.unit, "top": str(first.base),
        "y": outcome.full, "ys": outcome.short, "noun": outcome.noun, "unit": outcome.unit,
        "thing": outcome.thing, "units": outcome.units,
    }  # fmt: skip
    if len(relation.causes) > 1:
        words["lists"] = listed([cause.short for cause in relation.causes])
        words["listn"] = listed(brief)
    return words | {name.capitalize(): _capitalised(word) for name, word in words.items()}


def _brief_causes(relation: Relation) -> list[str]:
    """Return the causes without their things, unless two variables share a noun."""
    nouns = [cause.noun for cause in (*relation.causes, relation.outcome)]
    clear = len(set(nouns)) == len(nouns)
    return [f"the {cause.noun}" if clear and not cause.is_factor else cause.short for cause in relation.causes]


def _with_hints(command: str, form: str, hints: tuple[str, str, str], words: Words) -> dict[str, Any]:
    """Return a text with its hint ladder. The last hint quotes the text."""
    text = _sentence(form, words)
    ladder = [_sentence(hint, words) for hint in hints]
    return {"text": text, "hints": (*ladder, f"{command}: {text[0].lower()}{text[1:]}")}


def _doses(relation: Relation, mechanism: Mechanism) -> Words:
    """Return the first dose that moves the outcome (or else the highest one), and the dose below it."""
    moving = (dose for dose in range(1, DOSES + 1) if mechanism.response(dose / DOSES))
    high = next(moving, DOSES)
    top = relation.causes[0].base
    return {"lo": f"{top * (high - 1) / DOSES:g}", "hi": f"{top * high / DOSES:g}"}


def _attributed(mechanism: Mechanism) -> str:
    direction = mechanism.direction
    if direction == "null":
        return "none of them moved it"
    verb = "raised" if direction.startswith("up") else "lowered"
    if direction.endswith("all"):
        return f"every one of them {verb} it"
    return f"the {_ORDINALS[mechanism.number]} alone {verb} it"


def _ratio(change: float) -> float:
    """Return the factor of a relative change: +1 doubles, -1 halves, and nothing falls below 0."""
    return 1 + change if change >= 0 else 1 / (1 - change)


def _percent(change: float) -> str:
    return f"{round(100 * (_ratio(change) - 1)):+d}"


def _sentence(form: str, words: Words) -> str:
    return _capitalised(form.format_map(words))


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
