"""The verb of explorations: grade."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer
from pydantic import BaseModel, Field, ValidationError

from inquitree_gym.cli.output import JsonOption, note, plural, print_json, print_table, split
from inquitree_gym.errors import OptionError
from inquitree_gym.exploration.gold import Gold, Text
from inquitree_gym.exploration.graders import AnswerGrade, Grade, Verdict, grade
from inquitree_gym.exploration.scores import Readings, Scores, scores
from inquitree_gym.exploration.tasks import TASKS
from inquitree_gym.files import MAX_LOG, read_text_input

app = typer.Typer()


class _Asked(BaseModel):
    """The part of a task that grading needs. A task without a library has no more."""

    name: Text = Field(alias="id")
    gold: Gold


class _Answered(BaseModel):
    """A line of answers. None for a task that a system did not answer."""

    name: Text = Field(alias="task")
    answer: str | None


_Line = TypeVar("_Line", _Asked, _Answered)


@app.command("grade")
def grade_answers(
    tasks: Annotated[str, typer.Argument(help="all, T1 to T4, ids, or a .jsonl file of tasks, or of id and gold.")],
    answers: Annotated[Path, typer.Argument(help='JSON lines of {"task": id, "answer": text}.')],
    reading: Annotated[str, typer.Option(help="Readings of the scores, comma-separated: weights=table, …")] = "",
    as_json: JsonOption = False,
) -> None:
    """Grade the answers of a system that was played elsewhere."""
    if tasks.endswith(".jsonl"):
        golds = {each.name: each.gold for each in _lines(Path(tasks), _Asked)}
    else:
        golds = {task.id: task.gold for task in map(TASKS.load, TASKS.expand(split(tasks)))}
    given = {each.name: each.answer for each in _lines(answers, _Answered, golds)}
    if missing := len(golds.keys() - given.keys()):
        note(f"{plural(missing, 'task')} without an answer, which count as not attempted")
    grades = {name: grade(gold, given.get(name)) for name, gold in golds.items()}
    found = scores(grades.values(), _readings(reading))
    if as_json:
        print_json({"scores": found.model_dump(), "tasks": {name: one.score for name, one in grades.items()}})
    else:
        print_table("Scores in percent", _rows(found, list(grades.values())))


def _readings(text: str) -> Readings:
    try:
        return Readings.model_validate(dict(each.partition("=")[::2] for each in split(text)))
    except ValidationError as error:
        wanted = f"NAME=VALUE with a name of {', '.join(Readings.model_fields)}"
        raise OptionError(f"--reading must be {wanted}, got '{text}': {_why(error)}.") from None


def _lines(file: Path, kind: type[_Line], known: Mapping[str, Gold] | None = None) -> list[_Line]:
    """Return the lines of a file. Every line that is bad, named twice or of no known task is named in one error."""
    found: dict[str, _Line] = {}
    faults: list[str] = []
    for number, text in enumerate(read_text_input(file, limit=MAX_LOG, error=OptionError).splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = kind.model_validate_json(text)
        except ValidationError as error:
            faults.append(f"line {number}: {_why(error)}")
            continue
        if known is not None and line.name not in known:
            faults.append(f"line {number}: no task is called '{line.name:.60}'")
        elif found.setdefault(line.name, line) is not line:
            faults.append(f"line {number}: '{line.name:.60}' stands there twice")
    if faults:
        raise OptionError("\n".join([f"'{file}' must have a sound object on every line. Mend these:", *faults]))
    return list(found.values())


def _why(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()


def _rows(found: Scores, grades: Sequence[Grade]) -> Iterator[list[str]]:
    """Yield the rows of the table, in the paper's letters."""
    yield ["score", "percent", "tasks", "C", "I", "N"]
    shares = {"T1": found.t1, "T2": found.t2, "T3 F_cite": found.t3}
    shares |= {f"T4 {name}": share for name, share in (found.t4.model_dump() if found.t4 else {}).items()}
    for label, share in {**shares, "Overall": found.overall}.items():
        own = [one for one in grades if one.kind in label or label == "Overall"]
        said = [one.verdict for one in own if isinstance(one, AnswerGrade) and one.kind == label]
        counts = [str(said.count(verdict)) if said else "" for verdict in get_args(Verdict)]
        yield [label, "" if share is None else f"{100 * share:.2f}", str(len(own)), *counts]
