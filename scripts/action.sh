#!/usr/bin/env bash
# The steps of action.yml. usage: scripts/action.sh build | audit | comment
#   build    the tool and the shim, without the library's GPU kernels, which audits do not use
#   audit    each line of SOL_AUDITS (the words after 'sol audit') in this folder and, where SOL_BASE names a commit, in a copy
#            of it. Writes bills, SARIF and the comparison under RUNNER_TEMP/sol and says where to GITHUB_OUTPUT. Exit code 3
#            where a kernel is beyond SOL_MAX_TAX; another where an audit fails.
#   comment  SOL_MARKDOWN on pull request SOL_PULL_REQUEST, in place of the last comment of this action
# SOL is the tool (default: that of 'build').
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sol=${SOL:-$here/build/sol}
mark='<!-- sol audit -->'

build() { # the kernels of the library take minutes to compile, and an empty NVCC leaves them out
  cd "$here" && scripts/setup.sh build cuda && make -j"$(nproc)" NVCC= all
}

bill() { # FOLDER OUT WORDS...: a bill as JSON
  local folder=$1 out=$2
  shift 2
  (cd "$folder" && "$sol" audit --device "${SOL_DEVICE:-h100}" --json "$@") >"$out" </dev/null
}

base_copy() { # FOLDER: the base of the comparison, where there is one
  [ -n "${SOL_BASE:-}" ] || return 1
  git cat-file -e "$SOL_BASE^{commit}" 2>/dev/null || git fetch -q --depth 1 origin "$SOL_BASE" || return 1
  git worktree add -q --detach "$1" "$SOL_BASE"
}

compare() { # N WORDS...: one audit; its part of the Markdown to standard output
  local n=$1 code=0 gate=()
  shift
  [ -z "${SOL_MAX_TAX:-}" ] || gate=(--max-tax "$SOL_MAX_TAX")
  bill . "$out/$n.json" --sarif "$out/sarif/$n.sarif" "${gate[@]}" "$@" 2>"$out/$n.log" || code=$?
  # shellcheck disable=SC2016 # Markdown's quotes
  printf '### `%s`\n\n' "${*//\`/}"
  if [ $code != 0 ] && [ $code != 3 ]; then
    printf 'The audit failed (exit code %s):\n\n' $code
    sed 's/^/    /' "$out/$n.log"
  elif [ -d "$out/base" ] && bill "$out/base" "$out/$n.base.json" "$@" 2>/dev/null; then
    "$sol" audit "$out/$n.json" --against "$out/$n.base.json" --markdown
  else
    printf 'There is no bill of the base to compare with.\n\n'
    "$sol" audit "$out/$n.json" --against "$out/$n.json" --markdown
  fi
  [ $code != 3 ] || printf '\n**A kernel takes more than %s times light.**\n' "$SOL_MAX_TAX"
  echo
  return $code
}

audit() {
  local n=0 failed=0 line words code
  out=${RUNNER_TEMP:-/tmp}/sol
  rm -rf "$out" && mkdir -p "$out/sarif" || exit 1
  if base_copy "$out/base"; then trap 'git worktree remove --force "$out/base"' EXIT; fi
  printf '%s\n## Sol audit, %s\n\n' "$mark" "${SOL_DEVICE:-h100}" >"$out/comment.md"
  while read -r line; do
    read -ra words <<<"$line" # words alone: nothing of a line is run by the shell
    [ ${#words[@]} -gt 0 ] || continue
    n=$((n + 1)) code=0
    compare $n "${words[@]}" >>"$out/comment.md" || code=$?
    if [ $failed = 0 ] || [ $failed = 3 ] && [ $code != 0 ]; then failed=$code; fi
  done <<<"${SOL_AUDITS:-}"
  if [ $n = 0 ]; then echo "sol: the input 'audits' has no line" >&2 && failed=2; fi
  printf 'sarif=%s\nmarkdown=%s\n' "$out/sarif" "$out/comment.md" >>"${GITHUB_OUTPUT:-/dev/stdout}"
  cat "$out/comment.md" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
  exit $failed
}

comment() { # a pull request of a fork has no right to comment: the summary of the job has the same text
  local place=repos/$GITHUB_REPOSITORY/issues old
  old=$(gh api --paginate "$place/$SOL_PULL_REQUEST/comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id" | tail -n 1)
  if [ -n "$old" ]; then
    gh api -X PATCH "$place/comments/$old" -F "body=@$SOL_MARKDOWN" >/dev/null
  else
    gh api -X POST "$place/$SOL_PULL_REQUEST/comments" -F "body=@$SOL_MARKDOWN" >/dev/null
  fi || echo "::warning::sol: the comment could not be written; the comparison is in the summary of this job"
}

case ${1:-} in
build | audit | comment) "$1" ;;
*) echo "usage: scripts/action.sh build | audit | comment" >&2 && exit 2 ;;
esac
