"""Synthetic research trees: fiction from a seed, with any number of subtopics and a hidden causal model.

`generate` draws the prerequisites and assembles the document, `causal_model` draws the variables and mechanisms, `text`
words them with the templates of `templates` and ``data/``, and `difficulty` holds the settings. `worlds` generates
projection tasks with the same vocabulary.
"""

from inquitree_gym.trees.generator.difficulty import Difficulty
from inquitree_gym.trees.generator.generate import synthetic_tree, tree_seed
from inquitree_gym.trees.generator.worlds import WorldSettings, synthetic_task

__all__ = ["Difficulty", "WorldSettings", "synthetic_task", "synthetic_tree", "tree_seed"]
