"""Tell gold of SciExplore from its near misses by the surface of pages: ``python -m research.surface``.

Two classifiers see lengths, digits and counts of words, and never a question. Whoever can choose among the records that
meet all constraints but one by such features needs no search. 0.5 is chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from inquitree_gym.cli import output
from inquitree_gym.exploration.library import Document
from inquitree_gym.exploration.proofs import answers, near_misses
from inquitree_gym.exploration.providers import local_library
from inquitree_gym.exploration.schema import ExplorationTask
from inquitree_gym.exploration.tasks import TASKS
from inquitree_gym.runs.study import ALL

FEATURES = (
    "characters", "words", "digits", "lines", "pages", "longest word", "characters of title", "words of title",
    "digits of title",
)  # fmt: skip
FOLDS = 5
TARGET = 0.60

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Choice(NamedTuple):
    """The pages of one record that a question describes: its gold, and the near misses."""

    kind: str
    features: NDArray[np.float64]
    """Features of each page, standardised among the pages of the choice, so that databases do not differ."""
    gold: NDArray[np.bool_]
    earliness: NDArray[np.float64]
    """How early each page stands in the library, whose order LOOKUP shows. No classifier sees it."""


@app.command()
def measure_surface(tasks: output.PapersOption = ALL, seed: Annotated[int, typer.Option(help="Seed.")] = 0) -> None:
    """Print Markdown tables of the AUC by type of task, and by feature and type."""
    found = [each for name in TASKS.expand(output.split(tasks)) for each in choices(TASKS.load(name))]
    kinds = sorted({each.kind for each in found})
    heads = ("type", "choices", "near misses", "logistic", "forest", "order")
    typer.echo(f"AUC, target at most {TARGET}\n\n| {' | '.join(heads)} |\n|---{'|--:' * len(heads[1:])}|")
    for kind in (*kinds, "all") if len(kinds) > 1 else kinds:
        own = [each for each in found if kind in (each.kind, "all")]
        scores = [*(predicted(own, forest=forest, seed=seed) for forest in (False, True)), [c.earliness for c in own]]
        cells = [kind, len(own), sum(int((~c.gold).sum()) for c in own), *(f"{auc(own, each):.3f}" for each in scores)]
        typer.echo(f"| {' | '.join(map(str, cells))} |")
    typer.echo(f"\n| feature | {' | '.join(kinds)} |\n|---{'|--:' * len(kinds)}|")
    for place, name in enumerate(FEATURES):
        types = ([each for each in found if each.kind == kind] for kind in kinds)
        cells = (f"{auc(own, [each.features[:, place] for each in own]):.3f}" for own in types)
        typer.echo(f"| {name} | {' | '.join(cells)} |")


def choices(task: ExplorationTask) -> Iterator[Choice]:
    """Yield every choice of a task that has gold and near misses."""
    library = local_library(task.library).library
    shown = {each.document for each in task.evidence}
    order = {key: place for place, key in enumerate(library.documents)}
    for query in task.query.records():
        gold, near = answers(query, library) & shown, near_misses(query, library)
        if gold and near:
            keys = (*sorted(gold), *sorted(near))
            values = np.array([surface(library.documents[key]) for key in keys])
            spread = values.std(axis=0)
            values = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
            earliness = -np.array([order[key] for key in keys], np.float64)
            yield Choice(task.kind, values, np.arange(len(keys)) < len(gold), earliness)


def surface(document: Document) -> list[float]:
    """Return the features of a document."""
    text, title = "\n".join(document.pages), document.title
    digits = [sum(map(str.isdigit, each)) for each in (text, title)]
    words = text.split()
    whole = (len(text), len(words), digits[0], len(text.splitlines()), len(document.pages), max(map(len, words)))
    return [*map(float, whole), float(len(title)), float(len(title.split())), float(digits[1])]


def predicted(found: Sequence[Choice], *, forest: bool, seed: int) -> list[NDArray[np.float64]]:
    """Return the scores of the pages of each choice, from a classifier that was fitted to other choices."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    folds = np.random.default_rng(seed).permutation(len(found)) % FOLDS
    scores: list[NDArray[np.float64]] = [np.zeros(0)] * len(found)
    for fold in range(FOLDS):
        rest = [each for each, own in zip(found, folds, strict=True) if own != fold]
        # Each choice weighs the same, half of it gold.
        weights = [np.where(each.gold, 0.5 / each.gold.sum(), 0.5 / (~each.gold).sum()) for each in rest]
        model = RandomForestClassifier(200, min_samples_leaf=5, random_state=seed) if forest else LogisticRegression()
        pages, gold = np.vstack([each.features for each in rest]), np.concatenate([each.gold for each in rest])
        model.fit(pages, gold, sample_weight=np.concatenate(weights))
        for place in np.flatnonzero(folds == fold).tolist():
            scores[place] = model.predict_proba(found[place].features)[:, 1]
    return scores


def auc(found: Sequence[Choice], scores: Sequence[NDArray[np.float64]]) -> float:
    """Return the mean AUC over choices: how often gold scores higher than a near miss, ties as a half."""
    means = []
    for each, own in zip(found, scores, strict=True):
        above = own[each.gold][:, None] - own[~each.gold][None, :]
        means.append(float((np.sign(above) + 1).mean() / 2))
    return float(np.mean(means))


if __name__ == "__main__":
    output.run_app(app)
