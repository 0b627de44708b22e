#!/usr/bin/env bash
# Packages: the Debian package installs into a root of its own, where an example compiles and runs, and leaves nothing; CMake
# finds the installed copy; the source archive has every file; the reference names every function; the steps of the GitHub
# Action give a comparison, SARIF and a comment; the container file names files that there are.
set -u
cd "$(dirname "$0")/.." || exit 1
B=${B:-build} CC=${CC:-cc} CXX=${CXX:-c++}
export B CC CXX
passed=0 failed=0 skipped=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }
skip() { echo "skipped: $*" && skipped=$((skipped + 1)); }
quiet() { "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" && false; }; }
has() { command -v "$1" >/dev/null; }
make_() { quiet ${MAKE:-make} --no-print-directory -s "$@"; }
version=$(sed -n 's/^.define SOL_VERSION "\(.*\)"/\1/p' include/sol/version.h)

# ---- CMake ----

cmake_project() { # a program of C for each target
  mkdir -p "$scratch/app" && cp examples/roofline.c "$scratch/app/app.c"
  cat >"$scratch/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(app C)
find_package(Sol 0.2 REQUIRED)
add_executable(shared app.c)
target_link_libraries(shared Sol::sol)
add_executable(fixed app.c)
target_link_libraries(fixed Sol::sol_static)
find_package(Sol 99 QUIET)
if(Sol_FOUND)
  message(FATAL_ERROR "version 99 was found")
endif()
CMAKE
}
check make_ DESTDIR="$scratch/stage" PREFIX=/opt/sol LIBDIR=/opt/sol/lib/some-arch install
if has cmake; then
  cmake_project
  check quiet cmake -S "$scratch/app" -B "$scratch/app/build" -DCMAKE_PREFIX_PATH="$scratch/stage/opt/sol" \
    -DSol_DIR="$scratch/stage/opt/sol/lib/some-arch/cmake/Sol"
  check quiet cmake --build "$scratch/app/build"
  check quiet "$scratch/app/build/shared"
  check quiet "$scratch/app/build/fixed"
  check test "$(readelf -d "$scratch/app/build/shared" | grep -c 'NEEDED.*libsol.so.0.2')" = 1
  check test "$(readelf -d "$scratch/app/build/fixed" | grep -c 'NEEDED.*libsol')" = 0
  # A copy that has lost a file is not found, and the message says which.
  mv "$scratch/stage/opt/sol/lib/some-arch/libsol.a" "$scratch/kept"
  rm -rf "$scratch/app/build"
  cmake -S "$scratch/app" -B "$scratch/app/build" -DSol_DIR="$scratch/stage/opt/sol/lib/some-arch/cmake/Sol" >"$scratch/log" 2>&1
  check grep -q 'libsol.a is not there' <(tr -s ' \n' ' ' <"$scratch/log")
  mv "$scratch/kept" "$scratch/stage/opt/sol/lib/some-arch/libsol.a"
else
  skip "no cmake"
fi
check make_ DESTDIR="$scratch/stage" PREFIX=/opt/sol LIBDIR=/opt/sol/lib/some-arch uninstall
check test -z "$(find "$scratch/stage" ! -type d -o -iname '*sol' -path '*/opt/sol/*')"

# ---- Debian ----

into_root() { # dpkg's words, on a root where nothing is
  quiet dpkg --root="$scratch/root" --force-not-root --force-depends --force-bad-path --force-script-chrootless --log="$scratch/dpkg.log" "$@"
}
left() { find "$scratch/root" ! -type d ! -path '*/var/lib/dpkg/*'; }
if has dpkg-deb && has strip; then
  check env DEB_FLAGS=-Znone ${MAKE:-make} --no-print-directory -s deb >"$scratch/log"
  deb=$B/deb/sol_${version}_$(dpkg --print-architecture).deb
  check test "$(dpkg-deb -f "$deb" Package Version | xargs)" = "Package: sol Version: $version"
  check grep -qE '^libc6 \(>= 2\.[0-9]+\)$' <(dpkg-deb -f "$deb" Depends)
  dpkg-deb -c "$deb" | awk '{ print $6, $2 }' >"$scratch/listed"
  for file in bin/sol include/sol/sol.h 'lib/.*/libsol.so.0.2' 'lib/.*/libsol.a' 'lib/.*/pkgconfig/sol.pc' \
    'lib/.*/cmake/Sol/SolConfig.cmake' share/man/man1/sol.1.gz share/doc/sol/copyright; do
    check grep -qE "^\./usr/$file root/root$" "$scratch/listed"
  done
  [ ! -e "$B/shim/libcudart.so.13" ] || check grep -qE '^\./usr/lib/sol/libcudart.so.13 ' "$scratch/listed"
  check test -z "$(awk '{ print $1 }' "$scratch/listed" | grep -vE '^\./(usr/.*)?$')"

  mkdir -p "$scratch"/root/var/lib/dpkg/{info,updates,triggers}
  : >"$scratch/root/var/lib/dpkg/status"
  check into_root -i "$deb"
  usr=$scratch/root/usr
  libraries=$(dirname "$(find "$usr/lib" -name libsol.so.0.2)")
  check test "$("$usr/bin/sol" --version)" = "$("$B/sol" --version)"
  check "$CC" -std=c17 -Wall -Wextra -Werror examples/roofline.c -I"$usr/include" -L"$libraries" -lsol -o "$scratch/example"
  check quiet env LD_LIBRARY_PATH="$libraries" "$scratch/example"
  if [ -e "$usr/lib/sol/libcudart.so.13" ] && nvcc=$(scripts/cuda-env nvcc); then
    check quiet env NVCC="$nvcc" "$usr/bin/sol" audit examples/column_scale.cu # finds the shim at its place in the package
  else
    skip "no nvcc: the tool of the package has nothing to run on its shim"
  fi
  check into_root --purge sol
  check test -z "$(left)"
  check test ! -e "$usr/lib/sol"
else
  skip "no dpkg-deb"
fi

# ---- sources and reference ----

if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
  check make_ dist
  tar xzf "$B/dist/sol-$version.tar.gz" -C "$scratch"
  check diff <(git ls-tree -r --name-only HEAD | sort) <(cd "$scratch/sol-$version" && find . ! -type d | sed 's|^\./||' | sort)
  check make_ -C "$scratch/sol-$version" check-layers
  check quiet sh -c "cd $B/dist && sha256sum -c sol-$version.tar.gz.sha256"
else
  skip "no git history: nothing to pack"
fi
if has python3; then
  check make_ reference
  sed -n 's/^SOL_API [^;(]*\(sol_[a-z0-9_]*\)(.*/\1/p' include/sol/*.h | sort >"$scratch/declared"
  check test "$(wc -l <"$scratch/declared")" -gt 100
  check test -z "$(while read -r name; do grep -q "\b$name(" "$B/reference/c.md" || echo "$name"; done <"$scratch/declared")"
  # Every public name of the package has an entry, and text under it.
  check python3 - "$B/reference/python.md" <<'PYTHON'
import re, sys
sys.path.insert(0, "python")
import sol
text = open(sys.argv[1], encoding="utf-8").read()
entries = dict(re.findall(r"^### `(?:class )?(\w+).*`\n\n(.*)", text, re.M))
in_torch = ["Patched", "patch", "rmsnorm", "cross_entropy"]  # its module is not imported here: torch may be missing
missing = [name for name in [*sol.__all__, *in_torch] if not entries.get(name)]
sys.exit(f"no entry or no text: {missing}" if missing else 0)
PYTHON
else
  skip "no python3"
fi

# ---- the GitHub Action ----

# The action is run as GitHub would: in a repository with a base, its inputs in the environment, and a gh that keeps what it is told.
repository=$scratch/repository
git_() { git -C "$repository" -c user.name=test -c user.email=test@localhost "$@"; }
action() { # STEP [NAME=VALUE...]
  local step=$1 tree=$PWD
  shift
  (cd "$repository" && env PATH="$scratch/bin:$PATH" SOL="$(cd "$tree/$(dirname "${SOL:-$B/sol}")" && pwd)/sol" RUNNER_TEMP="$scratch/runner" \
    GITHUB_OUTPUT="$scratch/output" GITHUB_STEP_SUMMARY="$scratch/summary" GITHUB_REPOSITORY=us/ours "$@" "$tree/scripts/action.sh" "$step")
}
scale='--kernel column_scale --grid 2,64 --block 64 --arg out:f32[64*128] --arg f32[64*128] --arg f32[64] --arg 128 --arg 64'
if has git; then
  mkdir -p "$repository" "$scratch/bin"
  git_ init -q
  cp examples/scale.ptx "$repository/scale.ptx"
  git_ add -A && git_ commit -qm base
  # The change: a second kernel of the same name as the first, which strides. Its lines are what the comparison shows.
  sed -i 's/contiguous_scale/swapped/; s/column_scale/contiguous_scale/; s/swapped/column_scale/' "$repository/scale.ptx"
  git_ commit -qam change
  base=$(git_ rev-parse HEAD~1)
  audits="scale.ptx $scale"$'\n\n'"missing.ptx \$(touch $scratch/ran)"
  action audit SOL_AUDITS="$audits" SOL_BASE="$base" >"$scratch/log" 2>&1
  check test $? != 0 # one of the two is not there
  comment=$(sed -n 's/^markdown=//p' "$scratch/output") sarif=$(sed -n 's/^sarif=//p' "$scratch/output")
  check grep -q '<!-- sol audit -->' "$comment"
  check grep -q 'column_scale' "$comment"
  check grep -qE '^\|.*\|' "$comment"
  check grep -q 'The audit failed' "$comment"
  check test ! -e "$scratch/ran"
  check diff "$comment" "$scratch/summary"
  check grep -q '"2.1.0"' "$sarif/1.sarif"
  check test -z "$(git_ worktree list | sed 1d)"
  action audit SOL_AUDITS="scale.ptx $scale" SOL_BASE="$base" SOL_MAX_TAX=0.1 >"$scratch/log" 2>&1
  check test $? = 3
  check grep -q 'more than 0.1 times light' "$comment"
  action audit SOL_AUDITS="scale.ptx $scale" >"$scratch/log" 2>&1
  check test $? = 0
  check grep -q 'no bill of the base' "$comment"
  action audit SOL_AUDITS=$'\n' >"$scratch/log" 2>&1
  check test $? = 2

  printf '#!/bin/sh\necho "$*" >>"%s"\ncase "$*" in *--paginate*) cat "%s" ;; esac\n' "$scratch/gh.log" "$scratch/old" >"$scratch/bin/gh"
  chmod +x "$scratch/bin/gh"
  : >"$scratch/old"
  check action comment SOL_PULL_REQUEST=7 SOL_MARKDOWN="$comment"
  check grep -qx "api -X POST repos/us/ours/issues/7/comments -F body=@$comment" "$scratch/gh.log"
  echo 41 >"$scratch/old"
  check action comment SOL_PULL_REQUEST=7 SOL_MARKDOWN="$comment"
  check grep -qx "api -X PATCH repos/us/ours/issues/comments/41 -F body=@$comment" "$scratch/gh.log"
  printf '#!/bin/sh\nexit 1\n' >"$scratch/bin/gh"
  check grep -q '^::warning::sol: the comment could not' <(action comment SOL_PULL_REQUEST=7 SOL_MARKDOWN="$comment")
else
  skip "no git"
fi
check diff <(grep -o 'scripts/action.sh" *[a-z]*\|scripts/action.sh [a-z]*' action.yml | grep -o '[a-z]*$' | sort) <(printf '%s\n' audit build comment)
if python3 -c 'import yaml' 2>/dev/null; then
  check python3 -c 'import yaml; d = yaml.safe_load(open("action.yml")); assert d["runs"]["using"] == "composite" and all(s["shell"] for s in d["runs"]["steps"])'
else
  skip "no PyYAML: action.yml is not parsed"
fi

# ---- the container file ----

sed -n 's/^RUN //p' packaging/Containerfile >"$scratch/run.sh"
check sh -n "$scratch/run.sh"
check test -z "$(grep -oE '\bscripts/[a-z-]+\.sh' packaging/Containerfile | while read -r file; do [ -x "$file" ] || echo "$file"; done)"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
