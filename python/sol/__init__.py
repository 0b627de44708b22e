"""Sol: how fast could a GPU kernel be, why is it slower, and what would fixing it buy. No GPU is needed.

>>> import sol
>>> sol.roofline("rmsnorm", (8192, 4096), device="h100").time_us
>>> with sol.audit(device="h100") as bill:      # a Triton kernel on NumPy arrays
...     kernel[grid](x, y, n, BLOCK=1024)
>>> print(bill)

The accountant and the audit call the ``sol`` tool; operators (``sol.rmsnorm``) call ``libsol``. See docs/python.md.
"""

from .accountant import Device, Model, ModelKernel, Occupancy, Roofline, devices, model, occupancy, roofline
from .auditing import Audit, audit
from .bill import Bill, Finding, Kernel, Line
from .errors import ArgumentError, BillError, Error, KernelFault, MissingError, UnsupportedError
from .gates import assert_bill, gate
from .ops import (
    add,
    add_rmsnorm,
    argmax,
    attention,
    bias_gelu,
    bias_relu_scale,
    cast,
    copy,
    cross_entropy,
    embed_rmsnorm,
    embedding,
    gated_mul,
    gather,
    gemm,
    group_norm,
    kv_append,
    layernorm,
    log_softmax,
    quantize,
    reduce,
    relu,
    rmsnorm,
    rope,
    sample,
    scale_columns,
    silu_mul,
    softmax,
    topk,
    transpose,
)
from .profiling import ModuleTime, Profile, profile

__version__ = "0.2.10"
__all__ = [
    "ArgumentError", "Audit", "Bill", "BillError", "Device", "Error", "Finding", "Kernel", "KernelFault", "Line",
    "MissingError", "Model", "ModelKernel", "ModuleTime", "Occupancy", "Profile", "Roofline", "UnsupportedError", "add",
    "add_rmsnorm", "argmax", "assert_bill", "attention", "audit", "bias_gelu", "bias_relu_scale", "cast", "copy", "cross_entropy",
    "devices", "embed_rmsnorm", "embedding", "gate", "gated_mul", "gather", "gemm", "group_norm", "kv_append", "layernorm",
    "log_softmax", "model", "occupancy", "profile", "quantize", "reduce", "relu", "rmsnorm", "roofline", "rope",
    "sample", "scale_columns", "silu_mul", "softmax", "topk", "transpose",
]
