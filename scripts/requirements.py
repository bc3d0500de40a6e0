"""Print the requirements of groups of pyproject.toml: ``python scripts/requirements.py core llm --without torch``."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main() -> None:
    """Print one requirement a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("groups", nargs="+", help="extras, or 'core' for the dependencies of the package")
    parser.add_argument("--without", nargs="*", default=[], help="packages to leave out")
    options = parser.parse_args()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    groups = project["optional-dependencies"] | {"core": project["dependencies"]}
    found = [requirement for group in options.groups for requirement in groups[group]]
    print("\n".join(each for each in found if re.split(r"[^\w.-]", each)[0] not in options.without))


if __name__ == "__main__":
    main()
