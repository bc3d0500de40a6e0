"""Check what ruff cannot: docstring openings, sizes of functions and files, public class names used twice.

Run as ``python scripts/check_style.py``; prints one line per fault and exits with status 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKED = ("inquitree_gym", "research")
MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 50
HEADLESS = re.compile(r"\s*(What|Who|How|Where|Which|Whether|When|Why)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    """Print every fault and exit."""
    faults: list[str] = []
    classes: defaultdict[str, list[str]] = defaultdict(list)
    for folder in CHECKED:
        for file in sorted((ROOT / folder).rglob("*.py")):
            name, source = str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")
            tree = ast.parse(source, name)
            faults += file_faults(name, source, tree)
            for node in tree.body:
                if folder == "inquitree_gym" and isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    classes[node.name].append(f"{name}:{node.lineno}")
    for name, places in sorted(classes.items()):
        if len(places) > 1:
            faults.append(f"{places[0]}: class {name} is also defined in {', '.join(places[1:])}; rename one of them")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


def file_faults(name: str, source: str, tree: ast.Module) -> Iterator[str]:
    """Yield the faults of one file."""
    lines = source.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{name}: {lines} lines; split it so that no file has more than {MAX_FILE_LINES}"
    for text, line in docstrings(tree):
        if found := HEADLESS.match(text):
            yield f"{name}:{line}: a docstring opens with '{found[1]}'; open it with a verb or a noun phrase"
    for node in ast.walk(tree):
        if isinstance(node, Function) and (size := function_lines(node)) > MAX_FUNCTION_LINES:
            yield f"{name}:{node.lineno}: {node.name} has {size} lines; at most {MAX_FUNCTION_LINES}"


def docstrings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield every docstring with its line, those of attributes included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(value := statement.value, ast.Constant):
                yield str(value.value), statement.lineno


def function_lines(node: Function) -> int:
    """Return the lines of a function without its docstring."""
    size = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        size -= (first.end_lineno or first.lineno) - first.lineno + 1
    return size


if __name__ == "__main__":
    main()
