"""Check that the house keeps its limits: size, imports, words of kinds, and what a command loads.

    python scripts/check_house.py            print every gate with its value and limit. Exit 1 if one is exceeded
    python scripts/check_house.py --static   only the gates that read files, in a second

The limits stand in ``pyproject.toml`` under ``tool.house``. A change that needs a higher one changes it there, and its
message says why.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "inquitree_gym"
HEADLESS = re.compile(r"\s*(What|Who|How|Where|Which|Whether|When|Why)\b")
"""Openings of docstrings that ask a question. A docstring opens with a verb or a noun phrase."""


class Gate(NamedTuple):
    """One measured value beside its limit."""

    name: str
    value: float
    limit: float
    places: list[str]
    """Places that make up the value, for gates whose limit is 0 or that name their largest case."""

    @property
    def holds(self) -> bool:
        """True if the value is within the limit."""
        return self.value <= self.limit


@dataclass(frozen=True)
class Module:
    """A module of the package as text."""

    name: str
    """Dotted name without the package. Empty for the package itself."""
    path: Path
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.source)

    @property
    def lines(self) -> int:
        """Number of lines, blank ones included."""
        return self.source.count("\n")

    @property
    def part(self) -> str:
        """First folder below the package, or the module itself."""
        return self.name.split(".")[0]

    @cached_property
    def functions(self) -> list[tuple[str, int]]:
        """Every function with its place and its lines without the docstring."""
        return [
            (f"{self.place(node)}: {node.name}", _size(node))
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def place(self, node: Any) -> str:
        """Return file and line of a node."""
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def _size(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function, from its ``def`` to its last one, without the docstring."""
    end = node.end_lineno or node.lineno
    first = node.body[0]
    documented = ast.get_docstring(node, clean=False) is not None
    return end - node.lineno + 1 - ((first.end_lineno or 0) - first.lineno + 1 if documented else 0)


def read_modules(folder: str = PACKAGE) -> list[Module]:
    """Return all modules of a folder, sorted by name."""
    modules = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / folder).with_suffix("").parts)
        modules.append(Module(re.sub(r"(^|\.)__init__$", "", name), path, path.read_text(encoding="utf-8")))
    return modules


def check_size(modules: list[Module], limits: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates on lines, modules, files and functions."""
    counted = [module for module in modules if module.part not in limits["own_budget"]]
    yield Gate("lines of the package", sum(module.lines for module in counted), limits["lines"], [])
    yield Gate("modules of the package", len(counted), limits["modules"], [])
    for part, limit in limits["own_budget"].items():
        own = [module for module in modules if module.part == part]
        yield Gate(f"lines of {part}/", sum(module.lines for module in own), limit, [])
    longest = max(modules, key=lambda module: module.lines)
    yield Gate("longest file", longest.lines, limits["file"], [str(longest.path.relative_to(ROOT))])
    compiled, plain = [
        [module for module in modules if (module.name in limits["compiled_modules"]) == compiled]
        for compiled in (True, False)
    ]
    size, place = max((size, place) for module in compiled for place, size in module.functions)
    yield Gate("longest compiled function", size, limits["compiled_function"], [place])
    functions = sorted((size, place) for module in plain for place, size in module.functions)
    yield Gate("longest function", functions[-1][0], limits["function"], [functions[-1][1]])
    percentile = statistics.quantiles([size for size, _ in functions], n=10)[-1]
    yield Gate("90th percentile of functions", percentile, limits["function_p90"], [])
    tests = sum(path.read_text(encoding="utf-8").count("\n") for path in (ROOT / "tests").rglob("*.py"))
    yield Gate("lines of tests", tests, limits["test_lines"], [])


def check_words(modules: list[Module], limits: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gate on words of kinds outside of the places that may name them."""
    words = re.compile("|".join(limits["kind_words"]), re.IGNORECASE)
    found = []
    for module in modules:
        if module.part in limits["kind_places"] or is_lazy(module):
            continue
        found += [f"{module.place(node)}: {word}" for node, word in _words(module) if words.search(word)]
    yield Gate("words of kinds outside of their folders", len(found), 0, found)


def is_lazy(module: Module) -> bool:
    """Return whether a module is an ``__init__`` that only re-exports names lazily."""
    return module.path.name == "__init__.py" and "lazy(" in module.source


def _words(module: Module) -> Iterator[tuple[Any, str]]:
    """Yield names and strings of the code of a module, docstrings left out."""
    docstrings = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node, node.value
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.alias):
            yield node, node.name
        elif isinstance(node, ast.Name):
            yield node, node.id
        elif isinstance(node, ast.Attribute):
            yield node, node.attr
        elif isinstance(node, ast.arg | ast.keyword) and node.arg:
            yield node, node.arg
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node, node.module


def check_style(modules: list[Module], limits: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates on broad exceptions, asserted and ignored types, docstrings and names that stand twice."""
    broad, asserted, classes, documented, joined, headless = [], [], {}, 0, 0, []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or getattr(node.type, "id", "") in {"Exception", "BaseException"}
            ):
                broad.append(module.place(node))
            if isinstance(node, ast.Assert) and "isinstance(" in ast.unparse(node.test):
                asserted.append(module.place(node))
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(module.place(node))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                documented += text is not None
                joined += text is not None and ";" in text
        headless += [module.place(node) for node in _docstrings(module) if HEADLESS.match(node.value.value)]
    ignored = [module.name for module in modules for _ in re.findall("type: ignore", module.source)]
    twice = [f"{name}: {', '.join(places)}" for name, places in classes.items() if len(places) > 1]
    yield Gate("broad except", len(broad), limits["broad_except"], broad)
    yield Gate("assert isinstance", len(asserted), 0, asserted)
    yield Gate("type: ignore", len(ignored), limits["type_ignore"], ignored)
    yield Gate("public classes of one name", len(twice), 0, twice)
    yield Gate("docstrings that open with a question word", len(headless), 0, headless)
    yield Gate("docstrings with a semicolon, %", round(100 * joined / documented, 1), limits["semicolons_percent"], [])


def _docstrings(module: Module) -> Iterator[ast.Expr]:
    """Yield every docstring, those of attributes included."""
    for node in ast.walk(module.tree):
        body = getattr(node, "body", [])
        for statement in body if isinstance(body, list) else []:
            constant = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                yield statement


def check_cycles(modules: list[Module]) -> Gate:
    """Return the gate on circles of imports, those for types included."""
    names = {module.name for module in modules}
    graph = {module.name: set(_imports(module, names)) - {module.name} for module in modules}
    cycles = [", ".join(sorted(group)) for group in components(graph) if len(group) > 1]
    return Gate("circles of imports", len(cycles), 0, cycles)


def _imports(module: Module, names: set[str]) -> Iterator[str]:
    """Yield the modules of the package that a module names in its import statements at the top level."""
    inside = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in inside or not (node.module or "").startswith(PACKAGE):
            continue
        base = (node.module or "").removeprefix(PACKAGE).removeprefix(".")
        for alias in node.names:
            target = f"{base}.{alias.name}".removeprefix(".")
            if target in names:
                yield target
            elif base and not (is_package_of(base, module.name) and target not in names):
                yield base


def is_package_of(package: str, module: str) -> bool:
    """Return whether a module lies in a package, whose ``__init__`` it may then take names from."""
    return module.startswith(f"{package}.")


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a graph (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            group: set[str] = set()
            while node not in group:
                group.add(stack.pop())
            found.append(group)

    for node in graph:
        if node not in index:
            visit(node)
    return found


def check_imports(limits: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates on the modules that an import, `gym.make`, a log and a verb load, each in a fresh process."""
    package = _loaded("modules of import inquitree_gym", "", limits["import_modules"])
    yield package
    for kind, env in limits["kinds"].items():
        others = [other for other in limits["kinds"] if other != kind]
        gate = _loaded(f"modules of gym.make for {kind}", f"gymnasium.make({env!r})", limits["make_modules"])
        yield gate
        foreign = [name for name in gate.places if name.split(".")[1:2] and name.split(".")[1] in others]
        foreign = [name for name in foreign if name not in package.places]
        yield Gate(f"modules of other kinds that gym.make loads for {kind}", len(foreign), 0, foreign)
    for kind in limits["kinds"]:
        yield from _check_course(kind, limits)


def _check_course(kind: str, limits: dict[str, Any]) -> Iterator[Gate]:
    """Yield the gates on one small study of a kind, from its start to its report."""
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder, "run"))
        agent, tasks = limits["agents"][kind], limits["tasks"][kind]
        study = ["run", "--env", kind, "--agent", agent, "--papers", tasks, "--seeds", "1", "--out", run]
        report = ["report", run]
        course = f"ran = set(); trace(ran); call({study}); call({report}); names = sorted(ran)"
        yield _loaded(f"modules whose functions run, {kind}", course, limits["course_modules"])
        for verb in (study, ["score", run], report):
            yield _loaded(f"modules of the verb {verb[0]}, {kind}", f"call({verb})", limits["verb_modules"])
        score = f"from inquitree_gym.results.load import load_run; load_run({run!r})"
        gate = _loaded(f"modules of reading and scoring a log, {kind}", score, limits["score_modules"])
        yield gate
        players = [name for name in gate.places if name.split(".")[1:2] and name.split(".")[1] in limits["players"]]
        yield Gate(f"modules that play, when a log is scored, {kind}", len(players), 0, players)


PRELUDE = """
import contextlib, io, sys
import gymnasium, inquitree_gym
names = None
def call(arguments):
    code = 0
    from inquitree_gym.cli import main
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    if code:
        sys.exit(errors.getvalue())
def trace(ran):
    def note(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event != "call" or name in ran or not name.startswith("inquitree_gym"):
            return
        while frame is not None:  # what runs while a module is imported does not count, such as decorators
            if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"].startswith("inquitree_gym"):
                return
            frame = frame.f_back
        ran.add(name)
    sys.setprofile(note)
"""
CLOSING = """
sys.setprofile(None)
names = sorted(name for name in sys.modules if name.split(".")[0] == "inquitree_gym") if names is None else names
print("\\n".join(["modules:", *names]))
"""


def _loaded(name: str, program: str, limit: float) -> Gate:
    """Return the gate on the modules of the package that a program loads, or that it puts into ``names``."""
    command = [sys.executable, "-c", f"{PRELUDE}\n{program}\n{CLOSING}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        return Gate(f"{name} (failed: {done.stderr.strip()[-300:]})", float("inf"), limit, [])
    names = done.stdout.rpartition("modules:\n")[2].split()
    return Gate(name, len(names), limit, names)


def main() -> int:
    """Print the gates. Return 1 if one is exceeded."""
    parser = argparse.ArgumentParser(description="Check the limits of tool.house in pyproject.toml.")
    parser.add_argument("--static", action="store_true", help="only the gates that read files")
    parser.add_argument("--places", action="store_true", help="also print the places behind every gate")
    options = parser.parse_args()
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["house"]
    modules = read_modules()
    gates = [
        *check_size(modules, limits),
        *check_words(modules, limits),
        check_cycles(modules),
        *check_style(modules, limits),
        *(() if options.static else check_imports(limits)),
    ]
    for gate in gates:
        print(f"{'ok  ' if gate.holds else 'FAIL'}  {gate.value:>8g}  of {gate.limit:<8g} {gate.name}")
        if options.places or not gate.holds:
            print("".join(f"          {place}\n" for place in gate.places[:60]), end="")
    return int(not all(gate.holds for gate in gates))


if __name__ == "__main__":
    sys.exit(main())
