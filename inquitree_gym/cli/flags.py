"""Flags of the settings of every kind of environment, made of the fields of these settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, TypeVar, get_origin

import typer
from pydantic import BaseModel, ValidationError, create_model
from pydantic.fields import FieldInfo

from inquitree_gym.cli.output import split
from inquitree_gym.errors import OptionError
from inquitree_gym.kind_settings import TableField
from inquitree_gym.kinds import Kind, kind, kinds_with
from inquitree_gym.runs.study import faults

F = TypeVar("F", bound=Callable[..., Any])
SETTINGS, AGENT, JUDGE, FORMULAS, REPORT = "settings", "agent", "judge", "formulas", "report"
_TABLES: Mapping[str, Callable[[Kind], type[BaseModel]]] = {
    SETTINGS: lambda kind: kind.settings,
    AGENT: lambda kind: kind.settings.agent,
    JUDGE: lambda kind: create_model("JudgeOptions", **kind.judging.options.own_fields()),
    FORMULAS: lambda kind: kind.settings.formulas,
    REPORT: lambda kind: kind.settings.report,
}
"""Tables of the flags of a kind by group."""


class KindFlag(NamedTuple):
    """Flags of one field of a table of a kind."""

    kind: str
    name: str
    field: FieldInfo

    @property
    def table(self) -> TableField | None:
        """The mark of a field that holds a table, or None."""
        return next((each for each in self.field.metadata if isinstance(each, TableField)), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters of the flags: the field, and for a table its other entries and its server."""
        table = self.table
        if table is None:
            return (self.name,)
        pairs = (table.pairs,) if table.pairs else ()
        return (self.name, *pairs, *((f"{self.name}_base_url",) if table.server else ()))

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters of a verb for the flags."""
        table = self.table
        note = f"{self.field.description} [{self.kind}]"
        if self.field.annotation is bool:
            switch = f"--{_dashed(self.name)}"
            decls = f"{switch}/--no-{_dashed(self.name)}" if self.field.default else switch
            yield _parameter(self.name, bool, self.field.default, note, decls)
        else:
            yield _parameter(self.name, str | None, None, note)
        if table is not None and table.pairs:
            help_text = f"Another entry of --{_dashed(self.name)}, as NAME=VALUE; may be repeated. [{self.kind}]"
            yield _parameter(table.pairs, list[str] | None, None, help_text)
        if table is not None and table.server:
            yield _parameter(
                f"{self.name}_base_url", str | None, None, f"Server of the {self.name}'s model. [{self.kind}]"
            )

    def value(self, flags: Mapping[str, Any], given: Collection[str]) -> Any:
        """Return the value of the field from the given flags. Raise `OptionError` for another form or a lost value."""
        text, table = flags[self.name], self.table
        if table is None:
            is_list = get_origin(self.field.annotation) is tuple
            return split(text) if is_list else text
        others = named_values(f"--{_dashed(table.pairs)}", flags[table.pairs] or ()) if table.pairs else {}
        if table.server and f"{self.name}_base_url" in given:
            if self.name not in given:
                raise OptionError(
                    f"--{self.name}-base-url without a model does nothing; name one with --{self.name} "
                    f"{table.prefix}MODEL"
                )
            others["base_url"] = flags[f"{self.name}_base_url"]
        if not others:
            return text
        named = {} if text is None else {table.key: text.removeprefix(table.prefix)}
        return named | others


def with_kind_flags(*groups: str) -> Callable[[F], F]:
    """Return a decorator that adds the flags of all kinds in some groups to a verb that takes the context."""

    def decorate(verb: F) -> F:
        flags = [flag for group in groups for flag in _flags(_kinds(group), group)]
        return with_parameters(verb, (parameter for flag in flags for parameter in flag.parameters()))

    return decorate


def with_grid_flags(verb: F) -> F:
    """Return a verb with a flag for each field in the grid of a kind. The verb takes them as ``**cell``."""
    about = "Only the episodes at this "
    return with_parameters(
        verb, (_parameter(name, str | None, None, f"{about}{name.replace('_', ' ')}.") for name in sorted(grid_names()))
    )


def grid_names() -> set[str]:
    """Return the fields in the grid of any kind."""
    return {name for known in kinds_with(SETTINGS) for name in known.settings.grid}


def with_parameters(verb: F, parameters: Iterable[Parameter]) -> F:
    """Return a verb with further parameters in the place of its ``**``. Those that it names itself stay."""
    own = signature(verb, eval_str=True)
    every = {name: each for name, each in own.parameters.items() if each.kind is not Parameter.VAR_KEYWORD}
    for parameter in parameters:
        every.setdefault(parameter.name, parameter)
    ordered = sorted(every.values(), key=lambda each: each.kind)
    verb.__signature__ = own.replace(parameters=ordered)  # type: ignore[attr-defined]
    return verb


def kind_values(env: str, group: str, flags: Mapping[str, Any], given: Collection[str]) -> dict[str, Any]:
    """Return the values of a table of one kind that are given as flags. See `values_by_kind`."""
    return values_by_kind([env], group, flags, given)[env]


def values_by_kind(
    envs: Collection[str], group: str, flags: Mapping[str, Any], given: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the values of a table of some kinds that are given as flags, by kind. A study checks its settings itself.

    Args:
        envs: names of the kinds.
        group: name of the table.
        flags: all parameters of the verb.
        given: the parameters that were set on the command line.

    Raises:
        OptionError: a value has another form or is out of range, or a flag is one of other kinds alone.
    """
    own = {env: list(_flags([kind(env)], group)) for env in envs}
    known = {name for of_kind in own.values() for flag in of_kind for name in flag.names}
    for flag in _flags(_kinds(group), group):
        foreign = [name for name in flag.names if name in given and name not in known]
        if foreign:
            raise OptionError(
                f"--{_dashed(foreign[0])} is a flag of --env {flag.kind}, not of --env {', '.join(envs)}; leave it out"
            )
    values = {
        env: {flag.name: flag.value(flags, given) for flag in of_kind if any(name in given for name in flag.names)}
        for env, of_kind in own.items()
    }
    return values if group in (SETTINGS, AGENT) else {env: _checked(env, group, of) for env, of in values.items()}


def _checked(env: str, group: str, values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        table = _TABLES[group](kind(env)).model_validate(values)
    except ValidationError as error:
        raise OptionError("; ".join(f"--{fault}" for fault in faults(error))) from None
    return {name: getattr(table, name) for name in values}


def kind_parameters(*groups: str) -> set[str]:
    """Return the names of the parameters of the flags of all kinds in some groups."""
    return {name for group in groups for flag in _flags(_kinds(group), group) for name in flag.names}


def named_values(option: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Return values from ``NAME=VALUE``, true, false and numbers read as such. Raise `OptionError` for other forms."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not (name and sign):
            raise OptionError(f"{option} must be NAME=VALUE, such as bare_decisions=false, got '{pair}'")
        try:
            values[name] = json.loads(value)
        except json.JSONDecodeError:
            values[name] = value
    return values


def given(context: typer.Context) -> set[str]:
    """Return the parameters set on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def flag_names(parameters: Iterable[str]) -> str:
    """Return parameters as their flags."""
    names = {"context_tokens": "context"}
    return ", ".join("--" + _dashed(names.get(name, name)) for name in sorted(parameters))


def _kinds(group: str) -> tuple[Kind, ...]:
    return kinds_with("judging" if group == JUDGE else "settings")


def _flags(of: Iterable[Kind], group: str) -> Iterator[KindFlag]:
    for each in of:
        for name, field in _TABLES[group](each).model_fields.items():
            yield KindFlag(each.name, name, field)


def _parameter(name: str, of: Any, default: Any, help_text: str, *decls: str) -> Parameter:
    annotation = Annotated[of, typer.Option(*decls, help=help_text)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _dashed(name: str) -> str:
    return name.replace("_", "-")
