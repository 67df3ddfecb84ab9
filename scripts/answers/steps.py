"""Draws random training steps: a model, a cluster, and how the one is spread over the other.

Degrees, layers and microbatches are drawn so that they mostly fit each other.
"""

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

# Stages that a rank holds with each pipeline schedule.
SCHEDULES = {
    "1f1b": 1, "gpipe": 1, "zb-h1": 1, "zb-h2": 1, "zb-1p": 1, "distir": 1, "pipedream": 1,
    "pipedream-2bw": 1, "pipemare": 1, "ampnet": 1, "terapipe": 1, "interleaved": 2, "looped-bfs": 2,
    "interleaved-zero-bubble": 2, "zbv": 2, "zbv-auto": 2, "v-half": 2, "v-min": 2, "1f1b-v": 2,
    "dualpipe": 2, "dualpipe-v": 2, "chimera": 2,
}  # fmt: skip
CHUNKS_ARE_A_CHOICE = ("interleaved", "looped-bfs", "interleaved-zero-bubble")

# Clusters, with how many of their devices are used at most.
CLUSTERS = (
    ("uniform:4@200Gbps", 4), ("uniform:8@200Gbps,device=a100-80gb", 8), ("uniform:16@25GB/s", 16),
    ("dgx-a100:1", 8), ("dgx-a100:2", 16), ("dgx-a100:4", 32), ("dgx-h100:1", 8),
    ("dgx-h100:2", 16), ("dgx-h100:2,nic=hdr,oversubscription=2", 16), ("dgx-v100:2", 16),
    ("dgx-b200:1,ideal-collectives", 8), ("gb200-nvl72:1", 8), ("aws-p4de:2", 16),
    ("mi250x:1", 8), ("mi300x:2", 16), ("tpu-v4:2x2x2", 8), ("tpu-v5e:4", 16),
    ("pcie-workstation:2", 8), ("ring:8@50GB/s,latency=500ns", 8), ("torus:4x4@50GB/s", 16),
    ("switch:8@400GB/s,reduces", 8), ("switch:16@100gbe,device=h100-80gb-pcie", 16),
    ("nodes:2x4@450GB/s,nic=50GB/s,device=a100-80gb", 8),
    ("nodes:2x4@450GB/s,nic=50GB/s,nics=2,host=63GB/s", 8),
    ("rails:2x8@450GB/s,nic=50GB/s,oversubscription=2", 16),
    ("fat-tree:16@50GB/s,radix=8,oversubscription=2", 16), ("dragonfly:2x2x4@25GB/s", 16),
    ("fully-connected:4@50GB/s+1us", 4), ("mesh:2x4@50GB/s", 8),
    ("product:ring(4)@100GB/s,switch(4)@50GB/s,device=h100-80gb", 16),
    ("examples/clusters/two_nodes_shared_nics.textproto", 8),
    ("examples/clusters/pcie_tree.textproto", 4), ("examples/clusters/ring_of_switches.json", 8),
)  # fmt: skip

# Files, with the batch that suits them, and a dimension without a value.
FILES = (
    ("examples/models/mlp_64x512.onnx", 64, ""), ("examples/models/gpt2_small.onnx", 16, ""),
    ("examples/models/bert_base.onnx", 16, ""), ("examples/models/llama_4layer.onnx", 16, ""),
    ("examples/models/resnet50.onnx", 32, ""), ("tests/data/models/light_vgg19.onnx", 16, ""),
    ("tests/data/models/light_squeezenet.onnx", 16, ""),
    ("tests/data/models/gpt2_small_dynamic.onnx", 16, "batch"), ("net.orr", 16, ""),
)  # fmt: skip

NET = """func @net (
  %x: f32[16,32] data,
  %w0: f32[32,64] parameter,
  %b0: f32[64] parameter,
  %w1: f32[64,32] parameter
) {
  %h: f32[16,64] = MatMul(%x, %w0)
  %a: f32[16,64] = Add(%h, %b0)
  %r: f32[16,64] = Relu(%a)
  %y: f32[16,32] = MatMul(%r, %w1)
  return %y: result
}
"""

# What an op of layer {} is called, and some of what its forward makes, as regular expressions.
NAMES = {
    "gpt": ("h[.]({})[.]", "ln_|attn.core|mlp"), "mlp": ("y({})$", "^a|^y"),
    "bert": ("layer[.]({})[.]", "norm|mlp"), "resnet": ("layer({})[.]0[.]", "bn|conv"),
    "lstm": ("lstm[.]({})$", "by_time|lstm"), "file": ("({})", "/"),
}  # fmt: skip

T = TypeVar("T")


class Dice:
    """Random choices; the same seed throws the same."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def one(self, *choices: T) -> T:
        """One of the choices."""
        return self._random.choice(choices)

    def maybe(self, chance: float) -> bool:
        """True in that share of calls."""
        return self._random.random() < chance

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """One to `most` of the choices, each once, in their order."""
        picked = self._random.sample(range(len(choices)), self._random.randint(1, most))
        return [choices[i] for i in sorted(picked)]

    def number(self, least: int, most: int) -> int:
        """A whole number between both, either included."""
        return self._random.randint(least, most)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in another order."""
        return self._random.sample(items, len(items))


@dataclasses.dataclass
class Step:
    """A model on a cluster, and how it is spread."""

    model: str = ""
    family: str = ""
    layers: int = 4
    batch: int = 8
    cluster: str = ""
    symbol: str = ""
    schedule: str = "1f1b"
    microbatches: int = 1
    degrees: dict[str, int] = dataclasses.field(
        default_factory=lambda: dict.fromkeys(("dp", "hp", "pp", "cp", "ep"), 1)
    )

    @property
    def names(self) -> tuple[str, str]:
        """Expressions that find its ops: of a layer, and some of all."""
        return NAMES.get(self.family, NAMES["gpt"])


def keys_of_gpt(dice: Dice) -> list[str]:
    """Keys of a small decoder, but for its layers and experts."""
    heads = dice.one(2, 4, 8)
    keys = [f"hidden={dice.one(64, 128, 256)}", f"heads={heads}", f"seq={dice.one(64, 128, 256)}"]
    keys.append(f"vocab={dice.one(512, 1000, 1024)}")
    if dice.maybe(0.7):
        keys.append("tied_embeddings=0")
    if dice.maybe(0.3):
        keys.append(f"kv_heads={dice.one(heads // 2, heads)}")
    for chance, key in (
        (0.4, "mlp=swiglu"), (0.4, "flash=1"), (0.2, "dropout=0.1"), (0.2, "qkv=packed"),
        (0.1, "norm=rms"), (0.1, "position=rotary"), (0.1, "bias=0"), (0.1, "head_dim=32"),
    ):  # fmt: skip
        if dice.maybe(chance):
            keys.append(key)
    return keys


def draw_gpt(dice: Dice, layers: int) -> str:
    """A decoder: GPT or Llama."""
    return "gpt:" + ",".join([f"layers={layers}", *keys_of_gpt(dice)])


def draw_moe(dice: Dice, layers: int) -> str:
    """A decoder with experts, as Mixtral is."""
    keys = [f"layers={layers}", *keys_of_gpt(dice), f"experts={dice.one(4, 8)}"]
    if dice.maybe(0.5):
        keys.append(f"topk={dice.one(1, 2)}")
    return "gpt:" + ",".join(keys + ["capacity_factor=1.25"] * dice.maybe(0.3))


def draw_preset(dice: Dice, layers: int) -> str:
    """A published model with fewer layers."""
    preset = dice.one("gpt2-small", "gpt3-1.3b", "llama2-7b", "llama3-8b", "megatron-22b")
    return f"{preset}:layers={layers}" + ",seq=512" * dice.maybe(0.5)


def draw_bert(dice: Dice, layers: int) -> str:
    """An encoder."""
    head = dice.one("classify", "words")
    return f"bert:layers={layers},hidden=128,heads=4,seq=64,vocab=1000,head={head}"


def draw_mlp(dice: Dice, layers: int) -> str:
    """A chain of products."""
    return f"mlp:layers={layers},dim={dice.one(64, 256, 1024)}"


def draw_resnet(dice: Dice, layers: int) -> str:
    """A residual convolutional network; its depth is its own."""
    del layers
    return f"resnet:depth={dice.one(18, 34, 50)},image={dice.one(32, 64)},width=32,classes=100"


def draw_lstm(dice: Dice, layers: int) -> str:
    """A recurrent network."""
    return f"lstm:layers={layers},hidden={dice.one(64, 128)},seq=16,vocab=500"


# Each family, and how often it is drawn.
FAMILIES: dict[str, tuple[int, Callable[[Dice, int], str]]] = {
    "gpt": (8, draw_gpt), "mlp": (5, draw_mlp), "moe": (3, draw_moe), "preset": (2, draw_preset),
    "bert": (2, draw_bert), "resnet": (1, draw_resnet), "lstm": (1, draw_lstm),
}  # fmt: skip


def draw_degrees(dice: Dice, step: Step, devices: int) -> None:
    """Splits a power of two of the devices among the axes that suit the family."""
    axes = ["dp"] * 3 + ["hp"] * 3 + ["pp"] * 3
    if step.family in ("gpt", "moe", "preset"):
        axes.append("cp")
    if step.family == "moe":
        axes += ["ep"] * 3
    world = devices if dice.maybe(0.6) else dice.one(1, 2, 4)
    while world > 1:
        axis = dice.one(*axes)
        if step.degrees[axis] < 8:
            step.degrees[axis] *= 2
            world //= 2


def draw_schedule(dice: Dice, step: Step) -> int:
    """Chooses the schedule and the microbatches; returns the stages that a rank holds."""
    names = [name for name in SCHEDULES if name != "terapipe"]
    if step.degrees["pp"] == 1:
        names = ["1f1b", "gpipe"]
    step.schedule = "1f1b" if dice.maybe(0.25) else dice.one(*names)
    if step.family in ("gpt", "preset") and step.degrees["cp"] == 1 and dice.maybe(0.12):
        step.schedule = "terapipe"
    step.microbatches = dice.one(1, 2, 4)
    if step.degrees["pp"] > 1:
        step.microbatches = step.degrees["pp"] * dice.one(1, 2, 2)
    if step.schedule.startswith("dualpipe") and dice.maybe(0.8):
        step.microbatches = 2 * step.degrees["pp"]
    return SCHEDULES[step.schedule]


def draw_step(dice: Dice, most_devices: int = 32) -> Step:
    """A step that mostly can be spread as it says."""
    step = Step()
    pool = [cluster for cluster in CLUSTERS if cluster[1] <= most_devices]
    step.cluster, devices = dice.one(*pool)
    names = [name for name, (weight, _) in FAMILIES.items() for _ in range(weight)]
    step.family = "file" if dice.maybe(0.12) else dice.one(*names)
    draw_degrees(dice, step, min(devices, 8) if step.family == "file" else devices)
    chunks = draw_schedule(dice, step)
    step.layers = max(2, step.degrees["pp"] * chunks * dice.one(1, 1, 2))
    parts = step.degrees["dp"] * step.degrees["ep"]
    slices = step.schedule == "terapipe"
    step.batch = parts * (1 if slices else step.microbatches) * dice.one(1, 2, 4)
    if step.family == "file":
        step.model, least, step.symbol = dice.one(*FILES)
        step.batch = 16 if step.model == "net.orr" else max(step.batch, least)
    else:
        step.model = FAMILIES[step.family][1](dice, step.layers)
    return step
