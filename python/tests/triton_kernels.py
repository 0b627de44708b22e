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
def matmul_tiles(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """Tensor descriptors, which are copied by the tensor memory accelerator of Hopper; programs in groups of rows."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    row = (first + pid % (GROUP * columns) % height) * BM
    column = pid % (GROUP * columns) // height * BN
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def layer_norm_backward(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, columns,
                        GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Rows add to the weights' gradients of their group under a lock."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * columns + offsets, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.0)
    wdy = tl.where(mask, w * dy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / columns
    c2 = tl.sum(wdy, axis=0) / columns
    tl.store(dx_ptr + row * columns + offsets, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    group = row % GROUP
    lock, count = lock_ptr + group, lock_ptr + GROUP + group
    dw, db = dw_ptr + group * columns + offsets, db_ptr + group * columns + offsets
    pw, pb = dy * xhat, dy
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        pw += tl.load(dw, mask=mask)
        pb += tl.load(db, mask=mask)
    tl.store(dw, pw, mask=mask)
    tl.store(db, pb, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


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
