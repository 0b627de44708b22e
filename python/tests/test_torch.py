import re
import struct
import subprocess
import sys
import types
import unittest
from unittest import mock

import common
import sol

try:
    import torch
    from torch import nn
except ImportError:
    torch = None

if torch is not None:
    import sol.torch as st
    from sol import _torch_native

    torch.manual_seed(3)
    DTYPES = (torch.float32, torch.float16, torch.bfloat16)
    TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def random(*shape, dtype=None):
    return torch.randn(*shape).to(dtype or torch.float32)


def cases(dtype):
    """(operator, inputs) with rows that are strided, batched and odd."""
    x, w, b = random(3, 5, 48, dtype=dtype), random(48), random(48)
    gate, up = random(2, 7, 96, dtype=dtype).chunk(2, -1)
    heads = random(2, 4, 6, 32, dtype=dtype).transpose(1, 2)  # (batch, tokens, heads, size), as attention has it
    cos, sin = random(2, 6, 16), random(2, 6, 16)
    return [
        ("rmsnorm", (x, w.to(dtype), 1e-5, 1.0)), ("rmsnorm", (x[:, 1:, :47], None, 1e-6, 0.0)), ("rmsnorm", (x.transpose(0, 1), w, 1e-6, 0.0)),
        ("add_rmsnorm", (x, random(3, 5, 48, dtype=dtype), w, 1e-6, 0.0)), ("layernorm", (x, w, b, 1e-5)),
        ("layernorm", (x, None, None, 1e-5)), ("softmax", (x,)), ("log_softmax", (x[..., :33],)), ("silu_mul", (gate, up)),
        ("bias_gelu", (x, b.to(dtype))), ("bias_gelu", (x, None)), ("rope", (heads, cos, sin, False)), ("rope", (heads, cos, sin, True)),
        ("rope", (random(6, 4, 40, dtype=dtype), random(6, 8), random(6, 8), False)),
        ("embedding", (random(11, 24, dtype=dtype), torch.randint(0, 11, (2, 3)))),
        ("gated_mul", (gate, up, "gelu")), ("gated_mul", (x, x + 1, "relu")),
        ("cross_entropy", (x, torch.tensor([[1, 47, -1, 0, 48]] * 3))), ("cross_entropy", (x[..., :33], torch.tensor([[32, 0, 5, -100, 7]] * 3))),
    ]


def attention_cases(dtype):
    """(batch, tokens, heads, D): parts of one projection, groups of heads that share a key, more keys than queries."""
    q, k, v = random(2, 5, 3 * 4 * 64, dtype=dtype).view(2, 5, 12, 64).split(4, 2)
    return [(q, k, v, True, 0.0), (q, random(2, 9, 2, 64, dtype=dtype), random(2, 9, 2, 64, dtype=dtype), True, 0.5),
            (q.transpose(1, 2).contiguous().transpose(1, 2), k, v, False, 0.0)]


def both(value):
    return value if isinstance(value, tuple) else (value,)


@unittest.skipIf(torch is None, "torch is not installed")
class Case(unittest.TestCase):
    def near(self, actual, expected, tolerance, what=""):
        for a, e in zip(both(actual), both(expected), strict=True):
            self.assertEqual((a.shape, a.dtype), (e.shape, e.dtype), what)
            torch.testing.assert_close(a.float(), e.float(), rtol=tolerance, atol=tolerance, msg=lambda text: f"{what}: {text}")


class Operators(Case):
    def test_layouts(self):
        """What struct.pack writes is as long as the C structure, by the list that the ABI test makes."""
        try:
            text = subprocess.run([sys.executable, "scripts/abi.py"], cwd=common.TREE, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("scripts/abi.py needs a C compiler")
        sizes = dict(re.findall(r"^struct (\w+) (\d+) bytes$", text, re.M))
        names = {"log_softmax": "SolSoftmax", "bias_gelu": "SolBias"}
        for name, layout in _torch_native.LAYOUTS.items():
            kind = names.get(name, "Sol" + name.title().replace("_", ""))
            self.assertEqual(struct.calcsize("@" + layout), int(sizes[kind]), kind)

    def test_results(self):
        """libsol's against torch's formulas, the quick way and the other."""
        for dtype in DTYPES:
            given = cases(dtype) + [("attention", inputs) for inputs in attention_cases(dtype) if dtype != torch.float32]
            for name, inputs in given:
                operator, operation = st._OPERATORS[name], _torch_native.OPERATIONS[name]
                expected = operator.formula(*inputs)
                self.near(operator.native(*inputs), expected, TOLERANCE[dtype], name)
                with mock.patch.object(operation, "quick", _torch_native._refused):
                    self.near(operator.native(*inputs), expected, TOLERANCE[dtype], name)

    def test_registered(self):
        """torch.ops calls the library, not the formula."""
        for name, inputs in cases(torch.float32):
            operation = _torch_native.OPERATIONS[name]
            with mock.patch.object(operation, "quick", side_effect=operation.quick) as quick:
                found = getattr(torch.ops.sol, name)(*inputs)
            self.assertEqual(quick.call_count, 1)
            self.near(found, st._OPERATORS[name].native(*inputs), 0, name)

    @unittest.skipUnless(hasattr(torch.Tensor if torch else None, "__dlpack_c_exchange_api__"), "torch is older than 2.10")
    def test_quick(self):
        """Dense tensors do not take the slow way; what the library refuses there leaves no exception behind."""
        for name, inputs in cases(torch.bfloat16):
            if all(v.is_contiguous() for v in inputs if isinstance(v, torch.Tensor)):
                st._OPERATORS[name].native(*inputs)  # makes the context
                with mock.patch.object(_torch_native.Operation, "__call__", side_effect=AssertionError("slow")):
                    st._OPERATORS[name].native(*inputs)
        x, quick = random(2, 8), _torch_native.OPERATIONS["rmsnorm"].quick
        good = (torch.empty(2, 8), x, None, 1e-6, 0.0)
        self.assertEqual(quick(*good), 0)
        for i, wrong in ((0, None), (1, 3), (1, "x"), (1, x.double()), (2, torch.ones(3)), (3, "eps"), (0, torch.empty(2, 9))):
            self.assertNotEqual(quick(*good[:i], wrong, *good[i + 1 :]), 0)
        self.assertNotEqual(quick(*good[:-1]), 0)
        self.assertNotEqual(quick(), 0)

    def test_public_functions(self):
        x, w = random(4, 64), random(64)
        self.near(st.rmsnorm(x, w, eps=1e-5), st._rmsnorm(x, w, 1e-5, 0.0), 1e-5)
        self.near(st.layernorm(x), nn.functional.layer_norm(x, (64,)), 1e-5)
        self.near(st.softmax(x), x.softmax(-1), 1e-5)
        self.near(st.silu_mul(x, x + 1), nn.functional.silu(x) * (x + 1), 1e-5)
        self.near(st.embedding(x, torch.tensor([3, 0], dtype=torch.int32)), x[[3, 0]], 0)
        target = torch.tensor([1, -100, 63, 0])
        for options in ({}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 63}):
            known = target if "ignore_index" not in options else target.clamp(0)
            self.near(st.cross_entropy(x, known, **options), nn.functional.cross_entropy(x, known, **options), 1e-5)
        q, k = random(2, 4, 5, 64).half(), random(2, 2, 5, 64).half()
        expected = nn.functional.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
        self.near(st.attention(q, k, k, is_causal=True), expected, 2e-3)
        self.near(st.attention(q[..., :8], k[..., :8], k[..., :8], scale=0.3),
                  nn.functional.scaled_dot_product_attention(q[..., :8], k[..., :8], k[..., :8], scale=0.3, enable_gqa=True), 2e-3)

    def test_cross_entropy_gradient(self):
        """By the library's kernel, with rows that count differently."""
        x, target, weight = random(3, 5, 33), torch.randint(-1, 33, (3, 5)), random(3, 5)
        found = []
        for function in (st.cross_entropy, nn.functional.cross_entropy):
            logits = x.clone().requires_grad_()
            rows = function(logits, target, ignore_index=-1, reduction="none") if function is st.cross_entropy else function(
                logits.flatten(0, 1), target.flatten(), ignore_index=-1, reduction="none").view(3, 5)
            (rows * weight).sum().backward()
            found.append(logits.grad)
        self.near(found[0], found[1], 1e-6)

    def test_other_types_take_the_formula(self):
        x = torch.randn(3, 8, dtype=torch.float64)
        self.near(st.softmax(x), st._softmax(x), 0)
        self.assertEqual(st.rmsnorm(torch.empty(2, 8, device="meta")).device.type, "meta")

    def test_no_rows(self):
        for x in (torch.zeros(0, 8), torch.zeros(3, 0)):
            self.assertEqual(st.softmax(x).shape, x.shape)
        self.assertEqual(st.rmsnorm(torch.ones(8).expand(3, 8)).shape, (3, 8))  # a stride of zero

    def test_what_is_refused(self):
        with self.assertRaisesRegex(sol.ArgumentError, "rows have 8 elements and the weight 4"):
            st.rmsnorm(torch.zeros(2, 8), torch.ones(4))
        with self.assertRaisesRegex(sol.ArgumentError, "silu_mul: .*must be alike"):
            st.silu_mul(torch.zeros(2, 8), torch.zeros(2, 4))
        with self.assertRaisesRegex(sol.ArgumentError, "rope: 6 tokens"):
            st.rope(torch.zeros(6, 2, 8), torch.zeros(5, 4), torch.zeros(5, 4))
        with self.assertRaisesRegex(sol.ArgumentError, "ids are torch.float32"):
            st.embedding(torch.zeros(4, 8), torch.zeros(2))
        with self.assertRaisesRegex(sol.ArgumentError, "the weight is torch.int64"):
            st.rmsnorm(torch.zeros(2, 8), torch.ones(8, dtype=torch.int64))
        with self.assertRaisesRegex(sol.ArgumentError, "targets have all axes but the last"):
            st.cross_entropy(torch.zeros(2, 8), torch.zeros(3, dtype=torch.int64))
        with self.assertRaisesRegex(sol.ArgumentError, "gelu, relu, sigmoid, silu"):
            st.gated_mul(torch.zeros(2, 8), torch.zeros(2, 8), "tanh")
        with self.assertRaisesRegex(sol.ArgumentError, "do not fit together"):
            st.attention(*(torch.zeros(1, h, 2, 64).half() for h in (3, 2, 2)))
        with self.assertRaisesRegex(sol.ArgumentError, "rmsnorm: tensors are on cpu and meta"):
            st.rmsnorm(torch.zeros(2, 8), torch.ones(8, device="meta"))
        with self.assertRaises((RuntimeError, TypeError)):
            st.rmsnorm([1.0, 2.0])


class Registered(Case):
    def test_gradients(self):
        for name, inputs in cases(torch.float32):
            real = [i for i, v in enumerate(inputs) if isinstance(v, torch.Tensor) and v.is_floating_point()]
            found = []
            for function in (getattr(torch.ops.sol, name), getattr(st, "_" + name)):
                given = list(inputs)
                for i in real:
                    given[i] = inputs[i].detach().clone().requires_grad_()
                out = both(function(*given))
                sum((o * torch.arange(o.numel()).reshape(o.shape)).sum() for o in out).backward()
                found.append(tuple(given[i].grad for i in real))
            self.near(found[0], found[1], 1e-4, name)

    def test_opcheck(self):
        """torch's own test of registrations: schema, fake tensors, autograd, and tracing by AOTAutograd."""
        for name, inputs in dict(cases(torch.float32)).items():  # one case of each: torch traces them all again
            given = [v.detach().clone().requires_grad_() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
            torch.library.opcheck(getattr(torch.ops.sol, name).default, tuple(given))

    def test_compiled_without_breaks(self):
        def block(x, residual, w):
            y, s = st.add_rmsnorm(x, residual, w)
            return st.silu_mul(y, s) + st.softmax(x)

        compiled = torch.compile(block, backend="aot_eager", fullgraph=True)
        x, r, w = random(4, 32), random(4, 32), random(32)
        self.near(compiled(x, r, w), block(x, r, w), 1e-6)
        given = [v.clone().requires_grad_() for v in (x, r, w)]
        compiled(*given).sum().backward()
        again = [v.clone().requires_grad_() for v in (x, r, w)]
        block(*again).sum().backward()
        self.near(tuple(v.grad for v in given), tuple(v.grad for v in again), 1e-5)

    def test_functorch_takes_the_formula(self):
        x = random(3, 4, 16)
        self.near(torch.func.vmap(st._softmax)(x), st.softmax(x), 1e-6)


if torch is not None:
    # A model as Hugging Face writes them: the names of classes and attributes are what patch goes by.
    class LlamaRMSNorm(nn.Module):
        def __init__(self, size, eps=1e-6):
            super().__init__()
            self.weight, self.variance_epsilon = nn.Parameter(1 + 0.1 * torch.randn(size)), eps

        def forward(self, x):
            return st._rmsnorm(x, self.weight, self.variance_epsilon, 0.0)

    class GemmaRMSNorm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight, self.eps = nn.Parameter(torch.randn(size)), 1e-6

        def forward(self, x):
            return st._rmsnorm(x, self.weight, self.eps, 1.0)

    class LlamaMLP(nn.Module):
        def __init__(self, size, act=None):
            super().__init__()
            self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(size, size, bias=False) for _ in range(3))
            self.act_fn = act or nn.SiLU()

        def forward(self, x):
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    class GemmaMLP(LlamaMLP):
        pass

    def rotate_half(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def apply_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
        cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
        return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)

    class LlamaAttention(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.qkv = nn.Linear(size, 3 * size, bias=False)

        def forward(self, x):
            b, t, n = x.shape
            q, k, v = (part.view(b, t, 4, n // 4).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            angle = torch.outer(torch.arange(t), torch.arange(1, n // 8 + 1) / 7.0)
            table = torch.cat((angle, angle), -1).expand(b, t, n // 4)
            q, k = apply_rotary_pos_emb(q, k, table.cos(), table.sin())
            return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, n)

    def ForCausalLMLoss(logits, labels, vocab_size, **_):
        return nn.functional.cross_entropy(logits[..., :-1, :].reshape(-1, vocab_size), labels[..., 1:].reshape(-1))

    class Llama(nn.Module):
        def __init__(self, size=64):
            super().__init__()
            self.embed, self.norm, self.attention, self.mlp = nn.Embedding(32, size), LlamaRMSNorm(size), LlamaAttention(size), LlamaMLP(size)
            self.last, self.plain, self.act = GemmaRMSNorm(size), nn.LayerNorm(size), nn.GELU(approximate="tanh")
            self.gelu, self.other, self.head = GemmaMLP(size, nn.GELU(approximate="tanh")), LlamaMLP(size, nn.ReLU()), nn.Linear(size, 32, bias=False)
            self.loss_function = ForCausalLMLoss

        def forward(self, ids, labels=None):
            x = self.embed(ids)
            x = x + self.attention(self.norm(x))
            x = x + self.mlp(self.plain(x)) + self.other(x) + self.gelu(x)
            logits = self.head(self.act(self.last(x)))
            return logits if labels is None else self.loss_function(logits, labels, 32)


class Patch(Case):
    def setUp(self):
        self.module = sys.modules[type(self).__module__]
        self.model, self.ids = Llama().eval(), torch.randint(0, 32, (2, 9))

    def test_same_logits(self):
        before, loss = self.model(self.ids), self.model(self.ids, self.ids)
        own = apply_rotary_pos_emb
        patched = st.patch(self.model)
        self.addCleanup(patched.undo)
        self.assertIsNot(self.module.apply_rotary_pos_emb, own)
        self.near(self.model(self.ids), before, 1e-5)
        self.near(self.model(self.ids, self.ids), loss, 1e-5)
        names = {(where, now) for where, _, now in patched.replaced}
        self.assertEqual(names, {
            ("norm", "rmsnorm"), ("last", "rmsnorm, weight + 1"), ("mlp", "silu_mul"), ("plain", "layernorm"), ("act", "bias_gelu"),
            ("gelu", "gated_mul, gelu"), ("gelu.act_fn", "bias_gelu"), (type(self).__module__, "rope"), ("model", "cross_entropy")})  # mlp with another activation is left alone
        self.assertIn("1 x LlamaMLP -> silu_mul", str(patched))
        self.assertEqual(len(st.patch(self.model)), 0)  # once is enough
        patched.undo()
        self.assertIs(self.module.apply_rotary_pos_emb, own)
        self.assertFalse(any("forward" in m.__dict__ for m in self.model.modules()))
        self.assertTrue(torch.equal(self.model(self.ids), before))

    def test_operators_are_called(self):
        patched = st.patch(self.model, loss=False)
        self.addCleanup(patched.undo)
        with mock.patch.dict(st._quick, {"rope": mock.Mock(side_effect=st._quick["rope"])}), torch.no_grad():
            self.model(self.ids)
            rope = st._quick["rope"]
        self.assertEqual(rope.call_count, 2)

    def test_training(self):
        grads = []
        for patched in (False, True):
            undo = st.patch(self.model).undo if patched else lambda: None
            self.model.zero_grad()
            self.model(self.ids, self.ids).backward()
            grads.append(tuple(p.grad.clone() for p in self.model.parameters()))
            undo()
        self.near(grads[1], grads[0], 1e-4)

    def test_other_rotations_are_left_alone(self):
        """The same names, but neighbours are the pairs (as in Cohere's and GLM's models)."""

        def neighbours(x):
            return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

        with mock.patch.object(self.module, "rotate_half", neighbours):
            patched = st.patch(self.model)
            self.addCleanup(patched.undo)
        self.assertNotIn("rope", {now for _, _, now in patched.replaced})
        self.assertGreater(len(patched), 0)

    def test_unknown_models(self):
        self.assertIn("nothing was replaced", str(st.patch(nn.Linear(2, 2))))


class Profile(Case):
    def test_by_module(self):
        model, ids = Llama().eval(), torch.randint(0, 32, (2, 9))
        with sol.profile(device="h100", show=False) as found:
            model(ids)
            model(ids)
        rows = {row.name: row for row in found.modules}
        self.assertEqual((rows["Llama"].calls, rows["mlp.gate_proj"].calls, rows["mlp.gate_proj"].kind), (2, 2, "Linear"))
        self.assertEqual(rows["mlp.gate_proj"].bytes, 2 * 4 * (2 * 18 * 64 + 64 * 64))
        self.assertAlmostEqual(sum(row.self_us for row in found.modules), rows["Llama"].time_us, delta=1e-6 * rows["Llama"].time_us)
        self.assertIsNone(rows["Llama"].tax)
        self.assertAlmostEqual(rows["head"].light_us, 1e6 * rows["head"].bytes / sol.devices("h100")[0].mem_bandwidth)
        self.assertIn("mlp.gate_proj (Linear)", str(found))

    def test_an_error_inside(self):
        model = Llama()
        with self.assertRaises(IndexError):
            with sol.profile(show=False) as found:
                model(torch.tensor([[99]]))
        self.assertFalse(nn.modules.module._global_forward_hooks)
        self.assertIsInstance(found.modules, list)

    def test_says_it(self):
        out = types.SimpleNamespace(text="")
        with mock.patch("builtins.print", lambda text: setattr(out, "text", str(text))), sol.profile():
            nn.Linear(4, 4)(torch.zeros(1, 4))
        self.assertIn("1 modules on this machine, measured", out.text)


if __name__ == "__main__":
    unittest.main()
