#!/usr/bin/env bash
# The Debian package and the wheel where nothing else of Sol is: each is installed in a fresh Debian, an example compiles and runs
# (C with pkg-config and CMake, an audit, Python), and what removing it leaves is listed. Exit code 0: all worked, nothing left.
# usage: scripts/bare-packages.sh FOLDER      after `make deb wheel`. Needs root; the root in FOLDER is made by debootstrap, which
# takes MIRROR, and used again where it is there.
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# = 1 ] || { echo "usage: scripts/bare-packages.sh FOLDER" >&2 && exit 2; }
root=$1 B=${B:-build} failed=0
[ "$(id -u)" = 0 ] || { echo "bare-packages: needs root" >&2 && exit 1; }
if [ ! -x "$root/usr/bin/cmake" ]; then
  debootstrap --variant=minbase --include=gcc,libc6-dev,cmake,make,pkg-config,python3,python3-venv,python3-numpy bookworm "$root" \
    ${MIRROR:+"$MIRROR"} || exit 1
fi
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what" && failed=1; fi
}
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
files() { # but for what dpkg and ldconfig keep
  (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./var \) -prune -o ! -type d -print) |
    grep -v '/ld.so.cache$\|\.pyc$' | sort
}

rm -rf "$root/tmp/sol" && mkdir -p "$root/tmp/sol"
cp "$B"/deb/*.deb "$B"/wheel/*.whl examples/roofline.c examples/scale.ptx "$root/tmp/sol/" || exit 1
cat >"$root/tmp/sol/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.13)
project(app C)
find_package(Sol 0.2 REQUIRED)
add_executable(app roofline.c)
target_link_libraries(app Sol::sol)
CMAKE
cat >"$root/tmp/sol/try.py" <<'PYTHON'
import numpy, sol
assert sol.roofline("rmsnorm", (8192, 4096), device="h100").time_us > 1
assert abs(sol.rmsnorm(numpy.ones((2, 8), "f4"))[1, 7] - 1) < 1e-3
bill = sol.audit("/tmp/sol/scale.ptx", kernel="contiguous_scale", grid=32, block=256, args=["out:f32[8192]", "f32[8192]", "f32[64]", 8192, 64])
assert bill.tax > 1
PYTHON
audit="sol audit /tmp/sol/scale.ptx --kernel column_scale --grid 2,64 --block 64 --arg out:f32[64*128] --arg f32[64*128] --arg f32[64] --arg 128 --arg 64"

before=$(files)
check 'dpkg -i' inside sh -c 'dpkg -i /tmp/sol/*.deb >/dev/null'
# shellcheck disable=SC2016 # for the shell inside
check 'a program by pkg-config' inside sh -c 'cd /tmp/sol && gcc roofline.c $(pkg-config --cflags --libs sol) -o app && ./app >/dev/null'
check 'a program by CMake' inside sh -c 'cd /tmp/sol && cmake -S . -B made >/dev/null && cmake --build made >/dev/null && made/app >/dev/null'
check 'an audit' inside sh -c "$audit >/dev/null"
check 'dpkg -P' inside sh -c 'dpkg -P sol >/dev/null 2>&1'
check 'the package leaves nothing' diff <(echo "$before") <(files)
check 'the wheel' inside sh -c 'rm -rf /tmp/venv && python3 -m venv --system-site-packages /tmp/venv &&
  /tmp/venv/bin/pip install -q --no-index --no-deps /tmp/sol/*.whl && /tmp/venv/bin/python /tmp/sol/try.py'
check 'pip uninstall leaves nothing' inside sh -c '/tmp/venv/bin/pip uninstall -q -y sol && ! find /tmp/venv -path "*/site-packages/sol*" | grep .'
exit $failed
