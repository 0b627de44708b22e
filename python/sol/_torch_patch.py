"""``sol.torch.patch(model)``: Sol's operators in place of a model's own, by the names of its classes.

Nothing of a library of models is imported. A module keeps its class and its parameters: only its ``forward`` is set on the
instance, so that saving, loading and ``isinstance`` go on as before, and ``undo`` takes it away.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import Counter
from typing import Any, Callable

import torch

_SILU = {"SiLU", "SiLUActivation", "Silu"}
_RMSNORMS = {
    f"{family}RMSNorm" for family in (
        "Llama", "Mistral", "Mixtral", "Ministral", "Qwen2", "Qwen2Moe", "Qwen3", "Qwen3Moe", "Phi3", "Granite", "GraniteMoe", "Olmo2",
        "Olmoe", "DeepseekV2", "DeepseekV3", "InternLM2", "InternLM3", "Cohere2", "SmolLM3", "Arcee", "Llama4Text", "GptOss")
} | {"T5LayerNorm"}
_OFFSET_RMSNORMS = {"GemmaRMSNorm", "Gemma2RMSNorm", "Gemma3RMSNorm", "RecurrentGemmaRMSNorm"}  # they store w - 1
_GATED = {f"{family}MLP" for family in ("Llama", "Mistral", "Ministral", "Qwen2", "Qwen3", "Granite", "Olmo2", "DeepseekV2", "DeepseekV3", "SmolLM3")}
_GELU_GATED = {"GemmaMLP", "Gemma2MLP", "Gemma3MLP"}
_TANH_GELUS = {"NewGELUActivation", "FastGELUActivation", "PytorchGELUTanh", "GELUTanh"}
_ROPE = "apply_rotary_pos_emb"


class Patched:
    """What ``patch`` replaced: ``print(patched)`` tells it, ``patched.undo()`` takes it back."""

    def __init__(self) -> None:
        self.replaced: list[tuple[str, str, str]] = []  # where, what it was, what it is now
        self._undo: list[Callable[[], None]] = []

    def add(self, where: str, before: str, now: str, undo: Callable[[], None]) -> None:
        self.replaced.append((where, before, now))
        self._undo.append(undo)

    def undo(self) -> None:
        """The model as it was before."""
        while self._undo:
            self._undo.pop()()
        self.replaced.clear()

    def __len__(self) -> int:
        return len(self.replaced)

    def __str__(self) -> str:
        if not self.replaced:
            return "nothing was replaced: no class of this model is known to sol.torch.patch"
        counts = Counter((before, now) for _, before, now in self.replaced)
        return "\n".join(f"{count:4d} x {before} -> {now}" for (before, now), count in counts.items())


# ---- modules ----


def _eps(module: Any) -> float | None:
    found = [getattr(module, name) for name in ("variance_epsilon", "eps") if getattr(module, name, None) is not None]
    return float(found[0]) if found else None


def _rmsnorm(offset: float) -> Callable[[Any], Any]:
    def make(module: Any) -> Any:
        from . import torch as sol_torch

        eps = _eps(module)
        return eps is not None and (lambda self, x: sol_torch.rmsnorm(x, self.weight, eps=eps, weight_offset=offset))

    return make


def _torch_rmsnorm(module: Any) -> Any:
    from . import torch as sol_torch

    eps = module.eps  # None: the machine epsilon of the input's type
    return len(module.normalized_shape) == 1 and (
        lambda self, x: sol_torch.rmsnorm(x, self.weight, eps=torch.finfo(x.dtype).eps if eps is None else eps))


def _layernorm(module: Any) -> Any:
    from . import torch as sol_torch

    return len(module.normalized_shape) == 1 and (lambda self, x: sol_torch.layernorm(x, self.weight, self.bias, eps=self.eps))


def _is_silu(function: Any) -> bool:
    return type(function).__name__ in _SILU or function is torch.nn.functional.silu


def _is_tanh_gelu(function: Any) -> bool:
    return type(function).__name__ in _TANH_GELUS or getattr(function, "approximate", "") == "tanh"


def _gated_mlp(activation: str) -> Callable[[Any], Any]:
    is_it = {"silu": _is_silu, "gelu": _is_tanh_gelu}[activation]

    def make(module: Any) -> Any:
        from . import torch as sol_torch

        parts = all(hasattr(module, name) for name in ("gate_proj", "up_proj", "down_proj"))
        product = sol_torch.silu_mul if activation == "silu" else functools.partial(sol_torch.gated_mul, activation=activation)
        return parts and is_it(getattr(module, "act_fn", None)) and (
            lambda self, x: self.down_proj(product(self.gate_proj(x), self.up_proj(x))))

    return make


def _phi3_mlp(module: Any) -> Any:
    from . import torch as sol_torch

    if not _is_silu(getattr(module, "activation_fn", None)):
        return False

    def forward(self: Any, hidden_states: Any) -> Any:
        gate, up = self.gate_up_proj(hidden_states).chunk(2, -1)
        return self.down_proj(sol_torch.silu_mul(gate, up))

    return forward


def _gelu(module: Any) -> Any:
    from . import torch as sol_torch

    return lambda self, x: sol_torch.bias_gelu(x)


def _torch_gelu(module: Any) -> Any:
    return module.approximate == "tanh" and _gelu(module)


# name of the class -> (what takes its place, maker of a forward; False where this instance is another thing)
_MODULES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: ("rmsnorm", _rmsnorm(0.0)) for name in _RMSNORMS},
    **{name: ("rmsnorm, weight + 1", _rmsnorm(1.0)) for name in _OFFSET_RMSNORMS},
    **{name: ("silu_mul", _gated_mlp("silu")) for name in _GATED},
    **{name: ("gated_mul, gelu", _gated_mlp("gelu")) for name in _GELU_GATED},
    **{name: ("bias_gelu", _gelu) for name in _TANH_GELUS},
    "RMSNorm": ("rmsnorm", _torch_rmsnorm), "LayerNorm": ("layernorm", _layernorm), "Phi3MLP": ("silu_mul", _phi3_mlp),
    "GELU": ("bias_gelu", _torch_gelu),
}
_OF_TORCH = {"RMSNorm", "LayerNorm", "GELU"}  # names that others use too: only torch's own


def _known(module: Any) -> tuple[str, Any] | None:
    kind = type(module)
    if kind.__name__ not in _MODULES or kind.__name__ in _OF_TORCH and not kind.__module__.startswith("torch."):
        return None
    label, make = _MODULES[kind.__name__]
    forward = make(module)
    return (label, forward) if forward else None


# ---- rotary embedding: a function of the module in which the attention's class is ----


def _rotary(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def apply_rotary_pos_emb(q: Any, k: Any, cos: Any, sin: Any, *more: Any, **options: Any) -> Any:
        from . import torch as sol_torch

        axis = options.get("unsqueeze_dim", more[1] if len(more) > 1 else 1)
        fits = axis == 1 and q.dim() == 4 and cos.dim() == 3 and cos.shape[:2] == (q.shape[0], q.shape[2]) and cos.shape[-1] <= q.shape[-1]
        if not fits:  # heads in another place, or tables that are shared by the batch
            return own(q, k, cos, sin, *more, **options)
        c, s = cos[..., : cos.shape[-1] // 2].contiguous(), sin[..., : sin.shape[-1] // 2].contiguous()
        return tuple(sol_torch.rope(x.transpose(1, 2), c, s).transpose(1, 2) for x in (q, k))

    return apply_rotary_pos_emb


def _is_same(own: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Whether both turn the same pairs: some models pair neighbours under the same names."""
    draw = torch.Generator().manual_seed(1)
    q, k, table = (torch.randn(shape, generator=draw) for shape in ((1, 2, 3, 8), (1, 1, 3, 8), (2, 1, 3, 4)))
    cos, sin = torch.cat((table, table), -1)
    try:
        return all(torch.allclose(a, b, 1e-4, 1e-5) for a, b in zip(own(q, k, cos, sin), new(q, k, cos, sin)))
    except (TypeError, ValueError, RuntimeError):  # it takes other arguments
        return False


def _patch_rope(module: Any, patched: Patched) -> None:
    name = type(module).__module__
    home = sys.modules.get(name)
    own = getattr(home, _ROPE, None)
    if home is None or own is None or not hasattr(home, "rotate_half") or hasattr(own, "__sol__"):
        return
    new = _rotary(own)
    if not _is_same(own, new):
        return
    new.__sol__ = True  # type: ignore[attr-defined]
    setattr(home, _ROPE, new)
    patched.add(name, _ROPE, "rope", lambda: setattr(home, _ROPE, own))


# ---- loss ----


def _causal_loss(logits: Any, labels: Any, vocab_size: int, num_items_in_batch: Any = None, ignore_index: int = -100,
                 shift_labels: Any = None, **_: Any) -> Any:
    """As Hugging Face computes it for language models: the label of a token is the next token."""
    from . import torch as sol_torch

    if shift_labels is None:
        shift_labels = torch.nn.functional.pad(labels, (0, 1), value=ignore_index)[..., 1:]
    reduction = "mean" if num_items_in_batch is None else "sum"
    loss = sol_torch.cross_entropy(logits, shift_labels.to(logits.device), ignore_index=ignore_index, reduction=reduction)
    return loss if num_items_in_batch is None else loss / num_items_in_batch


def _patch_loss(model: Any, patched: Patched) -> None:
    own = getattr(model, "loss_function", None)
    if getattr(own, "__name__", "") != "ForCausalLMLoss":
        return
    model.loss_function = _causal_loss
    patched.add("model", "ForCausalLMLoss", "cross_entropy", lambda: setattr(model, "loss_function", own))


def _undo_forward(module: Any) -> Callable[[], None]:
    return lambda: module.__dict__.pop("forward", None)


def patch(model: Any, *, rope: bool = True, loss: bool = True) -> Patched:
    """Sol's operators in place of the norms, activations, rotary embedding and loss of well-known classes.

    Known are the classes of Hugging Face's Llama, Mistral, Mixtral, Qwen, Phi-3, Gemma, Granite, OLMo, DeepSeek and T5 families, by name, and
    torch.nn's RMSNorm, LayerNorm and GELU (tanh). Gives a ``Patched``, which tells what was replaced and can undo it. The rotary
    embedding is a function of the module that defines the model, so other models of that module get it too.
    """
    patched = Patched()
    for name, module in model.named_modules():
        found = None if "forward" in module.__dict__ else _known(module)
        if found:
            module.forward = types.MethodType(found[1], module)
            patched.add(name or "model", type(module).__name__, found[0], _undo_forward(module))
        if rope:
            _patch_rope(module, patched)
    if loss:
        _patch_loss(model, patched)
    return patched
