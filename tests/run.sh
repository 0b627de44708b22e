#!/usr/bin/env bash
# Runs suites and adds them up: tests/run.sh GROUP... with B (the build folder) and CC, CXX, CLANG in the environment.
#   unit       every tests/test_*.c and tests/test_*.sh, and the commands that the docs show
#   sanitized  the same programs and the fuzz corpora, built with ASan and UBSan under B/asan
#   house      lint of what changed since the release point, this runner, headers, layers, scripts, nvcc, examples, wasm,
#              the page, install, the ABI, packages
# A suite is a program. Its last line "N passed, N failed" counts; without one it counts as one test. Exit code 77:
# skipped, as many tests as the last line counts, or one with what it says for a reason. SUITE_SECONDS (7200) is the most
# that it gets: a net against hangs, so wide that it says nothing about the speed of the machine. A failing suite's output
# is shown whole, each line after a '|'; of what was skipped the reasons are. As many suites run at once as there are
# cores (JOBS), whatever their group; those that build or install run one after another beside them. The last line of all
# is "N passed, N failed" (", N skipped" where any were); the exit code is 0 when tests ran and none failed.
set -u
cd "$(dirname "$0")/.." || exit 1
export SUITE_SECONDS=${SUITE_SECONDS:-7200} B=${B:-build} CC=${CC:-cc} CXX=${CXX:-c++} CLANG=${CLANG:-clang} LC_ALL=C
passed=0 failed=0 skipped=0 suites=()
logs=$B/logs jobs=${JOBS:-$(nproc)}
mkdir -p "$logs"
rm -f "$logs"/*.count

suite() { # NAME COMMAND...: as soon as there is room for it
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  suites+=("${1//\//_}") # no two may have the same name
  run "$@" &
}

in_turn() { # COMMAND...: suites named after their scripts, one after another, in one job
  local command names=()
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  for command in "$@"; do names+=("$(basename "${command%% *}" .sh)"); done
  suites+=("${names[@]}")
  for command in "$@"; do
    # shellcheck disable=SC2086 # words
    (JOBS=1 run "${names[0]}" bash $command) # times counts what a shell ran
    names=("${names[@]:1}")
  done &
}

run() {
  local name=$1 start=$EPOCHREALTIME rc=0 last p=0 f=0 s=0 log
  shift
  log=$logs/${name//\//_}.log
  timeout -k 60 "$SUITE_SECONDS" "$@" >"$log" 2>&1 </dev/null || rc=$?
  times >"${log%.log}.times" # this shell's own, then its children's
  last=$(tail -n 1 "$log")
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
    # Dying after the count, or running nothing, is a failure all the same.
    if [ $rc != 0 ] && [ "$f" = 0 ] && { [ $rc != 77 ] || [ "$p" -gt 0 ]; }; then f=1; fi
    if [ $((p + f + s)) = 0 ]; then f=1; fi
  elif [ $rc = 77 ]; then
    s=1
  elif [ $rc = 0 ]; then
    p=1
  else
    f=1
  fi
  local word=ok note=
  if [ "$f" -gt 0 ]; then word=FAIL note=", exit code $rc"; elif [ "$p" = 0 ]; then word=skip; fi
  if [ "$s" -gt 0 ]; then note="$note, $s skipped$(reasons "$log" "$last" $rc)"; fi
  { # one suite's lines together
    flock 9
    printf '%-4s %-32s %5d passed, %d failed%s (%s s, %s s of processor)\n' $word "$name" "$p" "$f" "$note" "$(since "$start")" \
      "$(awk -F'[ms ]' 'END { printf "%.1f", $1 * 60 + $2 + $4 * 60 + $5 }' "${log%.log}.times")"
    if [ "$f" -gt 0 ]; then sed 's/^/  | /' "$log"; fi
  } 9>"$logs/lock"
  echo "$p $f $s" >"${log%.log}.count"
}

reasons() { # LOG LAST CODE: why tests were skipped, each reason once
  local why
  why=$(sed -n 's/^skipped: //p' "$1" | sort -u | head -n 3 | paste -sd ';' | sed 's/;/; /g')
  if [ -z "$why" ] && [ "$3" = 77 ]; then why=$2; fi
  [ -z "$why" ] || echo ": $why"
}

count() { # one that left no count was killed
  local name p f s
  wait
  for name in "${suites[@]}"; do
    read -r p f s 2>/dev/null <"$logs/$name.count" || p=0 f=1 s=0
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  done
}

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# Looking for leaks takes four seconds a process on aarch64, whatever the process does. There the fuzzers' inputs, which go
# through every parser, the emulator and the runtimes, are run with it, and of the suites that start no processes those that
# allocate most; elsewhere all suites.
starts_processes() { [[ $1 == *.sh ]] || grep -qE '\b(popen|system|exec[lv]p?e?|forkpty)\(' "$1"; }
allocates_most=" test_alloc test_bench test_context test_emu test_ladder test_libcuda test_model test_ops test_profile test_shim "
leaks() { # SOURCE
  local name
  name=$(basename "$1" .c)
  if [ "$(uname -m)" = aarch64 ] && { starts_processes "$1" || [[ $allocates_most != *[[:space:]]"$name"[[:space:]]* ]]; }; then
    echo ":detect_leaks=0"
  fi
}

programs() { # PREFIX BUILD: the test programs of one build, and the shell tests on it
  local source name
  for source in tests/test_ops.c tests/test_corpus.c tests/test_*.sh tests/test_*.c; do # the longest first
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    [[ " ${suites[*]} " == *" ${1//\//_}$name "* ]] && continue # it was first
    if [[ $source == *.sh ]]; then set -- "$1" "$2" bash "$source"; else set -- "$1" "$2" "$2/tests/$name"; fi
    ASAN_OPTIONS=${ASAN_OPTIONS-}$(leaks "$source") SOL=$2/sol suite "$1$name" $plain "${@:3}"
  done
}

unit() {
  if [ -e tests/docs.sh ]; then suite docs bash tests/docs.sh; fi
  plain='' programs '' "$B"
}

sanitized() {
  if [ ! -x "$B/asan/tests/test_text" ]; then
    suite asan sh -c 'echo "the compiler has no sanitizers"; exit 77'
    return
  fi
  export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=strict_string_checks=1
  # It makes sanitized programs up to fifty times slower on aarch64.
  [ "$(uname -m)" = aarch64 ] || ASAN_OPTIONS+=:detect_stack_use_after_return=1
  # Older sanitizers die at random where addresses are randomised widely; a fixed layout costs nothing here.
  local plain=''
  if setarch "$(uname -m)" -R true 2>/dev/null; then plain="setarch $(uname -m) -R"; fi
  # Leaks are looked for with ptrace, which some containers forbid.
  $plain "$B/has-sanitizers" >/dev/null 2>&1 || ASAN_OPTIONS+=:detect_leaks=0
  # One architecture of the corpus: the others differ in what nvcc emits, not in what the sanitizers watch.
  CORPUS_ARCHS=90 programs asan/ "$B/asan"
  local source name inputs
  for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    inputs=("tests/fuzz/corpus/${name#fuzz_}")
    [ "$name" = fuzz_emu ] && inputs+=(tests/ptx_hostile)
    suite "asan/$name" $plain "$B/asan/tests/replay_${name#fuzz_}" "${inputs[@]}"
  done
}

house() {
  local check
  in_turn 'scripts/lint.sh changed' tests/{wasm,page,install,abi,packages}.sh
  for check in linters headers cuda examples runner layers scripts; do suite "$check" bash "tests/$check.sh"; done
}

for group in "$@"; do "$group"; done
count
[ $((passed + failed)) -gt 0 ] || failed=1
[ $skipped = 0 ] && echo "$passed passed, $failed failed" || echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
