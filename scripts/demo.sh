#!/usr/bin/env bash
# A guided tour: each command is shown, then run. SOL_DEMO_PAUSE=1 waits for Enter between them.
set -eu
cd "$(dirname "$0")/.."
sol=${B:-build}/sol
bold='' plain=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

tell() { printf '\n%s\n' "$*"; }
try() {
  printf '\n%s$ sol %s%s\n' "$bold" "$*" "$plain"
  "$sol" "$@"
  if [ "${SOL_DEMO_PAUSE:-0}" = 1 ]; then read -r -p '[Enter] ' _; fi
}

tell "How fast could a kernel be? Count the bytes and the FLOPs, and place them under a GPU's roof."
try devices
tell "RMSNorm moves many bytes for little arithmetic: memory is its roof, on every GPU."
try roofline rmsnorm 8192x4096 --dtype bf16 --device h100
tell "relu((x + b) * s) as three kernels goes through memory three times; fused, once."
try roofline bias_relu_scale 1000x4000 --dtype bf16 --device h100 --unfused --no-plot
tell "How many warps are in flight to hide the latency, and what keeps it from being more?"
try occupancy --threads 256 --regs 64 --smem 0 --device a100
tell "A whole model: every kernel of one decoding step, and what the launches cost."
try model llama-3-8b --phase decode --batch 32 --context 4096 --device h100
tell "Why is mine slower? examples/scale.cu has two kernels that do the same. Run on the emulator, with no GPU, the first
touches 32 sectors with every request, eight times what its bytes need:"
try run-ptx examples/scale.ptx --kernel column_scale --grid 8,512 --block 256 --by line --top 3 \
  --arg 'out:f32[2048*512]' --arg 'x:f32[2048*512]' --arg 'scale:f32[512]' --arg 2048 --arg 512
tell "The second has adjacent threads touch adjacent elements: 4 sectors, the fewest there can be."
try run-ptx examples/scale.ptx --kernel contiguous_scale --grid 4096 --block 256 --by line --top 3 \
  --arg 'out:f32[2048*512]' --arg 'x:f32[2048*512]' --arg 'scale:f32[512]' --arg 1048576 --arg 512
tell "Next: sol --help, sol roofline --list, sol model --list, or your own kernel: nvcc -ptx -lineinfo, then sol run-ptx."
