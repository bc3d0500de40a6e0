#!/usr/bin/env bash
# Create the environment for development in .venv, and install the pre-commit hooks.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv
.venv/bin/python -m pip install -q -c constraints.txt -e '.[dev,docs]'
.venv/bin/pre-commit install
