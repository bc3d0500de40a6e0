"""A chat model by litellm's name: its settings, its requests and their retries."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from inquitree_gym.errors import OptionError, ServiceError, require
from inquitree_gym.llm.chat import Completion, Message, is_amount
from inquitree_gym.llm.litellm import MIN_SECRET, load_litellm, names_secret, submit
from inquitree_gym.llm.retry import (
    LONGEST_REQUESTED_WAIT,
    RequestFault,
    SystemClock,
    is_filtered,
    next_wait,
    read_fault,
)

MAX_REPLY = 100_000
"""Characters of a reply that are kept. The rest is cut off and counted."""
_NO_KEY = "none"
"""Placeholder for a local server that needs no key. OpenAI's client insists on one."""
_TOKEN_DETAILS = {
    "reasoning": ("completion_tokens_details", "reasoning_tokens"),
    "cached": ("prompt_tokens_details", "cached_tokens"),
}


@dataclass(frozen=True, slots=True)
class MissingKey:
    """A key that requests will need and that is not set."""

    message: str
    certain: bool
    """True if every request will fail without it. litellm knows only the usual variable of a provider."""


@dataclass(frozen=True)
class ChatModel:
    """A model of any provider that litellm supports, or of a server that speaks OpenAI's protocol.

    The key is read from an environment variable for each request and stored nowhere.

    Raises:
        OptionError: a setting is out of range, or the address carries a user, a password, a query or a fragment.
    """

    model: str
    """litellm's name: ``provider/model``, or the name alone if litellm knows it. With ``base_url``, a name without a
    known provider is sent unchanged in OpenAI's protocol. ``openai/NAME`` is always sent so."""
    base_url: str | None = None
    """Address of the server, such as ``http://localhost:8000/v1``. None for the provider's own."""
    temperature: float | None = 0.0
    """None sends none."""
    reasoning_effort: str | None = None
    """The provider's word, such as ``low``, ``medium`` or ``high``. None sends none."""
    seed: int | None = None
    """Sent with every request. None leaves it to the caller of `complete`."""
    max_tokens: int | None = 4096
    """Maximum length of one reply in tokens, reasoning included. None leaves it to the provider."""
    timeout: float = 300.0
    """Seconds for one request and its whole response."""
    retries: int = 5
    """Further tries after a transient fault."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None for the provider's own."""
    clock: SystemClock = field(default_factory=SystemClock, repr=False, compare=False)
    _reached: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """The model, once its server was reached: one that goes away later may come back."""

    def __post_init__(self) -> None:
        faults = [f"{name} must be {expected}, got {getattr(self, name)!r}" for name, expected in self._out_of_range()]
        if self.base_url is not None and not _is_plain_address(self.base_url):
            # The address is not shown: it may hold a key.
            faults.append(
                "base_url must be http(s)://HOST/PATH without user, password, query or fragment; keys belong in the "
                "environment"
            )
        if faults:
            raise OptionError(f"invalid settings of the chat model '{self.model}': {'; '.join(faults)}")

    def _out_of_range(self) -> list[tuple[str, str]]:
        checks = {
            "model": (_text(self.model), "the name of a model"),
            "temperature": (self.temperature is None or is_amount(self.temperature), "a number from 0 or None"),
            "reasoning_effort": (self.reasoning_effort is None or _text(self.reasoning_effort), "a word or None"),
            "seed": (_whole(self.seed, 0), "an integer from 0 or None"),
            "max_tokens": (_whole(self.max_tokens, 1), "an integer from 1 or None"),
            "timeout": (is_amount(self.timeout) and self.timeout > 0, "a number of seconds above 0"),
            "retries": (self.retries is not None and _whole(self.retries, 0), "an integer from 0"),
        }
        return [(name, expected) for name, (valid, expected) in checks.items() if not valid]

    @property
    def config(self) -> dict[str, Any]:
        """See `Chat.config`. ``dropped`` lists the settings that the provider does not accept, according to litellm."""
        names = ("model", "base_url", "temperature", "reasoning_effort", "seed", "max_tokens")
        return {name: getattr(self, name) for name in names} | {"dropped": list(self.dropped)}

    @property
    def dropped(self) -> tuple[str, ...]:
        """Settings that are not sent because the provider does not accept them, according to litellm."""
        return tuple(name for name in (*self._settings, "seed") if name not in self._accepted)

    @property
    def largest_request(self) -> int | None:
        """Estimated tokens of the largest request, by the window in litellm's list. None if the list has none.

        The model's longest reply has to fit in as well, and a tenth is left for the error of the estimate.
        """
        window, reply = (self._listed.get(name) for name in ("max_input_tokens", "max_output_tokens"))
        if not isinstance(window, int):
            return None
        return max(window * 9 // 10 - (reply if isinstance(reply, int) else 0), window // 4)

    async def complete(self, messages: Sequence[Message], *, seed: int | None = None) -> Completion:
        """Return the model's reply. See `Chat.complete`."""
        return await asyncio.wrap_future(submit(self._request(self._body(messages, seed))))

    def price(self, prompt: int, completion: int) -> float | None:
        """Return US dollars for these numbers of tokens by litellm's price list. None if it has no price."""
        entry = self._listed
        try:
            return prompt * float(entry["input_cost_per_token"]) + completion * float(entry["output_cost_per_token"])
        except (KeyError, TypeError):
            return None

    def missing_key(self) -> MissingKey | None:
        """Return the key that requests will need and that is not set. None if no key is known to be missing.

        Raises:
            OptionError: litellm knows no provider for the model.
        """
        model, provider = self._route
        try:
            self._key()
        except OptionError as error:
            return MissingKey(str(error), certain=True)
        if self.base_url is not None or self.api_key_env is not None or provider == "openai":
            return None
        missing = load_litellm().validate_environment(f"{provider}/{model}")["missing_keys"]
        named = " or ".join(name for name in missing if names_secret(name))  # it also lists addresses and regions
        return MissingKey(f"litellm finds no key for '{self.model}' in {named}", certain=False) if named else None

    async def _request(self, body: Mapping[str, Any]) -> Completion:
        started = self.clock.now()
        retry = 0
        while True:
            outcome = await self._try(body)
            if isinstance(outcome, Completion) or outcome.status is not None:
                self._reached.add(self.model)
            elif outcome.refused and not self._reached:
                raise self._error(dataclasses.replace(outcome, transient=False), retry + 1)
            if isinstance(outcome, Completion):
                return dataclasses.replace(outcome, seconds=self.clock.now() - started, retries=retry)
            if not outcome.transient or retry == self.retries or (outcome.wait or 0) > LONGEST_REQUESTED_WAIT:
                raise self._error(outcome, retry + 1)
            await self.clock.sleep(next_wait(retry, outcome.wait, self.clock.jitter()))
            retry += 1

    async def _try(self, body: Mapping[str, Any]) -> Completion | RequestFault:
        """Make one request. Return a fault, since raising it would carry litellm's error, and a key, as its context."""
        litellm, openai = load_litellm(), require("openai", "llm")
        key = self._key()
        # litellm finds a provider's key itself, usually in the variable of this name.
        usual = os.environ.get(f"{self._route[1].upper()}_API_KEY", "")
        sent = "" if key == _NO_KEY else key or usual
        try:
            async with asyncio.timeout(self.timeout):  # litellm's own restarts with each piece of a response
                response = await litellm.acompletion(**body, api_key=key)
        except TimeoutError:
            return RequestFault(f"no complete response within {self.timeout:g} seconds", transient=True, status=408)
        except openai.OpenAIError as error:
            if is_filtered(error):
                return Completion("", "content_filter", {}, None)
            return read_fault(error, sent, self.base_url)
        return _without(sent, _read_response(response, self.price(0, 0) is not None))

    def _error(self, fault: RequestFault, tries: int) -> ServiceError:
        if not fault.transient:
            advice = fault.advice
        elif (fault.wait or 0) > LONGEST_REQUESTED_WAIT:
            advice = f"it asks to wait {fault.wait:.0f} seconds; run the same command again after that"
        else:
            advice = (
                "run the same command again later to continue, with fewer concurrent requests if the rate is limited"
            )
        times = "once" if tries == 1 else f"{tries} times"
        return ServiceError(
            f"the model '{self.model}' was asked {times} and gave no answer: {fault.message}; {advice}",
            status=fault.status,
            transient=fault.transient,
        )

    def _body(self, messages: Sequence[Message], seed: int | None) -> dict[str, Any]:
        model, provider = self._route
        settings = self._settings | {"seed": self.seed if self.seed is not None else seed}
        return {
            "model": f"{provider}/{model}",  # litellm removes one such prefix, even from a name that begins with it
            "custom_llm_provider": provider,
            "messages": [{name: _encodable(text) for name, text in message.items()} for message in messages],
            "api_base": self.base_url,
            "timeout": self.timeout,
            "num_retries": 0,
            "max_retries": 0,
            **{name: value for name, value in settings.items() if name in self._accepted and value is not None},
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
                    "openai/gpt-4o-mini, or give the base_url of its server"
                ) from None
            return self.model, "openai"
        return str(model), str(provider)

    @cached_property
    def _accepted(self) -> frozenset[str]:
        """Settings that the provider accepts with these values, each beside those before it, according to litellm."""
        litellm = load_litellm()
        model, provider = self._route
        accepted: dict[str, Any] = {}
        for name, value in (self._settings | {"seed": self.seed or 0}).items():
            try:
                litellm.utils.get_optional_params(
                    model=model, custom_llm_provider=provider, drop_params=False, **accepted, **{name: value}
                )
            except litellm.UnsupportedParamsError:
                continue
            accepted[name] = value
        return frozenset(accepted)

    @cached_property
    def _listed(self) -> dict[str, Any]:
        """The model's entry in litellm's price list. Empty if it is not listed."""
        model, provider = self._route
        prices = load_litellm().model_cost
        entry: dict[str, Any] = prices.get(f"{provider}/{model}") or prices.get(model) or {}
        # The list has families of one provider, such as vertex_ai-language-models, and one name at several providers.
        return entry if str(entry.get("litellm_provider")).startswith(provider) else {}

    def _key(self) -> str | None:
        """Return the key, or None if litellm finds it itself."""
        if self.api_key_env is not None:
            if not os.environ.get(self.api_key_env):
                raise OptionError(f"set the environment variable {self.api_key_env} to the API key")
            return os.environ[self.api_key_env]
        if self._route[1] == "openai" and not os.environ.get("OPENAI_API_KEY"):
            if self.base_url is None:
                raise OptionError(f"the model '{self.model}' needs a key: set the environment variable OPENAI_API_KEY")
            return _NO_KEY
        return None


def _without(sent: str, outcome: Completion | RequestFault) -> Completion | RequestFault:
    """Return a completion without the key that was sent. A shorter one may be an ordinary word of a reply."""
    if isinstance(outcome, RequestFault) or len(sent) < MIN_SECRET:
        return outcome
    text, finish_reason = (part.replace(sent, "[key]") for part in (outcome.text, outcome.finish_reason))
    return dataclasses.replace(outcome, text=text, finish_reason=finish_reason)


def _read_response(response: Any, priced: bool) -> Completion | RequestFault:
    """Return the completion in litellm's ``ModelResponse``, or its fault. Litellm may report an unknown price as 0."""
    choices = getattr(response, "choices", None)
    if not choices:
        return RequestFault("the response holds no choice", transient=True)
    text, finish_reason = _read_choice(choices[0])
    if not isinstance(text, str):
        return RequestFault(f"the response holds {type(text).__name__} instead of text", transient=True)
    tokens = _read_tokens(getattr(response, "usage", None))
    cost = getattr(response, "_hidden_params", {}).get("response_cost") if priced and tokens else None
    return Completion(text[:MAX_REPLY], finish_reason, tokens, cost, cut=max(0, len(text) - MAX_REPLY))


def _read_choice(choice: Any) -> tuple[Any, str]:
    """Return text and finish reason."""
    message = choice.message
    finish_reason = _extra_fields(choice).get("native_finish_reason") or choice.finish_reason or ""
    refusal = _extra_fields(message).get("refusal")
    if not message.content and refusal:
        return refusal, "refusal"
    return message.content or "", str(finish_reason)


def _extra_fields(part: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(part, "provider_specific_fields", None) or {}
    return found


def _read_tokens(usage: Any) -> dict[str, int]:
    counted = {"prompt": getattr(usage, "prompt_tokens", 0), "completion": getattr(usage, "completion_tokens", 0)}
    if not any(counted.values()):
        return {}  # litellm writes zeros if the service counted nothing
    for kind, (group, name) in _TOKEN_DETAILS.items():
        number = getattr(getattr(usage, group, None), name, None)
        if number is not None:
            counted[kind] = number
    return {kind: int(number or 0) for kind, number in counted.items()}


def _whole(value: int | None, least: int) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= least)


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_plain_address(address: object) -> bool:
    try:
        parts = urlsplit(address) if isinstance(address, str) else urlsplit("")
    except ValueError:
        return False
    clean = isinstance(address, str) and address.isprintable() and not parts.query and not parts.fragment
    return clean and parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _encodable(text: str) -> str:
    """Replace lone surrogates, which a model may write and UTF-8 cannot carry."""
    return text.encode("utf-8", "replace").decode()
