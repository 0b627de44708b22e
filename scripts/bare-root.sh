#!/usr/bin/env bash
# Runs `make test` (or another target) where nothing is installed but what Debian calls minimal: a fresh root in FOLDER, made
# with debootstrap, and a clean clone of the last commit in it.
# usage: scripts/bare-root.sh [--no-pypi] [--suite NAME] [--setup-only] FOLDER [TARGET...]      (default: bookworm, test)
#   --no-pypi      pip cannot reach a package registry: the machine has no nvcc, and what needs it is skipped
#   --setup-only   ends after `make setup`
# Needs root and debootstrap. A root that is there already is used again; the clone is made anew. Debian's mirror is the one
# that this machine's apt uses, or MIRROR.
set -eu
cd "$(dirname "$0")/.."
suite=bookworm pypi=1 setup_only=0
while [[ ${1:-} == --* ]]; do
  case $1 in
  --no-pypi) pypi=0 ;;
  --setup-only) setup_only=1 ;;
  --suite) suite=$2 && shift ;;
  *) echo "bare-root: unknown option '$1'; see the head of this file" >&2 && exit 2 ;;
  esac
  shift
done
[ $# -gt 0 ] || { echo "bare-root: name a folder for the root" >&2 && exit 2; }
root=$1
shift
[ $# -gt 0 ] || set -- test

say() { echo "bare-root: $*"; }
[ "$(id -u)" = 0 ] || { say "needs root: it makes a root and enters it" >&2 && exit 1; }

mirror() { # the first that apt has, in either of its formats
  local list
  list=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
  sed -nE 's/^deb (\[[^]]*\] )?([a-z]+:[^ ]+) .*/\2/p; s/^URIs: *([^ ]+).*/\1/p' <<<"$list" | grep -v security | head -n 1
}
MIRROR=${MIRROR:-$(mirror)}
[ -n "$MIRROR" ] || { say "apt names no mirror here: set MIRROR" >&2 && exit 1; }

if [ ! -x "$root/bin/bash" ]; then
  command -v debootstrap >/dev/null || { say "needs debootstrap: apt-get install debootstrap" >&2 && exit 1; }
  say "making $root ($suite)"
  debootstrap --variant=minbase --include=make,git,ca-certificates "$suite" "$root" "$MIRROR"
fi
# apt and pip go out as they do here.
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir -p "$root/etc/apt/apt.conf.d" "$root/etc/ssl/certs" "$root/usr/local/share/ca-certificates"
cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/" 2>/dev/null || true

rm -rf "$root/sol"
git clone -q --no-hardlinks . "$root/sol"
for place in proc sys dev; do mountpoint -q "$root/$place" || mount --rbind "/$place" "$root/$place"; done
leave() { for place in dev sys proc; do mount --make-rslave "$root/$place" && umount -R -l "$root/$place"; done; }
trap leave EXIT

set_env=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_TRUSTED_HOST PIP_CERT; do
  if [ -n "${!name:-}" ]; then set_env+=("$name=${!name}"); fi
done
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [ -f "$file" ]; then cp "$file" "$root/etc/pip.conf"; fi
done
# A closed port on loopback: pip fails at once, whatever the machine's own settings are.
if [ $pypi = 0 ]; then
  rm -f "$root/etc/pip.conf"
  set_env+=(PIP_INDEX_URL=http://127.0.0.1:9/ PIP_EXTRA_INDEX_URL= PIP_RETRIES=0 PIP_TIMEOUT=2)
fi
inside() { env -i "${set_env[@]}" chroot "$root" "$@"; }
inside update-ca-certificates >/dev/null 2>&1 || true
say "make setup in $root"
inside make -C /sol setup
if [ $pypi = 0 ] && inside sh -c 'cd /sol && scripts/cuda-env nvcc'; then say "there is an nvcc all the same" >&2 && exit 1; fi
[ $setup_only = 1 ] || inside make -C /sol "$@"
