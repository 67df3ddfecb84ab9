#!/usr/bin/env python3
"""Measures steps of training on one GPU of this machine with PyTorch, for `validate` of Orrery.

Transformers as GPT-2 and Llama have them, as torchtitan runs them: weights and moments in fp32,
FSDP2 over the one device, which computes in bf16, fused AdamW, gradients clipped, the loss in fp32,
attention by FlashAttention 2 or cuDNN; eager, or with each layer and the loss compiled. Writes a
row for each step, as docs/validation.md has them: its time, and the peak of memory.

Takes some 2 minutes; --only takes the rows whose id has this in it.
"""

import argparse
import contextlib
import datetime
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import time

try:
    import torch

    if [int(part) for part in torch.__version__.split(".")[:2]] < [2, 6]:
        raise ImportError(f"PyTorch is {torch.__version__}")  # whose imports below may fail otherwise
    import torch.distributed as dist
    import torch.nn.functional as functional
    from torch import nn
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from profile_gpu import write_whole  # which stands beside this file
except ImportError as error:
    sys.exit(f"measure_steps.py: {error}; wanted PyTorch 2.6 or newer")

# layers, hidden, heads, kv_heads, ffn, vocab, seq
SHAPES = {
    "gpt2-124m": (12, 768, 12, 12, 3072, 50304, 1024),
    "gpt-1.3b": (24, 2048, 16, 16, 8192, 50304, 2048),
    "llama-1b": (16, 2048, 32, 8, 8192, 128256, 4096),
    "llama-3b": (28, 3072, 24, 8, 8192, 128256, 4096),
    "llama-8b-4layers": (4, 4096, 32, 8, 14336, 128256, 8192),
    "llama-8b-8layers": (8, 4096, 32, 8, 14336, 32000, 4096),
    "llama-70b-1layer": (1, 8192, 64, 8, 28672, 32000, 4096),
}

# shape, samples, microbatches, recompute, compiled, attention
ROWS = [
    ("gpt2-124m", 1, 1, "none", False, "flash2"),
    ("gpt2-124m", 16, 1, "none", False, "flash2"),
    ("gpt2-124m", 16, 1, "none", True, "flash2"),
    ("gpt-1.3b", 1, 1, "none", False, "flash2"),
    ("gpt-1.3b", 4, 1, "none", False, "flash2"),
    ("gpt-1.3b", 8, 1, "full", False, "flash2"),
    ("gpt-1.3b", 16, 4, "none", False, "flash2"),
    ("llama-1b", 1, 1, "none", False, "flash2"),
    ("llama-1b", 4, 1, "none", False, "flash2"),
    ("llama-1b", 4, 1, "none", False, "cudnn"),
    ("llama-1b", 4, 1, "none", True, "flash2"),
    ("llama-3b", 1, 1, "none", False, "flash2"),
    ("llama-3b", 2, 1, "full", False, "flash2"),
    ("llama-8b-4layers", 1, 1, "none", False, "flash2"),
    ("llama-8b-4layers", 1, 1, "none", True, "flash2"),
    ("llama-8b-4layers", 2, 1, "full", False, "flash2"),
    ("llama-8b-8layers", 2, 1, "none", False, "flash2"),
    ("llama-8b-8layers", 4, 1, "none", True, "flash2"),
    ("llama-70b-1layer", 1, 1, "none", False, "flash2"),
    ("llama-70b-1layer", 4, 1, "none", False, "flash2"),
]


def rotated(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self, hidden, heads, kv_heads, llama):
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, hidden // heads
        kv, bias = kv_heads * self.width, not llama
        self.q = nn.Linear(hidden, hidden, bias=bias)
        self.k, self.v = nn.Linear(hidden, kv, bias=bias), nn.Linear(hidden, kv, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        if not llama:
            self.q = nn.Linear(hidden, hidden + 2 * kv, bias=bias)
            del self.k, self.v

    def forward(self, x, turns):
        batch, seq, hidden = x.shape
        if turns is None:
            q, k, v = self.q(x).chunk(3, dim=-1)
        else:
            q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (each.view(batch, seq, -1, self.width) for each in (q, k, v))
        if turns is not None:
            q, k = rotated(q, turns), rotated(k, turns)
            groups = self.heads // self.kv_heads
            k, v = (each.repeat_interleave(groups, dim=2) for each in (k, v))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, seq, hidden))


class Mlp(nn.Module):
    def __init__(self, hidden, ffn, llama):
        super().__init__()
        self.up = nn.Linear(hidden, ffn, bias=not llama)
        self.gate = nn.Linear(hidden, ffn, bias=False) if llama else None
        self.down = nn.Linear(ffn, hidden, bias=not llama)

    def forward(self, x):
        if self.gate is None:
            return self.down(functional.gelu(self.up(x)))
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn, llama):
        super().__init__()
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm_1, self.norm_2 = norm(hidden), norm(hidden)
        self.attention = Attention(hidden, heads, kv_heads, llama)
        self.mlp = Mlp(hidden, ffn, llama)

    def forward(self, x, turns):
        x = x + self.attention(self.norm_1(x), turns)
        return x + self.mlp(self.norm_2(x))


class Model(nn.Module):
    def __init__(self, llama, layers, hidden, heads, kv_heads, ffn, vocab, seq):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = None if llama else nn.Embedding(seq, hidden)
        self.layers = nn.ModuleList(
            Layer(hidden, heads, kv_heads, ffn, llama) for _ in range(layers)
        )
        self.norm = (nn.RMSNorm if llama else nn.LayerNorm)(hidden)
        self.head = nn.Linear(hidden, vocab, bias=False)
        if not llama:
            self.head.weight = self.tokens.weight
        for each in self.parameters():
            nn.init.normal_(each, std=0.02)
        angles = torch.outer(
            torch.arange(seq), 1e4 ** -(torch.arange(0, hidden // heads, 2) / (hidden // heads))
        )
        turns = torch.polar(torch.ones_like(angles), angles).view(1, seq, 1, -1)
        self.register_buffer("turns", turns if llama else None, persistent=False)

    def forward(self, x):
        y = self.tokens(x)
        if self.positions is not None:
            y = y + self.positions(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            y = layer(y, self.turns)
        return self.head(self.norm(y))


def shard(model, recompute, compiled):
    """As torchtitan: checkpoints, then the compiler, then FSDP of each layer and of the rest."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, layer in enumerate(model.layers):
        if recompute == "full":
            layer = checkpoint_wrapper(layer)
        if compiled:
            layer = torch.compile(layer, fullgraph=True)
        model.layers[i] = layer
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)


def loss_of(logits, labels):
    return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(0, 1))


class Job:
    """A model in training."""

    def __init__(self, shape, samples, microbatches, recompute, compiled):
        layers, hidden, heads, kv_heads, ffn, vocab, seq = SHAPES[shape]
        with torch.device("cuda"):
            llama = shape.startswith("llama")
            self.model = Model(llama, layers, hidden, heads, kv_heads, ffn, vocab, seq)
        self.parameters = sum(each.numel() for each in self.model.parameters())
        shard(self.model, recompute, compiled)
        self.loss_of = torch.compile(loss_of) if compiled else loss_of
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        micro = samples // microbatches
        draw = [torch.randint(vocab, (micro, seq + 1), device="cuda") for _ in range(microbatches)]
        self.batches = [(each[:, :-1].contiguous(), each[:, 1:].contiguous()) for each in draw]

    def step(self):
        self.optimizer.zero_grad()
        for x, labels in self.batches:
            loss = self.loss_of(self.model(x), labels) / len(self.batches)
            loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()


def time_of(job, seconds):
    """Median seconds of steps that follow each other, without a wait of the host between."""
    for _ in range(3):
        job.step()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True)]
    marks[0].record()
    until = time.perf_counter() + seconds
    while len(marks) < 6 or time.perf_counter() < until:
        job.step()
        marks.append(torch.cuda.Event(enable_timing=True))
        marks[-1].record()
        if len(marks) % 4 == 0:  # else the host runs far ahead
            marks[-2].synchronize()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
    return statistics.median(times[len(times) // 3 :])


def attention_kernels(name):
    backend = {"flash2": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[name]
    return sdpa_kernel([backend])


def id_of(row):
    shape, samples, microbatches, recompute, compiled, attention = row
    words = [shape, f"b{samples}"]
    words += [f"k{microbatches}"] if microbatches > 1 else []
    words += [recompute] if recompute != "none" else []
    words += ["compile"] if compiled else []
    words += [attention] if attention != "flash2" else []
    return "-".join(words)


def row_of(row, device, seconds, allocated, reserved, parameters):
    shape, samples, microbatches, recompute, compiled, attention = row
    layers, hidden, heads, kv_heads, ffn, vocab, seq = SHAPES[shape]
    flags = ["torch.compile" if compiled else "eager", f"attention {attention}"]
    return {
        "id": id_of(row),
        "model": {
            "name": shape,
            "layers": layers,
            "hidden": hidden,
            "heads": heads,
            "kv_heads": kv_heads,
            "ffn": ffn,
            "vocab": vocab,
            "params_b": round(parameters / 1e9, 3),
            "mlp": "swiglu" if shape.startswith("llama") else "gelu",
            "seq": seq,
        },
        "hw": {"gpu": device, "gpus": 1, "nodes": 1, "gpus_per_node": 1},
        "par": {"tp": 1, "pp": 1, "cp": 1, "dp": 1},
        "batch": {
            "global_batch": samples,
            "micro_batch": samples // microbatches,
            "num_microbatches": microbatches,
        },
        "measured": {
            "iter_time_s": round(seconds, 6),
            "memory_gib": round(reserved / 2**30, 3),
            "allocated_gib": round(allocated / 2**30, 3),
        },
        "precision": "bf16",
        "recompute": recompute,
        "flags": " ".join(flags),
        "split": "reference",
    }


def measure(row, device, seconds):
    shape, samples, microbatches, recompute, compiled, attention = row
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with attention_kernels(attention):
        job = Job(shape, samples, microbatches, recompute, compiled)
        took = time_of(job, seconds)
    peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return row_of(row, device, took, peak, reserved, job.parameters)


@contextlib.contextmanager
def one_rank():
    """A process group of this process alone."""
    with tempfile.TemporaryDirectory() as folder:
        store = dist.FileStore(os.path.join(folder, "store"), 1)
        dist.init_process_group("nccl", store=store, rank=0, world_size=1)
        try:
            yield
        finally:
            dist.destroy_process_group()


def flags():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="-", help="file to write [- prints]")
    parser.add_argument("--only", default="", help="rows whose id has this in it [all]")
    parser.add_argument("--seconds", type=float, default=3,
                        help="how long each is kept running [3]")
    return parser.parse_args()


def text_of(found):
    return json.dumps(found, indent=1) + "\n"


def main():
    args = flags()
    rows = [row for row in ROWS if args.only in id_of(row)]
    if not rows:
        names = ", ".join(id_of(row) for row in ROWS)
        sys.exit(f"measure_steps.py: --only '{args.only}' is in none of {names}")
    if not torch.cuda.is_available():
        sys.exit("measure_steps.py: no CUDA device is there; wanted one")
    device = torch.cuda.get_device_properties(0).name
    found = {
        "source": f"torchtitan-like steps of one {device}, by examples/measure_steps.py",
        "how_measured": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}; torch "
        f"{torch.__version__}, CUDA {torch.version.cuda}, Python {platform.python_version()}; "
        f"median of {args.seconds:g} s of steps; memory is what PyTorch's allocator reserved",
        "rows": [],
    }
    torch.backends.cuda.matmul.allow_tf32 = True
    with one_rank():
        for i, row in enumerate(rows):
            print(f"{i + 1}/{len(rows)} {id_of(row)}", end=" ", file=sys.stderr, flush=True)
            start = time.perf_counter()
            try:
                found["rows"].append(measure(row, device, args.seconds))
            except RuntimeError as error:  # out of memory is one, too
                reason = (str(error).splitlines() or ["no reason given"])[0][:150]
                print("not measured:", reason, file=sys.stderr)
                continue
            figures = found["rows"][-1]["measured"]
            print(figures, f"{time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            if args.out != "-":
                write_whole(args.out, text_of(found))
    if not found["rows"]:
        sys.exit("measure_steps.py: nothing could be measured")
    if args.out == "-":
        write_whole(args.out, text_of(found))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nmeasure_steps.py: stopped", file=sys.stderr)
        sys.exit(130)
