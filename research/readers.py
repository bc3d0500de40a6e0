"""Sheets for blind readers of the shipped trees, and their scores.

``python -m research.readers sheets FOLDER`` writes a sheet for each tree, which is all that a reader sees: results of
one drawn world with fakes at level 3, to be marked, and the true results of another world with its exam. What the
sheets hide goes to ``FOLDER/keys.json``. ``python -m research.readers score`` prints the scores of
``research/validity/readers.json``, which has the keys with what readers answered. ``python -m research.readers form``
prints how often a classifier tells the actual pole from its contrary by the form of their texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from pydantic import BaseModel, TypeAdapter
from sklearn.linear_model import LogisticRegression

from inquitree_gym.cli import run_app
from inquitree_gym.cli.output import err, print_table
from inquitree_gym.inquiry.exam import draw_layout, exam_of
from inquitree_gym.inquiry.observer import Design, believe, design_of, fake_chances, observe
from inquitree_gym.inquiry.vigilance import Counts
from inquitree_gym.results.statistics import clustered_mean
from inquitree_gym.sheets import LETTERS, lettered
from inquitree_gym.trees import builtin_ids, load_tree
from inquitree_gym.trees.schema import Tree
from inquitree_gym.trees.worlds import World, actual_world, in_world, world_id, worlds

READERS = Path(__file__).parent / "validity" / "readers.json"
LEVEL, SEED = 3, 20_261_129
HEADS = ["tree", *("fakes", "hits", "false alarms", "d'") * 2, "exam", "text"]

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Showings(BaseModel):
    """Results that a reader saw, and those that the reader marked as fake."""

    world: str
    shown: dict[str, int]
    """Outcome shown of each study, in the order of the tree."""
    fakes: tuple[str, ...]
    """Studies whose outcome was fake."""
    marked: tuple[str, ...] = ()
    """Studies whose outcome the reader took for fake."""


class ExamSheet(BaseModel):
    """An exam, and what a reader answered from the true results."""

    world: str
    key: dict[str, str]
    """Right letter by number of the item."""
    answers: dict[str, str] = {}


class Read(BaseModel):
    """What a reader of one tree answered."""

    digest: str
    """Digest of the tree that was read."""
    reader: str = ""
    marks: Showings
    exam: ExamSheet


RECORDS: TypeAdapter[dict[str, Read]] = TypeAdapter(dict[str, Read])


@app.command()
def sheets(folder: Annotated[Path, typer.Argument(help="Folder of the sheets.")]) -> None:
    """Write the sheets of all shipped trees, and what they hide."""
    folder.mkdir(parents=True, exist_ok=True)
    records = {}
    for name in builtin_ids():
        tree = load_tree(name)
        records[name], text = draw(tree)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "keys.json").write_bytes(RECORDS.dump_json(records, indent=1))
    err.print(f"written: {folder}")


@app.command()
def score(file: Annotated[Path, typer.Argument(help="Keys with answers.")] = READERS) -> None:
    """Print how well the readers marked fakes, beside the exact observer, and how well they answered exams."""
    records = RECORDS.validate_json(file.read_bytes())
    rows, ours, theirs = [], Counts(), Counts()
    for name, read in records.items():
        tree = load_tree(name)
        reader, observer = marked(tree, read.marks), observed(tree, read.marks)
        ours, theirs = ours + reader, theirs + observer
        rows.append(
            [
                name,
                *_cells(reader),
                *_cells(observer),
                _right(read.exam),
                "" if read.digest == tree.digest else "earlier",
            ]
        )
    rows.append(["all", *_cells(ours), *_cells(theirs), "", ""])
    heads = [
        "tree",
        "fakes",
        "hits",
        "false alarms",
        "d'",
        "of observer: fakes",
        "hits",
        "false alarms",
        "d'",
        "exam",
        "text",
    ]
    print_table("Blind readers", [heads, *rows])


@app.command()
def form() -> None:
    """Print how often actual texts are told from their contraries by form: by pairs, each tree left out in turn."""
    pairs = {name: np.array(list(_contrasts(load_tree(name)))) for name in builtin_ids()}
    shares = []
    for name, contrasts in pairs.items():
        others = np.concatenate([each for other, each in pairs.items() if other != name])
        fitted = LogisticRegression(fit_intercept=False, max_iter=1000)
        fitted.fit(np.concatenate([others, -others]), np.repeat([1, 0], len(others)))
        lead = contrasts @ fitted.coef_[0]
        shares.append((name, float(np.mean(np.where(lead == 0, 0.5, lead > 0)))))
    mean, low, high, *_ = clustered_mean(shares)
    rows = [[name, str(len(pairs[name])), f"{share:.2f}"] for name, share in shares]
    print_table(
        "Actual texts told by form",
        [["tree", "pairs", "AUC"], *rows, ["all", "", f"{mean:.3f} [{low:.3f}, {high:.3f}]"]],
    )


def _contrasts(tree: Tree) -> Iterator[NDArray[np.float64]]:
    """Yield the difference in form between each actual text and each of its contraries, first wordings."""
    actual = in_world(tree, actual_world(tree))
    for study in actual.studies:
        true, *fakes = study.results
        yield from (_form(true) - _form(fake) for fake in fakes)
    for item in actual.conclusions:
        yield from (_form(item.text) - _form(other) for other in item.others)


def _form(text: str) -> NDArray[np.float64]:
    """Return characters, words, figures, commas, negations, hedges and comparatives of a text."""
    words = re.findall(r"[\w']+", text.lower())
    marks = (
        r"\d+(?:[.,]\d+)*",
        ",",
        r"\b(?:no|not|neither|nor|none|without|un\w+)\b",
        r"\b(?:about|may|might|nearly|mostly|around)\b",
    )
    counts = [len(re.findall(mark, text.lower())) for mark in marks]
    return np.array([len(text) / 100, len(words) / 10, *counts, sum(word.endswith("er") for word in words)], np.float64)


def draw(tree: Tree) -> tuple[Read, str]:
    """Draw worlds, showings and the order of the exam's statements; return them without answers, and the sheet."""
    rng = np.random.default_rng([SEED, *tree.id.encode()])
    design, every = design_of(tree), list(worlds(tree))
    first, second = (every[i] for i in rng.choice(len(every), 2, replace=False))
    true = _true_outcomes(design, first)
    shown = [_showing(design, study, outcome, rng) for study, outcome in enumerate(true)]
    names = [study.id for study in tree.studies]
    fakes = tuple(name for name, here, there in zip(names, true, shown, strict=True) if here != there)
    marks = Showings(world=world_id(first), shown=dict(zip(names, shown, strict=True)), fakes=fakes)
    layout = draw_layout(exam_of(tree), SEED, tree.id, "any")
    exam = ExamSheet(world=world_id(second), key=dict(_key(design, layout, second)))
    text = "\n".join(
        [
            f"# {tree.id}\n\n{tree.topic}\n\n## Part 1. About 3 of 10 results are fake. Which?\n",
            *_results(tree, shown, rng),
            "\n## Part 2. Another project of the same design. All results are true.\n",
            *_results(tree, _true_outcomes(design, second), rng),
            "\n## Exam on part 2\n",
            *_questions(tree, layout),
        ]
    )
    return Read(digest=tree.digest, marks=marks, exam=exam), text


def marked(tree: Tree, showings: Showings) -> Counts:
    """Return how a reader marked the results that could be fake."""
    return _counts(tree, showings, set(showings.marked))


def observed(tree: Tree, showings: Showings) -> Counts:
    """Return how the exact observer, who knows the level, marks them: as fake from a probability of one half."""
    design = design_of(tree)
    model, order = observe(design, LEVEL), list(showings.shown.values())
    belief = believe(model, enumerate(order))
    doubted = {
        name
        for study, (name, shown) in enumerate(showings.shown.items())
        if fake_chances(model, belief, np.array([study]), np.array([shown]))[0] >= 0.5
    }
    return _counts(tree, showings, doubted)


def _counts(tree: Tree, showings: Showings, doubted: set[str]) -> Counts:
    scored = [study.id for study in tree.studies if study.result.axes]
    return sum((Counts.of(name in showings.fakes, float(name in doubted)) for name in scored), Counts())


def _true_outcomes(design: Design, world: World) -> list[int]:
    return [int(outcome) for outcome in np.array(world) @ design.strides]


def _showing(design: Design, study: int, true: int, rng: np.random.Generator) -> int:
    if rng.random() >= LEVEL / 10:
        return true
    return int(rng.choice(len(design.fake_law[study, true]), p=design.fake_law[study, true]))


def _key(design: Design, layout: tuple[tuple[int, ...], ...], world: World) -> Iterator[tuple[str, str]]:
    for item, order in enumerate(layout):
        right = design.exam.option(item, [world[axis] for axis in design.exam.items[item]])
        yield str(item + 1), LETTERS[order.index(right)]


def _results(tree: Tree, shown: list[int], rng: np.random.Generator) -> Iterator[str]:
    outcomes = iter(shown)
    for subtopic in tree.subtopics:
        yield f"\n### {subtopic.id}: {subtopic.text}\n"
        for study in subtopic.studies:
            wordings = study.outcomes[next(outcomes)]
            yield f"- **{study.id}** {study.text}\n  *Result:* {wordings[rng.integers(len(wordings))]}"


def _questions(tree: Tree, layout: tuple[tuple[int, ...], ...]) -> Iterator[str]:
    for number, (item, order) in enumerate(zip(tree.conclusions, layout, strict=True), 1):
        yield lettered((item.options[option] for option in order), number)


def _cells(counts: Counts) -> list[str]:
    d_prime = "" if counts.d_prime is None else f"{counts.d_prime:.2f}"
    return [f"{counts.fakes:.0f}", f"{counts.hits:.0f}", f"{counts.false_alarms:.0f}", d_prime]


def _right(exam: ExamSheet) -> str:
    right = sum(exam.answers.get(item) == letter for item, letter in exam.key.items())
    return f"{right} of {len(exam.key)}"


if __name__ == "__main__":
    run_app(app)
