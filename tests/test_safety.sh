#!/usr/bin/env bash
# sol against input that means harm: names in PTX, names of files, folders and pipes, signals, closed descriptors.
# No verdict depends on how fast the machine is: what has to happen is waited for, and what must not hang is ended by
# timeout, which is a failure.
set -u
sol=$(cd "$(dirname "${SOL:-build/sol}")" && pwd)/sol
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
export COLUMNS=200 # widths are tests/test_width.c's

ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  head -c 3000 "$scratch/out" "$scratch/err" | cat -v
}
run() { # CODE ARGS...: sol; output and errors in files
  local want=$1 rc=0
  shift
  timeout 120 "$sol" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = "$want" ]; then ok; else bad "sol $*: exit code $rc, not $want"; fi
}
says() { # FILE PATTERN...: each is in it
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    if grep -aqE -- "$pattern" "$scratch/$file"; then ok; else bad "no '$pattern' in $file"; fi
  done
}
lacks() { # FILE PATTERN...: none is in it
  local file=$1 pattern
  shift
  for pattern in "$@"; do
    if grep -aqE -- "$pattern" "$scratch/$file"; then bad "'$pattern' in $file"; else ok; fi
  done
}
holds() { # WHAT TEST...
  local what=$1
  shift
  if "$@"; then ok; else bad "$what"; fi
}
clean() { # FILE: valid UTF-8 without what a terminal would obey
  if python3 - "$scratch/$1" <<'PY'; then ok; else bad "$1 is not clean"; fi
import sys
text = open(sys.argv[1], 'rb').read().decode('utf-8')
bad = [hex(ord(c)) for c in text if (ord(c) < 32 and c != '\n') or 127 <= ord(c) < 160 or 0x202a <= ord(c) <= 0x202e
       or 0x2066 <= ord(c) <= 0x2069 or c in '\u200e\u200f\u061c\u2028\u2029']
sys.exit(f'not clean: {bad}' if bad else 0)
PY
}
until_true() { # COMMAND...: waits for it, half a minute at most
  for _ in $(seq 600); do
    if "$@"; then return 0; fi
    sleep 0.05
  done
  return 1
}
gone() { ! kill -0 "$1" 2>/dev/null; }
empty() { [ -z "$(ls -A "$1")" ]; }

# A kernel that says it comes from a file of this name.
kernel() { # FILE NAME
  mkdir -p "$(dirname "$1")"
  printf '.version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %%rd<4>;\n.reg .b32 %%r<4>;\n' >"$1"
  printf '.loc 1 1 1\nld.param.u64 %%rd1, [p];\ncvta.to.global.u64 %%rd2, %%rd1;\nmov.u32 %%r1, %%tid.x;\nmul.wide.u32 %%rd3, %%r1, 4;\nadd.s64 %%rd2, %%rd2, %%rd3;\nst.global.u32 [%%rd2], %%r1;\nret;\n}\n.file 1 "%s"\n' "$2" >>"$1"
}
audit=(--grid 1 --block 32 --arg 'out:u32[32]')

# ---- source is read where it belongs, and nowhere else ----
mkdir -p "$scratch/given/deep/.hidden" "$scratch/elsewhere" "$scratch/home"
export HOME=$scratch/home NVCC=/nonexistent
secret='SECRET of somebody'
for file in given/deep/near.cu given/deep/.hidden/key elsewhere/key; do echo "$secret" >"$scratch/$file"; done
mkfifo "$scratch/given/pipe"
ln -s ../elsewhere/key "$scratch/given/link.cu"
ln -s deep/near.cu "$scratch/given/inner.cu"
head -c 20000000 /dev/zero | tr '\0' 'x' >"$scratch/given/huge.cu"
for name in elsewhere/key given/pipe given/link.cu given/deep/.hidden/key given/huge.cu given/deep given/../elsewhere/key; do
  kernel "$scratch/given/k.ptx" "$scratch/$name"
  run 0 audit "$scratch/given/k.ptx" "${audit[@]}"
  lacks out "$secret" 'xxxxxxxxxx'
  says out 'st\.global\.u32' 'Source not shown: ' '--source-dir DIR'
done
long=$scratch/elsewhere/$(printf 'x%.0s' {1..100}) # of a long path the end is shown
mkdir -p "$long"
cp "$scratch/elsewhere/key" "$long/hidden.cu"
kernel "$scratch/given/k.ptx" "$long/hidden.cu"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --wide
lacks out "$secret"
says out "'\.\.\.x+/hidden\.cu' is no file"
for name in /dev/zero /dev/tty /dev/stdin /proc/self/mem /etc/passwd; do
  kernel "$scratch/given/k.ptx" "$name"
  run 0 audit "$scratch/given/k.ptx" "${audit[@]}"
  lacks out 'root:'
done
for name in given/deep/near.cu given/inner.cu; do
  kernel "$scratch/given/k.ptx" "$scratch/$name"
  run 0 audit "$scratch/given/k.ptx" "${audit[@]}"
  says out "$secret"
  lacks out 'Source not shown'
done
kernel "$scratch/given/k.ptx" "$scratch/elsewhere/key"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --source-dir "$scratch/nothing" --source-dir "$scratch/elsewhere"
says out "$secret"
lacks out 'Source not shown'
# The current folder counts where what was given lies below it, the home folder and the root do not.
kernel "$scratch/elsewhere/sub/k.ptx" "$scratch/elsewhere/key"
cd "$scratch/elsewhere" || exit 1
run 0 audit sub/k.ptx "${audit[@]}"
says out "$secret"
HOME=$scratch/elsewhere run 0 audit sub/k.ptx "${audit[@]}"
lacks out "$secret"
cd "$root" || exit 1
run 0 audit "$scratch/elsewhere/sub/k.ptx" "${audit[@]}"
lacks out "$secret"
mkdir "$scratch/elsewhere/.git"
run 0 audit "$scratch/elsewhere/sub/k.ptx" "${audit[@]}"
says out "$secret"

# ---- names ----
evil=$'/x/\x1b]0;title\x07\x1b[31m\xff\xc0\xaf\xe2\x80\xaeevil\xc2\x9b\x7f\r.cu'
kernel "$scratch/given/k.ptx" "$evil"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}"
clean out
says out '\\x1b\[31m' '\\xff' '\\u202e' '\\u009b'
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --json --by instruction
clean out
holds 'JSON' python3 -c "
import json
d = json.loads(open('$scratch/out', 'rb').read().decode('utf-8'))
names = {l['file'] for l in d['kernels'][0]['lines']}
assert any('\x1b[31m\ufffd' in n and '\u202eevil\x9b\x7f\r.cu' in n for n in names), names"
run 3 audit "$scratch/given/k.ptx" "${audit[@]}" --max-tax 0 --sarif "$scratch/sarif"
clean out
clean sarif
holds 'SARIF' python3 -m json.tool "$scratch/sarif" "$scratch/sarif.out"
cp "$scratch/given/k.ptx" "$scratch/given/"$'k\x1b[31m\xff.ptx'
run 0 audit "$scratch/given/"$'k\x1b[31m\xff.ptx' "${audit[@]}" --json
clean out
run 0 audit "$scratch/given/"$'k\x1b[31m\xff.ptx' "${audit[@]}"
clean out
for words in "audit /nix/$evil" "audit --$evil" "run-ptx $evil" "$evil" "devices $evil" "roofline $evil 4x4" "profile --import $evil" \
  "model $evil" "audit $scratch/given/k.ptx --kernel $evil" "run-ptx $scratch/given/k.ptx --arg $evil"; do
  read -ra list <<<"$words"
  run 2 "${list[@]}"
  clean err
done
printf '{"model_type": "%s", "hidden_size": -1}' "$evil" | tr -d '\r\033\007' >"$scratch/model.json"
timeout 60 "$sol" model "$scratch/model.json" >"$scratch/out" 2>"$scratch/err"
clean err
clean out

# Names in a file of ncu's, and in results that somebody else sent.
python3 - "$scratch/evil.csv" <<'PY'
import sys
text = open('tests/data/ncu/h200-basic.csv', 'rb').read()
open(sys.argv[1], 'wb').write(text.replace(b'"transpose(', b'"k\x1b[31m\xff\xe2\x80\xae('))
PY
for flags in '' --json; do
  # shellcheck disable=SC2086
  run 0 profile --import "$scratch/evil.csv" $flags
  clean out
  says out '31m'
done

# A compiler of a shell's, which starts another process and waits.
mkdir -p "$scratch/fake/bin" "$scratch/tmp"
cat >"$scratch/fake/bin/nvcc" <<'SH'
#!/bin/sh
case "$*" in *--version*) echo 'Cuda compilation tools, release 13.0, V13.0.1' && exit 0 ;; esac
[ -z "${NVCC_WORDS-}" ] || { printf '%s\n' "$@" >"$NVCC_WORDS" && exit 1; }
echo x >"$TMPDIR/left over"
mkdir "$TMPDIR/folder" && echo x >"$TMPDIR/folder/file"
sleep 1000 &
echo $! $$ >"$NVCC_PIDS.new"
mv "$NVCC_PIDS.new" "$NVCC_PIDS"
wait
SH
chmod +x "$scratch/fake/bin/nvcc"

# ---- what is given: folders, pipes, devices, bytes that are no text ----
mkfifo "$scratch/fifo"
for command in 'run-ptx' 'audit' 'profile --import' 'model' 'audit --baseline'; do
  read -ra list <<<"$command"
  more=()
  if [ "$command" = 'audit --baseline' ]; then kernel "$scratch/given/k.ptx" x.cu && list=(audit "$scratch/given/k.ptx" "${audit[@]}" --baseline); fi
  if [ "$command" = audit ]; then more=("${audit[@]}") && ln -sf "$scratch/fifo" "$scratch/fifo.ptx" && ln -sf /dev/zero "$scratch/zero.ptx"; fi
  for name in fifo zero given; do
    path=$scratch/$name
    if [ $name = zero ]; then path=/dev/zero; fi
    if [ "$command" = audit ] && [ $name != given ]; then path=$scratch/$name.ptx; fi
    run 2 "${list[@]}" "$path" "${more[@]}"
  done
done
ln -s "$scratch/fifo" "$scratch/fifo.cu"
ln -s /dev/zero "$scratch/zero.cu"
for name in fifo fifo.cu zero.cu given; do NVCC=$scratch/fake/bin/nvcc run 2 audit "$scratch/$name"; done
kernel "$scratch/given/k.ptx" x.cu
if timeout 60 "$sol" run-ptx <(cat "$scratch/given/k.ptx") --kernel k --grid 1 --block 32 --arg 'out:u32[32]' >"$scratch/out" 2>"$scratch/err"; then ok; else bad 'a pipe of the shell'; fi
printf '.version 8.0\0\n.target sm_75\0' >"$scratch/nul.ptx"
run 2 run-ptx "$scratch/nul.ptx" --list
clean err

# ---- what is written: whole or not at all ----
kernel "$scratch/given/k.ptx" x.cu
echo keep >"$scratch/target"
mkdir "$scratch/outputs"
ln -s ../target "$scratch/outputs/link"
chmod 640 "$scratch/target"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --sarif "$scratch/outputs/link"
holds 'a link is replaced' grep -q keep "$scratch/target"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --sarif "$scratch/target"
holds 'the file has its rights' [ "$(stat -c %a "$scratch/target")" = 640 ]
holds 'SARIF over an old file' grep -q sarif "$scratch/target"
run 0 audit "$scratch/given/k.ptx" "${audit[@]}" --save "out=$scratch/outputs/saved" --sarif "$scratch/outputs/new"
holds 'no other file' [ "$(ls -A "$scratch/outputs")" = $'link\nnew\nsaved' ]
run 1 audit "$scratch/given/k.ptx" "${audit[@]}" --sarif /dev/full
run 1 audit "$scratch/given/k.ptx" "${audit[@]}" --sarif "$scratch/given"
run 1 audit "$scratch/given/k.ptx" "${audit[@]}" --sarif "$scratch/fifo"
# A file as large as allowed: writing fails in the middle, and the old one is still there.
echo old >"$scratch/outputs/saved"
(ulimit -f 1 && trap '' XFSZ && exec timeout 60 "$sol" audit "$scratch/given/k.ptx" --grid 1 --block 32 --arg 'out:u32[65536]' \
  --save "out=$scratch/outputs/saved" >/dev/null 2>"$scratch/err")
holds 'the old file stays' [ "$(cat "$scratch/outputs/saved")" = old ]
holds 'nothing beside it' [ "$(ls -A "$scratch/outputs")" = $'link\nnew\nsaved' ]

# ---- closed and full descriptors ----
for words in --version commands --help 'devices --json' 'completion bash' "run-ptx $scratch/given/k.ptx --list"; do
  read -ra list <<<"$words"
  rc=0
  "$sol" "${list[@]}" >/dev/full 2>"$scratch/err" || rc=$?
  holds "sol $words >/dev/full: exit code $rc" [ $rc = 1 ]
  rc=0
  "$sol" "${list[@]}" >&- 2>"$scratch/err" || rc=$?
  holds "sol $words >&-: exit code $rc" [ $rc = 1 ]
done
rc=0
(cd "$scratch/outputs" && "$sol" audit "$scratch/given/k.ptx" "${audit[@]}" --sarif closed <&- >&- 2>&-) || rc=$?
holds "all closed: exit code $rc" [ $rc = 1 ]
holds 'the answer is in no file' [ -z "$(grep -l 'by emulation' "$scratch/outputs"/*)" ]
"$sol" roofline nix <&- >"$scratch/out" 2>&-
holds 'no message in the answer' [ ! -s "$scratch/out" ]

# ---- signals while a compiler runs ----
echo 'int main() {}' >"$scratch/given/p.cu"
export NVCC=$scratch/fake/bin/nvcc NVCC_PIDS=$scratch/pids NVCC_WORDS=
for signal in TERM HUP INT KILL; do
  rm -f "$scratch/pids"
  # A shell's background jobs ignore SIGINT; python starts it as a terminal would.
  TMPDIR=$scratch/tmp python3 -c "
import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
while not os.path.exists('$scratch/pids'):
    if p.poll() is not None: sys.exit(99)
    time.sleep(0.02)
p.send_signal(signal.SIG$signal)
sys.exit(-p.wait())" "$sol" audit "$scratch/given/p.cu" >"$scratch/out" 2>&1
  rc=$?
  holds "SIG$signal: it ended by $rc" [ $rc = "$(kill -l $signal)" ]
  if [ $signal != KILL ]; then holds "SIG$signal: the folder is gone" empty "$scratch/tmp"; fi
  read -r child compiler <"$scratch/pids"
  holds "SIG$signal: the compiler ends" until_true gone "$compiler"
  holds "SIG$signal: what it started ends" until_true gone "$child"
  holds "SIG$signal: the folder goes" until_true empty "$scratch/tmp"
done

# ---- nvcc: all words, or none ----
export NVCC_WORDS=$scratch/words
many=$(seq -f '-DM%g' 5000 | tr '\n' ' ')
TMPDIR=$scratch/tmp run 2 audit "$scratch/given/p.cu" --nvcc "$many" --nvcc '-DLAST  -DEND'
holds '5000 words' [ "$(grep -c '^-DM' "$scratch/words")" = 5000 ]
holds 'the last words' grep -qx -- -DEND "$scratch/words"
# Only simple names come to a compiler, whatever the file is called.
for name in $'a;$(touch PWN).cu' "q'uote\".cu" 'sp ace.cu' 'back\slash.cu' $'new\nline.cu' -dash.cu '@at.cu' $'\xff.cu' 'a,b.cu'; do
  mkdir -p "$scratch/odd/$name.d"
  cp "$scratch/given/p.cu" "$scratch/odd/$name.d/$name"
  rm -f "$scratch/words"
  TMPDIR=$scratch/tmp run 2 audit "$scratch/odd/$name.d/$name"
  clean err
  holds "$name: simple words alone" [ "$(grep -acvE '^[-A-Za-z0-9_/.+=,@]+$' "$scratch/words")" = 0 ]
  cd "$scratch/odd/$name.d" || exit 1
  rm -f "$scratch/words"
  TMPDIR=$scratch/tmp run 2 audit "./$name"
  cd "$root" || exit 1
  holds "./$name: simple words alone" [ "$(grep -acvE '^[-A-Za-z0-9_/.+=,@]+$' "$scratch/words")" = 0 ]
  holds "./$name: no option" [ "$(grep -ac '^[-@]dash\|^@' "$scratch/words")" = 0 ]
done
# TMPDIR: what a shell would read is not used; what is not there, or not a folder, is said.
long=$scratch/$(printf 'long%.0s' $(seq 50))/$(printf 'folder%.0s' $(seq 40))
mkdir -p "$long" "$scratch/t m'p;\$(touch PWN)"
for tmp in "$long" "$scratch/t m'p;\$(touch PWN)" "$scratch/tmp/" ''; do
  rm -f "$scratch/words"
  TMPDIR=$tmp run 2 audit "$scratch/given/p.cu"
  says err 'nvcc could not compile'
  holds "TMPDIR=$tmp: simple words alone" [ "$(grep -acvE '^[-A-Za-z0-9_/.+=,@]+$' "$scratch/words")" = 0 ]
done
for tmp in "$scratch/nothing" "$scratch/target" "$(printf '/x%.0s' $(seq 5000))"; do
  TMPDIR=$tmp run 1 audit "$scratch/given/p.cu"
  says err 'cannot make a folder'
done
# The compiler's own folder.
mkdir -p "$scratch/cu da;\$(touch PWN)/bin"
cp "$scratch/fake/bin/nvcc" "$scratch/cu da;\$(touch PWN)/bin/nvcc"
for where in NVCC="$scratch/cu da;\$(touch PWN)/bin/nvcc" CUDA_HOME="$scratch/cu da;\$(touch PWN)"; do
  rm -f "$scratch/words"
  (unset NVCC && export "${where?}" && TMPDIR=$scratch/tmp timeout 60 "$sol" audit "$scratch/given/p.cu" >"$scratch/out" 2>"$scratch/err")
  holds "${where%%=*}: it was called" [ -s "$scratch/words" ]
done
holds 'nothing was run' [ -z "$(find "$scratch" "$root" -maxdepth 3 -name 'PWN*')" ]
holds 'no folder stays' empty "$scratch/tmp"
unset NVCC NVCC_WORDS NVCC_PIDS

# ---- with the real compiler, and programs ----
nvcc=$(scripts/cuda-env nvcc)
shim=$(dirname "$sol")/shim/libcudart.so.13
if [ -z "$nvcc" ] || [ ! -e "$shim" ] || nm -D "$shim" | grep -q ' U __asan_init'; then
  skipped=$((skipped + 1))
  echo 'skipped: real programs need nvcc and the runtime without ASan'
else
  NVCC=$(cd "$(dirname "$nvcc")" && pwd)/$(basename "$nvcc")
  export NVCC
  odd="$scratch/odd/in; \$(touch PWN)'\" q\\x"
  mkdir -p "$odd"
  echo '__device__ void twice(float *x) { x[threadIdx.x] *= 2; }' >"$odd/twice.h"
  cat >"$odd/k;\$(touch PWN) é.cu" <<'CU'
#include <cstdio>
#include "twice.h"
__global__ void k(float *x) { twice(x); x[threadIdx.x] += 1; }
int main() {
  float *x;
  puts(__FILE__);
  cudaMalloc(&x, 1024);
  k<<<1, 32>>>(x);
  return cudaDeviceSynchronize();
}
CU
  TMPDIR=$scratch/tmp run 0 audit "$odd/k;\$(touch PWN) é.cu" --json
  holds 'the names are the user'"'"'s' python3 -c "
import json
lines = json.load(open('$scratch/out'))['kernels'][0]['lines']
here = {(l['file'].split('/')[-1], l['line'], 'twice' in l['source'], 'touch PWN)\'' in l['file']) for l in lines}
assert ('twice.h', 1, True, True) in here and ('k;\$(touch PWN) é.cu', 3, True, True) in here, here"
  says err 'k;\$\(touch PWN\) é.cu'
  echo 'int main() { return nothing; }' >"$odd/wrong;.cu"
  TMPDIR=$scratch/tmp run 2 audit "$odd/wrong;.cu"
  says err 'wrong;.cu\(1\): error' 'nvcc could not compile'
  holds 'nothing was run' [ -z "$(find "$scratch" "$root" -maxdepth 3 -name 'PWN*')" ]
  # An installation in a folder that the loader's lists cannot name.
  away="$scratch/in: st;all \$ORIGIN"
  mkdir -p "$away/bin" "$away/lib/sol"
  cp "$sol" "$away/bin/sol"
  cp "$shim" "$away/lib/sol/"
  "$NVCC" -cudart shared -lineinfo -arch=sm_90 "$root/examples/column_scale.cu" -o "$scratch/prog" 2>/dev/null
  "$NVCC" -cudart shared -lineinfo -arch=sm_90 "$root/examples/column_scale.cu" -Xlinker -rpath,/nonexistent \
    -Xlinker --disable-new-dtags -o "$scratch/prog-rpath" 2>/dev/null
  here=$sol sol=$away/bin/sol
  run 0 audit "$scratch/prog" -- 64 64
  run 0 audit "$scratch/prog-rpath" -- 64 64
  sol=$here
  # SIGKILL: neither the program nor what it started stays.
  cat >"$scratch/prog.sh" <<'SH'
#!/bin/sh
sleep 1000 &
echo $! $$ >"$1.new"
mv "$1.new" "$1"
wait
SH
  chmod +x "$scratch/prog.sh"
  rm -f "$scratch/pids"
  TMPDIR=$scratch/tmp "$sol" audit "$scratch/prog.sh" -- "$scratch/pids" >"$scratch/out" 2>"$scratch/err" </dev/null &
  started=$!
  holds 'it runs' until_true test -e "$scratch/pids"
  kill -KILL $started
  wait $started 2>/dev/null
  read -r child program <"$scratch/pids"
  holds 'the program ends' until_true gone "$program"
  holds 'what it started ends' until_true gone "$child"
  holds 'the folder goes' until_true empty "$scratch/tmp"
fi

if [ $skipped = 0 ]; then echo "$passed passed, $failed failed"; else echo "$passed passed, $failed failed, $skipped skipped"; fi
[ $failed = 0 ]
