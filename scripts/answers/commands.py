"""Draws random command lines of the programs, for scripts/compare_answers.

Each is small enough to run in well under a second, most of them. `draw(count, seed)` returns the
same list for the same arguments; a command depends only on the seed and on its place in the list.
"""

import dataclasses
from collections.abc import Callable, Sequence

from steps import CHUNKS_ARE_A_CHOICE, CLUSTERS, NET, SCHEDULES, Dice, Step, draw_step

PROGRAMS = ("simulate", "grid_search", "schedule", "collective", "redistribute", "opt", "validate")
# Of ten commands by their place in the list, what each is for; the last one takes turns.
TEN = ("simulate", "grid_search") * 2 + ("simulate",) * 4 + ("opt", "turns")
TURNS = ("schedule", "collective", "redistribute", "program", "schedule", "collective",
         "redistribute", "cases", "schedule", "validate")  # fmt: skip
WRONG_SHARE = 0.1  # of simulate and grid_search: made wrong on purpose


@dataclasses.dataclass(frozen=True)
class Command:
    """A program, its flags, and files that have to stand beside it: name and text of each."""

    program: str
    flags: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...] = ()


def flags_of_model(dice: Dice, step: Step) -> list[str]:
    """What the model is and is trained with, on which cluster."""
    flags = ["--model", step.model, "--batch-size", str(step.batch), "--cluster", step.cluster]
    if step.symbol:
        flags += ["--symbol", f"{step.symbol}={step.batch}"]
    return flags + flags_of_training(dice, step)


def flags_of_training(dice: Dice, step: Step) -> list[str]:
    """Types, the optimizer, the loss: now and then."""
    flags: list[str] = []
    if dice.maybe(0.6):
        flags += ["--dtype", dice.one("fp32", "fp16", "bf16", "bf16", "fp8", "fp8-mixed")]
    if dice.maybe(0.3):
        flags += ["--optimizer", dice.one("none", "sgd", "momentum", "adam")]
    if dice.maybe(0.08):
        loss = dice.one("none", "sum", "cross-entropy", "mse")
        if step.model.endswith(".onnx"):  # built-in models have their own
            flags += ["--loss", loss]
    if dice.maybe(0.05):
        flags.append("--no-simplify")
    return flags


# What simulate and grid_search both take: how often, the flag, and its values.
SHARED = (
    (0.06, "--cost-model", ("distir", "roofline")),
    (0.12, "--blocking", ()),
    (0.12, "--no-fold", ()),
    (0.08, "--preset", ("distir",)),
    (0.15, "--sharding", ("megatron", "auto")),
    (0.08, "--memory-limit", ("none", "40GB", "16GB", "100MB", "2MB")),
    (0.1, "--memory-overhead", ("usual", "framework=1GiB", "usual,fragmentation=0.05")),
    (0.2, "--bucket-size", ("none", "1MiB", "100KiB", "100MiB")),
    (0.12, "--algorithm", ("ring", "all-reduce=ring,all-gather=direct", "tree", "direct")),
    (0.06, "--most-unfolded-tasks", ("1", "1000")),
    (0.04, "--shard", ("w0=hp@1", ".*weight$=hp@whole", "mlp=hp@1")),
)  # fmt: skip


def shared_flags(dice: Dice, step: Step) -> list[str]:
    """Flags of the setting, which simulate and grid_search share."""
    flags = []
    for chance, flag, values in SHARED:
        if dice.maybe(chance):
            flags += [flag, dice.one(*values)] if values else [flag]
    if dice.maybe(0.15):
        axes = ["hp", "dp", "pp"] + [axis for axis in ("cp", "ep") if step.degrees[axis] > 1]
        flags += ["--order", ",".join(dice.shuffled(axes))]
    if step.degrees["hp"] > 1 and dice.maybe(0.12):
        flags.append("--sequence-parallel")
    if step.degrees["cp"] > 1 and dice.maybe(0.5):
        ways = ("auto", "all-to-all", "all-gather", "ring")
        flags += ["--context-attention", dice.one(*ways)]
    if dice.maybe(0.3 if step.family == "file" else 0.02):
        flags += ["--freeze", dice.one("w", "b", "weight", "wpe|embed|conv")]
    return flags + flags_of_stages(dice, step)


def flags_of_stages(dice: Dice, step: Step) -> list[str]:
    """Where stages begin: now and then."""
    if step.degrees["pp"] == 1 or dice.maybe(0.6):
        return []
    stages = step.degrees["pp"] * SCHEDULES[step.schedule]
    if dice.maybe(0.3):
        first = range(step.layers // stages, step.layers, max(1, step.layers // stages))
        return ["--split-at", step.names[0].format("|".join(map(str, first)))]
    if dice.maybe(0.3):
        whole, rest = divmod(step.layers, stages)
        counts = dice.shuffled([whole + (i < rest) for i in range(stages)])
        return ["--layers-per-stage", ",".join(map(str, counts))]
    return ["--stages-by", dice.one("cost", "ops", "layers", "flops")]


POLICIES = ("none", "selective", "full", "every:2", "every:3")
OFFLOADS = ("none", "optimizer", "activations", "optimizer+activations")


def flags_of_memory(dice: Dice, step: Step) -> list[str]:
    """Recomputation, ZeRO and offload of one configuration: now and then."""
    flags: list[str] = []
    if dice.maybe(0.3):
        flags += ["--recompute", dice.one(*POLICIES, f"match:{step.names[1]}")]
    if dice.maybe(0.35 if step.degrees["dp"] > 1 else 0.05):
        flags += ["--zero", str(dice.number(1, 3))]
        if dice.maybe(0.3):
            flags += ["--zero-group", "2"]
        if dice.maybe(0.3):
            flags += ["--prefetch", dice.one("0", "2", "3")]
    if dice.maybe(0.15):
        flags += ["--offload", dice.one(*OFFLOADS, f"activations:{step.names[1]}")]
        if dice.maybe(0.3):
            flags += ["--offload-prefetch", dice.one("0", "2")]
    return flags


def flags_of_candidate(dice: Dice, step: Step) -> list[str]:
    """Degrees, microbatches and schedule of one configuration."""
    flags: list[str] = []
    for axis, degree in step.degrees.items():
        if degree > 1 or dice.maybe(0.1):
            flags += [f"--{axis}", str(degree)]
    if step.microbatches > 1:
        flags += ["--micro-batches", str(step.microbatches)]
    if step.schedule != "1f1b":
        flags += ["--schedule", step.schedule]
    if step.schedule in CHUNKS_ARE_A_CHOICE and dice.maybe(0.4):
        flags += ["--chunks", dice.one("1", "2", "3", "4")]
    if step.schedule == "terapipe" and dice.maybe(0.5):
        flags += ["--slices", dice.one("equal", "balanced", "64,32,16,16")]
    return flags


# What makes a command wrong.
WRONGS = (
    ("--dp", "3"), ("--hp", "5"), ("--pp", "7"), ("--dp", "0"), ("--dp", "two"),
    ("--micro-batches", "0"), ("--micro-batches", "13"), ("--micro-batches", "99999999999999999"),
    ("--schedule", "zb-h9"), ("--dtype", "fp12"), ("--optimizer", "lamb"), ("--zero", "4"),
    ("--recompute", "all"), ("--offload", "disk"), ("--order", "dp,dp,pp"), ("--sharding", "best"),
    ("--cluster", "cube:4"), ("--cluster", "uniform:4@0Gbps"), ("--memory-limit", "-5"),
    ("--bucket-size", "big"), ("--preset", "megatron"), ("--cost-model", "oracle"),
    ("--model", "gpt9"), ("--model", "nowhere.onnx"), ("--model", "mlp:layers=0"),
    ("--batch-size", "-5"), ("--batch-size", "17"), ("--stages-by", "size"), ("--chunks", "0"),
    ("--split-at", "("), ("--layers-per-stage", "2,0"), ("--slices", "1,2"), ("--shard", "w0"),
    ("--symbol", "batch"), ("--context-attention", "foo"), ("--zero-group", "3"),
    ("--algorithm", "rign"), ("--no-such-flag",), ("leftover",), ("--cluster",),
)  # fmt: skip


def make_wrong(dice: Dice, flags: list[str]) -> list[str]:
    """The flags with one that is wrong, in place of the right one where there is one."""
    wrong = dice.one(*WRONGS)
    if wrong[0] in flags:
        at = flags.index(wrong[0])
        flags = flags[:at] + flags[at + 2 :]
    return flags + list(wrong)


def gpipe_orders(stages: int, microbatches: int) -> str:
    """Orders of GPipe with the last microbatch backward first, in torch's text form."""
    there = range(microbatches)
    steps = [f"F{i}" for i in there] + [f"B{i}" for i in reversed(there)]
    return "".join(",".join(f"{stage}{step}" for step in steps) + "\n" for stage in range(stages))


def input_files(flags: Sequence[str], step: Step) -> tuple[tuple[str, str], ...]:
    """The files that the flags name and that are not in the repository."""
    texts = {"net.orr": NET, "orders.csv": gpipe_orders(step.degrees["pp"], step.microbatches)}
    return tuple((name, text) for name, text in texts.items() if name in flags)


def draw_simulate(dice: Dice) -> Command:
    """One configuration."""
    step = draw_step(dice)
    flags = flags_of_model(dice, step) + flags_of_candidate(dice, step)
    flags += shared_flags(dice, step) + flags_of_memory(dice, step)
    if step.degrees["pp"] > 1 and step.schedule == "1f1b" and dice.maybe(0.2):
        flags += ["--schedule-file", "orders.csv"]
    if dice.maybe(0.15):
        stacks = ("megatron", "deepspeed", "fsdp", "torchtitan")
        flags += ["--stack", dice.one(*stacks)]
    if dice.maybe(0.03):
        flags += ["--plan", "pipedream"]
    else:
        flags += ["--json", "report.json"]
        for chance, more in ((0.3, "--timeline"), (0.1, "--explain"), (0.1, "--trace=trace.json")):
            if dice.maybe(chance):
                flags.append(more)
    if dice.maybe(WRONG_SHARE):
        flags = make_wrong(dice, flags)
    return Command("simulate", tuple(flags), input_files(flags, step))


def lists_of_space(dice: Dice, step: Step) -> list[str]:
    """Lists of degrees, microbatches and schedules of a search."""
    flags = []
    degrees = {axis: str(degree) for axis, degree in step.degrees.items()}
    fixed = dice.maybe(0.4)
    for axis in ("dp", "hp", "pp"):
        if fixed or dice.maybe(0.2):
            flags += [f"--{axis}", degrees[axis] if dice.maybe(0.5) else "1," + degrees[axis]]
    for axis in ("cp", "ep"):
        if step.degrees[axis] > 1:
            flags += [f"--{axis}", "1," + degrees[axis]]
    if dice.maybe(0.8):
        flags += ["--micro-batches", ",".join(map(str, dice.some((1, 2, 4, 8), 2)))]
    if dice.maybe(0.6):
        flags += ["--schedule", ",".join(dice.some(list(SCHEDULES), 3))]
    if dice.maybe(0.15):
        flags += ["--chunks", dice.one("1,2", "2,3", "4")]
    return flags


def lists_of_memory(dice: Dice) -> list[str]:
    """Lists of what saves memory."""
    flags: list[str] = []
    if dice.maybe(0.3):
        flags += ["--recompute", ",".join(dice.some(POLICIES, 2))]
    if dice.maybe(0.3):
        flags += ["--zero", ",".join(dice.some(("0", "1", "2", "3"), 2))]
    if dice.maybe(0.1):
        flags += ["--offload", ",".join(dice.some(OFFLOADS, 2))]
    return flags


def draw_grid_search(dice: Dice) -> Command:
    """A search of some dozens of candidates."""
    step = draw_step(dice, most_devices=8)
    flags = flags_of_model(dice, step) + lists_of_space(dice, step) + lists_of_memory(dice)
    flags += shared_flags(dice, step)
    flags += ["--threads", dice.one("1", "2"), "--csv", "grid.csv", "--json", "grid.json"]
    for chance, more in ((0.3, "--top=3"), (0.1, "--progress"), (0.1, "--trace=trace.json")):
        if dice.maybe(chance):
            flags.append(more)
    if dice.maybe(WRONG_SHARE):
        flags = make_wrong(dice, flags)
    return Command("grid_search", tuple(flags), input_files(flags, step))


def draw_schedule_command(dice: Dice) -> Command:
    """One pipeline schedule by itself, or orders from a file."""
    stages = dice.one(1, 2, 3, 4, 6, 8)
    microbatches = stages * dice.one(1, 2, 3) if dice.maybe(0.8) else dice.number(1, 12)
    flags = ["--name", dice.one(*SCHEDULES), "--stages", str(stages)]
    flags += ["--micro-batches", str(microbatches)]
    inputs: tuple[tuple[str, str], ...] = ()
    if dice.maybe(0.15):
        flags = ["--from", "orders.csv"]
        inputs = (("orders.csv", gpipe_orders(stages, microbatches)),)
    for chance, more in (
        (0.3, "--durations=F=2,I=3,W=1,S=1"), (0.2, "--chunks=2"), (0.1, "--chunks=3"),
        (0.15, "--memory-limit=4"), (0.4, "--timeline"), (0.6, "--json=schedule.json"),
    ):  # fmt: skip
        if dice.maybe(chance):
            flags.append(more)
    return Command("schedule", ("--list",) if dice.maybe(0.06) else tuple(flags), inputs)


def draw_collective(dice: Dice) -> Command:
    """One collective on a cluster, or a list of sizes of it."""
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce",
             "scatter", "gather", "send-receive", "barrier")  # fmt: skip
    cluster, devices = dice.one(*CLUSTERS)
    flags = ["--kind", dice.one(*kinds), "--cluster", cluster]
    size = dice.one("64MiB", "1KiB", "1000003", "2GB")
    flags += ["--sizes", "64KiB:16MiB"] if dice.maybe(0.25) else ["--bytes", size]
    if dice.maybe(0.4):
        flags += ["--group", dice.one("0-3", f"0,{devices - 1}", "1,0", "0-1,3", "0,99")]
    algorithms = ("ring", "tree", "direct", "halving-doubling", "all-reduce=ring",
                  "bidirectional-ring", "hierarchical", "in-network")  # fmt: skip
    flags += ["--algorithm", dice.one(*algorithms)] * dice.maybe(0.4)
    flags += ["--network", dice.one("astra-unaware", "astra-aware")] * dice.maybe(0.2)
    flags += ["--every-transfer"] * dice.maybe(0.2)
    return Command("collective", ("--list-clusters",) if dice.maybe(0.04) else tuple(flags))


def draw_layout(dice: Dice, dims: int, mesh: int) -> str:
    """Placements of DTensor, one a mesh axis."""
    choices = [f"S{dim}" for dim in range(dims)] + ["R", "R", "P"]
    return ",".join(dice.one(*choices) for _ in range(mesh))


def draw_redistribute(dice: Dice) -> Command:
    """The change of a layout."""
    mesh = [dice.one(2, 3, 4, 8) for _ in range(dice.number(1, 3))]
    dims = [dice.one(64, 100, 1024, 4096) for _ in range(dice.number(1, 3))]
    flags = ["--mesh", ",".join(map(str, mesh)), "--shape", ",".join(map(str, dims))]
    for flag in ("--from", "--to"):
        flags += [flag, draw_layout(dice, len(dims), len(mesh))]
    if dice.maybe(0.5):
        flags += ["--cost", dice.one("cluster:dgx-h100:8", "dtensor:devices_per_host=8",
                                     "dtensor:merge", "cluster:torus:8x8x8@50GB/s")]  # fmt: skip
    if dice.maybe(0.5):
        more = ("--planner=greedy", "--planner=naive", "--compare", "--frontier", "--itemsize=2",
                "--memory-limit=endpoints", "--memory-limit=1MiB")  # fmt: skip
        flags.append(dice.one(*more))
    return Command("redistribute", (*flags, "--json", "plan.json"))


PASSES = (
    "simplify", "attach-loss{loss=mse},build-backward,append-optimizer{optimizer=adam}",
    "attach-loss,build-backward,append-optimizer", "dead-code,merge-common", "fuse-linear,fuse-qkv",
    "attach-loss,build-backward,microbatch{count=2}", "fp8-mixed",
    "attach-loss,build-backward,append-optimizer,shard{dp=2,hp=2}",
    "build-backward,append-optimizer,split-backward", "no-such-pass",
)  # fmt: skip


def draw_opt(dice: Dice) -> Command:
    """A model as text: after passes, as stages, as the whole step, or its summary."""
    step = draw_step(dice, most_devices=8)
    flags = [step.model, "--batch-size", str(step.batch)]
    if step.symbol:
        flags += ["--symbol", f"{step.symbol}={step.batch}"]
    way = dice.one("stages", "stages", "passes", "step", "summary", "json", "lists")
    if way == "lists":
        return Command("opt", (dice.one("--list-passes", "--list-models", "--help"),))
    if way == "stages":
        flags += ["--stages", "--micro-batches", str(step.microbatches)]
        for axis in ("dp", "hp", "pp"):
            flags += [f"--{axis}", str(step.degrees[axis])]
        flags += flags_of_memory(dice, step) + flags_of_training(dice, step)
        if dice.maybe(0.3):
            flags += ["--stages-by", dice.one("ops", "layers", "flops")]
    elif way == "passes":
        flags += ["--passes", dice.one(*PASSES)]
        flags += dice.one([], ["--verify-each"], ["--print-after-all"], ["--summary"])
    else:
        flags += ["--summary", "--json"] if way == "json" else [f"--{way}"]
        flags += flags_of_training(dice, step)
    return Command("opt", tuple(flags), input_files(flags, step))


def draw_program(dice: Dice) -> Command:
    """Programs of ranks in place of a model."""
    cluster = dice.one(*CLUSTERS)[0]
    flags = ["--program", "examples/programs/overlap.ranks", "--cluster", cluster]
    return Command("simulate", (*flags, "--json", "report.json"))


def draw_cases(dice: Dice) -> Command:
    """All records of a file of collectives or redistributions."""
    if dice.maybe(0.5):
        return Command("collective", ("--cases", "tests/data/collectives_astrasim.json"))
    planner = dice.one("optimal", "greedy", "naive")
    file = "tests/data/redistribution_" + dice.one("tensorcraft", "dtensor") + ".json"
    return Command("redistribute", ("--cases", file, "--planner", planner))


def draw_validate(dice: Dice) -> Command:
    """Predictions beside measurements, of one file."""
    file = dice.one("05_torchtitan", "06a_zero_bubble", "06a_zero_bubble")
    flags = ("--data", f"tests/data/validation/{file}.json")
    return Command("validate", (*flags, "--csv", "rows.csv", "--json", "rows.json"))


DRAWN: dict[str, Callable[[Dice], Command]] = {
    "simulate": draw_simulate, "grid_search": draw_grid_search, "opt": draw_opt,
    "schedule": draw_schedule_command, "collective": draw_collective,
    "redistribute": draw_redistribute, "program": draw_program, "cases": draw_cases,
    "validate": draw_validate,
}  # fmt: skip


def draw(count: int, seed: int) -> list[Command]:
    """That many commands."""
    commands = []
    for place in range(count):
        what = TEN[place % len(TEN)]
        if what == "turns":
            what = TURNS[place // len(TEN) % len(TURNS)]
        commands.append(DRAWN[what](Dice(f"{seed}/{place}")))
    return commands
