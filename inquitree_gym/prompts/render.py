"""Rendering of prompt templates. Node texts are values and are never parsed as templates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, StrictUndefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateError, TemplateRuntimeError, TemplateSyntaxError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inquitree_gym.errors import OptionError, suggest

MAX_TEXT = 1_000_000
"""Most characters of a text, those joined on the way to it included. A round of a loop counts as `ROUND`."""
ROUND = 100
_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Name, nodes.Const, nodes.List,
    nodes.Tuple, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.BinExpr,
    nodes.UnaryExpr, nodes.Concat, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Keyword,
)  # fmt: skip
_FILTERS = (
    "capitalize", "count", "d", "default", "first", "int", "items", "last", "length", "list", "lower", "max", "min",
    "reverse", "sort", "string", "title", "trim", "unique", "upper", "wordcount",
)  # fmt: skip
"""Filters whose result is no longer than their input."""


@lru_cache(maxsize=16)
def sandbox(sources: tuple[tuple[str, str], ...]) -> Sandbox:
    """Return the environment of templates, given by name and source. Equal ones are compiled once per process."""
    return Sandbox(dict(sources))


class Sandbox(ImmutableSandboxedEnvironment):
    """Environment of templates that show values, choose and loop."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, sources: Mapping[str, str]) -> None:
        # No autoescape: the output is plain text for a model, not HTML.
        super().__init__(
            loader=DictLoader(sources),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self.globals.clear()
        own = {"join": _join, "map": _map, "_rounds": _rounds}
        self.filters = {name: self.filters[name] for name in _FILTERS} | own

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return a template filled with values. Raise `TemplateRuntimeError` above `MAX_TEXT` characters."""
        budget, parts, length = _Budget(), [], 0
        template = self.get_template(name)
        for part in template.root_render_func(template.new_context({**values, "_budget": budget})):
            length += len(part)
            if length > budget.left:
                budget.spend(length)
            parts.append(part)
        return "".join(parts)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply numbers, and divide them with a remainder. Neither repeats nor formats a text."""
        if operator == "**" or not isinstance(left, int | float) or not isinstance(right, int | float):
            raise SecurityError("templates have no '**', and '*' and '%' take numbers alone")
        return super().call_binop(context, operator, left, right)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        for node in template.find_all(nodes.Node):
            if not isinstance(node, _NODES):
                raise TemplateSyntaxError(f"'{type(node).__name__.lower()}' is not part of templates", node.lineno)
        for loop in list(template.find_all(nodes.For)):
            loop.iter = nodes.Filter(loop.iter, "_rounds", [], [], None, None, lineno=loop.lineno)
        template.set_environment(self)
        return template


class _Budget:
    left = MAX_TEXT

    def spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TemplateRuntimeError(f"the text is longer than {MAX_TEXT:,} characters (a round of a loop: {ROUND})")


@pass_context
def _rounds(context: Context, values: Iterable[object]) -> Iterator[object]:
    budget = context["_budget"]
    for value in values:
        budget.spend(ROUND)
        yield value


@pass_context
def _join(context: Context, values: Iterable[object], d: str = "") -> str:
    texts = [str(value) for value in values]
    context["_budget"].spend(sum(map(len, texts)) + len(d) * len(texts))
    return d.join(texts)


@pass_context
def _map(context: Context, values: Iterable[object], *, attribute: str) -> list[Any]:
    """Return an attribute of each value. The `map` of Jinja can also apply filters, which may nest."""
    return [context.environment.getattr(value, attribute) for value in values]


CORE = "inquitree_gym.prompts"
"""Package of the templates that every kind of environment shares."""
DEFAULT = "default"
"""Name of the prompts of the package."""
MAX_TEMPLATE_BYTES = 100_000


class Prompts:
    """Prompt templates of a package, which a folder of templates may override."""

    def __init__(
        self, chosen: str | os.PathLike[str] | None = None, names: Sequence[str] = (), package: str = CORE
    ) -> None:
        """Load the templates with these names.

        Args:
            chosen: ``"default"`` or None for the package's own, the name of a folder within its ``templates`` for
                another set of its own, such as ``"paper"``, or a folder whose ``.md`` files replace the package's own.
                It may hold templates of environments and of agents.
            names: names of the templates.
            package: package with the folder ``templates``. What it lacks is taken from those that all kinds share.

        Raises:
            OptionError: the folder is missing, or a template in it has an unknown name, is too large, is not UTF-8 text
                or has a syntax error. Every such file is listed.
        """
        is_own = is_packaged(chosen, package)
        self.folder = None if is_own else Path(os.path.expanduser(chosen or DEFAULT))
        self._default = {name: _packaged(name, package) for name in names}
        self._sources = dict(self._default)
        if self.folder is not None:
            own = _overrides(self.folder, names, package)
            self._sources |= own
            self._check_syntax(own)
        elif chosen not in (None, DEFAULT):
            self._sources |= _other_set(str(chosen), names, package)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the names and sources of all templates, in hex."""
        return hashlib.sha256(repr(sorted(self._sources.items())).encode()).hexdigest()

    @property
    def changed(self) -> dict[str, str]:
        """Templates that differ from the default ones of the package, by name."""
        return {name: source for name, source in self._sources.items() if source != self._default[name]}

    def render(self, name: str, **values: object) -> str:
        """Return the template ``name`` filled with values.

        Raises:
            OptionError: the template does not exist, uses an unknown value, fails, or violates the sandbox.
        """
        if name not in self._sources:
            raise OptionError(f"no template '{name}'{suggest(name, self._sources)}; known: {', '.join(self._sources)}")
        try:
            return self._environment.fill(name, values).strip()
        except (TemplateError, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise OptionError(
                f"template '{name}.md' {self._where}: {error}; known values: {', '.join(values) or 'none'}"
            ) from error

    @property
    def _where(self) -> str:
        return "of this package" if self.folder is None else f"in '{self.folder}'"

    def _check_syntax(self, names: Iterable[str]) -> None:
        faults = []
        for name in names:
            try:
                self._environment.get_template(name)
            except TemplateSyntaxError as error:
                faults.append(f"template '{name}.md' {self._where}, line {error.lineno}: {error.message}")
            except (ArithmeticError, MemoryError, RecursionError, SyntaxError, ValueError) as error:
                faults.append(f"template '{name}.md' {self._where} cannot be compiled: {error}")
        if faults:
            raise OptionError("\n".join(faults))

    @cached_property
    def _environment(self) -> Sandbox:
        return sandbox(tuple(self._sources.items()))

    def __getstate__(self) -> dict[str, object]:
        return {"folder": self.folder, "_default": self._default, "_sources": self._sources}


def is_packaged(chosen: str | os.PathLike[str] | None, package: str) -> bool:
    """Return whether a choice of prompts names a set of a package, and not a folder of the user's."""
    return chosen in (None, DEFAULT) or (isinstance(chosen, str) and chosen in _sets(package))


@cache
def _sets(package: str) -> frozenset[str]:
    """Return the names of the folders within the templates of a package."""
    folder = resources.files(package).joinpath("templates")
    return frozenset(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else frozenset()


@cache
def _own_names(package: str) -> frozenset[str]:
    """Return the names of the templates of a package."""
    folder = resources.files(package).joinpath("templates")
    return frozenset(entry.name.removesuffix(".md") for entry in folder.iterdir() if entry.name.endswith(".md"))


@cache
def _packaged(name: str, package: str, *folder: str) -> str:
    holder = package if folder or name in _own_names(package) else CORE
    return resources.files(holder).joinpath("templates", *folder, f"{name}.md").read_text(encoding="utf-8")


def _other_set(chosen: str, names: Sequence[str], package: str) -> dict[str, str]:
    """Return those of the named templates that another set of a package has."""
    files = resources.files(package).joinpath("templates", chosen)
    return {name: _packaged(name, package, chosen) for name in names if files.joinpath(f"{name}.md").is_file()}


def _overrides(folder: Path, names: Sequence[str], package: str) -> dict[str, str]:
    if not os.path.isdir(folder):
        sets = " or ".join(f"'{name}'" for name in (DEFAULT, *sorted(_sets(package))))
        raise OptionError(f"no folder of templates at '{folder}'; give an existing one, {sets}")
    templates, faults = {}, []
    for file in sorted(folder.glob("*.md")):
        if file.stem not in names and file.stem in _own_names(package) | _own_names(CORE):
            continue  # a template of the environment beside those of the agent, or the other way round
        if file.stem not in names:
            faults.append(f"'{file}' is not a known template{suggest(file.stem, names)}; known: {', '.join(names)}")
        elif not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            faults.append(f"'{file}' cannot be read: it is no file of this folder; put it there itself, not a link")
        elif file.stat().st_size > MAX_TEMPLATE_BYTES:
            faults.append(f"'{file}' is larger than {MAX_TEMPLATE_BYTES:,} bytes, too large for a template")
        else:
            try:
                templates[file.stem] = file.read_text(encoding="utf-8-sig")
            except (UnicodeDecodeError, OSError) as error:
                faults.append(f"'{file}' cannot be read as UTF-8 text: {error}")
    if faults:
        raise OptionError("\n".join(faults))
    return templates
