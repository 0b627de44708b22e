#!/usr/bin/env bash
# A fleet of four ranks on this machine (Open MPI): the merged answer is the single process's; a rank that is killed in the
# middle loses nothing, with and without mpirun's recovery.
set -u
sol=$(realpath "${SOL:-build/sol}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() {
  failed=$((failed + 1))
  printf 'FAIL %s\n' "$1"
  tail -n 20 "$scratch/out" "$scratch/err"
}
command -v mpirun >/dev/null || { echo 'no mpirun' && exit 77; }
[ -e "$(dirname "$sol")/fleet/libsolfleet.so" ] || { echo 'built without MPI' && exit 77; }
# MPI's own allocations are not this test's; a launcher may be started as root in a container.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 XDG_CACHE_HOME=$scratch/cache
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader,tcp
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { # N ARGS...: each rank's process id is left behind
  local n=$1
  shift
  timeout -k 5 600 mpirun --oversubscribe -n "$n" "${recovery[@]}" sh -c "echo \$\$ >'$scratch/pid'.\$OMPI_COMM_WORLD_RANK; exec \"\$@\"" sh "$sol" "$@" \
    >"$scratch/out" 2>"$scratch/err" </dev/null
}
recovery=()
holds() { # WHAT: a Python expression of a and b, two answers
  if python3 - "$scratch" "$1" <<'PY'; then ok; else bad "not so: $1"; fi
import json, os, sys
folder = sys.argv[1]
load = lambda name: json.load(open(os.path.join(folder, name))) if os.path.exists(os.path.join(folder, name)) else None
a, b = load('one.json'), load('out')
lines = lambda name: open(os.path.join(folder, name)).read().split()
sys.exit(not eval(sys.argv[2]))
PY
}

if ! ranks 2 --version || ! grep -q '^sol ' "$scratch/out"; then
  echo "mpirun does not start here: $(head -n 1 "$scratch/err")"
  exit 77
fi

# ---- the same answer ----
{
  for shape in 64x64 128x128 256x256 512x64 64x512; do
    for device in h100 h200 a100 mi300x; do echo "roofline rmsnorm $shape --device $device"; done
  done
  echo 'model llama-3-8b --phase decode --batch 4'
  echo "audit '$PWD/examples/scale.ptx' --kernel column_scale --arg 'out:f32[128*64]' --arg f32[128*64] --arg f32[64] --arg 128 --arg 64"
  echo 'roofline rmsnorm 0x0'
  echo "sh -c 'echo plain text; exit 5'"
} >"$scratch/jobs.txt"
"$sol" fleet "$scratch/jobs.txt" --json >"$scratch/one.json" 2>"$scratch/err"
ranks 4 fleet "$scratch/jobs.txt" --json
holds 'len(a["results"]) == 24 and a["failed"] == b["failed"] and 22 in a["failed"] and 23 in a["failed"]'
holds 'a["results"] == b["results"] and a["results"][21]["exit"] == 0'
holds 'len(b["ranks"]) == 4 and sum(r["jobs"] for r in b["ranks"]) == 24 and not any(r["died"] for r in b["ranks"])'

# ---- a rank that dies ----
# Rank 2 is killed by its first job from the 20th on; until then the others' wait, so that it gets one. Every job says
# that it ran.
cat >"$scratch/job.sh" <<JOB
if [ "\$1" -ge 20 ] && [ "\$PPID" = "\$(cat '$scratch/pid.2' 2>/dev/null)" ] && mkdir '$scratch/killed' 2>/dev/null; then
  kill -KILL \$PPID
  sleep 99
fi
while [ "\$1" -ge 20 ] && [ ! -d '$scratch/killed' ]; do sleep 0.02; done
echo "\$1" >>'$scratch/log'
echo "{\"answer\": \$1}"
JOB
for i in $(seq 40); do echo "sh '$scratch/job.sh' $i"; done >"$scratch/deadly.txt"
rm -f "$scratch"/pid.* && mkdir "$scratch/killed" # nobody is killed
"$sol" fleet "$scratch/deadly.txt" --json >"$scratch/one.json" 2>"$scratch/err"
rmdir "$scratch/killed"
: >"$scratch/log"
recovery=(--enable-recovery)
if ranks 4 fleet "$scratch/deadly.txt" --json; then ok; else bad 'the others did not go on'; fi
holds 'a["results"] == b["results"] and len(b["results"]) == 40'
holds '[r["died"] for r in b["ranks"]] == [False, False, True, False] and all(b["ranks"][i]["jobs"] for i in (0, 1, 3))'
holds 'sorted(r["attempts"] for r in b["runs"])[-1] == 2 and sorted(map(int, lines("log"))) == list(range(1, 41))'

# Without recovery mpirun ends all; the journal lets the next run continue, and nothing runs twice.
recovery=()
rm -rf "$scratch/killed" && : >"$scratch/log"
if ranks 4 fleet "$scratch/deadly.txt" --journal "$scratch/journal" --json; then bad 'mpirun went on by itself'; else ok; fi
# Three ranks may have had an earlier job in hand.
if [ "$(wc -l <"$scratch/journal")" -ge 16 ]; then ok; else bad 'the journal lacks what was done'; fi
ranks 4 fleet "$scratch/deadly.txt" --journal "$scratch/journal" --json
holds 'a["results"] == b["results"] and len(b["results"]) == 40'
holds 'set(map(int, lines("log"))) == set(range(1, 41)) and len(lines("log")) < 50'
"$sol" fleet "$scratch/deadly.txt" --journal "$scratch/journal" --json >"$scratch/out" 2>"$scratch/err"
holds 'a["results"] == b["results"] and b["ranks"][0]["jobs"] == 0'

# Without rank 0 the others end, and say why.
recovery=(--enable-recovery)
cat >"$scratch/job.sh" <<JOB
if [ "\$PPID" = "\$(cat '$scratch/pid.0')" ]; then mkdir '$scratch/beheaded'; kill -KILL \$PPID; fi
while [ ! -d '$scratch/beheaded' ]; do sleep 0.02; done
JOB
for i in 1 2 3; do echo "sh '$scratch/job.sh' $i"; done >"$scratch/beheaded.txt" # one for each rank
ranks 3 fleet "$scratch/beheaded.txt" --silence 1 --json
if grep -q 'heard nothing from rank 0' "$scratch/err" && [ ! -s "$scratch/out" ]; then ok; else bad 'ranks without rank 0'; fi
recovery=()

# ---- the same command on every rank ----
ranks 3 bench rmsnorm --shape 64x64 --dtype fp32 --backend cpu --workers 1 --quick --fleet --json
holds 'len(b["results"]) == 3 and all(r["output"]["cases"] for r in b["results"]) and sorted(r["rank"] for r in b["runs"]) == [0, 1, 2]'
"$sol" bench rmsnorm --shape 64x64 --dtype fp32 --backend cpu --workers 1 --quick --fleet --json >"$scratch/out" 2>"$scratch/err"
holds 'len(b["results"]) == 1 and b["slow"] == []'

# ---- refused ----
refused() { # PATTERN ARGS...
  local pattern=$1 rc=0
  shift
  "$sol" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || rc=$?
  if [ $rc = 2 ] && grep -q "$pattern" "$scratch/err"; then ok; else bad "$* was not refused: $rc"; fi
}
echo "audit 'x" >"$scratch/bad.txt"
refused 'line 1: a quote is not closed' fleet "$scratch/bad.txt"
refused 'no job' fleet /dev/null
refused 'name one job file' fleet
refused 'is for --measure' devices --fleet
OMPI_COMM_WORLD_SIZE=4 SOL_FLEET=$scratch/none.so refused 'cannot speak MPI' fleet "$scratch/jobs.txt"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
