"""Kernels in Triton for bench/python_gpu.py, beside those of python/tests/triton_kernels.py."""

import triton
import triton.language as tl


@triton.jit
def silu_mul(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    gate = tl.load(gate_ptr + offsets, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def rmsnorm(x_ptr, w_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, x * scale * w, mask=mask)


@triton.jit
def transpose(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :])
    tl.store(out_ptr + j[:, None] * rows + i[None, :], tl.trans(x))


@triton.jit
def gather_rows(x_ptr, ids_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(ids_ptr + row).to(tl.int64)
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < columns
        tl.store(out_ptr + row.to(tl.int64) * columns + offsets, tl.load(x_ptr + source * columns + offsets, mask=mask), mask=mask)


@triton.jit
def column_sums(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(tl.program_id(1) * ROWS, (tl.program_id(1) + 1) * ROWS):
        total += tl.load(x_ptr + i * columns + j)
    tl.atomic_add(out_ptr + j, total)
