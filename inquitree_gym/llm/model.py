"""A chat model by litellm's name: the settings, the request, and how often it is tried."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from inquitree_gym._litellm import load_litellm
from inquitree_gym.errors import OptionError, ServiceError, require
from inquitree_gym.llm.event_loop import begin
from inquitree_gym.llm.response import Completion, read_answer
from inquitree_gym.llm.retry import PATIENCE, Fault, is_filtered, names_secret, next_wait, read_fault

Message = dict[str, str]
"""``role`` (``system``, ``user`` or ``assistant``) and ``content``."""

_NO_KEY = "none"
"""Sent where a server of one's own asks for no key; OpenAI's client insists on one."""


class Lack(NamedTuple):
    """A key that a model needs and that is not there."""

    said: str
    certain: bool
    """Whether every request will fail for it; litellm knows the usual variable alone, and credentials may come
    otherwise."""


class Clock(Protocol):
    """Time as a chat model needs it; another one in tests, so that they do not wait."""

    def now(self) -> float:
        """Return seconds from any start, never going back."""

    async def sleep(self, seconds: float) -> None:
        """Wait, and let others go on."""

    def jitter(self) -> float:
        """Return a number in [0, 1) that no other process shares."""


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """See `Clock.now`."""
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        await asyncio.sleep(seconds)

    def jitter(self) -> float:
        """See `Clock.jitter`."""
        return secrets.randbelow(2**32) / 2**32


class Chat(Protocol):
    """Anything that answers messages: a `ChatModel`, or one with a cache, a budget or a rate limit around it."""

    @property
    def config(self) -> dict[str, Any]:
        """What decides the replies, for the log; plain values, no key."""

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the reply to ``messages``; ``seed`` is used where none is set and the provider takes one.

        Raises:
            ServiceError: there is no answer that can be used.
        """

    def complete_now(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the same without an event loop."""


@dataclass(frozen=True)
class ChatModel:
    """A model of any provider that litellm reaches, or of a server that speaks OpenAI's protocol.

    The key comes from an environment variable when a request is made, and is stored nowhere.

    Raises:
        OptionError: a setting is out of range, or the address carries a user, a password or a query.
    """

    model: str
    """litellm's name: ``provider/model``, or the name alone where litellm knows it. With ``base_url`` a name whose
    provider litellm does not know is asked for as it is, in OpenAI's protocol; ``openai/NAME`` always is."""
    base_url: str | None = None
    """Address of the server, such as ``http://localhost:8000/v1``; None for the provider's own."""
    temperature: float | None = 0.0
    """None sends none."""
    reasoning_effort: str | None = None
    """The provider's word, such as ``low``, ``medium`` or ``high``; None sends none."""
    seed: int | None = None
    """Sent with every request; None leaves it to the caller of `complete`."""
    max_tokens: int | None = 4096
    """Tokens that one reply may have, reasoning included; None leaves it to the provider."""
    timeout: float = 300.0
    """Seconds for one request and its whole answer."""
    retries: int = 5
    """Further tries after a fault that may pass."""
    api_key_env: str | None = None
    """Environment variable that holds the key; None for the provider's own."""
    clock: Clock = field(default_factory=SystemClock, repr=False, compare=False)

    def __post_init__(self) -> None:
        faults = [f"{name} {wanted}, not {getattr(self, name)!r}" for name, wanted in self._out_of_range()]
        if self.base_url is not None and not _is_plain_address(self.base_url):
            # Not shown: it may hold a key.
            faults.append(
                "base_url is http(s)://HOST/PATH without user, password or query; keys go into the environment"
            )
        if faults:
            raise OptionError(f"the chat model '{self.model}' cannot be asked like that: {'; '.join(faults)}")

    def _out_of_range(self) -> list[tuple[str, str]]:
        checks = {
            "model": (_text(self.model), "names a model"),
            "temperature": (self.temperature is None or _number(self.temperature), "is a number from 0 or None"),
            "reasoning_effort": (self.reasoning_effort is None or _text(self.reasoning_effort), "is a word or None"),
            "seed": (_whole(self.seed, 0), "is a whole number from 0 or None"),
            "max_tokens": (_whole(self.max_tokens, 1), "is a whole number from 1 or None"),
            "timeout": (_number(self.timeout) and self.timeout > 0, "is a number of seconds above 0"),
            "retries": (self.retries is not None and _whole(self.retries, 0), "is a whole number from 0"),
        }
        return [(name, wanted) for name, (fine, wanted) in checks.items() if not fine]

    @property
    def config(self) -> dict[str, Any]:
        """See `Chat.config`; ``dropped`` are the settings that litellm says the provider does not take."""
        return {
            "model": self.model,
            "base_url": self.base_url,
            "temperature": self.temperature,
            "reasoning_effort": self.reasoning_effort,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "dropped": list(self.dropped),
        }

    @property
    def dropped(self) -> tuple[str, ...]:
        """Settings that are not sent, because litellm says that the provider does not take them."""
        return tuple(name for name in (*self._settings, "seed") if name not in self._taken)

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """See `Chat.complete`."""
        return await asyncio.wrap_future(begin(self._ask(self._request(messages, seed))))

    def complete_now(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """See `Chat.complete_now`."""
        answer = begin(self._ask(self._request(messages, seed)))
        try:
            return answer.result()
        finally:
            answer.cancel()  # of one that is done nothing is left to cancel

    def price(self, prompt: int, completion: int) -> float | None:
        """Return the US dollars for so many tokens by litellm's price list; None where it has no price."""
        entry = self._listed
        try:
            return prompt * float(entry["input_cost_per_token"]) + completion * float(entry["output_cost_per_token"])
        except (KeyError, TypeError):
            return None

    def lacks(self) -> Lack | None:
        """Return which key is not there that requests will need; None where nothing is known to be missing.

        Raises:
            OptionError: litellm knows no provider for the model.
        """
        model, provider = self._route
        try:
            self._key()
        except OptionError as error:
            return Lack(str(error), certain=True)
        if self.base_url is not None or self.api_key_env is not None or provider == "openai":
            return None
        missing = load_litellm().validate_environment(f"{provider}/{model}")["missing_keys"]
        named = " or ".join(name for name in missing if names_secret(name))  # it lists addresses and regions, too
        return Lack(f"litellm finds no key for '{self.model}' in {named}", certain=False) if named else None

    async def _ask(self, request: Mapping[str, Any]) -> Completion:
        begun = self.clock.now()
        retry = 0
        while True:
            outcome = await self._try(request)
            if isinstance(outcome, Completion):
                return outcome._replace(seconds=self.clock.now() - begun, retries=retry)
            if not outcome.passing or retry == self.retries or (outcome.wait or 0) > PATIENCE:
                raise self._error(outcome, retry + 1)
            await self.clock.sleep(next_wait(retry, outcome.wait, self.clock.jitter()))
            retry += 1

    async def _try(self, request: Mapping[str, Any]) -> Completion | Fault:
        """Ask once. Faults are returned, not raised, so that no error carries litellm's, and a key, as its context."""
        litellm, openai = load_litellm(), require("openai", "llm")
        key = self._key()  # here and in nothing that outlives the request
        try:
            async with asyncio.timeout(self.timeout):  # litellm's own counts from one piece of an answer to the next
                answer = await litellm.acompletion(**request, api_key=key)
        except TimeoutError:
            return Fault(f"no whole answer came within {self.timeout:g} seconds", passing=True, status=408)
        except openai.OpenAIError as error:
            return Completion("", "content_filter", {}, None) if is_filtered(error) else read_fault(error)
        return read_answer(answer, self.price(0, 0) is not None)

    def _error(self, fault: Fault, tries: int) -> ServiceError:
        times = "once" if tries == 1 else f"{tries} times"
        if not fault.passing:
            advice = fault.advice
        elif (fault.wait or 0) > PATIENCE:
            advice = f"it asks to wait {fault.wait:.0f} seconds; run the same command again after that"
        else:
            advice = "run the same command again later to go on, with fewer requests at once if it is the rate"
        return ServiceError(
            f"the model '{self.model}' was asked {times} and gave no answer: {fault.said}; {advice}",
            status=fault.status,
            passing=fault.passing,
        )

    def _request(self, messages: Sequence[Message], seed: int | None) -> dict[str, Any]:
        model, provider = self._route
        settings = self._settings | {"seed": self.seed if self.seed is not None else seed}
        return {
            "model": f"{provider}/{model}",  # litellm takes one such prefix off, even where the name begins alike
            "custom_llm_provider": provider,
            "messages": [{name: _sendable(text) for name, text in message.items()} for message in messages],
            "api_base": self.base_url,
            "timeout": self.timeout,
            "num_retries": 0,
            "max_retries": 0,
            **{name: value for name, value in settings.items() if name in self._taken and value is not None},
        }

    @property
    def _settings(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in ("max_tokens", "reasoning_effort", "temperature")}
        return {name: value for name, value in named.items() if value is not None}

    @cached_property
    def _route(self) -> tuple[str, str]:
        """Name of the model at its provider, and litellm's name of the provider."""
        litellm = load_litellm()
        try:
            model, provider, *_ = litellm.get_llm_provider(self.model, api_base=self.base_url)
        except litellm.BadRequestError:
            if self.base_url is None:
                raise OptionError(
                    f"litellm knows no provider for the model '{self.model}'; write it as provider/model, such as "
                    "openai/gpt-4o-mini, or give the base_url of the server that has it"
                ) from None
            return self.model, "openai"
        return str(model), str(provider)

    @cached_property
    def _taken(self) -> frozenset[str]:
        """Settings that litellm says the provider takes with these values, each beside those before it."""
        litellm = load_litellm()
        model, provider = self._route
        taken: dict[str, Any] = {}
        for name, value in (self._settings | {"seed": self.seed or 0}).items():
            try:
                litellm.utils.get_optional_params(
                    model=model, custom_llm_provider=provider, drop_params=False, **taken, **{name: value}
                )
            except litellm.UnsupportedParamsError:
                continue
            taken[name] = value
        return frozenset(taken)

    @cached_property
    def _listed(self) -> dict[str, Any]:
        """What litellm's price list says of the model; empty where it is not listed."""
        model, provider = self._route
        prices = load_litellm().model_cost
        entry: dict[str, Any] = prices.get(f"{provider}/{model}") or prices.get(model) or {}
        # The list has families of one provider, such as vertex_ai-language-models, and one name at several providers.
        return entry if str(entry.get("litellm_provider")).startswith(provider) else {}

    def _key(self) -> str | None:
        """Return the key, or None where litellm finds it itself."""
        if self.api_key_env is not None:
            if not os.environ.get(self.api_key_env):
                raise OptionError(f"the environment variable {self.api_key_env} is to hold the key and is not set")
            return os.environ[self.api_key_env]
        if self._route[1] == "openai" and not os.environ.get("OPENAI_API_KEY"):
            if self.base_url is None:
                raise OptionError(f"the model '{self.model}' needs a key: set the environment variable OPENAI_API_KEY")
            return _NO_KEY
        return None


def _whole(value: int | None, least: int) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least)


def _number(value: object) -> bool:
    """Tell whether ``value`` is a finite number from 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_plain_address(address: object) -> bool:
    try:
        parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc and not parts.query


def _sendable(text: str) -> str:
    """Return text that UTF-8 can carry; a model may write half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
