# A PyTorch script for `sol profile`: eager, or compiled. usage: torch_mix.py [compile]
import sys

import torch

x = torch.randn(8192, 8192, device="cuda")
w = torch.randn(8192, device="cuda")


def f(x):
    return torch.nn.functional.rms_norm(torch.nn.functional.gelu(x), (8192,), w)


g = torch.compile(f) if "compile" in sys.argv else f
for _ in range(4):
    y = g(x)
torch.cuda.synchronize()
print(f"sum {float(y.double().abs().sum()):.6g}")
