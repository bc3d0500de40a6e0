"""Measures that should tell a line that reports a result from one that misremembers its direction.

Of these measures, only the sense of the shipped judge was trained on the trees. None of the lines' authors wrote for
`research.judge.conclusions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from inquitree_gym.embeddings import load_embedder
from inquitree_gym.embeddings.local import MINILM, minilm_folder
from inquitree_gym.inquiry.judges.local import LocalJudge
from inquitree_gym.judging.claims import wording
from inquitree_gym.judging.sense import Statement
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees import Tree
from research.judge.gaming import embed_claims

LINES = Path(__file__).parent / "lines"
"""Folder of the lines: one file per author."""
LAYER = 4
"""Layer of MiniLM, out of 6, whose token states are compared."""

Floats = NDArray[np.float64]
Measure = Callable[["Case"], float]


class WrittenLine(BaseModel):
    """A line about the result of a study."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tree: str
    study: str
    text: str
    right: bool
    """False if it misremembers the result."""


class WrittenLines(BaseModel):
    """The lines of one author."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    author: str
    labeller: str
    """Labeller who decided which lines are right. The author if nobody else did."""
    lines: tuple[WrittenLine, ...]


class Case(NamedTuple):
    """A line with the statement that it is about."""

    tree: str
    author: str
    text: str
    right: bool
    statement: Statement
    sense: float
    """Sense that the judge assigns to the line."""


class TokenStates:
    """Token states of MiniLM, without an adapter."""

    def __init__(self) -> None:
        """Load the model."""
        from transformers import AutoModel, AutoTokenizer

        folder = str(minilm_folder())
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModel.from_pretrained(folder).eval()
        self.of = lru_cache(maxsize=None)(self._of)

    def _of(self, text: str) -> Floats:
        """Return the states of the tokens of ``text`` after `LAYER`, rows of unit length."""
        import torch

        with torch.inference_mode():
            found = self._model(**self._tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        states: Floats = found.hidden_states[LAYER][0, 1:-1].numpy().astype(np.float64)
        scaled: Floats = states / np.linalg.norm(states, axis=1, keepdims=True)
        return scaled


def load_lines(folder: Path = LINES) -> list[WrittenLines]:
    """Read the lines of every author."""
    return [WrittenLines.model_validate_json(file.read_bytes()) for file in sorted(folder.glob("*.json"))]


def line_cases(sets: Sequence[WrittenLines], judge: LocalJudge) -> Iterator[Case]:
    """Yield the lines about the tree of a judge."""
    tree = judge.vectors.tree
    place = {study.id: len(tree.conclusions) + index for index, study in enumerate(tree.studies)}
    embed_claims(judge, (_bullets(tree, each) for each in sets))
    for each in sets:
        for line in each.lines:
            if line.tree == tree.id:
                index = place[line.study]
                sense = float(judge.hear(line.text).sense[index])
                yield Case(tree.id, each.author, line.text, line.right, judge.statements[index], sense)


def measures() -> dict[str, Measure]:
    """Return the measures by name. A line that reports its result should get a larger value."""
    states = TokenStates()
    return {
        "sense of the shipped judge, which has seen the trees": lambda case: case.sense,
        "contrast of MiniLM's sentence vectors": sentence_contrast,
        "words shared with one side alone": lambda case: wording(
            case.text, case.statement.true[0], case.statement.false
        ),
        f"tokens that tell the sides apart, layer {LAYER}": lambda case: token_contrast(states, case),
    }


def sentence_contrast(case: Case) -> float:
    """Return how much more similar a line is to a true text than to a false one."""
    true, false = case.statement
    rows = load_embedder(MINILM).embed([case.text, *true, *false])
    similar = rows[1:] @ rows[0]
    return float(similar[: len(true)].max() - similar[len(true) :].max())


def token_contrast(states: TokenStates, case: Case) -> float:
    """Return how much better a line covers the tokens of a true text than those of a false text. The least over these.

    It is late interaction (arXiv:2004.12832) in which a token has more weight the less it resembles any token of the
    other side.
    """
    true, false = ([states.of(text) for text in side] for side in case.statement)
    said = states.of(case.text)
    return min(max(_covered(said, one, other) - _covered(said, other, one) for one in true) for other in false)


def auc_by_tree(cases: Iterable[Case], measure: Measure) -> Estimate:
    """Return the mean over trees of the AUC of a measure that should tell right lines from wrong ones."""
    from sklearn.metrics import roc_auc_score

    found: dict[str, list[tuple[bool, float]]] = {}
    for case in cases:
        found.setdefault(case.tree, []).append((case.right, measure(case)))
    return clustered_mean((tree, float(roc_auc_score(*zip(*rows, strict=True)))) for tree, rows in found.items())


def _covered(said: Floats, text: Floats, contrary: Floats) -> float:
    """Return the mean similarity of the tokens of ``text`` to their nearest tokens in ``said``, weighted.

    A token has more weight the less it resembles any token of ``contrary``.
    """
    apart = np.maximum(1 - (text @ contrary.T).max(axis=1), 0)
    return float((apart * (text @ said.T).max(axis=1)).sum() / max(apart.sum(), 1e-6))


def _bullets(tree: Tree, lines: WrittenLines) -> str:
    return "\n".join(f"- {line.text}" for line in lines.lines if line.tree == tree.id)
