#!/usr/bin/env bash
# An installed copy: C and C++ programs find it with pkg-config and link it shared and static; the library exports
# the public functions and nothing else; man pages and completion are there; uninstall leaves nothing behind.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
check() { if "$@"; then passed=$((passed + 1)); else echo "failed: $*" && failed=$((failed + 1)); fi; }
skip() { echo "skipped: $*" && skipped=$((skipped + 1)); }
stage() { ${MAKE:-make} --no-print-directory -s DESTDIR="$scratch/stage" PREFIX=/opt/sol "$@"; }
root=$scratch/stage/opt/sol

check stage install
# The public functions, by their declarations.
sed -n 's/^SOL_API [^;(]*\(sol_[a-z0-9_]*\)(.*/\1/p' "$root"/include/sol/*.h | sort >"$scratch/declared"
check test -s "$scratch/declared"
check test "$(readlink "$root/lib/libsol.so")" = libsol.so.0.2
check test -f "$root/lib/libsol.so.0.2"

# A program that refers to all of them, and does one thing for real.
{
  echo '#include <sol/dlpack.h>'
  echo '#include <sol/sol.h>'
  echo '#include <stdio.h>'
  echo 'typedef void (*Function)(void);'
  echo 'Function functions[] = {'
  sed 's/.*/  (Function)&,/' "$scratch/declared"
  cat <<'C'
};
int main(void) {
  const SolDevice *device = 0;
  SolError err;
  if (sol_device_find("h100", &device, &err)) return 1;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    if (!functions[i]) return 2;
  SolWork work;
  SolRoofline r;
  work.bytes = 40e6, work.flops = 5e6, work.launches = 1, work.dtype = SOL_BF16, work.unit = SOL_UNIT_DEFAULT;
  if (sol_roofline(device, &work, 0, &r, &err)) return 3;
  printf("%s %s\n", sol_version(), sol_bound_name(r.bound));
  return r.time_us > 0 ? 0 : 4;
}
C
} >"$scratch/app.c"
cp "$scratch/app.c" "$scratch/app.cc"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$scratch/stage
  check test "$(pkg-config --modversion sol)" = "$(sed -n 's/^.define SOL_VERSION "\(.*\)"/\1/p' include/sol/version.h)"
  flags=$(pkg-config --cflags --libs sol)
  static=$(pkg-config --static --cflags --libs sol)
  # From here on the sources' own headers must not be found.
  check $CC -std=c17 -Wall -Wextra -Werror "$scratch/app.c" $flags -o "$scratch/shared"
  check env LD_LIBRARY_PATH="$root/lib" "$scratch/shared"
  check $CC -std=c17 -Wall -Wextra -Werror -static "$scratch/app.c" $static -o "$scratch/static"
  check "$scratch/static"
  for example in examples/*.c; do
    check $CC -std=c17 -Wall -Wextra -Werror "$example" $flags -o "$scratch/example"
    check env LD_LIBRARY_PATH="$root/lib" "$scratch/example"
  done
  if echo 'int main() { return 0; }' | $CXX -xc++ - -o "$scratch/cxx" 2>/dev/null; then
    check $CXX -std=c++17 -Wall -Wextra -Werror "$scratch/app.cc" $flags -o "$scratch/shared"
    check env LD_LIBRARY_PATH="$root/lib" "$scratch/shared"
    check $CXX -std=c++17 -Wall -Wextra -Werror -static "$scratch/app.cc" $static -o "$scratch/static"
    check "$scratch/static"
  else
    skip "no C++ compiler"
  fi
else
  skip "no pkg-config"
fi

if command -v nm >/dev/null; then
  nm -D --defined-only "$root/lib/libsol.so" | awk '$2 != "A" { sub(/@@SOL_0$/, "", $3); print $3 }' | sort >"$scratch/exported"
  check diff "$scratch/declared" "$scratch/exported"
else
  skip "no nm"
fi

check test "$("$root/bin/sol" --version)" = "$("$B/sol" --version)"
for command in $("$B/sol" commands); do check grep -q '^\.TH' "$root/share/man/man1/sol-$command.1"; done
check grep -q '^\.TH' "$root/share/man/man1/sol.1"
check bash -n "$root/share/bash-completion/completions/sol"
for shell in zsh fish; do
  file=$(find "$root/share/$shell" -type f)
  check test -s "$file"
  if command -v $shell >/dev/null; then check $shell -n "$file"; else skip "no $shell"; fi
done
if command -v mandoc >/dev/null; then check mandoc -T lint -W warning "$root"/share/man/man1/*
elif command -v groff >/dev/null; then check test -z "$(groff -man -Tutf8 -ww "$root"/share/man/man1/* 2>&1 >/dev/null)"
else skip "no mandoc or groff"; fi

check stage uninstall
check test -z "$(find "$scratch/stage" ! -type d)"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
