"""Reads traces and memory snapshots as the tools for them do, and holds them against the report.

    python3 tests/traces/reader_test.py --bin build/bin

What Holistic Trace Analysis takes for communication and for copies has changed over its versions: a
trace must be right by all of its rules (hta/utils/utils.py; its own wording is not repeated here).
"""

import argparse
import collections
import gzip
import json
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:  # scripts/install_dependencies --browser has it
    jsonschema = None

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BIN = ROOT / "build" / "bin"

GPT = "--model gpt:layers=4,hidden=64,heads=4,seq=32,vocab=96 --batch-size 16 --cluster dgx-h100:2"
FUSED = ("--model gpt:layers=2,hidden=64,heads=4,seq=32,vocab=96,flash=1 --batch-size 16 "
         "--cluster uniform:8@200Gbps")
MLP = "--model mlp:layers=8,dim=64 --batch-size 64 --cluster uniform:8@200Gbps"
MOE = "--model gpt:layers=2,hidden=64,heads=4,seq=32,vocab=96,experts=4,topk=2 --batch-size 16 --cluster dgx-h100:1"

# What a trace is made of in many ways; each is read at several levels.
CASES = {
    "three axes": f"{GPT} --dp 2 --hp 2 --pp 2 --micro-batches 4 --sharding megatron",
    "every rank": f"{GPT} --dp 2 --hp 2 --pp 2 --micro-batches 2 --no-fold --sharding megatron",
    "interleaved": f"{GPT} --dp 2 --pp 2 --micro-batches 4 --schedule interleaved --chunks 2",
    "zero bubble": f"{GPT} --pp 4 --micro-batches 8 --schedule zb-h1",
    "blocking": f"{GPT} --dp 2 --hp 2 --pp 2 --micro-batches 2 --blocking",
    "zero 3": f"{GPT} --dp 4 --zero 3 --micro-batches 2",
    "context": f"{GPT} --cp 2 --dp 2 --micro-batches 2",
    "fused context": f"{FUSED} --cp 2 --dp 2 --micro-batches 2 --context-attention all-to-all",
    "experts": f"{MOE} --dp 2 --ep 2 --micro-batches 2",
    "offload": f"{GPT} --dp 2 --micro-batches 2 --offload optimizer+activations --recompute full",
    "no pipeline": f"{MLP} --dp 8 --optimizer sgd",
}
LEVELS = ["stage", "op", "flow"]


def play(arguments, folder):
    command = [str(BIN / "simulate"), *arguments.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stderr}")


def slices_of(events):
    return [event for event in events if event["ph"] == "X"]


def picoseconds(microseconds):
    return round(microseconds * 1e6)


def kind_by_rules(name):
    """The kinds that versions of Holistic Trace Analysis see in a kernel's name."""
    communicates = {
        "ncclKernel" in name,
        re.match(r"^nccl.*Kernel", name) is not None,
        name.startswith("nccl"),
    }
    copies = {
        "Memcpy" in name or "Memset" in name,
        re.match(r"(^Memcpy)|(^Memset)|(^dma)", name) is not None,
    }
    kinds = set()
    for is_communication in communicates:
        for is_copy in copies:
            kinds.add("communication" if is_communication else "copy" if is_copy else "computation")
    return kinds


class Traces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.traces, cls.reports = {}, {}
        for case, arguments in CASES.items():
            for level in LEVELS:
                play(f"{arguments} --trace t.json --trace-level {level} --json r.json", cls.folder)
                cls.traces[case, level] = json.loads((cls.folder / "t.json").read_text())
            cls.reports[case] = json.loads((cls.folder / "r.json").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def each(self, level=None):
        for (case, of), trace in self.traces.items():
            if level in (None, of):
                with self.subTest(case=case, level=of):
                    yield case, of, trace["traceEvents"]

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_follow_the_schema(self):
        validator = jsonschema.Draft7Validator(json.loads((HERE / "trace_schema.json").read_text()))
        for case, level in [("three axes", "flow"), ("offload", "op"), ("every rank", "stage")]:
            with self.subTest(case=case):
                validator.validate(self.traces[case, level])

    def test_every_kernel_is_what_it_is_by_all_rules(self):
        seen = collections.Counter()
        for _, level, events in self.each():
            for event in slices_of(events):
                arguments = event.get("args", {})
                if "stream" not in arguments:
                    self.assertIn(event["cat"], {"user_annotation", "cpu_op", "bubble", "flow"})
                    continue
                self.assertGreater(arguments["stream"], 0)
                self.assertEqual(arguments["stream"], event["tid"])
                wanted = "computation"
                if event["cat"] == "gpu_memcpy":
                    wanted = "copy"
                elif "Collective name" in arguments:
                    wanted = "communication"
                elif level == "stage" and event["tid"] != 7:
                    wanted = "communication"
                self.assertEqual(kind_by_rules(event["name"]), {wanted}, event)
                seen[wanted] += 1
        self.assertGreater(seen["computation"], 1000)
        self.assertGreater(seen["communication"], 300)
        self.assertGreater(seen["copy"], 10)

    def test_every_arrow_has_both_ends_in_slices(self):
        kinds = collections.Counter()
        for _, _, events in self.each():
            kinds += self.check_arrows(events)
        for kind in ["send", "collective", "fwdbwd", "update", "critical_path"]:
            self.assertGreater(kinds[kind], 20, kind)
        # Nor do arrows lead to what is left out.
        for level in LEVELS:
            play(f"{CASES['three axes']} --trace t.json --trace-ranks 1,4-5 --trace-microbatches 0,2-3"
                 f" --trace-level {level}", self.folder)
            events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
            self.assertGreater(sum(self.check_arrows(events).values()), 0)
            for event in slices_of(events):
                if event["cat"] == "flow":
                    self.assertNotRegex(event["name"], r" mb1 ")

    def check_arrows(self, events):
        """That each arrow begins and ends within a slice: how many there are of each kind."""
        kinds = collections.Counter()
        threads = collections.defaultdict(list)
        for event in slices_of(events):
            threads[event["pid"], event["tid"]].append(
                (picoseconds(event["ts"]), picoseconds(event["ts"] + event["dur"])))
        ends = collections.defaultdict(list)
        for event in events:
            if event["ph"] not in "sf":
                continue
            ends[event["cat"], event["name"], event["id"]].append(event["ph"])
            at = picoseconds(event["ts"])
            self.assertTrue(
                any(begin <= at < end for begin, end in threads[event["pid"], event["tid"]]), event)
            self.assertEqual(event.get("bp"), "e" if event["ph"] == "f" else None)
            kinds[event["cat"]] += 1
        for flow, phases in ends.items():
            self.assertEqual(phases, ["s", "f"], flow)
        return kinds

    def test_messages_of_all_kinds_have_their_arguments(self):
        kinds = collections.Counter()
        for case, level, events in self.each():
            if level == "stage":
                continue
            for event in slices_of(events):
                arguments = event.get("args", {})
                if "Collective name" not in arguments:
                    continue
                name = arguments["Collective name"]
                kinds[name] += 1
                kernel = {"allreduce": "AllReduce", "_allgather_base": "AllGather",
                          "_reduce_scatter_base": "ReduceScatter"}.get(name, "SendRecv")
                self.assertTrue(event["name"].startswith(f"ncclKernel_{kernel}("), event)
                shares = {"_allgather_base": (1, arguments.get("Group size")),
                          "_reduce_scatter_base": (arguments.get("Group size"), 1)}.get(name, (1, 1))
                # Bytes are whole numbers: rounded down.
                self.assertAlmostEqual(arguments["In msg nelems"] * shares[1],
                                       arguments["Out msg nelems"] * shares[0], delta=max(shares))
                if name not in ("send", "recv"):
                    group = json.loads(arguments["Process Group Ranks"])
                    self.assertIn(event["pid"], group)
                    self.assertEqual(len(group), arguments["Group size"])
        for name in ["allreduce", "_allgather_base", "_reduce_scatter_base", "all_to_all", "send", "recv"]:
            self.assertGreater(kinds[name], 0, name)
        self.assertEqual(kinds["send"], kinds["recv"])

    def test_runs_are_of_one_microbatch_and_stage(self):
        for case, microbatches, stages in [("three axes", 4, {0: [0], 4: [1]}), ("interleaved", 4, {0: [0, 2], 2: [1, 3]})]:
            names = collections.defaultdict(collections.Counter)
            for event in slices_of(self.traces[case, "stage"]["traceEvents"]):
                if event["cat"] == "kernel" and event["tid"] == 7:
                    names[event["pid"]][event["name"]] += 1
            for rank, held in stages.items():
                wanted = {f"{phase} mb{microbatch} s{stage}"
                          for phase in "FB" for microbatch in range(microbatches) for stage in held}
                self.assertLessEqual(wanted, set(names[rank]), (case, names))
                self.assertEqual({names[rank][name] for name in wanted}, {1}, (case, names))

    def test_collectives_wait_for_who_came_last(self):
        # The first stage of hp ranks 0 and 1 of a step that is simulated rank by rank.
        events = self.traces["every rank", "op"]["traceEvents"]
        busy = collections.defaultdict(list)
        for event in slices_of(events):
            if "task" in event.get("args", {}):
                busy[event["pid"]].append((event["ts"], event["ts"] + event["dur"]))
        ends = collections.defaultdict(dict)
        for event in events:
            if event["cat"] == "collective" if "cat" in event else False:
                ends[event["id"]][event["ph"]] = event
        seen = 0
        for arrow in ends.values():
            at = arrow["s"]["ts"]
            last = {rank: max((end for _, end in busy[rank] if end <= at + 1e-6), default=0)
                    for rank in (arrow["s"]["pid"], arrow["f"]["pid"])}
            self.assertGreaterEqual(last[arrow["s"]["pid"]], last[arrow["f"]["pid"]] - 1e-6, arrow)
            seen += 1
        self.assertGreater(seen, 20)

    def test_slices_of_a_thread_follow_each_other(self):
        for _, _, events in self.each():
            last = collections.defaultdict(float)
            for event in slices_of(events):
                thread = event["pid"], event["tid"]
                self.assertGreaterEqual(event["ts"], last[thread], event)
                last[thread] = event["ts"] + event["dur"]  # as readers add, in floating point

    def test_slices_add_up_to_the_report(self):
        for case, level, events in self.each():
            if level == "flow":
                continue
            busy, communication, bubble, computing = (collections.Counter() for _ in range(4))
            for event in slices_of(events):
                arguments = event.get("args", {})
                if event["cat"] == "bubble":
                    bubble[event["pid"]] += event["dur"]
                elif event["cat"] in ("kernel", "gpu_memcpy", "cpu_op"):
                    took = arguments["busy_us"] if level == "stage" else event["dur"]
                    busy[event["pid"]] += took
                    communication[event["pid"]] += took if "Collective name" in arguments else 0
            report = self.reports[case]
            self.assertGreater(len(busy), 0)
            step = report["step_time_s"]
            for rank in report["devices"]:
                if rank["rank"] not in busy:
                    continue
                self.assertAlmostEqual(busy[rank["rank"]] * 1e-6 / step, rank["busy_s"] / step, 9)
                if level == "op":
                    self.assertAlmostEqual(communication[rank["rank"]] * 1e-6 / step,
                                           rank["communication_s"] / step, 9)
                parts = sum(rank["bubble"].values())
                self.assertAlmostEqual(bubble[rank["rank"]] * 1e-6 / step, parts / step, 9)

    def test_counters_are_of_the_run(self):
        for case, level, events in self.each():
            report = self.reports[case]
            flying, memory, links = collections.defaultdict(list), collections.Counter(), 0
            for event in events:
                if event["ph"] != "C":
                    continue
                if event["name"] == "microbatches in flight":
                    flying[event["pid"]].append(event["args"]["microbatches"])
                elif event["name"] == "memory (bytes)":
                    held = sum(event["args"].values())
                    memory[event["pid"]] = max(memory[event["pid"]], held)
                else:
                    links += 1
            for counts in flying.values():
                self.assertEqual(counts[-1], 0)
                self.assertGreaterEqual(min(counts), 0)
                self.assertGreaterEqual(max(counts), 1)
            # Kernel by kernel it may stay below the report's, which takes runs of kernels at once.
            self.assertLessEqual(max(memory.values()), report["peak_memory_bytes"])
            self.assertGreater(max(memory.values()), 0.5 * report["peak_memory_bytes"])
            self.assertEqual(links > 0, level != "stage")

    def test_bubbles_say_what_they_wait_for(self):
        events = self.traces["three axes", "op"]["traceEvents"]
        bubbles = [event for event in events if event.get("cat") == "bubble"]
        second = [event for event in bubbles if event["pid"] == 4]
        self.assertEqual(second[0]["name"], "bubble: warm-up")
        self.assertRegex(second[0]["args"]["waits for"], r" mb0 of rank 0$")
        self.assertEqual({event["args"]["part"] for event in bubbles} - {"warm-up", "steady", "cool-down"}, set())

    def test_processes_say_where_their_rank_is(self):
        names = {
            event["pid"]: event["args"]["name"]
            for event in self.traces["three axes", "op"]["traceEvents"]
            if event["name"] == "process_name"
        }
        self.assertEqual(names[0], "rank 0 · dp0 hp0 pp0 · node0/gpu0 (x4)")
        self.assertEqual(names[4], "rank 4 · dp0 hp0 pp1 · node0/gpu4 (x4)")
        self.assertEqual(names[8], "network")

    def test_steps_are_profiler_steps(self):
        for case, _, events in self.each():
            steps = [event for event in slices_of(events) if event["cat"] == "user_annotation"]
            ranks = {event["pid"] for event in steps}
            self.assertEqual(len(steps), len(ranks))
            for step in steps:
                self.assertEqual(step["name"], "ProfilerStep#0")
                self.assertAlmostEqual(step["dur"] * 1e-6, self.reports[case]["step_time_s"], 11)
        play(f"{MLP} --pp 4 --micro-batches 8 --schedule pipedream --trace t.json --optimizer sgd", self.folder)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        steps = collections.defaultdict(list)
        for event in slices_of(events):
            if event["cat"] == "user_annotation":
                steps[event["pid"]].append(event["name"])
        for names in steps.values():
            self.assertGreater(len(names), 1)
            self.assertEqual(names, [f"ProfilerStep#{i}" for i in range(len(names))])

    def test_chosen_ranks_and_microbatches(self):
        play(f"{CASES['three axes']} --trace t.json --trace-ranks 1,4-5 --trace-microbatches 0,2-3", self.folder)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        shown = slices_of(events)
        self.assertEqual({event["pid"] for event in shown}, {1, 4, 5})
        microbatches = {event["args"]["microbatch"] for event in shown if "microbatch" in event.get("args", {})}
        self.assertEqual(microbatches, {0, 2, 3})
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(names[5], "rank 5 · dp0 hp1 pp1 · node0/gpu5")
        # Ranks 4 and 5 share the hp group; 1 sends to 5, and not to 4.
        pairs = collections.defaultdict(set)
        ends = collections.defaultdict(dict)
        for event in events:
            if event["ph"] in "sf":
                ends[event["cat"], event["id"]][event["ph"]] = event["pid"]
        for (kind, _), ranks in ends.items():
            pairs[kind].add(tuple(sorted((ranks["s"], ranks["f"]))))
        self.assertEqual(pairs["send"], {(1, 5)})
        self.assertEqual(pairs["collective"], {(4, 5)})
        # What a rank does is what the first of those that do the same does.
        whole = slices_of(self.traces["three axes", "op"]["traceEvents"])
        of_first = [(e["name"], e["ts"], e["dur"]) for e in whole if e["pid"] == 4 and e["cat"] == "kernel"
                    and e["args"].get("microbatch", 0) != 1]
        self.assertEqual([(e["name"], e["ts"], e["dur"]) for e in shown if e["pid"] == 5 and e["cat"] == "kernel"],
                         of_first)

    def test_a_file_a_rank(self):
        play(f"{CASES['three axes']} --trace rank{{rank}}.json.gz --trace-ranks all", self.folder)
        merged = slices_of(self.traces["three axes", "op"]["traceEvents"])
        for rank in range(8):
            trace = json.loads(gzip.decompress((self.folder / f"rank{rank}.json.gz").read_bytes()))
            if jsonschema is not None:
                jsonschema.validate(trace, json.loads((HERE / "trace_schema.json").read_text()))
            info = trace["distributedInfo"]
            self.assertEqual((info["rank"], info["world_size"]), (rank, 8))
            groups = {group["pg_name"]: group["ranks"] for group in info["pg_config"]}
            self.assertEqual(groups["hp"], [rank // 2 * 2, rank // 2 * 2 + 1])
            self.assertIn(rank, groups["dp"])
            self.assertEqual(trace["deviceProperties"][0]["name"].lower(), "h100-80gb")
            kernels = [e for e in slices_of(trace["traceEvents"]) if e["cat"] == "kernel"]
            alike = [e for e in merged if e["pid"] == rank // 4 * 4 and e["cat"] == "kernel"]
            self.assertEqual([e["ts"] for e in kernels], [e["ts"] for e in alike])

    def test_the_same_bytes_again(self):
        for name in ["a.json.gz", "b.json.gz"]:
            play(f"{CASES['three axes']} --trace {name} --trace-level flow", self.folder)
        self.assertEqual((self.folder / "a.json.gz").read_bytes(), (self.folder / "b.json.gz").read_bytes())

    def test_flows_stand_on_their_links(self):
        events = self.traces["three axes", "flow"]["traceEvents"]
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        flows = [event for event in slices_of(events) if event["cat"] == "flow"]
        self.assertGreater(len(flows), 50)
        tasks = {e["args"]["task"]: e for e in slices_of(events) if "task" in e.get("args", {}) and e["cat"] == "kernel"}
        for flow in flows:
            task = tasks[flow["args"]["task"]]
            self.assertEqual((flow["ts"], flow["dur"]), (task["ts"], task["dur"]))
            self.assertIn("(", threads[flow["pid"], flow["tid"]])

    def test_snapshots_hold_what_the_trace_counts(self):
        for case in ["three axes", "blocking", "offload", "zero 3"]:
            play(f"{CASES[case]} --memory-snapshot m.pickle --trace-ranks 0 --trace t.json --json r.json", self.folder)
            snapshot = pickle.loads((self.folder / "m.pickle").read_bytes())
            counted = max(
                sum(event["args"].values())
                for event in json.loads((self.folder / "t.json").read_text())["traceEvents"]
                if event["name"] == "memory (bytes)")
            held, blocks, most, now = 0, {}, 0, 0
            for event in snapshot["device_traces"][0]:
                self.assertGreaterEqual(event["time_us"], now)
                now = event["time_us"]
                self.assertEqual(len(event["frames"]), 1)
                if event["action"] == "alloc":
                    self.assertNotIn(event["addr"], blocks)
                    blocks[event["addr"]] = event["size"]
                    held += event["size"]
                else:
                    self.assertEqual(event["action"], "free_completed")
                    self.assertEqual(blocks.pop(event["addr"]), event["size"])
                    held -= event["size"]
                most = max(most, held)
            # Counters have the last value of a moment; here each change is seen.
            self.assertGreaterEqual(most, counted, case)
            report = json.loads((self.folder / "r.json").read_text())
            self.assertLessEqual(most, report["devices"][0]["peak_memory_bytes"], case)
            names = {event["frames"][0]["name"] for event in snapshot["device_traces"][0]}
            self.assertIn("parameters: during the whole step", names)
            self.assertTrue(any(re.fullmatch(r"activations: \w+ \S* ?mb\d+", name) for name in names), names)
            segment = snapshot["segments"][0]
            self.assertEqual(sum(block["size"] for block in segment["blocks"]), segment["total_size"])
            self.assertEqual(
                {block["address"]: block["size"] for block in segment["blocks"] if block["state"] != "inactive"}, blocks)
            for address, size in blocks.items():
                self.assertGreaterEqual(address, segment["address"])
                self.assertLessEqual(address + size, segment["address"] + segment["total_size"])

    def test_the_fullest_rank_is_the_one_of_the_snapshot(self):
        # The last stage, which has the logits.
        play(f"{GPT.replace('vocab=96', 'vocab=4096')} --pp 4 --micro-batches 2 --memory-snapshot m.pickle --json r.json",
             self.folder)
        devices = json.loads((self.folder / "r.json").read_text())["devices"]
        fullest = max(devices, key=lambda device: device["peak_memory_bytes"])["rank"]
        self.assertNotEqual(fullest, 0)
        snapshot = pickle.loads((self.folder / "m.pickle").read_bytes())
        self.assertEqual({event["frames"][0]["filename"] for event in snapshot["device_traces"][0]}, {f"rank {fullest}"})

    def test_programs_of_ranks_have_traces(self):
        play(f"--program {ROOT}/examples/programs/overlap.ranks --cluster dgx-a100:1 --trace t.json --trace-ranks all",
             self.folder)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        self.assertGreater(len(slices_of(events)), 4)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=BIN)
    options, rest = parser.parse_known_args()
    BIN = options.bin.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
