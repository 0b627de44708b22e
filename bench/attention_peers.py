#!/usr/bin/env python3
"""sol_attention beside torch's scaled_dot_product_attention, and sol_decode_attention beside a copy of as many bytes, in one process.

Forward: the same buffers, (batch, tokens, heads, D), which torch gets as a view of (batch, heads, tokens, D); its FLASH and
CUDNN backends, the faster of which counts. Decode: sol_copy moves as many bytes as the cache has, half of them read and half
written; several caches, 400 MB at least, by turns. Where many heads share one of K (MLA) the products may take longer than the
memory: light is the larger of the copy's time and of the time of as many FLOPs at the rate of sol_gemm in the same run. Calls are captured into CUDA graphs; the median of the rounds counts. Results are
held against torch in fp32 first.

    make && python3 bench/attention_peers.py --json attention-peers.json
    python3 bench/attention_peers.py --grid --json decode-grid.json    # decode alone: 1 to 256 sequences of 1024 to 131072 tokens
"""

import argparse
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import torch  # noqa: E402
from gemm_peers import Case, captured, rounds, this_run  # noqa: E402
from sol_c import Sol  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

# batch, heads, kv_heads, tokens, D, causal
FORWARD = [(4, 32, 32, 4096, 128, 1), (1, 32, 32, 16384, 128, 1), (4, 32, 32, 4096, 128, 0), (1, 32, 8, 8192, 128, 1), (16, 32, 8, 1024, 128, 1),
           (4, 16, 16, 4096, 64, 1), (2, 16, 16, 4096, 256, 1), (3, 20, 4, 3000, 128, 1)]
# batch, heads, kv_heads, tokens, D, cache
DECODE = [(1, 32, 8, 16384, 128, "bf16"), (1, 64, 8, 131072, 128, "bf16"), (8, 32, 8, 8192, 128, "bf16"), (64, 64, 8, 1024, 128, "bf16"),
          (256, 32, 8, 1024, 128, "bf16"), (32, 32, 32, 2048, 128, "bf16"), (16, 32, 8, 16384, 128, "fp8"), (64, 16, 2, 4096, 256, "bf16"),
          (64, 16, 1, 4096, 576, "bf16"), (64, 128, 1, 4096, 576, "bf16")]
# 32 heads, 8 of K and V: caches of 64 to 512 MiB
GRID = [(batch, 32, 8, tokens, 128, cache) for cache, size in (("bf16", 2), ("fp8", 1)) for batch in (1, 4, 16, 64, 256)
        for tokens in (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072) if 64 <= batch * tokens * 8 * 2 * 128 * size / 2**20 <= 512]
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def stream():
    return torch.cuda.current_stream().cuda_stream


def reference(q, k, v, causal):
    """The last 64 queries of (tokens, heads, D) in fp32."""
    n, group = q.shape[0], q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(group, 1) for x in (k, v))
    s = torch.einsum("qhd,khd->hqk", q[-64:].float(), k) / math.sqrt(q.shape[2])
    if causal:
        rows = torch.arange(n - min(64, n), n, device="cuda")
        s = s.masked_fill(torch.arange(n, device="cuda")[None] > rows[:, None], -math.inf)
    return torch.einsum("hqk,khd->qhd", s.softmax(-1), v)


class Forward:
    def __init__(self, sol, batch, heads, kv_heads, tokens, d, causal):
        self.sol, self.causal, self.kv_heads, self.heads = sol, bool(causal), kv_heads, heads
        self.flops = 4.0 * batch * heads * tokens * tokens * d / (2 if causal else 1)
        make = lambda h: torch.randn(batch, tokens, h, d, device="cuda").bfloat16()
        self.q, self.k, self.v, self.o = make(heads), make(kv_heads), make(kv_heads), make(heads)
        self.args = sol.struct("SolAttention", o=self.o.data_ptr(), q=self.q.data_ptr(), k=self.k.data_ptr(), v=self.v.data_ptr(), batch=batch,
                               heads=heads, kv_heads=kv_heads, queries=tokens, keys=tokens, d=d, dtype=sol.SOL_BF16, causal=causal)

    def ours(self, _):
        self.sol.call("sol_attention", self.args, stream())

    def theirs(self, _):
        q, k, v = (x.transpose(1, 2) for x in (self.q, self.k, self.v))
        torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=self.kv_heads != self.heads)

    def check(self):
        self.o.fill_(math.nan)
        self.ours(0)
        if torch.isnan(self.o).any():
            return math.inf
        want = reference(self.q[-1], self.k[-1], self.v[-1], self.causal)
        return ((self.o[-1, -64:].float() - want).norm() / want.norm()).item()


def forward(sol, shape):
    case = Forward(sol, *shape)
    error, calls = case.check(), max(2, min(20, int(4e-3 / (case.flops / 5e14))))
    times, names = [], ["sol"]
    graphs = [captured(case.ours, calls)]
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel([backend]):
                graphs.append(captured(case.theirs, calls))
            names.append(name)
        except RuntimeError:
            torch.cuda.synchronize()
    times = dict(zip(names, rounds(graphs, calls)))
    peers = {n: round(case.flops / t * 1e-6, 1) for n, t in times.items() if n != "sol"}
    row = {"shape": "x".join(map(str, shape[:5])), "causal": shape[5], "us": round(times["sol"], 1), "tflops": round(case.flops / times["sol"] * 1e-6, 1),
           "torch_tflops": peers, "to_torch": round(min(t for n, t in times.items() if n != "sol") / times["sol"], 3) if peers else None,
           "error": float(f"{error:.2g}")}
    print(f"{row['shape']:>20} {'causal' if shape[5] else 'full':>6} {row['tflops']:6.1f} TFLOP/s {row['us']:9.1f} us, torch {peers}: {row['to_torch']}, error {row['error']}"
          + ("" if error < 4e-3 else "  WRONG"), flush=True)
    return row


def gemm_rate(sol):
    """FLOPs a microsecond of sol_gemm where it is fastest."""
    n = 8192
    case = Case(sol, n, n, n, False)
    return 2.0 * n**3 / rounds([captured(case.ours, 4)], 4)[0]


class Decode:
    PAGE = 64

    def __init__(self, sol, batch, heads, kv_heads, tokens, d, cache):
        self.sol, self.heads, self.kv_heads, self.d, self.tokens = sol, heads, kv_heads, d, tokens
        self.latent = d == 576
        self.v_dim = 512 if self.latent else d
        pages, kind = batch * tokens // self.PAGE, torch.float8_e4m3fn if cache == "fp8" else torch.bfloat16
        size = 1 if cache == "fp8" else 2
        self.bytes = batch * kv_heads * tokens * (d if self.latent else 2 * d) * size + batch * heads * (d + self.v_dim) * 2
        self.flops = 2.0 * batch * heads * tokens * (d + self.v_dim)
        sets = max(1, min(16, math.ceil(400e6 / self.bytes)))
        make = lambda: [torch.randn(pages, self.PAGE, kv_heads, d, device="cuda", dtype=torch.bfloat16).to(kind) for _ in range(sets)]
        self.k, self.v = make(), [] if self.latent else make()
        self.q = torch.randn(batch, heads, d, device="cuda").bfloat16()
        self.o = torch.empty(batch, heads, self.v_dim, device="cuda", dtype=torch.bfloat16)
        self.table = torch.randperm(pages, device="cuda").int().view(batch, -1).contiguous()
        self.lengths = torch.full((batch,), tokens, device="cuda", dtype=torch.int32)
        self.args = [sol.struct("SolDecodeAttention", o=self.o.data_ptr(), q=self.q.data_ptr(), k_cache=self.k[i].data_ptr(),
                                v_cache=None if self.latent else self.v[i].data_ptr(), table=self.table.data_ptr(), lengths=self.lengths.data_ptr(),
                                batch=batch, heads=heads, kv_heads=kv_heads, d=d, v_dim=self.v_dim, pages=pages, page_size=self.PAGE,
                                table_pages=tokens // self.PAGE, dtype=sol.SOL_BF16, kv_dtype=sol.SOL_FP8 if cache == "fp8" else sol.SOL_BF16)
                     for i in range(sets)]
        wanted = sol.lib.sol_decode_attention_workspace
        wanted.argtypes, wanted.restype = [__import__("ctypes").c_void_p] * 2, __import__("ctypes").c_int64
        bytes_wanted = wanted(sol.context, __import__("ctypes").addressof(self.args[0]))
        self.workspace = torch.empty(max(bytes_wanted // 4, 1), device="cuda")
        for a in self.args:
            a.workspace, a.workspace_bytes = self.workspace.data_ptr(), bytes_wanted
        half = self.bytes // 2 // 16 * 8
        self.from_to = [torch.empty(2, half, device="cuda", dtype=torch.bfloat16).normal_() for _ in range(sets)]
        self.copies = [sol.struct("SolCopy", y=x[1].data_ptr(), x=x[0].data_ptr(), m=1, n=half, dtype=sol.SOL_BF16) for x in self.from_to]

    def ours(self, i):
        self.sol.call("sol_decode_attention", self.args[i % len(self.args)], stream())

    def copy(self, i):
        self.sol.call("sol_copy", self.copies[i % len(self.copies)], stream())

    def check(self):
        self.o.fill_(math.nan)
        self.ours(0)
        if torch.isnan(self.o).any():
            return math.inf
        pages = self.table[-1].long()
        k = self.k[0][pages].view(self.tokens, self.kv_heads, self.d)
        v = k[..., :512] if self.latent else self.v[0][pages].view(self.tokens, self.kv_heads, self.d)
        group = self.heads // self.kv_heads
        s = torch.einsum("hgd,khd->hgk", self.q[-1].float().view(self.kv_heads, group, self.d), k.float()) / math.sqrt(self.d)
        want = torch.einsum("hgk,khd->hgd", s.softmax(-1), v.float()).reshape(self.heads, self.v_dim)
        return ((self.o[-1].float() - want).norm() / want.norm()).item()


def decode(sol, shape, rate):
    case = Decode(sol, *shape)
    error, calls = case.check(), max(len(case.args), min(60, int(3e-3 / (case.bytes / 4e12))))
    ours, copy = rounds([captured(case.ours, calls), captured(case.copy, calls)], calls)
    products = case.flops / rate
    row = {"shape": "x".join(map(str, shape[:5])), "cache": shape[5], "mb": round(case.bytes / 2**20, 1), "us": round(ours, 2), "copy_us": round(copy, 2),
           "flops_a_byte": round(case.flops / case.bytes, 1), "gemm_us": round(products, 2), "of_copy": round(ours / copy, 3),
           "of_light": round(ours / max(copy, products), 3), "gb_per_s": round(case.bytes / ours * 1e-3), "tflops": round(case.flops / ours * 1e-6, 1),
           "error": float(f"{error:.2g}")}
    print(f"{row['shape']:>22} {shape[5]} {row['mb']:7.1f} MiB, {row['flops_a_byte']:5.1f} FLOP/byte {row['us']:9.2f} us, copy {row['copy_us']:7.2f}, gemm {row['gemm_us']:6.2f}: "
          f"{row['of_light']:.3f} of light, {row['gb_per_s']} GB/s, {row['tflops']} TFLOP/s, error {row['error']}" + ("" if error < 4e-3 else "  WRONG"), flush=True)
    return row


def main():
    p = argparse.ArgumentParser(description="Attention beside torch's and beside a copy; see the top of this file.")
    p.add_argument("--lib", default=os.path.join(HERE, "..", "build", "libsol.so"))
    p.add_argument("--json")
    p.add_argument("--grid", action="store_true", help="decode alone, by batch and context")
    args = p.parse_args()
    sol, out = Sol(args.lib, trust_pointers=True), this_run()
    rate = gemm_rate(sol)
    print(f"sol_gemm: {rate * 1e-6:.0f} TFLOP/s")
    out["gemm_tflops"] = round(rate * 1e-6, 1)
    steps = [("decode", GRID if args.grid else DECODE, lambda s, x: decode(s, x, rate))]
    if not args.grid:
        steps.append(("forward", FORWARD, forward))
    for name, shapes, run in steps:
        print(f"{name}:")
        out[name] = []
        for shape in shapes:
            out[name].append(run(sol, shape))
            torch.cuda.empty_cache()
            if args.json:
                with open(args.json, "w", encoding="utf-8") as f:
                    json.dump(out, f, indent=1)
    rows = out["decode"] + out.get("forward", [])
    return any(not r["error"] < 4e-3 for r in rows)


if __name__ == "__main__":
    sys.exit(main())
