#!/usr/bin/env python3
"""The Python package on a GPU: operators against the C interface, under torch.compile and CUDA graphs, what a call costs beyond C,
a small Llama patched, and predicted times of Triton kernels beside measured ones.
usage: PYTHONPATH=python python3 bench/python_gpu.py [--json FILE] [PART...]     parts: operators compile overhead model triton liger loss
Needs torch, Triton and NumPy, and Sol built (build/libsol.so, build/sol)."""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, 'python'), os.path.join(ROOT, 'python/tests'), os.path.join(ROOT, 'bench')]
import torch  # noqa: E402
from torch import nn  # noqa: E402

import sol  # noqa: E402
import sol.torch as st  # noqa: E402
from sol import _native, _torch_native  # noqa: E402

FOUND = {}
CODES = {torch.float32: (2, 32), torch.float16: (2, 16), torch.bfloat16: (4, 16), torch.int64: (0, 64)}


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device='cuda', dtype=torch.float32).to(dtype)


# ---- operators: the same bits as the C interface's DLPack functions give ----


def dl(tensor):
    sizes = ctypes.c_int64 * tensor.dim()
    code, bits = CODES[tensor.dtype]
    return _native._Tensor(tensor.data_ptr(), 2, tensor.get_device(), tensor.dim(), code, bits, 1, sizes(*tensor.shape), sizes(*tensor.stride()), 0)


def gpu_context():
    return ctypes.c_void_p(_torch_native._context(0))


def by_c(name, like, *values):
    """sol_<name>_dl into a new tensor, on the current stream."""
    y = torch.empty(like.shape, dtype=like.dtype, device='cuda')
    given = [ctypes.byref(dl(v)) if isinstance(v, torch.Tensor) else ctypes.c_float(v) if isinstance(v, float) else ctypes.c_int(v)
             if isinstance(v, int) else ctypes.c_void_p() for v in (y, *values)]
    function = getattr(_native._library(), f'sol_{name}_dl')
    context = gpu_context()
    status = function(context, *given, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
    assert status == 0, (name, _native._library().sol_last_error().contents.message)
    return y


def operators():
    wrong, count, near = [], 0, {'add_rmsnorm', 'attention', 'gradient'}
    stream = torch.cuda.Stream()
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for m, n in ((1, 4096), (33, 4096), (7, 1000), (512, 5120), (3, 128256)):
            x, r, w, b = random(m, n, dtype=dtype), random(m, n, dtype=dtype), random(n, dtype=dtype), random(n, dtype=dtype)
            gate, up = random(m, 2 * n, dtype=dtype).chunk(2, -1)
            t, h, d = m, 8, 128
            q, cos, sin = random(t, h, d, dtype=dtype), random(t, d // 2), random(t, d // 2)
            ids = torch.randint(0, m, (50,), device='cuda')
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                cases = {
                    'rmsnorm': (st.rmsnorm(x, w), by_c('rmsnorm', x, x, w, 1e-6, 0.0)),
                    'layernorm': (st.layernorm(x, w, b), by_c('layernorm', x, x, w, b, 1e-5, 0.0)),
                    'rmsnorm by DLPack': (sol.rmsnorm(x, w), by_c('rmsnorm', x, x, w, 1e-6, 0.0)),
                    'softmax': (st.softmax(x), by_c('softmax', x, x)),
                    'log_softmax': (st.log_softmax(x), by_c('log_softmax', x, x)),
                    'silu_mul': (st.silu_mul(gate, up), by_c('silu_mul', gate, gate, up)),
                    'bias_gelu': (st.bias_gelu(x, b), by_c('bias_gelu', x, x, b)),
                    'rope': (st.rope(q, cos.to(dtype), sin.to(dtype)), by_c('rope', q, q, cos.to(dtype), sin.to(dtype), None, 0)),
                    'embedding': (st.embedding(x, ids), by_c('embedding', x[ids], x, ids, None)),
                }
                target = torch.randint(-1, n, (m,), device='cuda')
                cases['gated_mul'] = (st.gated_mul(gate, up, 'gelu'), st._gated_mul(gate, up, 'gelu'))
                cases['cross_entropy'] = (st.cross_entropy(x, target, reduction='none', ignore_index=-1), st._cross_entropy(x, target))
                near |= {'gated_mul', 'cross_entropy'}
            stream.synchronize()
            y, s = st.add_rmsnorm(x, r, w)
            cases['add_rmsnorm'] = (y, st._rmsnorm(s, w, 1e-6, 0.0))
            if dtype != torch.float32:
                a, c = random(2, 8, 33, 128, dtype=dtype), random(2, 2, 33, 128, dtype=dtype)
                cases['attention'] = (st.attention(a, c, c, is_causal=True),
                                      nn.functional.scaled_dot_product_attention(a, c, c, is_causal=True, enable_gqa=True))
            logits = x.clone().requires_grad_()
            st.cross_entropy(logits, target, ignore_index=-1).backward()
            plain = x.clone().float().requires_grad_()
            nn.functional.cross_entropy(plain, target, ignore_index=-1).backward()
            cases['gradient'] = (n * logits.grad, n * plain.grad)
            for name, (got, expected) in cases.items():
                count += 1
                same = torch.allclose(got.float(), expected.float(), 2e-2, 2e-2) if name in near else torch.equal(got, expected)
                if not same:
                    wrong.append(f'{name} {m}x{n} {dtype}')
    FOUND['operators'] = {'cases': count, 'wrong': wrong}
    print(f'operators: {count} cases, wrong: {wrong or "none"}')


# ---- torch.compile and CUDA graphs ----


def block(x, residual, w):
    y, s = st.add_rmsnorm(x, residual, w)
    gate, up = torch.cat((y, s), -1).chunk(2, -1)
    return st.softmax(st.silu_mul(gate, up).float())


def compiled():
    x, r, w = random(64, 2048), random(64, 2048), random(2048)
    expected = block(x, r, w)
    found = {'eager': True}
    whole = torch.compile(block, fullgraph=True)  # a graph break is an error
    found['compile'] = bool(torch.allclose(whole(x, r, w), expected, 1e-5, 1e-6))
    given = [v.clone().requires_grad_() for v in (x, r, w)]
    whole(*given).square().sum().backward()
    again = [v.clone().requires_grad_() for v in (x, r, w)]
    block(*again).square().sum().backward()
    found['compile_backward'] = all(torch.allclose(a.grad.float(), b.grad.float(), 5e-2, 1e-3) for a, b in zip(given, again))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = block(x, r, w)
    x.copy_(random(64, 2048))
    graph.replay()
    torch.cuda.synchronize()
    found['graph'] = bool(torch.equal(out, block(x, r, w)))
    FOUND['compile'] = found
    print('compile:', found)


# ---- what a call costs beyond C ----

LOOP = """
typedef int (*Function)(void *, const void *, void *);
void loop(Function f, void *context, const void *args, void *stream, int n) { for (int i = 0; i < n; i++) f(context, args, stream); }
"""


def per_call(function, n=3000):
    """Microseconds of the host; the queue is emptied between rounds, and the fastest of them counts: the rest is other programs."""
    best = float('inf')
    for _ in range(15):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function(n // 15)
        best = min(best, (time.perf_counter() - start) / (n // 15))
    torch.cuda.synchronize()
    return 1e6 * best


def repeat(call):
    def run(n):
        for _ in range(n):
            call()
    return run


def overhead():
    x, w = random(1, 512), random(512)
    y = torch.empty_like(x)
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, 'loop.so')
        subprocess.run(['cc', '-O2', '-shared', '-fPIC', '-xc', '-', '-o', library], input=LOOP, text=True, check=True)
        loop = ctypes.CDLL(library).loop
    call = _torch_native.OPERATIONS['rmsnorm']
    args = call.pack((y.data_ptr(), x.data_ptr(), w.data_ptr()), (1, 512, 512, 512, 5, 5, 5, 1e-6, 0.0, 0))
    context, stream = gpu_context(), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    with torch.no_grad():
        st.rmsnorm(x, w)
        found = {
            'c_us': per_call(lambda n: loop(call.function, context, args, stream, n)),
            'sol_torch_us': per_call(repeat(lambda: st.rmsnorm(x, w))),
            'empty_like_us': per_call(repeat(lambda: torch.empty_like(x))),
            'allocation_us': per_call(repeat(lambda: st._empty(x))),
            'unseen_us': per_call(repeat(lambda: st._unseen(x, w))),
            'quick_us': per_call(repeat(lambda: call.quick(y, x, w, 1e-6, 0.0))),
            'packed_us': per_call(repeat(lambda: call((x, w), (1e-6, 0.0)))),
            'torch_ops_us': per_call(repeat(lambda: torch.ops.sol.rmsnorm(x, w, 1e-6, 0.0))),
            'torch_rms_norm_us': per_call(repeat(lambda: nn.functional.rms_norm(x, (512,), w, 1e-6))),
            'loop_us': per_call(repeat(lambda: None)),
        }
    found['beyond_c_us'] = found['sol_torch_us'] - found['c_us'] - found['loop_us']
    FOUND['overhead'] = found
    gate, up, heads, table = random(1, 512), random(1, 512), random(1, 4, 128), random(1, 64)
    with torch.no_grad():
        for name, call in {'softmax': lambda: st.softmax(x), 'silu_mul': lambda: st.silu_mul(gate, up), 'layernorm': lambda: st.layernorm(x, w, w),
                           'rope': lambda: st.rope(heads, table, table), 'add_rmsnorm': lambda: st.add_rmsnorm(x, x, w)}.items():
            call()
            found[f'{name}_us'] = per_call(repeat(call))
    print('overhead:', {name: round(value, 2) for name, value in found.items()})


# ---- a small Llama ----


class LlamaRMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(size)), 1e-6

    def forward(self, hidden):  # as transformers writes it
        kind, wide = hidden.dtype, hidden.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(kind)


class LlamaMLP(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(size, inner, bias=False), nn.Linear(size, inner, bias=False)
        self.down_proj, self.act_fn = nn.Linear(inner, size, bias=False), nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def apply_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


class LlamaDecoderLayer(nn.Module):
    def __init__(self, size, heads, inner):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(size, 3 * size, bias=False), nn.Linear(size, size, bias=False)
        self.first, self.second, self.mlp = LlamaRMSNorm(size), LlamaRMSNorm(size), LlamaMLP(size, inner)

    def forward(self, x, cos, sin):
        b, t, n = x.shape
        q, k, v = (p.view(b, t, self.heads, n // self.heads).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1))
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=t > 1).transpose(1, 2).reshape(b, t, n))
        return x + self.mlp(self.second(x))


class LlamaModel(nn.Module):
    def __init__(self, size=2048, heads=16, inner=5632, layers=8, vocab=32000):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(vocab, size), LlamaRMSNorm(size), nn.Linear(size, vocab, bias=False)
        self.layers, self.size_of_head = nn.ModuleList(LlamaDecoderLayer(size, heads, inner) for _ in range(layers)), size // heads

    def forward(self, ids):
        b, t = ids.shape
        rates = 10000.0 ** (-torch.arange(0, self.size_of_head, 2, device=ids.device) / self.size_of_head)
        angles = torch.outer(torch.arange(t, device=ids.device).float(), rates)
        table = torch.cat((angles, angles), -1).expand(b, t, -1)
        x, cos, sin = self.embed(ids), table.cos().to(self.head.weight.dtype), table.sin().to(self.head.weight.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def graph_ms(run):
    """Of a CUDA graph of the pass, so that the host's part is left out; the median of 15 replays."""
    run(), run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return event_ms(graph.replay)


def event_ms(run):
    times = []
    for _ in range(18):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(), run(), end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[3:])


@torch.no_grad()
def model():
    torch.manual_seed(5)
    net = LlamaModel().to('cuda', torch.bfloat16).eval()
    found = {}
    for name, shape in (('prefill 4x2048', (4, 2048)), ('decode 64x1', (64, 1))):
        ids = torch.randint(0, 32000, shape, device='cuda')
        before, exact = net(ids).float(), None
        times = {'before_ms': graph_ms(lambda: net(ids)), 'before_eager_ms': event_ms(lambda: net(ids))}
        patched = st.patch(net)
        after = net(ids).float()
        times |= {'after_ms': graph_ms(lambda: net(ids)), 'after_eager_ms': event_ms(lambda: net(ids))}
        told = str(patched)
        patched.undo()
        times['again_ms'] = graph_ms(lambda: net(ids))  # the clock may have moved meanwhile
        difference = float((after - before).abs().max() / before.abs().max())
        agree = float((after.argmax(-1) == before.argmax(-1)).float().mean())
        found[name] = {**times, 'max_difference': difference, 'same_argmax': agree}
        print(f'model, {name}:', {key: round(value, 4) for key, value in found[name].items()})
    print(told)
    FOUND['model'] = found


# ---- Triton: predicted and measured ----


def triton_cases():
    import triton_kernels as a
    import triton_kernels_gpu as b

    n, rows, columns = 1 << 24, 8192, 4096
    x, y = random(n, dtype=torch.float32), random(n, dtype=torch.float32)
    h, g = random(rows, columns), random(rows, columns)
    w = random(columns)
    wide, bias = random(columns, dtype=torch.float32), random(columns, dtype=torch.float32)
    f = random(rows, columns, dtype=torch.float32)
    ids = torch.randint(0, rows, (rows,), device='cuda', dtype=torch.int32)
    p, q = random(2048, 2048, dtype=torch.float16), random(2048, 2048, dtype=torch.float16)
    like = torch.empty_like
    return [
        ('vector_add', a.vector_add, (n // 1024,), (x, y, like(x), n), {'BLOCK': 1024}),
        ('softmax', a.row_softmax, (rows,), (like(f), f, columns, columns), {'BLOCK': 4096, 'num_warps': 8}),
        ('layer_norm', a.layer_norm, (rows,), (h, wide, bias, like(h), columns, columns, 1e-5), {'BLOCK': 4096, 'num_warps': 8}),
        ('dropout', a.dropout, (n // 1024,), (x, like(x), n, 0.3, 123), {'BLOCK': 1024}),
        ('matmul', a.matmul, (16, 16), (p, q, like(p), 2048, 2048, 2048), {'BM': 128, 'BN': 128, 'BK': 64, 'num_warps': 8}),
        ('silu_mul', b.silu_mul, (rows * columns // 2048,), (h, g, like(h), rows * columns), {'BLOCK': 2048}),
        ('rmsnorm', b.rmsnorm, (rows,), (h, w, like(h), columns, 1e-6), {'BLOCK': 4096, 'num_warps': 8}),
        ('transpose', b.transpose, (rows // 64, columns // 64), (f, random(columns, rows, dtype=torch.float32), rows, columns), {'BLOCK': 64}),
        ('gather_rows', b.gather_rows, (rows,), (h, ids, like(h), columns), {'BLOCK': 2048}),
        ('column_sums', b.column_sums, (columns // 128, 64), (f, torch.zeros(columns, device='cuda'), rows, columns), {'ROWS': 128, 'BLOCK': 128}),
    ]


def predicted_us(kernel, grid, args, options):
    """As the measurement is: one launch of many alike in a graph, each on other memory."""
    given = [v.cpu() if isinstance(v, torch.Tensor) else v for v in args]
    with sol.audit(device='h200', sample=1, steady=True) as bill:
        kernel[grid](*given, **options)
    return bill.time_us, bill.kernels[0].bound


def rotating_us(kernel, grid, args, options, launches=24):
    """Of one launch in a CUDA graph over copies of all tensors, together more than 3 times L2 and at least three; the median of 9 replays."""
    tensors = [v for v in args if isinstance(v, torch.Tensor)]
    count = max(3, -(-200_000_000 // sum(v.nbytes for v in tensors)))
    sets = [[v.clone() if isinstance(v, torch.Tensor) else v for v in args] for _ in range(count)]
    kernel[grid](*sets[0], **options)
    launches = -(-launches // count) * count
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(launches):
            kernel[grid](*sets[i % count], **options)
    graph.replay()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record(), graph.replay(), end.record()
        torch.cuda.synchronize()
        times.append(1e3 * start.elapsed_time(end) / launches)
    return statistics.median(times)


def triton_times():
    from triton.testing import do_bench

    errors, found = [], {}
    for name, kernel, grid, args, options in triton_cases():
        try:
            measured = rotating_us(kernel, grid, args, options)
            flushed = 1e3 * do_bench(lambda: kernel[grid](*args, **options), warmup=5, rep=20, return_mode='median')
            predicted, bound = predicted_us(kernel, grid, args, options)
        except Exception as error:  # one kernel that fails must not hide the others
            print(f'triton: {name}: {type(error).__name__}: {str(error)[:300]}')
            found[name] = {'error': str(error)[:300]}
            continue
        errors.append(abs(predicted / measured - 1))
        found[name] = {'measured_us': measured, 'predicted_us': predicted, 'bound': bound, 'do_bench_us': flushed}
        print(f'triton: {name:12s} measured {measured:8.2f} us, predicted {predicted:8.2f} us, {100 * (predicted / measured - 1):+6.1f}%, {bound}; '
              f'do_bench {flushed:.2f} us')
    FOUND['triton'] = {'kernels': found, 'median_error': statistics.median(errors) if errors else None}
    print(f'triton: median error {100 * statistics.median(errors):.1f}% of {len(errors)}' if errors else 'triton: none ran')


# ---- Liger's kernels in the same model, in the same run ----


def patch_liger(net):
    """What apply_liger_kernel_to_llama does, without the transformers package; gives the undo."""
    from liger_kernel.transformers.functional import liger_rms_norm, liger_swiglu
    from liger_kernel.transformers.rope import liger_rotary_pos_emb

    own, changed = globals()['apply_rotary_pos_emb'], []
    for module in net.modules():
        if isinstance(module, LlamaRMSNorm):
            module.forward = lambda x, m=module: liger_rms_norm(x, m.weight, m.variance_epsilon, 0.0, 'llama', False)
        elif isinstance(module, LlamaMLP):
            module.forward = lambda x, m=module: m.down_proj(liger_swiglu(m.gate_proj(x), m.up_proj(x)))
        else:
            continue
        changed.append(module)
    globals()['apply_rotary_pos_emb'] = liger_rotary_pos_emb

    def undo():
        globals()['apply_rotary_pos_emb'] = own
        for module in changed:
            del module.forward

    return undo


@torch.no_grad()
def liger():
    try:
        import liger_kernel  # noqa: F401
    except ImportError:
        FOUND['liger'] = {'skipped': 'liger_kernel is not installed'}
        print('liger: liger_kernel is not installed')
        return
    torch.manual_seed(5)
    net, found = LlamaModel().to('cuda', torch.bfloat16).eval(), {}
    ways = {'torch': lambda: lambda: None, 'sol': lambda: st.patch(net).undo, 'liger': lambda: patch_liger(net)}
    for name, shape in (('prefill 4x2048', (4, 2048)), ('decode 64x1', (64, 1))):
        ids, row, expected = torch.randint(0, 32000, shape, device='cuda'), {}, None
        for way in ('torch', 'sol', 'liger', 'liger', 'sol', 'torch'):  # forwards and back: the clock may move meanwhile
            undo = ways[way]()
            out = net(ids).float()
            expected = out if expected is None else expected
            row.setdefault(f'{way}_ms', []).append(graph_ms(lambda: net(ids)))
            row.setdefault(f'{way}_eager_ms', []).append(event_ms(lambda: net(ids)))
            row[f'{way}_difference'] = [float((out - expected).abs().max() / expected.abs().max())]
            undo()
        found[name] = {key: statistics.mean(values) for key, values in row.items()}
        print(f'liger, {name}:', {key: round(value, 4) for key, value in found[name].items()})
    FOUND['liger'] = found


def loss():
    """The loss of a language model and its gradient, bf16 logits: torch, Sol and, where it is installed, Liger."""
    logits, target = random(8192, 32000), torch.randint(0, 32000, (8192,), device='cuda')
    ways = {'torch': lambda x: nn.functional.cross_entropy(x.float(), target), 'sol': lambda x: st.cross_entropy(x, target)}
    try:
        from liger_kernel.transformers.functional import liger_cross_entropy
        ways['liger'] = lambda x: liger_cross_entropy(x, target)
    except ImportError:
        pass
    found = {}
    for name, way in ways.items():
        def run():
            x = logits.detach().requires_grad_()
            way(x.clone() if name == 'liger' else x).backward()  # Liger writes the gradient over the logits
        found[name + '_ms'] = event_ms(run)
    found['clone_ms'] = event_ms(logits.clone)  # part of Liger's time above
    FOUND['loss'] = found
    print('loss, 8192 x 32000, forward and backward:', {key: round(value, 4) for key, value in found.items()})


PARTS = {'operators': operators, 'compile': compiled, 'overhead': overhead, 'model': model, 'triton': triton_times, 'liger': liger, 'loss': loss}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--json')
    parser.add_argument('parts', nargs='*', default=list(PARTS))
    options = parser.parse_args()
    FOUND.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__)
    for part in options.parts or PARTS:
        start = time.monotonic()
        try:
            PARTS[part]()
        except Exception as error:  # the other parts still say what they have
            FOUND[part] = {'error': f'{type(error).__name__}: {str(error)[:2000]}'}
            print(f'{part} failed: {FOUND[part]["error"]}')
        print(f'-- {part}: {time.monotonic() - start:.1f} s', flush=True)
        if options.json:
            with open(options.json, 'w', encoding='utf-8') as file:
                json.dump(FOUND, file, indent=1)


main()
