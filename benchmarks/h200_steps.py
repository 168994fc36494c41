"""Time real training steps of Llama-style decoders on one GPU, one JSON line a configuration.

Run it where there is a GPU and torch; it needs nothing of Tenfold. The stack is the one
that profile `pytorch-compile` describes: bf16 weights and gradients, fp32 master weights
and Adam states, every block compiled by itself, fused attention with repeated key-value
heads, fused AdamW. What does not fit is a row with `"error": "oom"`.
"""

import argparse
import gc
import json
import statistics
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

WARM_STEPS, TIMED_STEPS = 3, 8


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return (wide * scale).to(x.dtype) * self.weight


class Block(nn.Module):
    def __init__(self, c: dict) -> None:
        super().__init__()
        self.heads, self.kv = c["heads"], c["kv"]
        self.dim = c["hidden"] // c["heads"]
        hidden, kv_width = c["hidden"], self.kv * self.dim
        self.norm_1, self.norm_2 = Norm(hidden), Norm(hidden)
        self.q = nn.Linear(hidden, hidden, bias=False)
        self.k = nn.Linear(hidden, kv_width, bias=False)
        self.v = nn.Linear(hidden, kv_width, bias=False)
        self.o = nn.Linear(hidden, hidden, bias=False)
        self.gate = nn.Linear(hidden, c["ffn"], bias=False)
        self.up = nn.Linear(hidden, c["ffn"], bias=False)
        self.down = nn.Linear(c["ffn"], hidden, bias=False)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        batch, seq, _ = x.shape
        y = self.norm_1(x)
        q = self.q(y).view(batch, seq, self.heads, self.dim).transpose(1, 2)
        k = self.k(y).view(batch, seq, self.kv, self.dim).transpose(1, 2)
        v = self.v(y).view(batch, seq, self.kv, self.dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.kv != self.heads:
            k = k.repeat_interleave(self.heads // self.kv, dim=1)
            v = v.repeat_interleave(self.heads // self.kv, dim=1)
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(batch, seq, -1))
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Decoder(nn.Module):
    def __init__(self, c: dict) -> None:
        super().__init__()
        self.c = c
        self.embed = nn.Embedding(c["vocab"], c["hidden"])
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.norm = Norm(c["hidden"])
        self.head = nn.Linear(c["hidden"], c["vocab"], bias=False)

    def prepare(self) -> None:
        dim = self.c["hidden"] // self.c["heads"]
        steps = torch.arange(0, dim, 2, device="cuda").float() / dim
        angles = torch.outer(torch.arange(self.c["seq"], device="cuda").float(), 1e4**-steps)
        angles = torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        for block in self.blocks:
            block.compile()

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            if self.c["recompute"] == "full":
                x = checkpoint(block, x, self.cos, self.sin, use_reentrant=False)
            else:
                x = block(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.view(-1, self.c["vocab"]).float(), targets.view(-1))


class Masters:
    """fp32 copies of the weights with their Adam states; weights stay bf16."""

    def __init__(self, model: nn.Module) -> None:
        self.weights = list(model.parameters())
        self.copies = [p.detach().float().requires_grad_() for p in self.weights]
        self.adam = torch.optim.AdamW(self.copies, lr=1e-4, fused=True)

    def step(self) -> None:
        for copy, weight in zip(self.copies, self.weights, strict=True):
            copy.grad = weight.grad.float()
        self.adam.step()
        with torch.no_grad():
            torch._foreach_copy_(self.weights, self.copies)
        for copy, weight in zip(self.copies, self.weights, strict=True):
            copy.grad = weight.grad = None


def measure(c: dict) -> dict:
    torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Decoder(c).bfloat16()
    model.prepare()
    masters = Masters(model)
    shape = (c["mbs"], c["seq"])
    tokens = torch.randint(c["vocab"], shape, device="cuda")
    targets = torch.randint(c["vocab"], shape, device="cuda")
    times: list[float] = []
    for number in range(WARM_STEPS + TIMED_STEPS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(c["ga"]):
            (model(tokens, targets) / c["ga"]).backward()
        masters.step()
        end.record()
        torch.cuda.synchronize()
        if number >= WARM_STEPS:
            times.append(start.elapsed_time(end))
    return {
        "params": sum(p.numel() for p in masters.weights),
        "step_ms": statistics.median(times),
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("configurations", help="JSON lines: layers hidden heads kv ffn seq mbs ...")
    with open(parser.parse_args().configurations) as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    for row in rows:
        c = {"recompute": "none", "vocab": 32000, "ga": 1, **row}
        try:
            found = measure(c)
        except torch.OutOfMemoryError:
            found = {"error": "oom"}
        print(
            json.dumps(
                {**c, **found, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
            ),
            flush=True,
        )
        torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        print(f"done {c}", file=sys.stderr)


if __name__ == "__main__":
    main()
