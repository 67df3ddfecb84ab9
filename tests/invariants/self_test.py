"""Tests of the laws: each is found broken where a program in between breaks it on purpose."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from asking import Case, Passed, Programs  # noqa: E402
from checks import LAWS  # noqa: E402
from invariants import ROOT, shrink, verdict  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build" / "bin"

# Calls the real program, and changes what it is told and what it reports where its command line
# says so: its words, the report, what it says, and the rows of a search.
PROGRAM = """#!/usr/bin/env -S python3 -S
import json, pathlib, re, subprocess, sys
name = pathlib.Path(sys.argv[0]).name
words = sys.argv[1:]
told = re.search(r"PATTERN", " ".join(words)) is not None
if told:
    WORDS
done = subprocess.run(["BIN/" + name, *words], stdout=subprocess.PIPE, text=True)
text = done.stdout
path = pathlib.Path("report.json")
if told and name == "simulate" and path.exists():
    report = json.loads(path.read_text())
    REPORT
    path.write_text(json.dumps(report))
path = pathlib.Path("grid.csv")
if told and name == "grid_search" and path.exists():
    head, *rows = path.read_text().splitlines()
    ROWS
    path.write_text(chr(10).join([head] + rows) + chr(10))
if told:
    TEXT
sys.stdout.write(text)
sys.exit(done.returncode)
"""
HOOKS = ("words", "report", "rows", "text")

GPT = Case(
    "gpt:layers=4,hidden=64,heads=4,seq=64,vocab=512,tied_embeddings=0", 8, "uniform:8@25GB/s",
    (("dp", "2"), ("pp", "2"), ("micro-batches", "2")),
)  # fmt: skip
DGX = Case(GPT.model, GPT.batch, "dgx-a100:1", GPT.flags)
# Kernels that take longer than they take to start: one device is not the fastest.
WIDE = Case(
    GPT.model.replace("hidden=64", "hidden=512").replace("seq=64", "seq=512"), GPT.batch,
    GPT.cluster, GPT.flags,
)  # fmt: skip
MOE = Case(
    "gpt:layers=2,hidden=64,heads=4,seq=64,vocab=512,tied_embeddings=0,experts=4", 8,
    "uniform:8@25GB/s", (("dp", "4"),),
)  # fmt: skip

SLOWER = 'report["step_time_s"] *= 2'
FASTER = 'report["step_time_s"] /= 2'
FULLER = (
    'report["peak_memory_bytes"] *= 2\n'
    '    for device in report["devices"]:\n'
    '        device["memory"] = {k: 2 * v for k, v in device["memory"].items()}'
)

FEWER = {"rows": "rows = rows[:len(rows) // 2]"}
FORGETS = {"words": """at = [i for i, word in enumerate(words) if word in ("--freeze", "--data")]
    words = words[:at[0]] + words[at[0] + 2:]"""}
SPLITS = {"text": """text += chr(10) + "  hp splits   mlp: batch" + chr(10)"""}
FIRST = {"text": r"""text = re.sub(r"(hp .*\n +\d+ +)\d+", r"\g<1>8", text)"""}

# Each law, what command lines are told something wrong, and what: the report, or one of HOOKS.
BROKEN = {
    "more_memory": (GPT, "--memory-limit none", SLOWER),
    "faster_links": (GPT, "@50GB/s", SLOWER),
    "half_the_bytes": (GPT, "--dtype bf16", 'report["step_time_s"] *= 4'),
    "recomputation_takes_time": (GPT, "--recompute", FASTER),
    "recomputation_saves_memory": (GPT, "--recompute", FULLER),
    "zero_saves_memory": (GPT, "--zero 3", FULLER.replace("2 *", "4 *")),
    "experts_are_split": (MOE, "--ep 2", FULLER.replace("2 *", "9 *")),
    "overlap_gains": (GPT, "--blocking", FASTER),
    "parts_add_up": (GPT, "--pp 2", 'report["devices"][0]["memory"]["other"] += 1'),
    "traces_only_look": (GPT, "--trace", FULLER),
    "folding_is_exact": (GPT, "--no-fold", SLOWER),
    "one_stage_is_one_schedule": (GPT, "--schedule gpipe", SLOWER),
    "stages_by_cost": (GPT, "--stages-by cost", SLOWER),
    "balanced_slices": (GPT, "--slices balanced", SLOWER),
    "more_replicas": (DGX, "--dp 4", 'report["step_time_s"] /= 4'),
    "buckets_reduce_the_same": (GPT, "--bucket-size", 'report["bytes_reduced"] += 1'),
    "replicas_gather_nothing": (
        GPT, "--pp", 'report["communication"][0] |= {"kind": "all-gather dp"}',
    ),
    "searched_orders": (GPT, "--schedule-file", FASTER),
    "larger_spaces": (WIDE, "none,selective", FEWER),
    "threads_change_nothing": (GPT, "--threads 1", FEWER),
    "utilization_is_told": (GPT, "--cost-model", 'report["mfu"] = 1.5'),
    "something_is_trained": (GPT, "--freeze|--data", FORGETS),
    "batch_is_for_dp": (GPT.having(hp=2), "--hp", SPLITS),
    "less_is_split_of_equals": (GPT, "--hp", FIRST),
    "pattern_is_tried": (GPT.having(hp=2), "--sharding megatron", FASTER),
    "none_is_as_good_as_any": (GPT.having(hp=2, pp=None), "--sequence-parallel=", FASTER),
    "experts_are_split_evenly": (
        MOE, "--ep 2", 'report["devices"][0]["memory"]["parameters"] += 4',
    ),
}  # fmt: skip


class Laws(unittest.TestCase):
    """Each law can fail."""

    def programs(self, folder: str, pattern: str, change: str | dict[str, str]) -> Programs:
        """Programs of which some answers are changed."""
        changes = {"report": change} if isinstance(change, str) else change
        text = PROGRAM.replace("BIN", str(BIN.resolve())).replace("PATTERN", pattern)
        for hook in HOOKS:
            text = text.replace(hook.upper(), changes.get(hook) or "pass")
        for name in ("simulate", "grid_search", "schedule"):
            path = pathlib.Path(folder) / name
            path.write_text(text)
            path.chmod(0o755)
        return Programs(pathlib.Path(folder), ROOT)

    def test_all_are_here(self) -> None:
        self.assertEqual(set(BROKEN), set(LAWS))

    def test_each_fails_where_it_is_broken(self) -> None:
        for name, (case, pattern, change) in BROKEN.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                found = verdict(self.programs(folder, pattern, change), name, case, "1")
                self.assertIsNotNone(found)

    def test_none_fails_where_nothing_is(self) -> None:
        for name, (case, _, _) in BROKEN.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                programs = self.programs(folder, "no such flag", "")
                self.assertIsNone(verdict(programs, name, case, "1"))

    def test_cases_become_smaller(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            programs = self.programs(folder, "--recompute", FASTER)
            small = shrink(programs, "recomputation_takes_time", GPT.having(zero=1), "1")
        self.assertEqual(small.flags, ())
        self.assertIn("layers=1,", small.model)

    def test_a_crash_is_a_finding(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("simulate", "grid_search"):
                path = pathlib.Path(folder) / name
                path.write_text("#!/bin/sh\nkill -SEGV $$\n")
                path.chmod(0o755)
            programs = Programs(pathlib.Path(folder), ROOT)
            self.assertIn("exit code -11", verdict(programs, "faster_links", GPT, "1") or "")

    def test_what_is_infeasible_passes(self) -> None:
        with self.assertRaises(Passed), tempfile.TemporaryDirectory() as folder:
            programs = self.programs(folder, "no such flag", "")
            verdict(programs, "faster_links", GPT.having(dp=3), "1")



if __name__ == "__main__":
    unittest.main()
