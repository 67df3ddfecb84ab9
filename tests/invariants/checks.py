"""What must hold of every training step: laws of physics, and promises of the pages.

Each law is a function of the programs, a case and dice. It returns what it found where the law is
broken, and raises Passed where it does not speak of the case.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

from asking import Case, Passed, Programs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "scripts" / "answers"))
from steps import SCHEDULES, Dice  # noqa: E402

Law = Callable[[Programs, Case, Dice], str | None]
LAWS: dict[str, Law] = {}

# Times are whole picoseconds, and their sums in the reports floating-point numbers.
ROUNDING = 1e-9


def law(function: Law) -> Law:
    """Puts a law into the list."""
    LAWS[function.__name__] = function
    return function


# Of stages that are about as fast as the fastest, those that need the least memory are taken.
ABOUT_AS_FAST = 1.01


def slower_than_about(case: Case, a: float, b: float) -> bool:
    """Whether a is more than b by more than the choice of stages explains."""
    return slower(a, b * (ABOUT_AS_FAST if int(case.get("pp", "1")) > 1 else 1))


def slower(a: float, b: float) -> bool:
    """Whether a is more than b by more than what rounding makes."""
    return a > b * (1 + ROUNDING) + 1e-12


def compared(what: str, a: float, b: float) -> str:
    """Two figures in a sentence."""
    return f"{what}: {a:.9g} against {b:.9g}, {100 * (a / b - 1):+.3f} %" if b else f"{what}: {a}"


@law
def more_memory(programs: Programs, case: Case, dice: Dice) -> str | None:
    """A limit above the peak changes nothing; more memory never loses a plan nor slows it."""
    del dice
    base = programs.ask(case.having(memory_limit="none"))
    before = None
    for share in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        limit = int(base.peak * share)
        answer = programs.ask(case.having(memory_limit=f"{limit}B"))
        if answer.fits and answer.peak > limit:
            return f"{answer.peak} B fit in {limit} B"
        if before is not None and before.fits:
            if not answer.fits:
                return f"fits in less than {limit} B, and not in that"
            if slower(answer.step, before.step):
                return compared(f"slower with {limit} B than with less", answer.step, before.step)
        before = answer
    if not before.fits or slower(before.step, base.step) or slower(base.step, before.step):
        return compared("a limit of its own peak", before.step, base.step)
    return None


def twice_the_rates(cluster: str) -> str:
    """The same topology with links of twice the rate."""
    faster = re.sub(r"(\d+)(GB/s|Gbps)", lambda match: f"{2 * int(match[1])}{match[2]}", cluster)
    if faster == cluster:
        raise Passed("links without a rate of their own")
    return faster


@law
def faster_links(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Links of twice the rate never slow a step."""
    del dice
    faster = Case(case.model, case.batch, twice_the_rates(case.cluster), case.flags)
    now, then = programs.ask(case), programs.ask(faster)
    if then.fits >= now.fits and slower_than_about(case, then.step, now.step):
        return compared("twice the rate", then.step, now.step)
    return None


@law
def half_the_bytes(programs: Programs, case: Case, dice: Dice) -> str | None:
    """A step in bf16 is never slower than in fp32."""
    del dice
    case = case.having(memory_limit="none", cost_model=None)
    full, half = (programs.ask(case.having(dtype=dtype)) for dtype in ("fp32", "bf16"))
    worse = slower_than_about(case, half.step, full.step)
    return compared("bf16", half.step, full.step) if worse else None


@law
def recomputation_takes_time(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Where memory is no matter, nothing is faster for computing it again."""
    case = case.having(memory_limit="none", recompute=None)
    policy = dice.one("selective", "full", "every:2")
    kept, again = programs.ask(case), programs.ask(case.having(recompute=policy))
    if slower_than_about(case, kept.step, again.step):
        return compared(f"without --recompute {policy}", kept.step, again.step)
    return None


@law
def recomputation_saves_memory(programs: Programs, case: Case, dice: Dice) -> str | None:
    """What is computed again needs no more memory than what is kept, all else being equal.

    Where backwards are parted, or two pipelines meet, it lives on between the parts. Stages that
    are cut by cost are others where other things are computed.
    """
    if not case.get("split-at") and not case.get("layers-per-stage"):
        case = case.having(stages_by="layers")
    case = case.having(memory_limit="none", recompute=None, sharding="distir", schedule="1f1b",
                       cp=None, ep=None, sequence_parallel=None, chunks=None, offload=None)  # fmt: skip
    policy = dice.one("selective", "full", "every:2")
    kept, again = programs.ask(case), programs.ask(case.having(recompute=policy))
    buffers = max(device["memory"]["buffers"] for device in again.report["devices"])
    if again.peak - buffers > kept.peak:  # weights are gathered once more
        return compared(f"peak with --recompute {policy}", again.peak - buffers, kept.peak)
    return None


def held_for_long(memory: dict[str, int]) -> int:
    """Bytes that wait for no collective, as gradients that are to be scattered do."""
    return memory["parameters"] + memory["optimizer"]


@law
def zero_saves_memory(programs: Programs, case: Case, dice: Dice) -> str | None:
    """A stage of ZeRO holds no more than the one before, but for what awaits a collective."""
    del dice
    if int(case.get("dp", "1")) == 1:
        raise Passed("nothing to share")
    # Of the same shardings and stages: for another time another cut, or another way to split the
    # sequence, may be worth its memory.
    case = case.having(memory_limit="none", zero_group=None, sharding="megatron", offload=None,
                       stages_by="layers", sequence_parallel=None)  # fmt: skip
    if int(case.get("hp", "1")) > 1:
        case = case.having(**{"sequence-parallel=0": ""})
    if int(case.get("cp", "1")) > 1 and not case.get("context-attention"):
        case = case.having(context_attention="all-gather")
    memory = []
    for stage in range(4):
        report = programs.ask(case.having(zero=stage)).report
        memory.append(max((device["memory"] for device in report["devices"]), key=held_for_long))
    for stage in range(3):
        now, then = memory[stage], memory[stage + 1]
        if held_for_long(then) > held_for_long(now):
            return compared(f"ZeRO {stage + 1}", held_for_long(then), held_for_long(now))
    return None


@law
def experts_are_split(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Twice the ranks of ep never hold more parameters each; along hp and cp others are split."""
    del dice
    if "experts=" not in case.model or int(case.get("dp", "1")) == 1:
        raise Passed("no experts, or no ranks for them")
    dp, ep = int(case.get("dp")), int(case.get("ep", "1"))
    case = case.having(memory_limit="none", sharding=None, order=None, hp=None, cp=None)
    held = [
        max(device["memory"]["parameters"] for device in programs.ask(asked).report["devices"])
        for asked in (case, case.having(dp=dp // 2, ep=2 * ep))
    ]
    return compared("parameters with twice the ep", held[1], held[0]) if held[1] > held[0] else None


@law
def overlap_gains(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Communication beside the computation is never slower than between it."""
    del dice
    if case.get("schedule") == "distir":
        raise Passed("blocks by itself")
    over = programs.ask(case.having(blocking=None))
    blocking = programs.ask(case.having(blocking=""))
    if slower(over.step, blocking.step) and over.fits >= blocking.fits:
        return compared("overlap", over.step, blocking.step)
    return None


@law
def parts_add_up(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Utilizations are at most 1, times at most the step, parts of the memory its peak."""
    del dice
    if case.get("cost-model") == "distir":
        raise Passed("rates of its own")
    answer = programs.ask(case)
    report = answer.report
    for name in ("mfu", "hfu", "bubble_fraction", "communication_overhead"):
        if not -ROUNDING <= report[name] <= 1 + ROUNDING:
            return f"{name} is {report[name]}"
    drains = case.get("schedule") not in ("pipedream", "pipedream-2bw", "pipemare", "ampnet")
    for device in report["devices"]:
        for name in ("finish_s", "peak_time_s") if drains else ():
            if slower(device[name], answer.step):
                return compared(f"{name} of rank {device['rank']} and the step",
                                device[name], answer.step)  # fmt: skip
        parts = sum(device["memory"].values())
        if parts != device["peak_memory_bytes"]:
            return compared("parts of the peak", parts, device["peak_memory_bytes"])
        if slower(sum(device["bubble"].values()), answer.step):
            return f"bubble of rank {device['rank']}: {device['bubble']}"
    if answer.peak != max(device["peak_memory_bytes"] for device in report["devices"]):
        return "the peak is no device's"
    return None


@law
def traces_only_look(programs: Programs, case: Case, dice: Dice) -> str | None:
    """A trace changes no figure."""
    del dice
    plain, traced = programs.ask(case), programs.ask(case.having(trace="trace.json"))
    if plain.step != traced.step or plain.peak != traced.peak:
        return compared("traced", traced.step, plain.step)
    return None


@law
def folding_is_exact(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Ranks that are alike as one give the same step and peak as each by itself."""
    del dice
    if case.get("most-unfolded-tasks"):
        raise Passed("folded by force")
    folded = programs.ask(case.having(no_fold=None))
    each = programs.ask(case.having(no_fold=""))
    if folded.step != each.step or folded.peak != each.peak:
        return compared("folded", folded.step, each.step) + f"; {folded.peak} and {each.peak} B"
    return None


@law
def one_stage_is_one_schedule(programs: Programs, case: Case, dice: Dice) -> str | None:
    """With one stage and one microbatch there is nothing to order."""
    alone = ("distir", "pipedream", "pipedream-2bw", "pipemare", "ampnet", "terapipe")
    names = [name for name, chunks in SCHEDULES.items() if chunks == 1 and name not in alone]
    case = Case(case.model, case.batch, case.cluster, case.flags)
    for flag in ("split-at", "layers-per-stage", "schedule-file", "stages-by"):
        case = case.having(**{flag: None})
    case = case.having(pp=1, micro_batches=1, chunks=None, schedule="gpipe")
    other = dice.one(*names)
    gpipe, answer = programs.ask(case), programs.ask(case.having(schedule=other))
    return compared(other, answer.step, gpipe.step) if answer.step != gpipe.step else None


@law
def stages_by_cost(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Stages that are cut by what they cost are no slower than those of equally many layers."""
    del dice
    if int(case.get("pp", "1")) == 1:
        raise Passed("one stage")
    case = case.having(split_at=None, layers_per_stage=None, memory_limit="none")
    cost, layers = (programs.ask(case.having(stages_by=by)) for by in ("cost", "layers"))
    return compared("by cost", cost.step, layers.step) if slower(cost.step, layers.step) else None


@law
def balanced_slices(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Slices that are balanced are no slower than equal ones."""
    if not case.model.startswith("gpt:") or int(case.get("pp", "1")) == 1:
        raise Passed("no sequence, or no pipeline")
    case = case.having(schedule="terapipe", micro_batches=dice.one(2, 4), chunks=None, cp=None,
                       schedule_file=None)  # fmt: skip
    equal, balanced = (programs.ask(case.having(slices=by)) for by in ("equal", "balanced"))
    if slower(balanced.step, equal.step):
        return compared("balanced", balanced.step, equal.step)
    return None


# Where devices are wired to each other, more of them have more links: docs/clusters.md.
SWITCHED = ("dgx", "aws", "fat-tree", "rails", "nodes", "dragonfly", "switch")


@law
def more_replicas(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Behind switches, twice the replicas of a batch twice as large take no less time."""
    del dice
    if not case.cluster.startswith(SWITCHED):
        raise Passed("more devices have more links")
    dp = int(case.get("dp", "1"))
    case = case.having(memory_limit="none", zero=None, zero_group=None)
    more = Case(case.model, 2 * case.batch, case.cluster, case.having(dp=2 * dp).flags)
    one, two = programs.ask(case), programs.ask(more)
    return compared("one half", one.step, two.step) if slower(one.step, two.step) else None


@law
def buckets_reduce_the_same(programs: Programs, case: Case, dice: Dice) -> str | None:
    """How gradients are bundled changes nothing of what is reduced."""
    case = case.having(bucket_size=None, sharding="distir", cp=None, ep=None, sequence_parallel=None)
    plain = programs.ask(case)
    other = programs.ask(case.having(bucket_size=dice.one("none", "1GiB", "10KiB")))
    a, b = plain.report["bytes_reduced"], other.report["bytes_reduced"]
    return compared("bytes reduced", b, a) if a != b else None


@law
def replicas_gather_nothing(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Pure data parallelism sums gradients, and sends nothing else."""
    del dice
    if "experts=" in case.model:
        raise Passed("samples share the places of experts")
    case = case.having(hp=None, cp=None, ep=None, zero=None, zero_group=None, shard=None, order=None)
    for use in programs.ask(case).report["communication"]:
        if use["kind"].endswith(" dp") and not use["kind"].startswith("all-reduce"):
            return f"{use['kind']}: {use['bytes']} B"
    return None


@law
def searched_orders(programs: Programs, case: Case, dice: Dice) -> str | None:
    """An order that is searched for is no slower than that of unit times, read from a file."""
    pp = int(case.get("pp", "1"))
    if pp == 1 or case.get("schedule-file"):
        raise Passed("no pipeline")
    name = dice.one("zb-h1", "zb-h2", "zb-1p")
    microbatches = int(case.get("micro-batches", "1"))
    words = ["--name", name, "--stages", str(pp), "--micro-batches", str(microbatches)]
    case = case.having(schedule=name, chunks=None, memory_limit="none", slices=None)
    named = programs.ask(case)
    filed = programs.ask(case.having(schedule=None, schedule_file=programs.orders(words)))
    return compared(name, named.step, filed.step) if slower(named.step, filed.step) else None


def search_words(case: Case, **lists: str) -> list[str]:
    """The command line of a search around a case."""
    case = case.having(slices=None, schedule_file=None, layers_per_stage=None, split_at=None)
    return [*case.having(**lists).words(), "--csv", "grid.csv"]


def best_of(text: str) -> float | None:
    """The shortest step of those that fit."""
    rows = csv.DictReader(text.splitlines())
    return min((float(row["step_time_s"]) for row in rows if row["fits"] == "true"), default=None)


@law
def larger_spaces(programs: Programs, case: Case, dice: Dice) -> str | None:
    """More to choose from never makes the best slower."""
    more = {axis: f"1,2,{case.get(axis, '1')}" for axis in ("dp", "hp", "pp")}
    few = search_words(case, **{axis: case.get(axis, "1") for axis in more}, recompute="none")
    many = search_words(case, **more, recompute="none,selective")
    del dice
    one, all_of = (best_of(programs.files("grid_search", words, "grid.csv")[0])
                   for words in (few, many))  # fmt: skip
    if one is not None and (all_of is None or slower(all_of, one)):
        return f"the best of few takes {one}, of many {all_of}"
    return None


@law
def threads_change_nothing(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Searches say the same with any number of threads."""
    words = search_words(case, hp=f"1,{case.get('hp', '1')}", schedule="1f1b,gpipe")
    texts = []
    for threads in ("1", dice.one("2", "3", "8")):
        text = programs.files("grid_search", [*words, "--threads", threads], "grid.csv")[0]
        texts.append(text)
    return "other rows" if texts[0] != texts[1] else None
