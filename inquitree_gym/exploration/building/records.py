"""Records of the databases and their pages, drawn by seed; labels and units differ from page to page."""

from __future__ import annotations

from collections.abc import Mapping

from inquitree_gym.exploration.building.schemas import databases
from inquitree_gym.exploration.library import NAME, Column, Database, Document, LibrarySpec, Record, Value, number_text
from inquitree_gym.fiction.documents import SCIENCES, SYLLABLES, RandomStream
from inquitree_gym.seeds import splitmix64

RECORDS = 0.7
"""Share of the documents of a library that are records."""
MISSING = 0.04
"""Share of the numbers that a database lacks."""
OTHER_UNIT = 0.25
"""Share of the numbers that a page gives in another unit than the database."""
DASH = "–"
"""Sign of a missing value on a page."""
_TOOLS = ("balance", "spectrometer", "camera", "thermometer", "counter", "recorder")


def stream(spec: LibrarySpec, part: int, purpose: str) -> RandomStream:
    """Return the draws for one part of a library. They depend neither on its world nor on other parts."""
    return RandomStream(splitmix64(spec.seed, spec.version, part), purpose)


class Names:
    """Invented names, none of them twice."""

    def __init__(self, draws: RandomStream) -> None:
        self._draws, self._used = draws, set[str]()

    def new(self) -> str:
        """Return the next name in small letters."""
        while True:
            name = "".join(self._draws.choice(choices) for choices in SYLLABLES)
            if name not in self._used:
                self._used.add(name)
                return name


def record_counts(size: int) -> dict[str, int]:
    """Return the number of records by database: a long tail that sums to the share of records."""
    schemas = databases()
    whole, weights = int(size * RECORDS), sum(schema.weight for schema in schemas.values())
    counts = {name: max(3, whole * schema.weight // weights) for name, schema in schemas.items()}
    last = next(reversed(counts))
    counts[last] += whole - sum(counts.values())
    return counts


def draw_records(spec: LibrarySpec, names: Names) -> dict[str, dict[str, Record]]:
    """Return the records by database and key."""
    drawn: dict[str, dict[str, Record]] = {}
    for part, (name, count) in enumerate(record_counts(spec.size).items()):
        schema, numbers = databases()[name], stream(spec, part, "numbers")
        keys = [schema.key.format(7 * place + 3 + numbers.below(7)) for place in range(count)]
        # Records are named most in an order of its own, so that neither keys nor the order of a LOOKUP tell which.
        order = stream(spec, part, "shape")
        targets = {column.name: order.shuffled(list(drawn[column.to])) for column in schema.links}
        drawn[name] = {key: _record(schema, names, numbers, targets) for key in keys}
    return drawn


def _record(schema: Database, names: Names, numbers: RandomStream, targets: Mapping[str, list[str]]) -> Record:
    record: dict[str, Value] = {NAME: _named(schema.name, names, numbers)}
    for column in schema.columns:
        record[column.name] = _value(column, numbers, targets)
    return record


def _named(form: str, names: Names, draws: RandomStream) -> str:
    """Return a name in the form of a database: ``{N}`` invented, ``{M}`` another, ``{S}`` that of a living thing."""
    name = names.new()
    other = names.new().capitalize() if "{M}" in form else ""
    kind = draws.choice((*SCIENCES["botany"].things, *SCIENCES["zoology"].things)).form if "{S}" in form else ""
    living = kind.format(name, N=name.capitalize())
    return form.format(N=name.capitalize(), n=name.capitalize(), M=other, S=living, T=draws.choice(_TOOLS))


def _value(column: Column, numbers: RandomStream, targets: Mapping[str, list[str]]) -> Value:
    """Return a value. Links fall off: the first of the targets are named most."""
    if column.kind == "link":
        keys = targets[column.name]
        return keys[int(len(keys) * numbers.uniform() * max(numbers.uniform(), numbers.uniform()))]
    if column.kind == "category":
        return numbers.choice(column.choices)
    step = numbers.between(column.low, column.high)
    if column.kind == "year":
        return step
    return None if numbers.chance(MISSING) else step / 10**column.decimals


def record_page(
    key: str, record: Record, schema: Database, labelled: Mapping[str, str], wording: RandomStream
) -> Document:
    """Return the document of a record: one page. ``labelled`` has the names of all records by key."""
    lines = [f"{record[NAME]} ({key})", f"{schema.title} · {schema.noun}", ""]
    for column in schema.columns:
        label, value = wording.choice(column.labels), record[column.name]
        lines.append(f"{label}: {_written(column, value, labelled, wording)}")
    return Document(key, f"{record[NAME]} · {schema.title}", ("\n".join(lines),))


def _written(column: Column, value: Value, labelled: Mapping[str, str], wording: RandomStream) -> str:
    if value is None:
        return DASH
    if column.kind == "link":
        return f"{labelled[str(value)]} ({value})"
    if column.kind != "number":
        return str(value)
    unit, factor = column.units[0]
    if len(column.units) > 1 and wording.chance(OTHER_UNIT):
        unit, factor = column.units[1]
    return f"{number_text(float(value) * factor, column.decimals + 4)} {unit}"
