#!/bin/sh
# Runs probe_mem and probe_banks under ncu and writes one table per part, OUTPUT_FOLDER/PART.table. Needs nvcc,
# ncu and an NVIDIA GPU whose counters may be read. tests/data/h200-*-probe.csv were made from such tables.
# Usage: bench/probe_mem.sh OUTPUT_FOLDER [dram] [l1] [bank]
set -e
out=$1; shift; [ $# -gt 0 ] || set -- dram l1 bank
here=$(dirname "$0")
nvcc -O2 -arch=native -o "$out/probe_mem" "$here/probe_mem.cu"
nvcc -O2 -arch=native -o "$out/probe_banks" "$here/probe_banks.cu"
ncu --query-metrics 2>/dev/null | awk '{print $1}' | sort -u > "$out/metrics.txt"
# Keeps the metrics that this chip has: have a b c -> a.sum,b.sum
have() { for m in "$@"; do grep -qx "$m" "$out/metrics.txt" && printf '%s.sum,' "$m" || echo "no metric $m" >&2; done | sed 's/,$//'; }
for part in "$@"; do
  flush=all program=$out/probe_mem argument=$part
  case $part in
  dram) metrics=$(have dram__bytes_read dram__bytes_write lts__t_sectors_op_read lts__t_sectors_op_write \
          lts__t_sectors_srcunit_tex_lookup_hit lts__t_sectors_srcunit_tex_lookup_miss) ;;
  l1) metrics=$(have l1tex__t_sectors_pipe_lsu_mem_global_op_ld l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit \
          l1tex__t_sectors_pipe_lsu_mem_global_op_st l1tex__t_sectors_pipe_lsu_mem_global_op_st_lookup_hit \
          l1tex__t_sectors_pipe_lsu_mem_local_op_ld l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_hit \
          l1tex__t_sectors_pipe_lsu_mem_local_op_st l1tex__t_sectors_pipe_lsu_mem_local_op_st_lookup_hit \
          l1tex__m_xbar2l1tex_read_sectors l1tex__m_l1tex2xbar_write_sectors lts__t_sectors_srcunit_tex_op_write) ;;
  bank) flush=none program=$out/probe_banks argument=
        metrics=$(have smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld \
          smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared \
          l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom l1tex__data_pipe_lsu_wavefronts_mem_shared_op_red \
          l1tex__data_pipe_lsu_wavefronts_mem_shared) ;;
  esac
  ncu --clock-control none --cache-control $flush --csv --page raw --print-units base --metrics "$metrics" \
      --log-file "$out/$part.csv" "$program" ${argument:+"$argument"} > "$out/$part.labels"
  grep -v '^==' "$out/$part.labels" > "$out/$part.names"
  python3 - "$out/$part.csv" "$out/$part.names" "$out/$part.table" <<'PY'
import csv, sys
rows = list(csv.reader(l for l in open(sys.argv[1]) if l.startswith('"')))
head, rows = rows[0], rows[2:]
names = [l.rstrip('\n') for l in open(sys.argv[2])]
cols = [i for i, h in enumerate(head) if h.endswith('.sum') and h.split('__')[0] in ('dram', 'lts', 'l1tex', 'smsp')]
with open(sys.argv[3], 'w') as f:
    print('#', ' '.join(head[i] for i in cols), file=f)
    for i, r in enumerate(rows):
        print(names[i] if i < len(names) else '?', '|', ' '.join(r[c].replace(',', '') for c in cols), file=f)
    print('# launches', len(rows), 'labels', len(names), file=f)
PY
done
