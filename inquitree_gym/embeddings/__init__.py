"""Embedders, which turn texts into vectors.

Heavy packages and the network are used only when a text has to be embedded.
"""

from typing import TYPE_CHECKING

from inquitree_gym._lazy import lazy

if TYPE_CHECKING:
    from inquitree_gym.embeddings.derived import OnnxEmbedder, StaticEmbedder
    from inquitree_gym.embeddings.local import MiniLMEmbedder, ReaderEmbedder, SentenceTransformerEmbedder
    from inquitree_gym.embeddings.protocol import Embedder
    from inquitree_gym.embeddings.registry import DEFAULT_EMBEDDER, LiteLLMEmbedder, WordsEmbedder, load_embedder
    from inquitree_gym.embeddings.vectors import TextVectors, TreeVectors, tree_vectors

__all__ = [
    "DEFAULT_EMBEDDER",
    "Embedder",
    "LiteLLMEmbedder",
    "MiniLMEmbedder",
    "OnnxEmbedder",
    "ReaderEmbedder",
    "SentenceTransformerEmbedder",
    "StaticEmbedder",
    "TextVectors",
    "TreeVectors",
    "WordsEmbedder",
    "load_embedder",
    "tree_vectors",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "embeddings.derived": "OnnxEmbedder StaticEmbedder",
        "embeddings.local": "MiniLMEmbedder ReaderEmbedder SentenceTransformerEmbedder",
        "embeddings.protocol": "Embedder",
        "embeddings.registry": "DEFAULT_EMBEDDER LiteLLMEmbedder WordsEmbedder load_embedder",
        "embeddings.vectors": "TextVectors TreeVectors tree_vectors",
    },
)
