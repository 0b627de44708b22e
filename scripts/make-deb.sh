#!/usr/bin/env bash
# Packs what `make install` installs into a Debian package: scripts/make-deb.sh BUILD writes BUILD/deb/sol_VERSION_ARCH.deb.
# No root is needed, and the same sources and compiler give the same file. DEB_FLAGS: how dpkg-deb compresses (-Zxz -z2).
set -eu
cd "$(dirname "$0")/.."
build=$1
command -v dpkg-deb >/dev/null || { echo "make deb: needs dpkg-deb (the package dpkg)" >&2 && exit 1; }
export LC_ALL=C SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"
umask 022
arch=$(dpkg --print-architecture)
version=$(sed -n 's/^.define SOL_VERSION "\(.*\)"/\1/p' include/sol/version.h)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root

libraries=/usr/lib/$(gcc -print-multiarch 2>/dev/null || ${CC:-cc} -dumpmachine)
${MAKE:-make} --no-print-directory -s B="$build" DESTDIR="$root" PREFIX=/usr LIBDIR="$libraries" PRIVATE=/usr/lib/sol install
mapfile -t programs < <(find "$root/usr/bin" "$root$libraries" "$root/usr/lib/sol" -type f \( -name sol -o -name '*.so*' \))
strip --strip-unneeded "${programs[@]}"
strip --strip-debug "$root$libraries/libsol.a"
find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
install -D -m 644 LICENSE "$root/usr/share/doc/sol/copyright"
install -D -m 644 CHANGELOG.md "$root/usr/share/doc/sol/changelog"
gzip -9n "$root/usr/share/doc/sol/changelog"

glibc=$(readelf -V "${programs[@]}" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
mkdir "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@GLIBC@/${glibc#GLIBC_}/" \
  -e "s/@SIZE@/$(du -sk --exclude=DEBIAN "$root" | cut -f1)/" packaging/control.in >"$root/DEBIAN/control"
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
mkdir -p "$build/deb"
# shellcheck disable=SC2086 # flags are a list
dpkg-deb --root-owner-group ${DEB_FLAGS:--Zxz -z2} --build "$root" "$build/deb/sol_${version}_$arch.deb"
