"""Sol's operators for PyTorch: ``sol.torch.rmsnorm(x, weight)`` on tensors of a GPU or the CPU, without copies.

They are registered with torch.library (``torch.ops.sol.rmsnorm``), with shapes for fake tensors: torch.compile has no graph
break at them, CUDA graphs capture them on the current stream. Gradients are those of torch's own formulas, which are computed
again in the backward pass. A type or device that libsol does not have takes the formula too.

``sol.torch.patch(model)`` puts them in place of a model's norms, activations, rotary embedding and loss.
"""

import functools
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

from . import _torch_native as _native
from ._torch_patch import Patched, patch
from .errors import ArgumentError

__all__ = [
    "Patched", "add_rmsnorm", "attention", "bias_gelu", "cross_entropy", "embedding", "gated_mul", "layernorm", "log_softmax", "patch",
    "rmsnorm", "rope", "silu_mul", "softmax",
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


_ACTIVATIONS: Dict[str, Callable[..., Any]] = {"gelu": functools.partial(F.gelu, approximate="tanh"), "relu": F.relu, "sigmoid": torch.sigmoid, "silu": F.silu}


def _gated_mul(gate: Any, up: Any, activation: str) -> Any:
    return (_ACTIVATIONS[activation](gate.float()) * up.float()).to(gate.dtype)


def _in_range(x: Any, target: Any) -> Any:
    return (target >= 0) & (target < x.shape[-1])


def _cross_entropy(x: Any, target: Any) -> Any:
    wide = torch.log_softmax(x.float() if x.dtype in _native.REALS else x, -1)
    known = _in_range(x, target)
    loss = -wide.gather(-1, target.where(known, 0).long().unsqueeze(-1)).squeeze(-1)
    return loss.where(known, 0.0).float()


def _cross_entropy_backward(grad: Any, x: Any, target: Any) -> Any:
    known = _in_range(x, target)
    onehot = F.one_hot(target.where(known, 0).long(), x.shape[-1])
    wide = torch.softmax(x.float() if x.dtype in _native.REALS else x, -1) - onehot
    return (wide * (grad * known).unsqueeze(-1)).to(x.dtype)


def _attention(q: Any, k: Any, v: Any, causal: bool, scale: float) -> Any:
    """q (batch, queries, heads, D), k and v (batch, keys, kv heads, D); queries are the last of the keys."""
    group, (n, keys) = q.shape[2] // k.shape[2], (q.shape[1], k.shape[1])
    q, k, v = q.transpose(1, 2), *(t.transpose(1, 2).repeat_interleave(group, 1) for t in (k, v))
    mask = torch.ones(n, keys, dtype=torch.bool, device=q.device).tril(keys - n) if causal else None
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale or None).transpose(1, 2).contiguous()


# ---- torch.library ----


class _Operator(NamedTuple):
    name: str
    schema: str
    formula: Callable[..., Any]
    fake: Callable[..., Any]
    native: Callable[..., Any]  # of the same inputs; NotImplemented where libsol does not have it


def _like_first(x: Any, *_: Any) -> Any:
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
_empty_cpu: Any = getattr(_guards, "_empty_strided_cpu", None)
_empty_cuda: Any = getattr(_guards, "_empty_strided_cuda", None) if torch.cuda.device_count() == 1 else None


def _empty(x: Any) -> _Tensor:
    """torch.empty_like, by what compiled code allocates with, which leaves the dispatcher out; on GPUs where there is one alone."""
    make = _empty_cuda if x.is_cuda else _empty_cpu if x.is_cpu else None
    if make is None or not x.is_contiguous():
        return torch.empty_like(x)
    made: _Tensor = make(tuple(x.shape), x.stride(), x.dtype)
    return made


def _native_of(name: str, tensors: int) -> Callable[..., Any]:
    """The library's operation on the first so many inputs as tensors and the others as numbers; its output is as the first."""
    operation = _native.OPERATIONS[name]

    def native(*inputs: Any) -> Any:
        y = _empty(inputs[0])
        return operation(inputs[:tensors], inputs[tensors:]) if operation.quick(y, *inputs) else y

    return native


def _native_add_rmsnorm(x: Any, residual: Any, weight: Any, eps: float, weight_offset: float) -> Any:
    operation, y, total = _native.OPERATIONS["add_rmsnorm"], _empty(x), _empty(x)
    if not operation.quick(y, total, x, residual, weight, eps, weight_offset):
        return y, total
    total = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    y = operation((x, residual, total, weight), (eps, weight_offset))
    return y if y is NotImplemented else (y, total)


def _native_embedding(table: Any, ids: Any) -> Any:
    operation, y = _native.OPERATIONS["embedding"], table.new_empty((*ids.shape, table.shape[-1]))
    return operation((table, ids)) if operation.quick(y, table, ids) else y


def _native_gated_mul(gate: Any, up: Any, activation: str) -> Any:
    operation, y = _native.OPERATIONS["gated_mul"], _empty(gate)
    return operation((gate, up), (activation,)) if operation.quick(y, gate, up, _native.GATES[activation]) else y


def _native_cross_entropy(x: Any, target: Any) -> Any:
    operation, loss = _native.OPERATIONS["cross_entropy"], torch.empty(target.shape, dtype=torch.float32, device=x.device)
    return operation((x, target, None)) if operation.quick(loss, x, target, None) else loss


def _native_cross_entropy_backward(grad: Any, x: Any, target: Any) -> Any:
    """One pass that reads the logits once, then the rows' own factors in place."""
    operation, gradient = _native.OPERATIONS["cross_entropy"], torch.empty_like(x, memory_format=torch.contiguous_format)
    loss = torch.empty(target.shape, dtype=torch.float32, device=x.device)
    if operation.quick(loss, x, target, gradient) and operation((x, target, gradient)) is NotImplemented:
        return NotImplemented
    return gradient.mul_(grad.unsqueeze(-1))


def _native_attention(q: Any, k: Any, v: Any, causal: bool, scale: float) -> Any:
    fits = q.dtype in (torch.float16, torch.bfloat16) and k.dtype == v.dtype == q.dtype and q.shape[-1] in (64, 128, 256)
    return _native.OPERATIONS["attention"]((q, k, v), (causal, scale)) if fits else NotImplemented


def _tensor_count(schema: str) -> int:
    return schema.partition("->")[0].count("Tensor")


def _operator(name: str, schema: str, formula: Callable[..., Any], fake: Callable[..., Any] = _like_first,
              native: Optional[Callable[..., Any]] = None) -> _Operator:
    return _Operator(name, schema, formula, fake, native or _native_of(name, _tensor_count(schema)))


_OPERATORS = {each.name: each for each in [
    _operator("rmsnorm", "(Tensor x, Tensor? weight, float eps, float weight_offset) -> Tensor", _rmsnorm),
    _operator("add_rmsnorm", "(Tensor x, Tensor residual, Tensor? weight, float eps, float weight_offset) -> (Tensor, Tensor)",
              _add_rmsnorm, lambda x, *_: (_like_first(x), _like_first(x)), _native_add_rmsnorm),
    _operator("layernorm", "(Tensor x, Tensor? weight, Tensor? bias, float eps) -> Tensor", _layernorm),
    _operator("softmax", "(Tensor x) -> Tensor", _softmax),
    _operator("log_softmax", "(Tensor x) -> Tensor", _log_softmax),
    _operator("silu_mul", "(Tensor gate, Tensor up) -> Tensor", _silu_mul),
    _operator("gated_mul", "(Tensor gate, Tensor up, str activation) -> Tensor", _gated_mul,
              native=_native_gated_mul),
    _operator("bias_gelu", "(Tensor x, Tensor? bias) -> Tensor", _bias_gelu),
    _operator("rope", "(Tensor x, Tensor cos, Tensor sin, bool interleaved) -> Tensor", _rope),
    _operator("embedding", "(Tensor table, Tensor ids) -> Tensor", _embedding,
              lambda table, ids: torch.empty((*ids.shape, table.shape[-1]), dtype=table.dtype, device=table.device), _native_embedding),
    _operator("attention", "(Tensor q, Tensor k, Tensor v, bool causal, float scale) -> Tensor", _attention, native=_native_attention),
    _operator("cross_entropy", "(Tensor x, Tensor target) -> Tensor", _cross_entropy,
              lambda x, target: torch.empty(target.shape, dtype=torch.float32, device=x.device), _native_cross_entropy),
    _operator("cross_entropy_backward", "(Tensor grad, Tensor x, Tensor target) -> Tensor", _cross_entropy_backward,
              lambda grad, x, target: _like_first(x), _native_cross_entropy_backward),
]}


def _run(operator: _Operator) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        out = operator.native(*inputs)
        if out is not NotImplemented:
            return out
        out = operator.formula(*inputs)
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


def _backward_of_cross_entropy(ctx: Any, grad: Any) -> Any:
    x, target = ctx.saved_tensors
    return torch.ops.sol.cross_entropy_backward(grad, x, target), None


_library: Any = torch.library.Library("sol", "DEF")  # type: ignore[no-untyped-call]


def _register(operator: _Operator) -> None:
    """By torch.library's plain registration: what custom_op adds costs 15 us a call."""
    name = f"sol::{operator.name}"
    _library.define(operator.name + operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(operator.name, _run(operator), "CompositeExplicitAutograd")
    torch.library.register_fake(name, operator.fake, lib=_library)
    backward = _backward_of_cross_entropy if operator.name == "cross_entropy" else _backward(operator)
    torch.library.register_autograd(name, backward, setup_context=_keep, lib=_library)


for _each in _OPERATORS.values():
    _register(_each)


_PLAIN = (_Tensor, torch.nn.Parameter)
_is_compiling = torch.compiler.is_dynamo_compiling  # what else compiles has a mode
_modes, _transforms = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_tracing = torch._C._get_tracing_state
_is_grad_enabled = torch.is_grad_enabled


# ---- what users call: the library directly, past torch's dispatch, unless somebody looks on ----

_quick: Dict[str, Any] = {name: operation.quick for name, operation in _native.OPERATIONS.items()}


def _unseen(x: Any, a: Any = None, b: Any = None) -> bool:
    """Whether nobody looks on: no compiler, no mode, no transform, no gradient, no tensor of another kind."""
    if _is_compiling() or _modes() or _transforms() is not None or _tracing() is not None:
        return False
    if type(x) not in _PLAIN or a is not None and type(a) not in _PLAIN or b is not None and type(b) not in _PLAIN:
        return False
    if not _is_grad_enabled():
        return True
    return not (x.requires_grad or a is not None and a.requires_grad or b is not None and b.requires_grad)


def _other_way(name: str, unseen: bool, *inputs: Any) -> Any:
    """Not the quick way: with what has to be copied first, or through torch's dispatch."""
    out = _OPERATORS[name].native(*inputs) if unseen else NotImplemented
    return getattr(torch.ops.sol, name)(*inputs) if out is NotImplemented else out


def rmsnorm(x: _Tensor, weight: Optional[_Tensor] = None, *, eps: float = 1e-6, weight_offset: float = 0.0) -> _Tensor:
    """x / sqrt(mean(x^2) + eps) * (weight + weight_offset), by rows of x (..., N)."""
    if unseen := _unseen(x, weight):
        y = _empty(x)
        if not _quick["rmsnorm"](y, x, weight, eps, weight_offset):
            return y
    return _other_way("rmsnorm", unseen, x, weight, eps, weight_offset)  # type: ignore[no-any-return]


def add_rmsnorm(x: _Tensor, residual: _Tensor, weight: Optional[_Tensor] = None, *, eps: float = 1e-6,
                weight_offset: float = 0.0) -> Tuple[_Tensor, _Tensor]:
    """s = x + residual; gives (rmsnorm(s), s)."""
    return _other_way("add_rmsnorm", _unseen(x, residual, weight), x, residual, weight, eps, weight_offset)  # type: ignore[no-any-return]


def layernorm(x: _Tensor, weight: Optional[_Tensor] = None, bias: Optional[_Tensor] = None, *, eps: float = 1e-5) -> _Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias, by rows of x (..., N)."""
    if unseen := _unseen(x, weight, bias):
        y = _empty(x)
        if not _quick["layernorm"](y, x, weight, bias, eps):
            return y
    return _other_way("layernorm", unseen, x, weight, bias, eps)  # type: ignore[no-any-return]


def softmax(x: _Tensor) -> _Tensor:
    """Over the last axis."""
    if unseen := _unseen(x):
        y = _empty(x)
        if not _quick["softmax"](y, x):
            return y
    return _other_way("softmax", unseen, x)  # type: ignore[no-any-return]


def log_softmax(x: _Tensor) -> _Tensor:
    """Over the last axis."""
    if unseen := _unseen(x):
        y = _empty(x)
        if not _quick["log_softmax"](y, x):
            return y
    return _other_way("log_softmax", unseen, x)  # type: ignore[no-any-return]


def silu_mul(gate: _Tensor, up: _Tensor) -> _Tensor:
    """silu(gate) * up. The halves of one row, x.chunk(2, -1), are not copied."""
    if unseen := _unseen(gate, up):
        y = _empty(gate)
        if not _quick["silu_mul"](y, gate, up):
            return y
    return _other_way("silu_mul", unseen, gate, up)  # type: ignore[no-any-return]


def gated_mul(gate: _Tensor, up: _Tensor, activation: str = "gelu") -> _Tensor:
    """activation(gate) * up: gelu (the tanh form), relu, sigmoid or silu."""
    if activation not in _ACTIVATIONS:
        raise ArgumentError(f"gated_mul: activation is one of {', '.join(_ACTIVATIONS)}")
    return _other_way("gated_mul", _unseen(gate, up), gate, up, activation)  # type: ignore[no-any-return]


def bias_gelu(x: _Tensor, bias: Optional[_Tensor] = None) -> _Tensor:
    """gelu(x + bias), the tanh form."""
    if unseen := _unseen(x, bias):
        y = _empty(x)
        if not _quick["bias_gelu"](y, x, bias):
            return y
    return _other_way("bias_gelu", unseen, x, bias)  # type: ignore[no-any-return]


def rope(x: _Tensor, cos: _Tensor, sin: _Tensor, *, interleaved: bool = False) -> _Tensor:
    """Rotary embedding of x (..., H, D); cos and sin (..., rotary / 2) have a row for each token."""
    if unseen := _unseen(x, cos, sin):
        y = _empty(x)
        if not _quick["rope"](y, x, cos, sin, interleaved):
            return y
    return _other_way("rope", unseen, x, cos, sin, interleaved)  # type: ignore[no-any-return]


def embedding(table: _Tensor, ids: _Tensor) -> _Tensor:
    """table[ids]. An id outside the table gives zeros: nothing waits for the GPU to find out."""
    return _other_way("embedding", _unseen(table, ids), table, ids)  # type: ignore[no-any-return]


def attention(query: _Tensor, key: _Tensor, value: _Tensor, *, is_causal: bool = False, scale: Optional[float] = None) -> _Tensor:
    """As F.scaled_dot_product_attention, without a mask: query (batch, heads, queries, D), key and value (batch, kv heads, keys, D).

    Groups of heads share a key head. Where there are fewer queries than keys and ``is_causal``, queries are the last ones (torch's are
    the first). libsol has fp16 and bf16, heads of 64, 128 and 256; others take torch's.
    """
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    return _other_way("attention", _unseen(query, key, value), q, k, v, is_causal, scale or 0.0).transpose(1, 2)  # type: ignore[no-any-return]


def cross_entropy(logits: _Tensor, target: _Tensor, *, ignore_index: int = -100, reduction: str = "mean") -> _Tensor:
    """Of logits (..., vocab) and target (...), in fp32: "mean", "sum" or "none". The gradient is libsol's, too: logits are read once.

    A target outside the vocabulary is ignored as ``ignore_index`` is, but counts in the mean: nothing waits for the GPU to find out.
    """
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError("cross_entropy: reduction is one of mean, sum, none")
    if 0 <= ignore_index < logits.shape[-1]:
        target = target.where(target != ignore_index, -1)
        ignore_index = -1
    loss: _Tensor = _other_way("cross_entropy", _unseen(logits, target), logits, target)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / (target != ignore_index).sum()
