#!/usr/bin/env bash
# Build the documentation into site/, in an environment of its own; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
python3 -m venv .venv-docs
python3 scripts/requirements.py docs core plots --without sentence-transformers > .venv-docs/requirements.txt
.venv-docs/bin/python -m pip install -q -c constraints.txt -r .venv-docs/requirements.txt
PYTHONPATH=$PWD NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
