#!/usr/bin/env python3
"""Our kernels against their peers, in one process, on the same buffers, timed the same way.

Peers: torch eager, torch.compile, and Liger-Kernel and FlashInfer where they are installed. The cases are those of
bench/peers.csv. Every implementation is captured into CUDA graphs, each call on another set of inputs and outputs,
all sets together more than 400 MB (three at least); the graphs are uploaded, then replayed without a pause between
device events; median of the rounds; rounds that spread by more than 3% are taken again. Where 64 MiB or more are moved
everything is timed on buffers in three places, and the median counts, for everybody. A peer that allocates its own output
has its outputs kept alive, so that they rotate as ours do. Light is sol_copy of the same bytes. Our results are held
against torch in double precision before anything is timed.

    make && python3 bench/peers.py --json peers.json
    python3 bench/peers.py --ops rmsnorm,softmax --shapes 8192x4096 --no-compile
    python3 bench/peers.py --random 200 --seed 7      # shapes that nobody chose, as `sol bench --random` draws them

--backend cpu runs the same on the CPU's clock, to try the script; its times mean nothing.
"""

import argparse
import collections
import ctypes
import csv
import datetime
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
START = time.monotonic()
LARGE = 64 << 20
EPS, SCALE = 1e-6, 0.5
UNSTEADY = 0.03


def parse_arguments():
    p = argparse.ArgumentParser(description="Our kernels against their peers; see the top of this file.")
    p.add_argument("--ops", help="some of the operations, separated by commas")
    p.add_argument("--dtypes", help="bf16, fp32 or both")
    p.add_argument("--shapes", help="some of the shapes: 8192x4096,1x4096")
    p.add_argument("--cases", default=os.path.join(HERE, "peers.csv"), help="the list of cases")
    p.add_argument("--random", type=int, metavar="N", help="N cases drawn at random, in place of the list")
    p.add_argument("--seed", type=int, default=0, help="what --random draws")
    p.add_argument("--min-bytes", default="0", help="--random: cases that move at least that much (64Mi)")
    p.add_argument("--max-bytes", default="1Gi", help="--random: at most that much")
    p.add_argument("--sol", default=os.path.join(HERE, "..", "build", "sol"), help="the tool, which draws")
    p.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    p.add_argument("--no-eager", action="store_true", help="leave torch eager out")
    p.add_argument("--budget", type=float, default=340, help="seconds; what does not fit is left out, and said")
    p.add_argument("--rounds", type=int, default=11)
    p.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes that compile ahead")
    p.add_argument("--vocab", type=int, default=32000, help="rows of the embedding table")
    p.add_argument("--lib", default=os.path.join(HERE, "..", "build", "libsol.so"))
    p.add_argument("--json", help="where the results go; written after every case")
    p.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    p.add_argument("--footprint", type=float, default=400e6, help="bytes that all sets together have at least")
    p.add_argument("--part", help=argparse.SUPPRESS)  # i/n: compile the i-th of n shares of the cases, no more
    return p.parse_args()


ARGS = parse_arguments()
CACHE = os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(HERE, "..", "build", "inductor"))
os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(CACHE, "triton"))
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # processes compile ahead, one case each at a time

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from sol_c import Sol, SolFailure  # noqa: E402

DEVICE = ARGS.backend
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp16": torch.float16}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# ---- the operations ----


def rms(x, w):
    return F.rms_norm(x, (x.shape[-1],), w, EPS)


def rms_double(x, w):
    x = x.double()
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPS) * w.double()


def add_rms(x, r, w):
    s = x + r
    return rms(s, w), s


def add_rms_double(x, r, w):
    s = (x.float() + r.float()).to(x.dtype)
    return rms_double(s, w), s.double()


def bias_relu_scale(x, b):
    return torch.relu(x + b) * SCALE


def bias_relu_scale_double(x, b):
    return torch.relu(x.double() + b.double()) * SCALE


def softmax(x):
    return F.softmax(x, -1)


def softmax_double(x):
    return torch.softmax(x.double(), -1)


def transpose(x):
    return x.t().clone(memory_format=torch.contiguous_format)  # contiguous() of a single row or column copies nothing


def transpose_double(x):
    return x.t().double()


def log_softmax(x):
    return F.log_softmax(x, -1)


def log_softmax_double(x):
    return torch.log_softmax(x.double(), -1)


def layer(x, w, b):
    return F.layer_norm(x, (x.shape[-1],), w, b, EPS)


def layer_double(x, w, b):
    return F.layer_norm(x.double(), (x.shape[-1],), w.double(), b.double(), EPS)


def silu_mul(x, r):
    return F.silu(x) * r


def silu_mul_double(x, r):
    return F.silu(x.double()) * r.double()


def embedding(ids, table):
    return F.embedding(ids, table)


def embedding_double(ids, table):
    return table[ids].double()


def embed_rms(ids, table, w):
    return rms(F.embedding(ids, table), w)


def embed_rms_double(ids, table, w):
    return rms_double(table[ids], w)


# inputs: the tensors of one set; shared: what all sets use; outputs: shapes from (m, n).
# ours: function, structure, fields by tensor.
Op = collections.namedtuple("Op", "inputs shared outputs call double eager ours fields extra")
OPS = {
    "rmsnorm": Op(["x"], ["w"], ["y"], rms, rms_double, True, ("sol_rmsnorm", "SolRmsnorm"),
                  {"x": "x", "w": "weight", "y": "y"}, {"eps": EPS}),
    "softmax": Op(["x"], [], ["y"], softmax, softmax_double, True, ("sol_softmax", "SolSoftmax"),
                  {"x": "x", "y": "y"}, {}),
    "add+rmsnorm": Op(["x", "r"], ["w"], ["y", "s"], add_rms, add_rms_double, False,
                      ("sol_add_rmsnorm", "SolAddRmsnorm"),
                      {"x": "x", "r": "residual", "w": "weight", "y": "y", "s": "residual_out"}, {"eps": EPS}),
    "bias_relu_sc": Op(["x"], ["w"], ["y"], bias_relu_scale, bias_relu_scale_double, False,
                       ("sol_bias_relu_scale", "SolBias"), {"x": "x", "w": "bias", "y": "y"}, {"scale": SCALE}),
    "transpose": Op(["x"], [], ["yt"], transpose, transpose_double, True, ("sol_transpose", "SolTranspose"),
                    {"x": "x", "yt": "y"}, {}),
    "log_softmax": Op(["x"], [], ["y"], log_softmax, log_softmax_double, True, ("sol_log_softmax", "SolSoftmax"),
                      {"x": "x", "y": "y"}, {}),
    "layernorm": Op(["x"], ["w", "b"], ["y"], layer, layer_double, True, ("sol_layernorm", "SolLayernorm"),
                    {"x": "x", "w": "weight", "b": "bias", "y": "y"}, {"eps": EPS}),
    "silu_mul": Op(["x", "r"], [], ["y"], silu_mul, silu_mul_double, False, ("sol_silu_mul", "SolSiluMul"),
                   {"x": "gate", "r": "up", "y": "y"}, {}),
    "embedding": Op(["ids"], ["table"], ["y"], embedding, embedding_double, True, ("sol_embedding", "SolEmbedding"),
                    {"ids": "ids", "table": "table", "y": "y"}, {"id_dtype": "SOL_INT64"}),
    "embed+rms": Op(["ids"], ["table", "w"], ["y"], embed_rms, embed_rms_double, True,
                    ("sol_embed_rmsnorm", "SolEmbedRmsnorm"),
                    {"ids": "ids", "table": "table", "w": "weight", "y": "y"},
                    {"id_dtype": "SOL_INT64", "eps": EPS}),
}


class Case:
    def __init__(self, op, dtype, shape, pad=0):
        self.op, self.dtype, self.shape, self.pad = op, dtype, shape, pad  # pad: elements between rows of inputs
        dims = [int(d) for d in shape.split("x")] + [ARGS.vocab]
        self.m, self.n, self.vocab = dims[:3]
        self.spec = OPS[op]
        self.size = 2 if dtype in ("bf16", "fp16") else 4

    def __str__(self):
        return f"{self.op} {self.dtype} {self.shape}" + (f" rows {self.pad} apart" if self.pad else "")

    def moved(self):  # bytes, roughly: for planning alone
        tensors = len(self.spec.outputs) + max(1, len(self.spec.inputs))
        return tensors * self.m * self.n * self.size


def read_cases():
    wanted = lambda given, value: not given or value in given.split(",")
    cases = []
    with open(ARGS.cases, encoding="utf-8") as f:
        for row in csv.DictReader(line for line in f if not line.startswith("#")):
            if wanted(ARGS.ops, row["op"]) and wanted(ARGS.dtypes, row["dtype"]) and wanted(ARGS.shapes, row["shape"]):
                cases.append(Case(row["op"], row["dtype"], row["shape"]))
    return cases


def drawn_case(row):
    """A case as `sol bench --list` has it, or None where the peers have no such: other options, mixed types, batches."""
    names = {spec.ours[0]: name for name, spec in OPS.items()}
    op, ids = names.get("sol_" + row["op"]), row["shape"].count("x") > 1
    plain = row["option_number"] == 0 and row["out_dtype"] == row["dtype"] and "weight_dtype" not in row
    tables = op in ("embedding", "embed+rms")
    if not op or not plain or ids != tables or (ids and row["pad"]):
        return None
    return Case(op, row["dtype"], row["shape"], int(row["pad"]))


def draw_cases():
    """As `sol bench --random` draws; the first N of those that the peers have."""
    ops = ARGS.ops.split(",") if ARGS.ops else OPS
    named = [OPS[op].ours[0].removeprefix("sol_") for op in ops]
    dtypes = ["--dtype", ARGS.dtypes] if ARGS.dtypes else []
    out = subprocess.run([ARGS.sol, "bench", *named, *dtypes, "--random", str(12 * ARGS.random), "--seed", str(ARGS.seed),
                          "--min-bytes", ARGS.min_bytes, "--max-bytes", ARGS.max_bytes, "--list", "--json"],
                         capture_output=True, text=True, check=False)
    if out.returncode:
        sys.exit(out.stderr or f"{ARGS.sol} bench --random ended with {out.returncode}")
    cases = [case for case in map(drawn_case, json.loads(out.stdout)["cases"]) if case]
    return cases[: ARGS.random]


# ---- tensors ----


def places(moved):
    """How many times buffers are allocated again: their placement changes times by up to 12% on an H200, a copy's, too."""
    return 3 if moved >= LARGE else 1


def forget_memory():
    """Releases what torch caches of freed buffers: the next ones would get the same addresses."""
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def spacer(place, number):
    """Memory between one buffer and the next, so that their addresses differ; to be kept while they are in use."""
    return torch.empty(place * (37 + 22 * number) << 20, device=DEVICE, dtype=torch.uint8)


class Sets:
    """`count` sets of a case's tensors, each starting at a 256-byte boundary; inputs random, outputs poisoned."""

    def __init__(self, case, count, place=0):
        self.case, self.count, self.spacers = case, count, []
        dtype, spec = DTYPES[case.dtype], case.spec
        shapes = {"x": (case.m, case.n), "r": (case.m, case.n), "y": (case.m, case.n), "s": (case.m, case.n),
                  "yt": (case.n, case.m), "w": (case.n,), "b": (case.n,), "table": (case.vocab, case.n)}
        self.tensors = {}
        for name in spec.shared:
            self.tensors[name] = [torch.randn(shapes[name], device=DEVICE, dtype=dtype)] * count
        for name in spec.inputs + spec.outputs:
            if name == "ids":
                ids = torch.randint(0, case.vocab, (count, self.room(case.m, 8)), device=DEVICE, dtype=torch.int64)
                self.tensors[name] = [row[: case.m] for row in ids]
                continue
            rows, cols = shapes[name]
            stride = cols + (case.pad if name in spec.inputs else 0)
            self.spacers.append(spacer(place, len(self.spacers)))
            all_sets = torch.empty((count, self.room(rows * stride, case.size)), device=DEVICE, dtype=dtype)
            if name in spec.outputs:
                all_sets.fill_(float("nan"))
            else:
                all_sets.normal_()
            self.tensors[name] = [row[: rows * stride].view(rows, stride)[:, :cols] for row in all_sets]

    @staticmethod
    def room(elements, size):
        step = 256 // size
        return (elements + step - 1) // step * step

    def inputs(self, i):
        spec = self.case.spec
        return [self.tensors[name][i] for name in spec.inputs + spec.shared]

    def outputs(self, i):
        return [self.tensors[name][i] for name in self.case.spec.outputs]


class Ours:
    """One of our operations on a case's sets: callable with the set's number."""

    def __init__(self, sol, sets, stream):
        case = sets.case
        function, struct = case.spec.ours
        if not sol.has(function):
            raise SolFailure(f"the library has no {function}")
        extra = {k: sol.constants[v] if isinstance(v, str) else v for k, v in case.spec.extra.items()}
        if "ids" in case.spec.inputs:
            extra["vocab"] = case.vocab
        elif case.pad:
            extra.update({case.spec.fields[name] + "_stride": case.n + case.pad for name in case.spec.inputs})
        self.arguments = []
        for i in range(sets.count):
            pointers = {field: sets.tensors[name][i].data_ptr() for name, field in case.spec.fields.items()}
            self.arguments.append(sol.struct(struct, m=case.m, n=case.n, dtype=sol.constants["SOL_" + case.dtype.upper()],
                                             **pointers, **extra))
        self.addresses = [ctypes.addressof(a) for a in self.arguments]
        self.sol, self.context, self.stream = sol, sol.context, stream
        self.function = sol.function(function)
        self.name = function

    def __call__(self, i):
        if self.function(self.context, self.addresses[i], self.stream):
            raise self.sol.failure()

    def bytes(self):
        cost = self.sol.structs["SolCost"]()
        f = getattr(self.sol.lib, self.name + "_cost")
        f.argtypes = [ctypes.c_void_p] * 3
        error = self.sol.structs["SolError"]()
        if f(self.addresses[0], ctypes.addressof(cost), ctypes.addressof(error)):
            raise SolFailure(error.message.decode())
        return int(cost.bytes_read + cost.bytes_written)


class Copy:
    """sol_copy on rotating buffers: (rows, cols) with the given strides, in elements of `size` bytes."""

    def __init__(self, sol, rows, cols, x_stride, y_stride, dtype, size, count, place, stream):
        room = Sets.room(rows * max(x_stride, y_stride), size) * size
        self.spacer = spacer(place, 0)
        self.x = torch.randint(0, 127, (count, room), device=DEVICE, dtype=torch.uint8)
        self.y = torch.full((count, room), 0xA5, device=DEVICE, dtype=torch.uint8)
        self.arguments = [sol.struct("SolCopy", y=self.y[i].data_ptr(), x=self.x[i].data_ptr(), m=rows, n=cols,
                                     x_stride=x_stride, y_stride=y_stride, dtype=dtype) for i in range(count)]
        self.addresses = [ctypes.addressof(a) for a in self.arguments]
        self.sol, self.context, self.stream, self.function = sol, sol.context, stream, sol.function("sol_copy")

    __call__ = Ours.__call__


# ---- timing ----

Plan = collections.namedtuple("Plan", "sets calls graphs warm")


def plan_of(moved):
    """As src/measure/timer.c plans: a graph runs for a millisecond or more; all graphs visit all sets."""
    us = 1 + moved / 5e6
    calls = min(2048, math.ceil(1000 / us))
    warm = max(2, math.ceil(6000 / (calls * us)))
    sets = max(3, min(math.ceil(ARGS.footprint / moved), calls * (ARGS.rounds + warm)))
    graphs = math.ceil(sets / calls)
    if graphs > 1:
        calls = math.ceil(sets / graphs)
        sets = calls * graphs
    else:
        calls = math.ceil(calls / sets) * sets
    return Plan(sets, calls, graphs, warm)


class Graph:
    """Calls captured by torch, whose allocator peers need; replayed by the driver. The graph is uploaded first: where
    several take turns, calls of a microsecond take up to 0.2 more otherwise, ours and the peers' alike."""

    driver = None

    def __init__(self, pool, stream, calls):
        if Graph.driver is None:
            Graph.driver = ctypes.CDLL("libcuda.so.1")
        self.stream, self.exec = ctypes.c_void_p(stream.cuda_stream), ctypes.c_void_p()
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        self.graph.capture_begin(pool, capture_error_mode="relaxed")
        try:
            calls()
        finally:
            self.graph.capture_end()
        raw = ctypes.c_void_p(self.graph.raw_cuda_graph())
        self.check(self.driver.cuGraphInstantiateWithFlags(ctypes.byref(self.exec), raw, ctypes.c_ulonglong(0)))
        self.check(self.driver.cuGraphUpload(self.exec, self.stream))

    @staticmethod
    def check(result):
        if result:
            raise RuntimeError(f"CUDA's error {result}, of a graph")

    def replay(self):
        self.check(self.driver.cuGraphLaunch(self.exec, self.stream))

    def free(self):
        if self.exec:
            self.driver.cuGraphExecDestroy(self.exec)
        self.graph.reset()


class Clock:
    """GPU time of a call, in microseconds: (median, spread)."""

    def __init__(self):
        self.stream = torch.cuda.Stream()

    def handle(self):
        return self.stream.cuda_stream

    def time(self, call, plan):
        pool, graphs, kept = torch.cuda.graph_pool_handle(), [], collections.deque(maxlen=plan.sets)
        torch.cuda.synchronize()  # what was filled on torch's default stream is there
        with torch.cuda.stream(self.stream):
            for i in range(3):
                call(i % plan.sets)
            self.stream.synchronize()
            for g in range(plan.graphs):
                sets = [(g * plan.calls + i) % plan.sets for i in range(plan.calls)]
                graphs.append(Graph(pool, self.stream, lambda: kept.extend(map(call, sets))))
            result = steadiest(lambda: self.rounds(graphs, plan))
        kept.clear()
        for graph in graphs:
            graph.free()
        return result

    def rounds(self, graphs, plan):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(ARGS.rounds + 1)]
        for i in range(plan.warm):
            graphs[i % plan.graphs].replay()
        for i in range(ARGS.rounds):
            events[i].record()
            graphs[(plan.warm + i) % plan.graphs].replay()
        events[ARGS.rounds].record()
        self.stream.synchronize()
        return figure([a.elapsed_time(b) * 1e3 / plan.calls for a, b in zip(events, events[1:])])

    def host(self, call, plan, count=64):
        """Host time of one call, microseconds."""
        samples = []
        with torch.cuda.stream(self.stream):
            for _ in range(5):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for i in range(count):
                    call(i % plan.sets)
                samples.append((time.perf_counter() - start) * 1e6 / count)
            torch.cuda.synchronize()
        return statistics.median(samples)


class CpuClock:
    def handle(self):
        return None

    def time(self, call, plan):
        samples = []
        for i in range(3 + ARGS.rounds):
            start = time.perf_counter()
            call(i % plan.sets)
            samples.append((time.perf_counter() - start) * 1e6)
        return figure(samples[3:])

    def host(self, call, plan, count=1):
        return self.time(call, plan)[0]


def steadiest(measure):
    """Rounds that spread by more than UNSTEADY reflect the GPU's clocks more than the kernel: repeated, whichever implementation's
    they are, twice at most; the steadiest count."""
    results = [measure()]
    while results[-1][1] > UNSTEADY and len(results) < 3:
        results.append(measure())
    return min(results, key=lambda r: r[1])


def figure(samples):
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if len(samples) > 1 else samples * 3
    middle = statistics.median(samples)
    return middle, (quartiles[2] - quartiles[0]) / middle


# ---- light ----


class Light:
    def __init__(self, sol, clock):
        self.sol, self.clock, self.known = sol, clock, {}

    def timed(self, key, moved, make):
        if key not in self.known:
            plan, times = plan_of(moved), []
            for place in range(places(moved)):
                times.append(self.clock.time(make(plan.sets, place), plan)[0])
                forget_memory()
            self.known[key] = statistics.median(times)
        return self.known[key]

    def dense(self, moved):
        n = max(1, (moved + 31) // 32) * 4  # whole 16-byte pieces each way, in fp32
        make = lambda *where: Copy(self.sol, 1, n, n, n, self.sol.SOL_FP32, 4, *where, self.clock.handle())
        return self.timed(n, moved, make)

    def by_rows(self, case, moved):
        """A copy of rows as far apart as the case's; None: they are dense, and a plain copy of the bytes is what to reach."""
        n, size = case.n, case.size
        if not case.pad:
            return None
        rows = max(1, moved // (2 * n * size))
        dtype = self.sol.constants["SOL_" + case.dtype.upper()]
        make = lambda *where: Copy(self.sol, rows, n, n + case.pad, n, dtype, size, *where, self.clock.handle())
        return self.timed((rows, n, case.pad, size), moved, make)


# ---- checking ----


def verify(sets, ours):
    """Our results on the first set against torch's in double precision."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    ours(0)
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    want = sets.case.spec.double(*sets.inputs(0))
    step = {2: 2.0**-8 if sets.case.dtype == "bf16" else 2.0**-11, 4: 2.0**-24}[sets.case.size]
    for got, ref in zip(sets.outputs(0), want if isinstance(want, tuple) else (want,)):
        # Rounding of the output (half of the least step that the type has, at least), and sums in fp32: 2^-24 times the row's largest value,
        # some of them.
        largest = ref.abs().amax(-1, keepdim=True)
        allowed = ref.abs() * (step * 1.01) + largest * (64 * 2.0**-24) + (2.0**-25 if sets.case.dtype == "fp16" else 2.0**-133)
        share = ((got.double() - ref).abs() / allowed).max().item()
        if not share <= 1:
            raise AssertionError(f"wrong: {share:.3g} times what is allowed")


# ---- peers ----


def liger_calls():
    try:
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
        from liger_kernel.ops.softmax import LigerSoftmaxFunction
        from liger_kernel.ops.swiglu import LigerSiLUMulFunction
    except ImportError:
        return {}
    return {"layernorm": lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, EPS),
            "silu_mul": lambda x, r: LigerSiLUMulFunction.apply(x, r),
            "rmsnorm": lambda x, w: LigerRMSNormFunction.apply(x, w, EPS, 0.0, "llama", False),
            "softmax": lambda x: LigerSoftmaxFunction.apply(x)}


def flashinfer_calls():
    try:
        import flashinfer
    except ImportError:
        return {}

    def add(x, r, w):  # in place, as it has it
        flashinfer.norm.fused_add_rmsnorm(x, r, w, EPS)

    return {"rmsnorm": lambda x, w: flashinfer.norm.rmsnorm(x, w, EPS), "add+rmsnorm": add}


LIGER, FLASHINFER = ({}, {}) if ARGS.part else (liger_calls(), flashinfer_calls())


def peers_of(case):
    """name -> function of the inputs"""
    out = {}
    if case.spec.eager and not ARGS.no_eager:
        out["torch"] = case.spec.call
    if not ARGS.no_compile:
        out["compile"] = torch.compile(case.spec.call, dynamic=False)
    if case.op in LIGER:
        out["liger"] = LIGER[case.op]
    if case.op in FLASHINFER and case.dtype != "fp32":
        out["flashinfer"] = FLASHINFER[case.op]
    return out


def compile_part(cases):
    """A share of the cases compiled, so that the caches have them."""
    part, parts = (int(x) for x in ARGS.part.split("/"))
    for case in cases[part::parts]:
        torch._dynamo.reset()
        try:
            torch.compile(case.spec.call, dynamic=False)(*Sets(case, 1).inputs(0))
        except Exception as e:  # the main process will get it again, and report it
            say(f"compiling {case}: {type(e).__name__}: {e}")
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def compile_ahead(cases):
    """All cases compiled by several processes at once. Which configuration is fastest was then decided on a busy
    GPU: those decisions are thrown away, and made again here, alone."""
    jobs = min(ARGS.jobs, len(cases))
    if ARGS.no_compile or jobs < 2:
        return
    start, given = time.monotonic(), [a for a in sys.argv[1:]]
    processes = [subprocess.Popen([sys.executable, os.path.abspath(__file__), *given, "--part", f"{i}/{jobs}"],
                                  stdout=subprocess.DEVNULL) for i in range(jobs)]
    limit = start + min(150, ARGS.budget / 2)
    for process in processes:
        try:
            process.wait(max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for path in glob.glob(os.path.join(CACHE, "**", "*.best_config"), recursive=True):
        os.unlink(path)
    say(f"compiled ahead in {time.monotonic() - start:.0f} s, {jobs} processes")


# ---- the run ----


def time_ours(row, sets, plan, sol, clock):
    try:
        ours = Ours(sol, sets, clock.handle())
        row["bytes"] = ours.bytes()
        verify(sets, ours)
        us, row["spread"] = clock.time(ours, plan)
        row["host_us"] = clock.host(ours, plan)
        return us
    except (SolFailure, AssertionError) as e:
        row["errors"]["ours"] = str(e)


def time_peers(row, times, sets, plan, peers, clock):
    for name, function in peers.items():
        try:
            us = clock.time(lambda i: function(*sets.inputs(i)), plan)[0]
            times[name].append(us)
        except Exception as e:  # a peer that refuses a case is left out of it
            row["errors"][name] = f"{type(e).__name__}: {e}".splitlines()[0][:200]
            if DEVICE == "cuda":
                torch.cuda.synchronize()


def run_case(case, sol, clock, light):
    plan = plan_of(case.moved())
    row = {"op": case.op, "dtype": case.dtype, "shape": case.shape, "pad": case.pad, "peers": {}, "errors": {}, "sets": plan.sets,
           "calls": plan.calls, "places": places(case.moved()), "bytes": case.moved()}
    torch._dynamo.reset()
    peers, ours, times = peers_of(case), [], collections.defaultdict(list)
    for place in range(row["places"]):
        sets = Sets(case, plan.sets, place)
        ours.append(time_ours(row, sets, plan, sol, clock))
        time_peers(row, times, sets, plan, peers, clock)
        del sets
        forget_memory()
    if None not in ours:
        row["us"] = statistics.median(ours)
    row["peers"] = {name: statistics.median(of) for name, of in times.items() if name not in row["errors"]}
    row["light_us"] = light.dense(row["bytes"])
    row["rows_light_us"] = light.by_rows(case, row["bytes"])
    return row


def to_light(row):
    light = row.get("rows_light_us") or row["light_us"]
    return row["us"] / light if "us" in row else None


def best_peer(row):
    return min(row["peers"].items(), key=lambda p: p[1]) if row["peers"] else None


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def distribution_of(rows, name):
    """Time over light of cases drawn at random."""
    far = sorted(rows, key=to_light, reverse=True)
    return {"cases": len(far), "geometric_mean": geomean(map(to_light, far)), "p90": to_light(far[len(far) // 10]),
            "worst": to_light(far[0]), "within_1_05": sum(to_light(r) <= 1.05 for r in far) / len(far),
            "worst_cases": [[name(r), round(to_light(r), 4)] for r in far[:10]]}


def summary_of(rows):
    timed = [r for r in rows if "us" in r]
    name = lambda r: f"{r['op']} {r['dtype']} {r['shape']}" + (f" rows {r['pad']} apart" if r["pad"] else "")
    large = [r for r in timed if r["bytes"] >= LARGE]
    compared = [r for r in timed if r["peers"]]
    out = {
        "cases": len(rows),
        "failed": [name(r) for r in rows if "ours" in r["errors"]],
        "large": len(large),
        "beyond_light": [[name(r), round(to_light(r), 4)] for r in large if to_light(r) > 1.05],
        "slower_than_best": [[name(r), best_peer(r)[0], round(r["us"] / best_peer(r)[1], 4)] for r in compared
                             if r["us"] > 1.03 * best_peer(r)[1]],
        "best_over_ours": geomean(best_peer(r)[1] / r["us"] for r in compared),
        "compile_over_ours": geomean(r["peers"]["compile"] / r["us"] for r in compared if "compile" in r["peers"]),
        "torch_over_ours": geomean(r["peers"]["torch"] / r["us"] for r in compared if "torch" in r["peers"]),
        "small_us": {name(r): round(r["us"], 3) for r in timed
                     if r["shape"] in ("1x4096", "8x4096") and r["op"] in ("rmsnorm", "embed+rms")},
    }
    if ARGS.random and timed:
        out["distribution"] = distribution_of(timed, name)
        if large:
            out["distribution_large"] = distribution_of(large, name)
    if large:
        worst = max(large, key=to_light)
        out["worst_to_light"], out["worst_to_light_case"] = to_light(worst), name(worst)
    hosts = [r["host_us"] for r in timed if "host_us" in r]
    if hosts:
        out["host_us_by_ctypes"] = statistics.median(hosts)
    return out


def write_json(head, rows):
    if not ARGS.json:
        return
    text = json.dumps({**head, "cases": rows, "summary": summary_of(rows)}, indent=1)
    with open(ARGS.json + ".new", "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.replace(ARGS.json + ".new", ARGS.json)


def print_table(rows):
    number = lambda v: f"{v:.2f}" if v is not None else "-"
    print(f"{'op':<13}{'dtype':<6}{'shape':<13}{'ours':>8}{'light':>8}{'/light':>7}{'torch':>9}{'compile':>9}"
          f"{'best peer':>19}{'best/ours':>10}")
    for r in rows:
        best, light = best_peer(r), r.get("rows_light_us") or r["light_us"]
        known = best and "us" in r
        print(f"{r['op']:<13}{r['dtype']:<6}{r['shape']:<13}{number(r.get('us')):>8}{number(light):>8}"
              f"{number(to_light(r)):>7}{number(r['peers'].get('torch')):>9}{number(r['peers'].get('compile')):>9}"
              f"{(best[0] + ' ' + number(best[1])) if best else '-':>19}{number(best[1] / r['us'] if known else None):>10}"
              + "".join(f"  {k}: {v}" for k, v in r["errors"].items()))


def print_summary(rows, left_out):
    s = summary_of(rows)
    number = lambda v: f"{v:.3f}" if v is not None else "-"
    print(f"\n{s['cases']} cases, {len(s['failed'])} of ours failed"
          + (f", {left_out} left out for lack of time" if left_out else ""))
    for name in s["failed"]:
        print(f"  failed: {name}")
    if "worst_to_light" in s:
        print(f"worst to light, of {s['large']} cases that move 64 MiB or more: {number(s['worst_to_light'])} "
              f"({s['worst_to_light_case']}); beyond 1.05: {len(s['beyond_light'])}")
        for name, ratio in sorted(s["beyond_light"], key=lambda x: -x[1]):
            print(f"  {ratio:.3f} {name}")
    print(f"slower than the best peer by more than 3%: {len(s['slower_than_best'])}")
    for name, peer, ratio in sorted(s["slower_than_best"], key=lambda x: -x[2]):
        print(f"  {ratio:.3f} {name} ({peer})")
    print(f"geometric means: best peer / ours {number(s['best_over_ours'])}, compile / ours "
          f"{number(s['compile_over_ours'])}, torch / ours {number(s['torch_over_ours'])}")
    for key in ("distribution", "distribution_large"):
        if key in s:
            d = s[key]
            print(f"{key}: {d['cases']} cases, time over light {d['geometric_mean']:.3f} (geometric mean), {d['p90']:.3f} (90th "
                  f"percentile), {d['worst']:.3f} (worst); within 1.05: {d['within_1_05']:.1%}")
            for case, ratio in d["worst_cases"]:
                print(f"  {ratio:.3f} {case}")
    print("small shapes: " + ", ".join(f"{k} {v:.2f} us" for k, v in s["small_us"].items()))
    if "host_us_by_ctypes" in s:
        print(f"host time of a call, Python's included: {s['host_us_by_ctypes']:.2f} us (sol bench has it without)")


def driver_version():
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, timeout=20, check=True)
        return out.stdout.split()[0]
    except (OSError, subprocess.SubprocessError, IndexError):
        return None


def header():
    try:
        import triton
        triton_version = triton.__version__
    except ImportError:
        triton_version = None
    return {"schema": 1, "gpu": torch.cuda.get_device_name() if DEVICE == "cuda" else None,
            "driver": driver_version(), "torch": torch.__version__, "triton": triton_version,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "command": "bench/peers.py " + " ".join(os.path.basename(a) if os.path.isabs(a) else a for a in sys.argv[1:]),
            "rounds": ARGS.rounds,
            "footprint_bytes": ARGS.footprint, "vocab": ARGS.vocab}


def main():
    cases = draw_cases() if ARGS.random else read_cases()
    if not cases:
        sys.exit("no such case")
    if DEVICE == "cuda" and not torch.cuda.is_available():
        sys.exit("torch finds no GPU")
    torch.manual_seed(1)
    with torch.no_grad():
        if ARGS.part:
            return compile_part(cases)
        compile_ahead(cases)
        torch.zeros(1, device=DEVICE)  # torch's context is the current one; Sol uses the same
        sol = Sol(os.path.abspath(ARGS.lib), DEVICE)
        clock = Clock() if DEVICE == "cuda" else CpuClock()
        light, head, rows, left_out = Light(sol, clock), header(), [], 0
        for number, case in enumerate(cases):
            if time.monotonic() - START > ARGS.budget:
                left_out = len(cases) - number
                break
            if sys.stderr.isatty():
                print(f"\r\033[K[{number + 1}/{len(cases)}] {case}", end="", file=sys.stderr, flush=True)
            rows.append(run_case(case, sol, clock, light))
            head["left_out"] = len(cases) - number - 1
            write_json(head, rows)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        print_table(rows)
        print_summary(rows, left_out)
        sol.close()
    print(f"{time.monotonic() - START:.0f} s")
    sys.exit(1 if any("ours" in r["errors"] for r in rows) else 0)


if __name__ == "__main__":
    main()
