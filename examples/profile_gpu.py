#!/usr/bin/env python3
"""Measures kernels of this machine with PyTorch, for `--cost-model kernels:FILE` of Orrery.

Products of matrices, those of experts, fused attention, element-wise kernels, and a layer of a
transformer, forward and backward: the CSV that docs/kernels.md describes. Each kernel is timed
twice: in a burst, after a pause, and sustained, in a long loop, in which power lowers the clocks
as it does in training; `seconds` are the sustained ones. Operands take turns, so that caches do
not hold them.
Where CUDA is, calls are captured in a graph, so that the host's launches are no part of the times.

Takes some 7 minutes with CUDA; --quick some 3; --like as long as the file has rows, a second each.
"""

import argparse
import contextlib
import csv
import datetime
import io
import os
import platform
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as functional
except ImportError:
    sys.exit("profile_gpu.py: PyTorch is not installed; wanted it, as `pip install torch` brings it")

COLUMNS = ["op", "dtype", "shape", "layout", "seconds", "device", "direction", "burst_seconds"]
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
if hasattr(torch, "float8_e4m3fn"):
    DTYPES["f8"] = torch.float8_e4m3fn
ALL_DTYPES = ["bf16", "f16", "f32", "f8"]
LAYOUTS = ["TN", "NN", "NT"]
ATTENTION = {"flash2": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION"}
MOST_BYTES_OF_COPIES = 1 << 29  # more than caches hold


class Unsupported(Exception):
    """What this PyTorch or this device does not have."""


class Timer:
    """Times calls on one device."""

    def __init__(self, device, seconds):
        self.device = torch.device(device)
        self.seconds = seconds
        # Not the default ones: a capture that fails spoils that generator, and what forward left on
        # that stream cannot go on in a captured backward.
        self.generator = torch.Generator(self.device)
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def clock(self, run):
        """Seconds that `run` takes, of the device's clock where it has one."""
        if self.device.type != "cuda":
            start = time.perf_counter()
            run()
            return time.perf_counter() - start
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    def captured(self, calls, count):
        """A function that makes `count` calls, in turn; as one launch where CUDA can."""

        def run():
            for i in range(count):
                calls[i % len(calls)]()

        if self.device.type != "cuda":
            return run
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self.stream):
                run()
            return graph.replay
        except RuntimeError:
            self.wait()
            return run

    def measure(self, calls):
        """Seconds of one call: sustained, and in a burst. Both are medians."""
        for call in calls:
            call()
        self.wait()
        once = self.clock(calls[0])
        for _ in range(3):
            once = min(once, max(self.clock(calls[0]), 1e-7))
        count = max(1, min(200, int(0.004 / once)))
        run = self.captured(calls, count)
        run()
        self.wait()
        bursts = []
        for _ in range(5):
            time.sleep(min(0.05, self.seconds))
            bursts.append(self.clock(run) / count)
        sustained, until = [], time.perf_counter() + self.seconds
        while not sustained or time.perf_counter() < until:
            sustained.append(self.clock(run) / count)
        # Clocks have settled in the second half.
        settled = sustained[len(sustained) // 2 :]
        return statistics.median(settled), statistics.median(bursts)


def rand(timer, dtype, *shape):
    """A tensor of normal numbers: what they are decides how much power products draw."""
    made = torch.randn(*shape, device=timer.device, generator=timer.generator)
    return made.to(DTYPES[dtype])


def copies_of(size):
    """How many sets of operands take turns, of so many bytes each."""
    return max(1, min(16, MOST_BYTES_OF_COPIES // max(size, 1)))


def bytes_of(dtype):
    return torch.empty(0, dtype=DTYPES[dtype]).element_size()


def scaled_product(timer, m, n, k):
    """An 8-bit product; torch wants the second operand as columns."""
    if not hasattr(torch, "_scaled_mm"):
        raise Unsupported("no torch._scaled_mm")
    x, w = rand(timer, "f8", m, k), rand(timer, "f8", n, k)
    one = torch.ones((), device=timer.device)
    return lambda: torch._scaled_mm(x, w.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def product(timer, dtype, layout, batch, m, n, k):
    if dtype == "f8":
        if layout != "TN" or batch != 1:
            raise Unsupported("8-bit products are TN, one at a time")
        return scaled_product(timer, m, n, k)
    lead = () if batch == 1 else (batch,)
    x = rand(timer, dtype, *lead, *((k, m) if layout == "NT" else (m, k)))
    w = rand(timer, dtype, *lead, *((n, k) if layout == "TN" else (k, n)))
    if layout == "NT":
        x = x.transpose(-1, -2)
    if layout == "TN":
        w = w.transpose(-1, -2)
    y = torch.empty(*lead, m, n, device=timer.device, dtype=DTYPES[dtype])
    return lambda: torch.matmul(x, w, out=y)


def measure_matmul(timer, row):
    sizes = sizes_of(row)
    batch, m, n, k = ([1] + sizes)[-4:]
    layout = row["layout"] if row["layout"] in LAYOUTS else "TN"
    size = batch * (m * k + k * n + m * n) * bytes_of(row["dtype"])
    calls = [product(timer, row["dtype"], layout, batch, m, n, k) for _ in range(copies_of(size))]
    return timer.measure(calls)


def measure_grouped(timer, row):
    """A product of each expert, one behind the other, as software has them that calls a library
    for each."""
    experts, m, n, k = sizes_of(row)
    layout = row["layout"] if row["layout"] in LAYOUTS else "TN"
    size = experts * (m * k + k * n + m * n) * bytes_of(row["dtype"])

    def call():
        products = [product(timer, row["dtype"], layout, 1, m, n, k) for _ in range(experts)]
        return lambda: [one() for one in products]

    return timer.measure([call() for _ in range(copies_of(size))])


def measure_attention(timer, row):
    if not hasattr(functional, "scaled_dot_product_attention"):
        raise Unsupported("no scaled_dot_product_attention")
    batch, heads, queries, width, *keys = sizes_of(row)
    keys = keys[0] if keys else queries
    causal, backward = row["layout"] != "all", row["direction"] == "backward"
    if causal and keys != queries:
        raise Unsupported("torch hides the last keys where there are more than queries")

    def call():
        q = rand(timer, row["dtype"], batch, heads, queries, width).requires_grad_(backward)
        k, v = (
            rand(timer, row["dtype"], batch, heads, keys, width).requires_grad_(backward)
            for _ in range(2)
        )

        def forward():
            return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        if not backward:
            return forward
        y = forward()
        dy = rand(timer, row["dtype"], *y.shape)
        return lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

    size = 2 * batch * heads * (queries + keys) * width * bytes_of(row["dtype"])
    return timer.measure([call() for _ in range(copies_of(2 * size))])


def measure_elementwise(timer, row):
    """A number times all of a tensor: what is read and written, half each."""
    (moved,) = sizes_of(row)
    count = max(1, moved // 2 // bytes_of(row["dtype"]))

    def call():
        x = rand(timer, row["dtype"], count)
        y = torch.empty_like(x)
        return lambda: torch.mul(x, 2, out=y)

    return timer.measure([call() for _ in range(copies_of(moved))])


class Layer(torch.nn.Module):
    """Norm, attention, norm, two products with a GELU between: GPT-2's."""

    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(hidden) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, ffn), torch.nn.Linear(ffn, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, seq, 3, self.heads, -1).unbind(2)
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, seq, hidden))
        return x + self.down(functional.gelu(self.up(self.norms[1](x))))


def measure_layer(timer, row):
    if not hasattr(functional, "scaled_dot_product_attention"):
        raise Unsupported("no scaled_dot_product_attention")
    batch, seq, hidden, heads, ffn = sizes_of(row)
    layer = Layer(hidden, heads, ffn).to(timer.device, DTYPES[row["dtype"]])
    x = rand(timer, row["dtype"], batch, seq, hidden).requires_grad_()
    if row["direction"] != "backward":
        return timer.measure([lambda: layer(x)])
    y = layer(x)
    dy, inputs = rand(timer, row["dtype"], *y.shape), [x, *layer.parameters()]
    return timer.measure([lambda: torch.autograd.grad(y, inputs, dy, retain_graph=True)])


MEASURE = {
    "matmul": measure_matmul,
    "grouped": measure_grouped,
    "attention": measure_attention,
    "elementwise": measure_elementwise,
    "layer": measure_layer,
}


def sizes_of(row):
    return [int(size) for size in row["shape"].replace(",", "x").split("x")]


def row_of(op, dtype, shape, layout="", direction=""):
    text = "x".join(str(size) for size in shape)
    return {"op": op, "dtype": dtype, "shape": text, "layout": layout, "direction": direction}


def sweep(dtypes, quick, layer):
    """Sizes a factor of 4 apart: none between is more than a factor of 2 from one of them."""
    sides = [1024, 4096, 16384] if quick else [256, 1024, 4096, 16384]
    rows = []
    for dtype in dtypes:
        # What a wide type takes is hours, and says nothing that smaller sizes do not.
        fitting = [side for side in sides if dtype != "f32" or side <= 4096]
        for m in fitting:
            for n in fitting:
                for k in fitting:
                    for layout in LAYOUTS if dtype != "f8" else LAYOUTS[:1]:
                        rows.append(row_of("matmul", dtype, (m, n, k), layout))
    halves = [dtype for dtype in dtypes if dtype in ("bf16", "f16")] or dtypes[:1]
    for dtype in halves:
        for heads in (8, 32) if quick else (4, 16, 64):
            for queries in (1024, 4096) if quick else (512, 2048, 8192):
                for width in (128,) if quick else (64, 128):
                    for direction in ("forward", "backward"):
                        for layout in ("causal", "all"):
                            shape = (1, heads, queries, width)
                            rows.append(row_of("attention", dtype, shape, layout, direction))
    for power in range(14, 32, 2):
        rows.append(row_of("elementwise", halves[0], (1 << power,)))
    for direction in ("forward", "backward"):
        rows.append(row_of("layer", halves[0], layer, "", direction))
    return rows


def rows_like(path):
    """The kernels of a file of this format, each once, without its times."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip() and not line.startswith("#")]
    rows, seen = [], set()
    for read in csv.DictReader(lines):
        row = {key: (read.get(key) or "").strip() for key in COLUMNS[:4] + ["direction"]}
        if row["op"] not in MEASURE:
            wanted = ", ".join(MEASURE)
            sys.exit(f"profile_gpu.py: {path}: got op '{row['op']}'; wanted one of {wanted}")
        if tuple(row.values()) not in seen:
            seen.add(tuple(row.values()))
            rows.append(row)
    return rows


def machine(device):
    """What stands at the head of the file, as comments."""
    lines = [f"date {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"]
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        lines.append(f"device {properties.name}, {properties.total_memory >> 30} GiB")
        lines.append(f"CUDA {torch.version.cuda}, driver {driver()}")
    else:
        lines.append(f"device {device.type} {platform.processor() or platform.machine()}")
    lines.append(f"torch {torch.__version__}, Python {platform.python_version()}")
    return lines


def driver():
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            return version_in(file.readline())
    except OSError:
        return "unknown"


def version_in(line):
    """Of "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"."""
    return next((word for word in line.split() if word[0].isdigit()), "unknown")


def attention_by(name):
    """A context in which attention is by these kernels alone."""
    if name == "default":
        return contextlib.nullcontext()
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel([getattr(SDPBackend, ATTENTION[name])])
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"--attention {name} wants a newer PyTorch") from error


def measure_all(timer, rows, device_name, attention, notes):
    measured, refused = [], {}
    for i, row in enumerate(rows):
        name = " ".join(row[key] for key in ("op", "dtype", "shape", "layout", "direction"))
        if sys.stderr.isatty():
            print(f"\r{i + 1}/{len(rows)} {name:60}", end="", file=sys.stderr, flush=True)
        try:
            if row["dtype"] not in DTYPES:
                raise Unsupported(f"no type {row['dtype']}")
            by = attention if row["op"] in ("attention", "layer") else "default"
            with torch.cuda.stream(timer.stream), attention_by(by):
                sustained, burst = MEASURE[row["op"]](timer, row)
        except (Unsupported, RuntimeError) as error:  # out of memory is one, too
            reason = (str(error).splitlines() or ["no reason given"])[0][:100]
            refused.setdefault((row["op"], row["dtype"], reason), []).append(row["shape"])
            continue
        figures = {"seconds": f"{sustained:.6g}", "burst_seconds": f"{burst:.6g}"}
        measured.append({**row, **figures, "device": device_name})
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for (op, dtype, reason), shapes in refused.items():
        notes.append(f"not measured: {len(shapes)} of {op} {dtype}: {reason}")
    return measured


def text_of(notes, rows):
    text = io.StringIO()
    for note in notes:
        print("#", note, file=text)
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_whole(path, text):
    """The file whole or not at all."""
    if path == "-":
        sys.stdout.write(text)
        return
    half = f"{path}.{os.getpid()}.tmp"
    try:
        with open(half, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(half, path)
    finally:
        if os.path.exists(half):
            os.remove(half)


def flags():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="-", help="file to write, whole or not at all [- prints]")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu [cuda]")
    parser.add_argument("--name", default="",
                        help="the device as Orrery calls it, h100-80gb, for the column `device`; a "
                        "row without is of any device [none]")
    parser.add_argument("--dtypes", default="bf16,f32,f8",
                        help="of " + ",".join(ALL_DTYPES) + " [bf16,f32,f8]; f16 runs as bf16 does")
    parser.add_argument("--attention", choices=["default", *ATTENTION], default="default",
                        help="whose attention: FlashAttention 2's or cuDNN's [PyTorch's choice]")
    parser.add_argument("--like", help="measure the kernels of this file of the same format, as "
                        "`kernel --model … --csv FILE` writes it, in place of the sweep")
    parser.add_argument("--layer", default="1x4096x4096x32x16384",
                        help="batch, sequence, hidden, heads, ffn of the layer")
    parser.add_argument("--quick", action="store_true", help="a coarser sweep")
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="how long each kernel is kept running [0.5]")
    return parser.parse_args()


def main():
    args = flags()
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("profile_gpu.py: no CUDA device is there; wanted one, or --device cpu")
    dtypes = args.dtypes.split(",")
    for dtype in dtypes:
        if dtype not in ALL_DTYPES:
            sys.exit(f"profile_gpu.py: --dtypes '{dtype}': wanted some of {','.join(ALL_DTYPES)}")
    timer = Timer(device, max(args.seconds, 0.0))
    notes = machine(device)
    notes.append(f"attention {args.attention}")
    notes.append(f"seconds: sustained, over {args.seconds:g} s; burst_seconds: after a pause")
    layer = sizes_of({"shape": args.layer})
    rows = rows_like(args.like) if args.like else sweep(dtypes, args.quick, layer)
    minutes = len(rows) * (args.seconds + 0.4) / 60
    print(f"profile_gpu.py: {len(rows)} kernels, some {minutes:.1f} minutes", file=sys.stderr)
    measured = measure_all(timer, rows, args.name, args.attention, notes)
    if not measured:
        sys.exit("profile_gpu.py: nothing could be measured: " + "; ".join(notes))
    write_whole(args.out, text_of(notes, measured))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("\nprofile_gpu.py: stopped; nothing was written", file=sys.stderr)
        sys.exit(130)
