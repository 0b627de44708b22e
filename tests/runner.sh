#!/usr/bin/env bash
# tests/run.sh counts what its suites say, and a suite that dies, lies or runs nothing is a failure. tests/check.h counts
# a test that was skipped as that, and never as passed.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# expect CODE LAST [SUITE...]: each suite is the text of a shell script.
expect() {
  local code=$1 last=$2 rc=0 out i=0 text
  shift 2
  rm -rf "$scratch/tests"
  mkdir -p "$scratch/tests"
  cp tests/run.sh "$scratch/tests"
  for text in "$@"; do
    echo "$text" >"$scratch/tests/test_$i.sh"
    i=$((i + 1))
  done
  out=$(B=$scratch/build bash "$scratch/tests/run.sh" unit 2>&1) || rc=$?
  if [ $rc = "$code" ] && [ "$(tail -n 1 <<<"$out")" = "$last" ] && [ "$(grep -cxE '[0-9]+ passed.*' <<<"$out")" = 1 ]; then
    passed=$((passed + 1))
  else
    printf 'expected exit code %s and "%s", got %s:\n%s\n' "$code" "$last" "$rc" "$out"
    failed=$((failed + 1))
  fi
}

expect 1 '0 passed, 1 failed'                                        # nothing ran
expect 0 '1 passed, 0 failed' 'true'
expect 1 '0 passed, 1 failed' 'false'
expect 0 '7 passed, 0 failed' 'echo 3 passed, 0 failed' 'echo 4 passed, 0 failed'
expect 1 '5 passed, 2 failed' 'echo 5 passed, 2 failed; exit 1'
expect 1 '3 passed, 1 failed' 'echo 3 passed, 0 failed; exit 1'      # died after the count
expect 1 '1 passed, 1 failed' 'true' 'kill -SEGV $$'
expect 1 '0 passed, 1 failed' 'echo 0 passed, 0 failed'              # a suite of no tests
expect 1 '2 passed, 2 failed' 'echo 2 passed, 2 failed'              # failures count whatever the exit code
expect 0 '2 passed, 0 failed, 3 skipped' 'echo 2 passed, 0 failed, 2 skipped' 'echo no tool; exit 77'
expect 1 '0 passed, 1 failed, 1 skipped' 'exit 77'                   # skipping everything is no success
expect 1 '0 passed, 1 failed, 4 skipped' 'echo 0 passed, 0 failed, 4 skipped; exit 77'
expect 1 '0 passed, 1 failed, 4 skipped' 'echo 0 passed, 0 failed, 4 skipped'
expect 1 '2 passed, 1 failed, 4 skipped' 'echo 2 passed, 0 failed, 4 skipped; exit 77' # it passed some: 77 is a lie
SUITE_SECONDS=1 expect 1 '0 passed, 1 failed' 'while :; do sleep 1; done' # never ends
expect 1 '1 passed, 1 failed' 'test -n "$SOL" && test -d "$B"' 'read -r line' # no standard input

# harness CODE LAST BODY...: a program of tests/check.h with one TEST of each body.
harness() {
  local code=$1 last=$2 rc=0 out i=0 body
  shift 2
  echo '#include "check.h"' >"$scratch/suite.c"
  for body in "$@"; do echo "TEST(t$i) { $body }" && i=$((i + 1)); done >>"$scratch/suite.c"
  echo CHECK_MAIN >>"$scratch/suite.c"
  out=$("${CC:-cc}" -std=c17 -Wall -Wextra -Werror -Itests "$scratch/suite.c" -lm -o "$scratch/suite" 2>&1 && "$scratch/suite") || rc=$?
  if [ $rc = "$code" ] && [ "$(tail -n 1 <<<"$out")" = "$last" ]; then
    passed=$((passed + 1))
  else
    printf 'check.h: expected exit code %s and "%s", got %s:\n%s\n' "$code" "$last" "$rc" "$out"
    failed=$((failed + 1))
  fi
}

harness 0 '2 passed, 0 failed' 'CHECK(1);' ''
harness 1 '1 passed, 1 failed' 'CHECK(0);' 'CHECK(1);'
harness 0 '1 passed, 0 failed, 2 skipped' 'SKIP("no GPU");' 'CHECK(1);' 'SKIP("no %s", "nvcc"); CHECK(0);'
harness 77 '0 passed, 0 failed, 2 skipped' 'SKIP("no GPU");' 'if (1) SKIP("no GPU"); else CHECK(0);'
harness 0 '1 passed, 0 failed, 1 skipped' 'check_skip("a part"); CHECK(1);' 'CHECK(1);' # the other part ran
harness 1 '0 passed, 1 failed' 'check_skip("a part"); CHECK(0);'                        # and failed
harness 1 '0 passed, 1 failed, 1 skipped' 'SKIP("no GPU");' 'CHECK(0);'
echo "$passed passed, $failed failed"
[ $failed = 0 ]
