"""Requests whose replies are JSON objects of a known form. A faulty reply is sent back with its faults."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from inquitree_gym.errors import AuthoringError
from inquitree_gym.llm import Chat, Completion, Message, strip_thinking
from inquitree_gym.llm.chat import complete_with_text
from inquitree_gym.prompts import Prompts
from inquitree_gym.trees.fields import FrozenModel
from inquitree_gym.trees.validation import validation_faults

MAX_ECHO = 60_000
"""Longest reply that is sent back with its faults, in characters. Of a longer one the beginning is."""
MAX_LISTED = 40
"""Most faults that are told at once."""
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)

Reply = TypeVar("Reply", bound=FrozenModel)


class ReplyReview(NamedTuple):
    """Faults of a reply of the right form."""

    barring: Sequence[object] = ()
    """Faults with which it cannot be used."""
    mendable: Sequence[object] = ()
    """Faults with which it can, if no better reply comes."""


class Asker:
    """Requests to one model about one paper."""

    def __init__(
        self,
        chat: Chat,
        prompts: Prompts,
        about: str,
        *,
        repairs: int,
        seed: int | None = None,
        keep: Callable[[Completion], object] = lambda completion: None,
    ) -> None:
        """Ask a model.

        Args:
            chat: the model.
            prompts: the templates, among them ``KIND_system`` and ``KIND_correction`` for each kind of request.
            about: name of the paper in errors.
            repairs: how often a faulty reply is asked for again.
            seed: sent with the first request of each kind, and the next numbers with its repairs. None sends none.
            keep: called with every reply.
        """
        self._chat, self._prompts, self._about = chat, prompts, about
        self._repairs, self._seed, self._keep = repairs, seed, keep

    async def ask(
        self,
        template: str,
        model: type[Reply],
        values: Mapping[str, Any],
        check: Callable[[Reply], ReplyReview] = lambda reply: ReplyReview(),
    ) -> Reply:
        """Return the reply to a template filled with values as ``model``, the one with the fewest mendable faults.

        Raises:
            AuthoringError: every reply has a fault with which it cannot be used.
            ServiceError: the model's service gives no usable answer.
            BudgetError: a cap is reached.
        """
        kind = template.partition("_")[0]
        first = [
            {"role": "system", "content": self._prompts.render(f"{kind}_system")},
            {"role": "user", "content": self._prompts.render(template, **values)},
        ]
        messages, best, fewest = first, None, 0
        for attempt in range(1 + self._repairs):
            text = await self._text(messages, attempt)
            reply, faults = read(text, model)
            if reply is not None:
                review = check(reply)
                faults = [*map(str, review.barring), *map(str, review.mendable)]
                if not review.barring and (best is None or len(faults) < fewest):
                    best, fewest = reply, len(faults)
                if not faults:
                    return reply
            correction = self._prompts.render(f"{kind}_correction", fault="; ".join(faults[:MAX_LISTED]))
            echo = [{"role": "assistant", "content": text[:MAX_ECHO]}] if text.strip() else []
            messages = [*first, *echo, {"role": "user", "content": correction}]
        if best is not None:
            return best
        raise AuthoringError(
            f"the model '{self._chat.config['model']}' gave no usable answer to '{template}' about '{self._about}': "
            f"{'; '.join(faults[:MAX_LISTED])}; try again with another seed, or another model"
        )

    async def _text(self, messages: Sequence[Message], attempt: int) -> str:
        # Equal requests with one seed would get one reply from a cache.
        seed = None if self._seed is None else self._seed + attempt
        completion = await complete_with_text(self._chat, messages, seed=seed, keep=self._keep)
        return strip_thinking(completion.text)


def fence(text: str) -> str:
    """Return a line that a text cannot contain, to stand before and behind it."""
    return f"=== {hashlib.sha256(text.encode()).hexdigest()[:24]} ==="


def read(reply: str, model: type[Reply]) -> tuple[Reply | None, list[str]]:
    """Return the JSON object in a reply as ``model``, or None and its faults."""
    found = _OBJECT.search(reply)
    written = found.group() if found else reply
    try:
        document = json.loads(written)
    except (ValueError, RecursionError) as error:
        return None, [f"it is no JSON object but {len(reply):,} characters of text ({error})"]
    try:
        return model.model_validate_json(written), []
    except ValidationError as error:
        return None, [str(each) for each in validation_faults(error, document)]
