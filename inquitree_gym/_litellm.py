"""Import of litellm on first use, silent and without network access."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any

from inquitree_gym.errors import require


def load_litellm() -> Any:
    """Import litellm.

    Raises:
        MissingExtraError: the extra ``llm`` is not installed.
    """
    # By default, litellm downloads a price map when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = require("litellm", "llm")
    litellm.suppress_debug_info = True  # otherwise it prints advice to stdout with every error
    _hush()
    return litellm


@cache
def _hush() -> None:
    """Ignore a warning of pydantic about the response types of litellm."""
    warnings.filterwarnings("ignore", "Items? .* using the `ReadOnly` qualifier", UserWarning)
