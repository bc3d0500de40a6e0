# Steps side by side, for scripts that source this: `start NAME COMMAND...` begins one in the background, and `finish`
# waits for all of them, prints the log of each that failed, and fails if there is one.

# Hundreds of processes are started, and without this each would compile every module for itself.
unset PYTHONDONTWRITEBYTECODE
step_names=() step_ids=() step_logs=$(mktemp -d)
trap 'for id in ${step_ids[@]+"${step_ids[@]}"}; do kill "$id" 2>/dev/null || true; done; rm -rf "$step_logs"' EXIT

start() {
  local name=$1
  shift
  "$@" > "$step_logs/$name" 2>&1 &
  step_names+=("$name") step_ids+=("$!")
}

finish() {
  local failed=0 i
  for i in "${!step_ids[@]}"; do
    if wait "${step_ids[$i]}"; then
      echo "passed: ${step_names[$i]}"
    else
      failed=1
      cat "$step_logs/${step_names[$i]}"
      echo "FAILED: ${step_names[$i]}"
    fi
  done
  step_names=() step_ids=()
  return "$failed"
}
