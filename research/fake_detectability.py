"""Surface cues of fake results: classifiers trained on other trees try to tell fake from true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inquitree_gym.embeddings import Embedder, tree_vectors
from inquitree_gym.results.statistics import Estimate, clustered_mean
from inquitree_gym.trees import Tree
from inquitree_gym.trees.lint import centrality
from research.earlier import earlier


@dataclass(frozen=True, slots=True)
class ResultTexts:
    """Every result text of some trees, true and fake."""

    trees: tuple[str, ...]
    texts: tuple[str, ...]
    fake: NDArray[np.bool_]
    vectors: NDArray[np.float32]
    """Shape ``(texts, dim)``."""


def result_texts(trees: Sequence[Tree], embedder: Embedder) -> ResultTexts:
    """Collect and embed the result texts of ``trees``."""
    rows = [
        (tree.id, text, text is not study.result)
        for tree in trees
        for study in earlier(tree).studies
        for text in study.results
    ]
    by_id = {tree.id: tree_vectors(tree, embedder) for tree in trees}
    vectors = np.stack([by_id[tree].of(text) for tree, text, _ in rows])
    ids, texts, fake = zip(*rows, strict=True)
    return ResultTexts(ids, texts, np.array(fake), vectors)


def central_share(trees: Sequence[Tree]) -> Estimate:
    """Return the share of studies whose true result has most words in common with the fakes. A third is chance."""
    return clustered_mean((tree.id, centrality(study)) for tree in trees for study in earlier(tree).studies)


def separations(results: ResultTexts) -> dict[str, Estimate]:
    """Return the area under the ROC curve on left-out trees for each kind of features. 0.5 is chance."""
    from sklearn.feature_extraction.text import CountVectorizer

    words = CountVectorizer(ngram_range=(1, 2), min_df=2, binary=True).fit_transform(results.texts)
    return {
        "bag of words": _left_out_auc(results, words.tocsr()),
        "embedding": _left_out_auc(results, results.vectors),
    }


def _left_out_auc(results: ResultTexts, features: NDArray[np.float32]) -> Estimate:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    groups = np.array(results.trees)
    areas = []
    for tree in dict.fromkeys(results.trees):
        inside = groups == tree
        model = LogisticRegression(class_weight="balanced", max_iter=2_000)
        model.fit(features[~inside], results.fake[~inside])
        areas.append((tree, float(roc_auc_score(results.fake[inside], model.decision_function(features[inside])))))
    return clustered_mean(areas)
