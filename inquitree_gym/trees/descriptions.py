"""JSON Schemas with the docstrings of fields, which pydantic would read from source code at every import."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, TypeAdapter


def described_schema(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of a model or union of models. Docstrings below fields are their descriptions."""
    schema: dict[str, Any] = TypeAdapter(model).json_schema()
    parts = {**schema.get("$defs", {}), schema.get("title", ""): schema}
    for each in _models(BaseModel):
        fields = parts.get(each.__name__, {}).get("properties", {})
        if fields and fields.keys() <= each.model_fields.keys():
            for name, text in _docstrings(each):
                if name in fields:
                    fields[name].setdefault("description", text)
    return schema


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield the subclasses of the package."""
    for each in base.__subclasses__():
        if each.__module__.startswith("inquitree_gym."):
            yield each
        yield from _models(each)


def _docstrings(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class and its bases that have a docstring below them, with it."""
    for base in model.__mro__:
        if base.__module__.startswith("inquitree_gym."):
            source = ast.parse(textwrap.dedent(inspect.getsource(base)))
            body = next(node.body for node in source.body if isinstance(node, ast.ClassDef))
            for field, after in itertools.pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    match after:
                        case ast.Expr(value=ast.Constant(value=str(text))):
                            yield field.target.id, inspect.cleandoc(text)
