"""Sol's operators for PyTorch: ``sol.torch.rmsnorm(x, weight)`` on tensors of a GPU or the CPU, without copies.

They are registered with torch.library (``torch.ops.sol.rmsnorm``), with shapes for fake tensors: torch.compile has no graph
break at them, CUDA graphs capture them on the current stream. Gradients are those of torch's own formulas, which are computed
again in the backward pass. A type or device that libsol does not have takes the formula too.

``sol.torch.patch(model)`` puts them in place of a model's norms, activations, rotary embedding and loss.
"""

from typing import Any, Callable, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

from . import _torch_native as _native
from ._torch_patch import Patched, patch

__all__ = [
    "Patched", "add_rmsnorm", "bias_gelu", "cross_entropy", "embedding", "layernorm", "log_softmax", "patch", "rmsnorm", "rope",
    "silu_mul", "softmax",
]

_Tensor = torch.Tensor


# ---- torch's formulas: what the operators compute, and how they are differentiated ----


def _rmsnorm(x: Any, weight: Any, eps: float, weight_offset: float) -> Any:
    wide = x.float()
    y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (y if weight is None else y * (weight.float() + weight_offset)).to(x.dtype)


def _add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, weight_offset: float) -> Any:
    s = x + residual
    return _rmsnorm(s, weight, eps, weight_offset), s


def _layernorm(x: Any, weight: Any, bias: Any, eps: float) -> Any:
    y = F.layer_norm(x.float(), x.shape[-1:], None if weight is None else weight.float(), None if bias is None else bias.float(), eps)
    return y.to(x.dtype)


def _softmax(x: Any) -> Any:
    return torch.softmax(x.float(), -1).to(x.dtype)


def _log_softmax(x: Any) -> Any:
    return torch.log_softmax(x.float(), -1).to(x.dtype)


def _silu_mul(gate: Any, up: Any) -> Any:
    return (F.silu(gate.float()) * up.float()).to(gate.dtype)


def _bias_gelu(x: Any, bias: Any) -> Any:
    wide = x.float()
    return F.gelu(wide if bias is None else wide + bias.float(), approximate="tanh").to(x.dtype)


def _rope(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    rotary = 2 * cos.shape[-1]
    turned, rest = x[..., :rotary].float(), x[..., rotary:]
    c, s = (table.float().reshape(*x.shape[:-2], 1, rotary // 2) for table in (cos, sin))
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    pair = (a * c - b * s, b * c + a * s)
    y = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat((y.to(x.dtype), rest), -1)


def _embedding(table: Any, ids: Any) -> Any:
    return F.embedding(ids, table)


# ---- torch.library ----


class _Operator(NamedTuple):
    name: str
    schema: str
    formula: Callable[..., Any]
    fake: Callable[..., Any]


def _like_first(x: Any, *_: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


_OPERATORS = [
    _Operator("rmsnorm", "(Tensor x, Tensor? weight, float eps, float weight_offset) -> Tensor", _rmsnorm, _like_first),
    _Operator("add_rmsnorm", "(Tensor x, Tensor residual, Tensor? weight, float eps, float weight_offset) -> (Tensor, Tensor)",
              _add_rmsnorm, lambda x, *_: (_like_first(x), _like_first(x))),
    _Operator("layernorm", "(Tensor x, Tensor? weight, Tensor? bias, float eps) -> Tensor", _layernorm, _like_first),
    _Operator("softmax", "(Tensor x) -> Tensor", _softmax, _like_first),
    _Operator("log_softmax", "(Tensor x) -> Tensor", _log_softmax, _like_first),
    _Operator("silu_mul", "(Tensor gate, Tensor up) -> Tensor", _silu_mul, _like_first),
    _Operator("bias_gelu", "(Tensor x, Tensor? bias) -> Tensor", _bias_gelu, _like_first),
    _Operator("rope", "(Tensor x, Tensor cos, Tensor sin, bool interleaved) -> Tensor", _rope, _like_first),
    _Operator("embedding", "(Tensor table, Tensor ids) -> Tensor", _embedding,
              lambda table, ids: torch.empty((*ids.shape, table.shape[-1]), dtype=table.dtype, device=table.device)),
]


def _reals(values: Any) -> Any:
    return [v for v in values if isinstance(v, _Tensor) and v.is_floating_point()]


def _run(operator: _Operator) -> Callable[..., Any]:
    native = getattr(_native, operator.name)

    def run(*inputs: Any) -> Any:
        out = native(*inputs) if _native.takes(*_reals(inputs)) else operator.formula(*inputs)
        # An operator may not give back what it was given, or a view of it.
        return out.contiguous() if isinstance(out, _Tensor) else tuple(part.contiguous() for part in out)

    return run


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.is_tensor = [isinstance(v, _Tensor) for v in inputs]
    ctx.others = [None if isinstance(v, _Tensor) else v for v in inputs]
    ctx.save_for_backward(*(v for v in inputs if isinstance(v, _Tensor)))


def _backward(operator: _Operator) -> Callable[..., Any]:
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        inputs = [next(saved) if held else other for held, other in zip(ctx.is_tensor, ctx.others)]
        wanted = [i for i, v in enumerate(inputs) if ctx.is_tensor[i] and v.is_floating_point() and ctx.needs_input_grad[i]]

        def of_wanted(*some: Any) -> Any:
            all_ = list(inputs)
            for i, v in zip(wanted, some):
                all_[i] = v
            return operator.formula(*all_)

        _, pull_back = torch.func.vjp(of_wanted, *(inputs[i] for i in wanted))
        found = dict(zip(wanted, pull_back(grads if len(grads) > 1 else grads[0])))
        return tuple(found.get(i) for i in range(len(inputs)))

    return backward


def _register(operator: _Operator) -> None:
    made = torch.library.custom_op(f"sol::{operator.name}", _run(operator), mutates_args=(), schema=operator.schema)
    made.register_fake(operator.fake)
    made.register_autograd(_backward(operator), setup_context=_keep)


for _each in _OPERATORS:
    _register(_each)


_PLAIN = (_Tensor, torch.nn.Parameter)


def _direct(x: Any, *others: Any) -> bool:
    """Whether nobody looks on: no compiler, no gradient, no mode, no tensor of another kind. Then torch's dispatch is left out."""
    if torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    if torch.is_grad_enabled() and (x.requires_grad or any(o is not None and o.requires_grad for o in others)):
        return False
    if type(x) not in _PLAIN or others and not all(o is None or type(o) in _PLAIN for o in others):
        return False
    return _native.takes(x, *others)


# ---- what users call ----


def rmsnorm(x: _Tensor, weight: Optional[_Tensor] = None, *, eps: float = 1e-6, weight_offset: float = 0.0) -> _Tensor:
    """x / sqrt(mean(x^2) + eps) * (weight + weight_offset), by rows of x (..., N)."""
    run = _native.rmsnorm if _direct(x, weight) else torch.ops.sol.rmsnorm
    return run(x, weight, eps, weight_offset)


def add_rmsnorm(x: _Tensor, residual: _Tensor, weight: Optional[_Tensor] = None, *, eps: float = 1e-6,
                weight_offset: float = 0.0) -> Tuple[_Tensor, _Tensor]:
    """s = x + residual; gives (rmsnorm(s), s)."""
    run = _native.add_rmsnorm if _direct(x, residual, weight) else torch.ops.sol.add_rmsnorm
    return run(x, residual, weight, eps, weight_offset)


def layernorm(x: _Tensor, weight: Optional[_Tensor] = None, bias: Optional[_Tensor] = None, *, eps: float = 1e-5) -> _Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias, by rows of x (..., N)."""
    run = _native.layernorm if _direct(x, weight, bias) else torch.ops.sol.layernorm
    return run(x, weight, bias, eps)


def softmax(x: _Tensor) -> _Tensor:
    """Over the last axis."""
    return (_native.softmax if _direct(x) else torch.ops.sol.softmax)(x)


def log_softmax(x: _Tensor) -> _Tensor:
    """Over the last axis."""
    return (_native.log_softmax if _direct(x) else torch.ops.sol.log_softmax)(x)


def silu_mul(gate: _Tensor, up: _Tensor) -> _Tensor:
    """silu(gate) * up. The halves of one row, x.chunk(2, -1), are not copied."""
    return (_native.silu_mul if _direct(gate, up) else torch.ops.sol.silu_mul)(gate, up)


def bias_gelu(x: _Tensor, bias: Optional[_Tensor] = None) -> _Tensor:
    """gelu(x + bias), the tanh form."""
    return (_native.bias_gelu if _direct(x, bias) else torch.ops.sol.bias_gelu)(x, bias)


def rope(x: _Tensor, cos: _Tensor, sin: _Tensor, *, interleaved: bool = False) -> _Tensor:
    """Rotary embedding of x (..., H, D); cos and sin (..., rotary / 2) have a row for each token."""
    return (_native.rope if _direct(x, cos, sin) else torch.ops.sol.rope)(x, cos, sin, interleaved)


def embedding(table: _Tensor, ids: _Tensor) -> _Tensor:
    """table[ids]. An id outside the table gives zeros: nothing waits for the GPU to find out."""
    direct = _direct(table) and ids.device == table.device and ids.dtype in (torch.int32, torch.int64)
    return (_native.embedding if direct else torch.ops.sol.embedding)(table, ids)


def cross_entropy(logits: _Tensor, target: _Tensor, *, ignore_index: int = -100, reduction: str = "mean") -> _Tensor:
    """Of logits (..., vocab) and target (...): by log_softmax in fp32, then torch's nll_loss."""
    flat = logits.reshape(-1, logits.shape[-1]).float()
    return F.nll_loss(log_softmax(flat), target.reshape(-1), ignore_index=ignore_index, reduction=reduction)
