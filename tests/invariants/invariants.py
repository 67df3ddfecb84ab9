#!/usr/bin/env python3
"""Holds laws of physics over random training steps, through the command line.

    tests/invariants/invariants.py [--bin build/bin] [--rounds 300] [--seed N] [--only LAW]
                                   [--keep FOLDER]

Each round draws a step and asks one law of checks.py about it, the laws by turns; one that passes
over what was drawn is asked about the next. Where a law is broken the case is made smaller for as
long as it stays broken, and printed with its command; with --keep it is written to FOLDER, of which
tests/regress is read whenever this runs: what was broken once is asked again. The same seed draws
the same cases. Exit code: 0 all hold, 1 some are broken, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

sys.dont_write_bytecode = True
import practice  # noqa: E402, F401  its laws
from asking import Case, Passed, Programs  # noqa: E402
from checks import LAWS, Dice  # noqa: E402
from commands import flags_of_candidate, flags_of_memory, flags_of_stages  # noqa: E402
from steps import draw_step  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DRAWS = 12  # of steps, before a law that passes over all of them is left alone


def draw_case(dice: Dice) -> Case:
    """A training step with few choices made by hand."""
    step = draw_step(dice, most_devices=16)
    while step.family == "file":
        step = draw_step(dice, most_devices=16)
    words = flags_of_candidate(dice, step)
    if dice.maybe(0.5):
        words += flags_of_stages(dice, step)
    if dice.maybe(0.4):
        words += flags_of_memory(dice, step)
    if dice.maybe(0.5):
        words += ["--dtype", dice.one("fp32", "bf16")]
    if dice.maybe(0.15):
        words += ["--sharding", "megatron"]
    if dice.maybe(0.2):
        words += ["--optimizer", dice.one("sgd", "momentum")]
    return Case(step.model, step.batch, step.cluster, flags_from(words))


def flags_from(words: list[str]) -> tuple[tuple[str, str], ...]:
    """Names and values of the flags of a command line."""
    flags = []
    for word in words:
        if word.startswith("--"):
            flags.append((word.removeprefix("--"), ""))
        else:
            flags[-1] = (flags[-1][0], word)
    return tuple(dict(flags).items())


def verdict(programs: Programs, name: str, case: Case, seed: str) -> str | None:
    """What a law finds; Passed goes through."""
    try:
        return LAWS[name](programs, case, Dice(seed))
    except (AssertionError, subprocess.TimeoutExpired) as broken:
        return str(broken)


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are simpler by one thing."""
    for flag, _ in case.flags:
        yield case.having(**{flag: None})
    for flag, value in case.flags:
        if value.isdigit() and int(value) > 1:
            yield case.having(**{flag: int(value) // 2})
    if case.batch > 1:
        yield Case(case.model, case.batch // 2, case.cluster, case.flags)
    family, _, keys = case.model.partition(":")
    for key in filter(None, keys.split(",")):
        name, _, value = key.partition("=")
        if value.isdigit() and int(value) > 1:
            halved = keys.replace(key, f"{name}={int(value) // 2}")
            yield Case(f"{family}:{halved}", case.batch, case.cluster, case.flags)
    for cluster in ("uniform:16@25GB/s", "ring:8@50GB/s,latency=500ns"):
        if case.cluster not in (cluster, "uniform:16@25GB/s"):
            yield Case(case.model, case.batch, cluster, case.flags)


def shrink(programs: Programs, name: str, case: Case, seed: str) -> Case:
    """The smallest case that is found where the law is broken still."""
    steps = 0
    shrunk = True
    while shrunk and steps < 80:
        shrunk = False
        for other in smaller(case):
            steps += 1
            try:
                broken = verdict(programs, name, other, seed)
            except Passed:
                continue
            if broken is not None:
                case, shrunk = other, True
                break
    return case


class Rounds:
    """Asks the laws by turns about what a seed draws."""

    def __init__(self, programs: Programs, names: list[str], seed: int) -> None:
        self._programs = programs
        self._names = names
        self._seed = seed

    def ask(self, place: int) -> tuple[str, Case | None, str]:
        """The law of a round, the case where it is broken, and what was found."""
        name = self._names[place % len(self._names)]
        for draw in range(DRAWS):
            seed = f"{self._seed}/{place}/{draw}"
            case = draw_case(Dice(seed))
            try:
                found = verdict(self._programs, name, case, seed)
            except Passed:
                continue
            if found is None:
                return name, None, ""
            case = shrink(self._programs, name, case, seed)
            return name, case, f"{verdict(self._programs, name, case, seed)}\t{seed}"
        return name, None, "passed"


def told(name: str, case: Case, found: str) -> str:
    """A broken law for people."""
    return f"{name}: {found}\n    simulate {shlex.join(case.words())}"


def keep(folder: pathlib.Path, name: str, case: Case, seed: str) -> None:
    """Writes a case that is broken to a file of its own."""
    text = json.dumps({"law": name, "seed": seed, "flags": case.words()}, indent=1) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    (folder / f"{name}_{digest}.json").write_text(text)


def kept(programs: Programs) -> list[str]:
    """What is broken of the cases in tests/regress."""
    broken = []
    for path in sorted((ROOT / "tests" / "regress").glob("*.json")):
        record = json.loads(path.read_text())
        flags = dict(flags_from(record["flags"]))
        model, batch, cluster = (flags.pop(key) for key in ("model", "batch-size", "cluster"))
        case = Case(model, int(batch), cluster, tuple(flags.items()))
        try:
            found = verdict(programs, record["law"], case, record["seed"])
        except Passed as passed:
            found = f"no longer speaks of it: {passed}"
        if found is not None:
            broken.append(f"{path.name}: {told(record['law'], case, found)}")
    return broken


def main() -> int:
    """Reads the command line, asks, and tells."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "bin")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", choices=sorted(LAWS), action="append")
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    if not (args.bin / "simulate").is_file():
        parser.error(f"--bin {args.bin}: holds no simulate; wanted the bin folder of a build")
    if args.keep and not args.keep.is_dir():
        parser.error(f"--keep {args.keep}: is no folder")
    print(f"seed {args.seed}, {args.rounds} rounds", flush=True)
    programs = Programs(args.bin.resolve(), ROOT)
    for broken in (failures := kept(programs)):
        print(broken, flush=True)
    rounds = Rounds(programs, args.only or list(LAWS), args.seed)
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for name, case, found in pool.map(rounds.ask, range(args.rounds)):
            counts[name]["broken" if case else found or "holds"] += 1
            if case is None:
                continue
            found, _, seed = found.rpartition("\t")
            failures.append(found)
            print(told(name, case, found), flush=True)
            if args.keep:
                keep(args.keep, name, case, seed)
    for name, count in counts.items():
        print(f"  {name:28}" + ", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    print(f"{len(failures)} broken")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
