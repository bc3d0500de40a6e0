"""Keywords and options of environments: checks of their names, signatures that show them, and tasks by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar, get_type_hints

from inquitree_gym.errors import OptionError, suggest

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Keywords = dict[str, Any]


def checked_keywords(
    *, refused: Mapping[str, str] | None = None, expand: Callable[[Keywords], Keywords] = dict
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that makes a function raise `OptionError` with a suggestion for an unknown keyword.

    Args:
        refused: advice by the name of a keyword, for functions without it.
        expand: replaces keywords that stand for others, once all names are checked.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = tuple(name for name in signature(function).parameters if name != "self")

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name, advice in (refused or {}).items():
                if name in kwargs and name not in known:
                    raise OptionError(advice)
            check_names(kwargs, known, "the environment")
            kwargs.update(expand(kwargs))
            return function(*args, **kwargs)

        return checked

    return decorate


def signed_keywords(
    template: Callable[..., Any], keywords: type[Any], check: Callable[[Callable[P, R]], Callable[P, R]]
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of functions that take ``**keywords: Unpack[...]``.

    Their signature names each of these ``keywords``, a `TypedDict`, with the default that it has in ``template``, as
    `help` shows it. ``check`` decorates the result. See `checked_keywords`.
    """
    offered = [
        parameter for name, parameter in signature(template).parameters.items() if name in keywords.__annotations__
    ]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        own = signature(function)
        named = [parameter for parameter in own.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        vars(function)["__signature__"] = own.replace(parameters=[*named, *offered])
        function.__annotations__ |= get_type_hints(keywords)
        return check(function)

    return decorate


def check_names(given: Mapping[str, Any], known: tuple[str, ...], taker: str) -> None:
    """Raise `OptionError` with a suggestion for a name that ``taker`` does not know."""
    for name in given:
        if name not in known:
            raise OptionError(f"unknown option '{name}'{suggest(name, known)}; {taker} takes: {', '.join(known)}")


def load_each(tasks: Any, load: Callable[[Any], T], *, single: tuple[type, ...], noun: str) -> tuple[T, ...]:
    """Return one task or several.

    Args:
        tasks: a task, or a sequence with at least one. Each may also be named.
        load: returns a task by its name.
        single: types that stand for one task.
        noun: words for such a type.

    Raises:
        OptionError: ``tasks`` is neither.
    """
    if isinstance(tasks, single):
        return (load(tasks),)
    if not isinstance(tasks, Sequence) or not tasks:
        raise OptionError(f"{noun}, or a non-empty sequence of these, got {tasks!r:.80}")
    return tuple(load(task) for task in tasks)
