#!/usr/bin/env bash
# Every command line that README.md, CONTRIBUTING.md and docs/ show is run, in a folder with what they name (prog.cu, ./prog,
# scale.ptx, config.json, report.csv, bill.json). In a block marked ```console the lines after "$ command" are its exact
# output, "..." standing for any number of lines. A command that needs a GPU says so in its comment ("on a GPU") and is
# skipped without one; of make and of scripts only the target or the file is looked for.
set -u
root=$PWD sol=$PWD/$B/sol
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
pass() { passed=$((passed + 1)); }
fail() { printf 'failed: %s\n' "$*" && failed=$((failed + 1)); }
skip() { printf 'skipped: %s\n' "$*" && skipped=$((skipped + 1)); }

# blocks FILE: "FILE:LINE<tab>kind<tab>text" of each line in a fenced block, a line ending in \ joined with the next.
blocks() {
  awk -v file="$1" '
    /^```/ { inside = !inside; kind = inside ? substr($0, 4) : ""; if (kind == "") kind = "plain"; held = ""; next }
    !inside { next }
    held == "" { line = FNR }
    /\\$/ { held = held substr($0, 1, length($0) - 1) " "; next }
    { printf "%s:%d\t%s\t%s\n", file, line, kind, held $0; held = "" }' "$1"
}

have_gpu() { nvidia-smi -L >/dev/null 2>&1; }
have_nvcc() { scripts/cuda-env nvcc >/dev/null; }

prepare() {
  local name
  mkdir "$scratch/bin"
  ln -s "$sol" "$scratch/bin/sol"
  for name in examples bench docs tests kernels include scripts "$B"; do ln -s "$root/$name" "$scratch/${name##*/}"; done
  [ -e "$scratch/build" ] || ln -s "$root/$B" "$scratch/build"
  cp examples/column_scale.cu "$scratch/prog.cu"
  cp examples/scale.cu examples/scale.ptx "$scratch"
  cp tests/data/llama-3-8b.json "$scratch/config.json"
  cp tests/data/ncu/h200-full-raw.csv "$scratch/report.csv"
  if ! have_nvcc; then
    (cd "$scratch" && "$sol" audit scale.ptx --kernel column_scale --arg 'out:f32[128*64]' --arg 'f32[128*64]' --arg 'f32[64]' \
      --arg 128 --arg 64 --json >bill.json)
    return
  fi
  PATH=$(dirname "$(scripts/cuda-env nvcc)"):$PATH
  (cd "$scratch" && nvcc -cudart shared -lineinfo -arch=sm_90 prog.cu -o prog && "$sol" audit prog.cu --json >bill.json 2>/dev/null)
}

# What a command may end with: a gate that is passed is what the line shows.
codes() { if [[ $1 == *--max-* || $1 == *--baseline* ]]; then echo '0 3'; else echo 0; fi; }

run() { # WHERE COMMAND: its output goes to out
  local where=$1 command=$2 rc=0
  # Without nvcc the library has no kernels for `sol ladder` and `sol bench` to run.
  if [[ $command =~ (prog|nvcc|\.cu|sol\ (ladder|bench)\ [a-z]) ]] && ! have_nvcc; then skip "$where: no nvcc: $command" && return 1; fi
  (cd "$scratch" && LC_ALL=C.UTF-8 COLUMNS=80 PATH=$scratch/bin:$PATH timeout 900 bash -c "$command") >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [[ " $(codes "$command") " == *" $rc "* ]]; then pass && return; fi
  fail "$where: exit code $rc: $command"
  tail -n 5 "$scratch/err"
  return 1
}

plain_line() { # WHERE TEXT
  local where=$1 text=$2 command comment
  command=${text%%  #*} comment=${text#"$command"}
  case $command in
  sol\ *) if [[ $comment == *'on a GPU'* ]] && ! have_gpu; then skip "$where: no GPU: $command"; else run "$where" "$command"; fi ;;
  nvcc\ * | LD_LIBRARY_PATH=*) run "$where" "$command" ;;
  make | make\ *) for target in ${command#make}; do
    [[ $target == *[=]* ]] && continue
    [[ $target == '&&' ]] && break
    if grep -qE "^$target:" Makefile; then pass; else fail "$where: no target $target"; fi
  done ;;
  *)
    for word in $command; do
      [[ $word == bench/* || $word == scripts/* || $word == build/tests/* || $word == tests/* ]] || continue
      if [ -e "$word" ] || [ -e "$B/${word#build/}" ]; then pass; else fail "$where: there is no $word"; fi
    done
    ;;
  esac
}

# same WANT GOT: whether GOT is WANT, a line "..." standing for any lines.
same() {
  awk 'function match_from(i, j,   k) {
      if (i > n) return j > m
      if (want[i] == "...") { for (k = j; k <= m + 1; k++) if (match_from(i + 1, k)) return 1; return 0 }
      return j <= m && want[i] == got[j] && match_from(i + 1, j + 1)
    }
    { sub(/[ \t]+$/, "") } NR == FNR { want[++n] = $0; next } { got[++m] = $0 }
    END { while (m && got[m] == "") m--; while (n && want[n] == "") n--; exit !match_from(1, 1) }' "$1" "$2"
}

compare_shown() { # compares the output shown with the last command's
  [ -n "$shown_by" ] || return
  if same "$scratch/want" "$scratch/out"; then pass; else
    fail "$shown_by: what is shown is not what is printed"
    diff "$scratch/want" "$scratch/out" | head -40
  fi
  shown_by=''
}

console_line() { # WHERE TEXT
  if [[ $2 == '$ '* ]]; then
    compare_shown
    : >"$scratch/want"
    if run "$1" "${2#'$ '}"; then shown_by=$1; fi
  elif [ -n "$shown_by" ]; then
    printf '%s\n' "$2" >>"$scratch/want"
  fi
}

# Files and functions that a page names in `code` are there. Names with capitals, dots or <> are other things.
names_exist() { # FILE
  local name
  # shellcheck disable=SC2016 # backquotes, as Markdown has them
  while read -r name; do
    case $name in
    src/* | tests/* | kernels/* | include/* | scripts/* | bench/* | docs/* | examples/*)
      [[ $name == *[A-Z*]* ]] && continue # OP, NAME: stands for one
      if [ -e "$name" ]; then pass; else fail "$1: there is no $name"; fi
      ;;
    *_*)
      [[ $name =~ ^[a-z][a-z0-9_]*$ ]] || continue
      if grep -rqw "$name" src include kernels tests/*.h; then pass; else fail "$1: nothing is called $name"; fi
      ;;
    esac
  done < <(grep -oE '`[^` ]+`' "$1" | tr -d '`' | sort -u)
}

prepare
shown_by=''
for file in ${DOCS_TEST_FILES:-README.md CONTRIBUTING.md docs/*.md docs/ladders/README.md}; do
  [ -e "$file" ] || continue
  while IFS=$'\t' read -r -u 3 where kind text; do
    if [ "$kind" = console ]; then console_line "$where" "$text"; else compare_shown; fi
    if [ "$kind" = plain ] || [ "$kind" = sh ]; then plain_line "$where" "$text"; fi
  done 3< <(blocks "$file")
  compare_shown
done
for file in docs/tour.md CONTRIBUTING.md; do names_exist "$file"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
