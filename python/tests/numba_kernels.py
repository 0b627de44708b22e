"""Kernels for test_numba.py."""

from numba import cuda, float32


@cuda.jit
def scale(x, y, a):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * a


@cuda.jit
def scale_unguarded(x):
    x[cuda.grid(1)] *= 2


@cuda.jit
def transpose(x, y):
    tile = cuda.shared.array((32, 33), float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    tile[j, i] = x[cuda.blockIdx.y * 32 + j, cuda.blockIdx.x * 32 + i]
    cuda.syncthreads()
    y[cuda.blockIdx.x * 32 + j, cuda.blockIdx.y * 32 + i] = tile[i, j]


@cuda.jit
def first(out, pair):
    out[0] = pair[0]


@cuda.jit
def scalars(out, big, real, flag):
    out[0] = big
    out[1] = real
    if flag:
        out[2] = 1
