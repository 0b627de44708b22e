"""Kernels in Triton for test_triton.py; MARK comments name the lines that the tests look for."""

import triton
import triton.language as tl


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)  # MARK add load x
    y = tl.load(y_ptr + offsets, mask=mask)  # MARK add load y
    tl.store(out_ptr + offsets, x + y, mask=mask)  # MARK add store


@triton.jit
def row_softmax(out_ptr, x_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf"))
    x -= tl.max(x, axis=0)  # MARK softmax max
    e = tl.exp(x)
    total = tl.sum(e, axis=0)  # MARK softmax sum
    tl.store(out_ptr + row * stride + offsets, e / total, mask=mask)


@triton.jit
def mean_of(x, columns):
    return tl.sum(x, axis=0) / columns  # MARK helper


@triton.jit
def layer_norm(x_ptr, w_ptr, b_ptr, out_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    centred = tl.where(mask, x - mean_of(x, columns), 0.0)
    scale = tl.rsqrt(mean_of(centred * centred, columns) + eps)
    w = tl.load(w_ptr + offsets, mask=mask)
    b = tl.load(b_ptr + offsets, mask=mask)
    tl.store(out_ptr + row * stride + offsets, centred * scale * w + b, mask=mask)


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    kept = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(kept, x / (1 - p), 0.0), mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0.0)
        total = tl.dot(a, b, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=mask)


@triton.jit
def by_columns(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offsets = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * rows
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)


@triton.jit
def scalars(out_ptr, i, big, f, flag, HALF: tl.constexpr):
    tl.store(out_ptr, i + big * 0 + 0.0)
    tl.store(out_ptr + 1, f)
    tl.store(out_ptr + 2, HALF)
    if flag:
        tl.store(out_ptr + 3, (big >> 33).to(tl.float32))


CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((32, 1), (1024, 4), (256, 8))]


@triton.autotune(configs=CONFIGS, key=["n"], reset_to_zero=["sum_ptr"])
@triton.jit
def tuned_scale(x_ptr, out_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 3, mask=mask)
    tl.atomic_add(sum_ptr, 1)
