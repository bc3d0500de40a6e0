"""Jinja's sandbox with bounds: the cost of a text grows with its template and its values, and no faster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import (
    DictLoader,
    Environment,
    StrictUndefined,
    TemplateRuntimeError,
    TemplateSyntaxError,
    nodes,
    pass_environment,
)
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEXT = 1_000_000
"""Characters of a rendered text."""
MAX_LOOPS = 2
"""Depth of loops within each other."""
MAX_LITERAL = 100
"""Characters or items of a text or list, written in the template itself, that a loop may go through."""
MAX_INCLUDES = 2
"""Templates that one template may take in."""
_FILTERS = frozenset((
    "capitalize", "count", "d", "default", "first", "int", "items", "last", "length", "list", "lower", "max",
    "min", "reverse", "sort", "string", "title", "trim", "truncate", "unique", "upper", "wordcount",
))  # fmt: skip
_METHODS = frozenset((
    "capitalize", "count", "endswith", "get", "index", "items", "keys", "lower", "lstrip", "rstrip", "split",
    "startswith", "strip", "title", "upper", "values",
))  # fmt: skip
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Macro: "macro", nodes.CallBlock: "call", nodes.FilterBlock: "filter", nodes.AssignBlock: "set without =",
    nodes.With: "with", nodes.Import: "import", nodes.FromImport: "from", nodes.Extends: "extends",
    nodes.Block: "block",
}  # fmt: skip
_GROWING: tuple[type[nodes.Expr], ...] = (
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Filter,
    nodes.Call,
    nodes.Concat,
    nodes.BinExpr,
)


@lru_cache(maxsize=16)
def sandbox(sources: tuple[tuple[str, str], ...]) -> Sandbox:
    """Return the environment of templates, given by name and source; equal ones are compiled once per process."""
    return Sandbox(dict(sources))


class Sandbox(ImmutableSandboxedEnvironment):
    """Environment of templates without global functions, and without what lets a text grow beyond bounds."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, sources: Mapping[str, str]) -> None:
        # No autoescape: the output is plain text for a model, not HTML.
        super().__init__(loader=DictLoader(sources), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in _FILTERS} | {"join": _join, "map": _map}

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return a template filled with values.

        Raises:
            TemplateRuntimeError: the text is longer than `MAX_TEXT`.
        """
        parts, length = [], 0
        for part in self.get_template(name).generate(values):
            length += len(part)
            _check_length(length)
            parts.append(part)
        return "".join(parts)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether a template may read an attribute; of built-in values, only harmless methods."""
        grows = callable(value) and type(obj).__module__ == "builtins" and attr not in _METHODS
        return not grows and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """Give texts no ``format`` in place of their own, which `is_safe_attribute` refuses: a width has no bound."""

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply numbers, and divide them with a remainder; neither repeats nor formats a text."""
        if operator == "**" or not isinstance(left, int | float) or not isinstance(right, int | float):
            raise SecurityError("templates have no '**', and '*' and '%' take numbers alone")
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed = super()._parse(source, name, filename)
        _check(parsed)
        return parsed


def _check(template: nodes.Template) -> None:
    """Refuse what can make the cost of a template exponential.

    Raises:
        TemplateSyntaxError: the template has such a thing.
    """
    for kind, word in _REFUSED.items():
        for node in template.find_all(kind):
            raise _refusal(f"'{word}' is not part of these templates", node)
    for each in template.find_all(nodes.Assign):
        if isinstance(each.node, _GROWING) or any(each.node.find(kind) for kind in _GROWING):
            raise _refusal("'set' takes a value as it is, without filters and operators", each)
    for extra in list(template.find_all(nodes.Include))[MAX_INCLUDES:]:
        raise _refusal(f"more than {MAX_INCLUDES} templates are included", extra)
    _check_loops(template, 0)


def _check_loops(node: nodes.Node, depth: int) -> None:
    if isinstance(node, nodes.For):
        depth += 1
        if depth > MAX_LOOPS:
            raise _refusal(f"loops lie more than {MAX_LOOPS} deep", node)
        if node.recursive:
            raise _refusal("'recursive' is not part of these templates", node)
        if _may_be_long(node.iter) or any(map(_may_be_long, node.iter.find_all(nodes.Expr))):
            raise _refusal("a loop goes through a value, or a short list", node)
    if depth and isinstance(node, nodes.Include):
        raise _refusal("a loop includes a template", node)
    for child in node.iter_child_nodes():
        _check_loops(child, depth)


def _may_be_long(node: nodes.Node) -> bool:
    """Return whether an expression can be much longer than the values that it is made of."""
    if isinstance(node, nodes.Const):
        return isinstance(node.value, str) and len(node.value) > MAX_LITERAL
    if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict):
        return len(node.items) > MAX_LITERAL
    return isinstance(node, nodes.Concat | nodes.BinExpr) or (
        isinstance(node, nodes.Filter) and node.name in ("join", "string")
    )


def _refusal(reason: str, node: nodes.Node) -> TemplateSyntaxError:
    return TemplateSyntaxError(reason, node.lineno)


def _join(values: Iterable[object], d: str = "") -> str:
    texts = [str(value) for value in values]
    _check_length(sum(map(len, texts)) + len(d) * len(texts))
    return d.join(texts)


@pass_environment
def _map(environment: Environment, values: Iterable[object], *, attribute: str) -> list[Any]:
    """Return an attribute of each value; the `map` of Jinja can also apply filters, which may nest."""
    return [environment.getattr(value, attribute) for value in values]


def _check_length(length: int) -> None:
    if length > MAX_TEXT:
        raise TemplateRuntimeError(f"the text is longer than {MAX_TEXT:,} characters")
