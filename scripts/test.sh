#!/usr/bin/env bash
# Make an environment of its own and pass the tests in it, two files at a time; those of Ray after the others, and those
# of the environments also on the oldest Gymnasium we support, those of inspect_ai and OpenEnv with packages that do not go
# with the others, which are installed while the others run.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh
python=.venv-test/bin/python
oldest=.venv-test/gymnasium-1.2.2 inspect=$PWD/.venv-test/inspect openenv=$PWD/.venv-test/openenv

install_overlays() {
  test -d "$oldest" || $python -m pip install -q --no-deps --target "$oldest" gymnasium==1.2.2
  test -d "$inspect" || $python -m pip install -q -c constraints-inspect.txt --target "$inspect" inspect-ai openai mcp
  test -d "$openenv" || $python -m pip install -q -c constraints-openenv.txt --target "$openenv" openenv
}

test_on_overlay() {
  PYTHONPATH=$1 $python -m pytest "${@:2}"
}

python3 -m venv .venv-test
$python -m pip install -q -c constraints.txt -e '.[test,ray]'
export HF_HUB_OFFLINE=1 INQUITREE_CACHE="$PWD/.venv-test/vectors"
start overlays install_overlays
$python -m pytest -n 2 --dist loadfile --ignore=tests/runner/test_ray.py
finish
start ray $python -m pytest tests/runner/test_ray.py
start oldest-gymnasium test_on_overlay "$oldest" -m "not weights" tests/contract tests/envs tests/wrappers
finish
# inspect_ai leaves streams open, which Python tells when the process ends.
adapters=tests/contract/test_adapters.py
unraisable=ignore::pytest.PytestUnraisableExceptionWarning
start inspect test_on_overlay "$inspect" -W $unraisable tests/integrations/test_inspect.py $adapters::test_inspect
start openenv test_on_overlay "$openenv" tests/integrations/test_openenv.py $adapters::test_openenv
finish
