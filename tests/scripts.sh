#!/usr/bin/env bash
# Every shell script parses. What shellcheck finds is scripts/lint.sh's to say.
set -u
passed=0 failed=0
check() { if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }
for script in scripts/*.sh scripts/check-layers scripts/cuda-env tests/*.sh .ci/run; do
  case $(head -n 1 "$script") in
  *bash) check bash -n "$script" ;;
  *) check sh -n "$script" ;;
  esac
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
