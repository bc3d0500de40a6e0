#!/usr/bin/env bash
# Make an environment of its own, unless .ci/run did, and pass the tests in it, two files at a time: the fast ones first,
# without the weights, and then all others with them, so that none runs twice. Beside them run, one after the other, those
# that need packages that do not go with the others: the environments on the oldest Gymnasium we support, inspect_ai and
# OpenEnv; and those of Ray, which starts processes of its own.
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

test_apart() {
  install_overlays
  test_on_overlay "$oldest" -m "not weights" tests/contract/test_envs.py tests/contract/test_text_envs.py \
    tests/envs tests/wrappers
  # inspect_ai leaves streams open, which Python tells when the process ends.
  local adapters=tests/contract/test_adapters.py unraisable=ignore::pytest.PytestUnraisableExceptionWarning
  test_on_overlay "$inspect" -W $unraisable tests/integrations/test_inspect.py $adapters::test_inspect
  test_on_overlay "$openenv" tests/integrations/test_openenv.py $adapters::test_openenv
  $python -m pytest tests/runner/test_ray.py
}

if test -z "${TESTS_READY:-}"; then
  python3 -m venv .venv-test
  $python -m pip install -q -c constraints.txt -e '.[test,ray]'
fi
export HF_HUB_OFFLINE=1 INQUITREE_CACHE="$PWD/.venv-test/vectors"
start apart test_apart
side_by_side() {
  $python -m pytest -n 2 --dist loadfile --ignore=tests/runner/test_ray.py -m "$1" "${@:2}"
}

side_by_side "not weights"
side_by_side "weights or e2e" tests  # no example of the package is among them
finish
