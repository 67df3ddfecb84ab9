"""What a practitioner takes for granted: what a figure, an axis and a free choice mean."""

from __future__ import annotations

import csv
import re

from asking import Case, Passed, Programs
from checks import compared, law, search_words, slower
from steps import FILES, Dice


@law
def utilization_is_told(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Above the peak of a device there is a warning, whatever prices the kernels."""
    asked = case.having(cost_model=dice.one("distir", "roofline", "kernels"), memory_limit="none")
    answer = programs.ask(asked)
    line = re.search(r"model flops utilization.*", answer.text)
    warns = line is not None and "more than the device can do" in line[0]
    most = max(answer.report["mfu"], answer.report["hfu"])
    if most > 1 and not warns:
        return f"{most} of the peak, without a word"
    return None


@law
def something_is_trained(programs: Programs, case: Case, dice: Dice) -> str | None:
    """A file whose weights are frozen, or data, is no training step, and none is reported."""
    model, batch, symbol = dice.one(*[file for file in FILES if file[0].endswith(".onnx")])
    case = Case(model, batch, case.cluster, (("memory-limit", "none"),))
    if symbol:
        case = case.having(symbol=f"{symbol}={batch}")
    programs.ask(case)
    # Weights of light files are made by ops: none is an input that could be data.
    flag = "freeze" if "/light_" in model else dice.one("freeze", "data")
    try:
        none = programs.ask(case.having(**{flag: "."}))
    except Passed:
        return None
    return f"{none.step} s of a step that trains nothing"


@law
def batch_is_for_dp(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Ranks of hp share weights or the sequence with them, and no samples, unless it is asked."""
    if int(case.get("hp", "1")) == 1:
        raise Passed("no hp")
    case = case.having(shard=None, sharding=dice.one(None, "megatron"), memory_limit="none")
    lines = re.findall(r"^ *hp splits.*", programs.ask(case).text, re.MULTILINE)
    return next((line.strip() for line in lines if "batch" in line), None)


@law
def less_is_split_of_equals(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Of the fastest plans the first one of the table splits the least of the model."""
    hp = dice.one("1,2", "1,2,4")
    words = search_words(case, dp=None, hp=hp, pp="1", cp=None, ep=None, chunks=None,
                         schedule=None)  # fmt: skip
    [text], table = programs.files_and_text("grid_search", [*words, "--top", "1"], "grid.csv")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["fits"] == "true"]
    if not rows:
        raise Passed("nothing fits")
    best = min(float(row["step_time_s"]) for row in rows)
    least = min(int(row["hp"]) for row in rows if float(row["step_time_s"]) == best)
    header, first = first_row(table)
    shown = int(first[header.index("hp")])
    return f"hp {shown} stands first, where hp {least} is as fast" if shown > least else None


def first_row(table: str) -> tuple[list[str], list[str]]:
    """The names of the columns and the first row of the table of a search."""
    lines = [line.split() for line in table.splitlines()]
    for number, words in enumerate(lines):
        if "hp" in words and "step" in words:
            return words, lines[number + 1]
    raise AssertionError(f"no table: {table[:200]}")


@law
def pattern_is_tried(programs: Programs, case: Case, dice: Dice) -> str | None:
    """What is chosen by cost is no slower than Megatron's pattern."""
    del dice
    if all(int(case.get(axis, "1")) == 1 for axis in ("hp", "cp", "ep")):
        raise Passed("nothing to choose")
    auto, pattern = (programs.ask(case.having(sharding=by)) for by in ("auto", "megatron"))
    if pattern.fits > auto.fits:
        return "does not fit by cost, and does by the pattern"
    if auto.fits == pattern.fits and slower(auto.step, pattern.step):
        return compared("by cost", auto.step, pattern.step)
    return None


@law
def none_is_as_good_as_any(programs: Programs, case: Case, dice: Dice) -> str | None:
    """What is left open is no slower than any of the values that it has."""
    hp, cp = (int(case.get(axis, "1")) for axis in ("hp", "cp"))
    if max(hp, cp) == 1 or int(case.get("pp", "1")) > 1:
        raise Passed("nothing is open, or stages are, too")
    plain = {"sequence-parallel": None, "context-attention": None}
    case = case.having(**plain, memory_limit="none", sharding=dice.one(None, "megatron"))
    sequence = [f"sequence-parallel={value}" for value in (0, 1) if hp > 1]
    ways = ("all-to-all", "all-gather", "ring") if cp > 1 else ()
    flag = dice.one(*sequence, *(f"context-attention={way}" for way in ways))
    free, said = programs.ask(case), programs.ask(case.having(**{flag: ""}))
    if slower(free.step, said.step):
        return compared(f"without --{flag}", free.step, said.step)
    return None


@law
def experts_are_split_evenly(programs: Programs, case: Case, dice: Dice) -> str | None:
    """Each doubling of ep halves what a rank holds of the experts, of each of their matrices."""
    del dice
    if "experts=" not in case.model:
        raise Passed("no experts")
    ranks = int(case.get("dp", "1")) * int(case.get("ep", "1"))
    experts = int(re.search(r"experts=(\d+)", case.model)[1])  # type: ignore[index]
    if ranks < 2:
        raise Passed("no ranks for them")
    case = case.having(memory_limit="none", sharding=None, order=None, hp=None, cp=None, zero=None,
                       zero_group=None, pp=None, schedule=None, schedule_file=None, chunks=None,
                       split_at=None, layers_per_stage=None, stages_by=None)  # fmt: skip
    held = []
    for ep in (1, 2, 4, 8):
        if ep <= min(ranks, experts):
            report = programs.ask(case.having(dp=ranks // ep, ep=ep)).report
            held.append(max(device["memory"]["parameters"] for device in report["devices"]))
    saved = [a - b for a, b in zip(held, held[1:])]
    if any(a <= 0 for a in saved):
        return f"parameters with ep 1, 2, …: {held}"
    for first, second in zip(saved, saved[1:]):
        if first != 2 * second:
            return f"parameters with ep 1, 2, …: {held}; saved: {saved}"
    return None
