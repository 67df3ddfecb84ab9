#!/usr/bin/env python3
"""Runs scripts/study with programs that are built, `scaling` up to 64 layers, and looks at what it
leaves: rows and columns of its data, and in each figure the marks of every line, which stand as high
as the data say. Figures are not looked at where there is no gnuplot.
"""
import argparse
import collections
import csv
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
BATCHES = ("512", "1024", "2048", "4096")
DIMS = ("1024", "2048", "4096", "8192")
# Samples a second by batch size, 2 to 64 stages: tests/distir/oracle_test.cc has them from DistIR's rules.
PIPELINES = {"512": (582.376, 946.115, 1372.811, 1760.242, 2016.927, 2103.570),
             "1024": (723.482, 1176.170, 1707.336, 2186.342, 2493.218, 2572.889),
             "2048": (823.211, 1338.959, 1944.219, 2487.403, 2827.013, 2895.895),
             "4096": (884.149, 1438.508, 2089.148, 2671.325, 3029.716, 3088.379)}
BIN = pathlib.Path("build/bin")


def study(name, **environment):
    """Runs a study in a folder of its own; its output and that folder."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="orrery_study_"))
    done = subprocess.run(
        [ROOT / "scripts/study", name], capture_output=True, text=True, check=False,
        env=os.environ | {"ORRERY_STUDY_OUT": str(folder), "ORRERY_STUDY_BIN": str(BIN)} | environment)
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def points(path):
    """Where the marks of each line are in a figure, in all of its panels, from the top down; without
    the one of the key, which is the last to the right. Lines are told by their marks and colours."""
    names, marks = {}, collections.defaultdict(list)
    for group in xml.etree.ElementTree.parse(path).iter(f"{SVG}g"):
        if not group.get("id", "").startswith("gnuplot_plot_"):
            continue
        look, places = None, []
        for use in group.iter(f"{SVG}use"):
            look = (use.get("{http://www.w3.org/1999/xlink}href"), use.get("color"))
            place = re.match(r"translate\(([\d.]+),([\d.]+)\)", use.get("transform"))
            places.append((float(place[1]), float(place[2])))
        name = " ".join(text.text for text in group.iter(f"{SVG}text"))
        if name:
            names[look] = name
            places.remove(max(places))
        marks[look] += [y for _, y in places]
    return {names[look]: sorted(heights) for look, heights in marks.items()}


def stray(pairs):
    """How far marks are from where an axis, linear or logarithmic, has their values; in pixels."""
    def of(scale):
        (least, low), (most, high) = min(pairs), max(pairs)
        slope = (high - low) / (scale(most) - scale(least))
        return max(abs(low + slope * (scale(value) - scale(least)) - y) for value, y in pairs)
    return min(of(float), of(math.log))


class Study(unittest.TestCase):
    """What the studies leave."""

    def look(self, folder, name, expected):
        """The figure has these lines, each with these values, and stands as PDF, too."""
        if shutil.which("gnuplot") is None:
            return
        drawn = points(folder / f"{name}.svg")
        self.assertEqual(set(drawn), set(expected), name)
        pairs = []
        for line, values in expected.items():
            self.assertEqual(len(drawn[line]), len(values), f"{name}: {line}")
            pairs += zip(sorted(values, reverse=True), drawn[line])
        self.assertLess(stray(pairs), 0.6, name)
        self.assertTrue((folder / f"{name}.pdf").read_bytes().startswith(b"%PDF"))

    def test_grid(self):
        _, folder = study("grid")
        table = rows(folder / "study_grid.csv")
        self.assertEqual(len(table), 52)
        for row in table:
            self.assertEqual((row["model"], row["layers"], row["dim"]),
                             ("mlp:layers=64,dim=8192", "64", "8192"))
            self.assertGreater(float(row["throughput_samples_per_s"]), 0)
        lines = collections.defaultdict(list)
        for row in table:
            plural = "" if row["num_microbatches"] == "1" else "es"
            lines[f"{row['num_microbatches']} microbatch{plural}"].append(
                float(row["throughput_samples_per_s"]))
        self.assertEqual(len(lines), 6)
        self.look(folder, "study_grid", lines)

    def test_isolated(self):
        shown, folder = study("isolated")
        lines = {"dp": ("batch_size", "batch", BATCHES, 7), "pp": ("batch_size", "batch", BATCHES, 6),
                 "hp": ("dim", "dim", DIMS, 6)}
        for degree, (column, label, values, count) in lines.items():
            table = rows(folder / f"study_{degree}.csv")
            self.assertEqual(len(table), len(values) * count)
            for row in table:
                self.assertEqual(row["model"], f"mlp:layers={row['layers']},dim={row['dim']}")
                self.assertEqual(row["world_size"], row[degree])
                self.assertIn(f"{int(row[degree]):8d} {int(row['batch_size']):6d} "
                              f"{int(row['layers']):6d} {int(row['dim']):6d} "
                              f"{float(row['throughput_samples_per_s']):14.3f}\n", shown)
            drawn = {}
            for value in values:
                of_value = [row for row in table if row[column] == value]
                self.assertEqual([int(row[degree]) for row in of_value],
                                 [2 ** i for i in range(1, count + 1)])
                drawn[f"{label} {value}"] = [
                    float(row["throughput_samples_per_s"]) for row in of_value]
                if degree == "pp":
                    for ours, distir in zip(drawn[f"{label} {value}"], PIPELINES[value]):
                        self.assertAlmostEqual(ours, distir, delta=0.001)
            self.look(folder, f"study_{degree}", drawn)

    def test_scaling(self):
        shown, folder = study("scaling", ORRERY_STUDY_LAYERS="64")
        table = rows(folder / "study_scaling.csv")
        self.assertEqual([row["layers"] for row in table], ["32", "64"])
        self.assertEqual({(row["dim"], row["batch_size"]) for row in table}, {("64", "64")})
        for row in table:
            self.assertEqual(int(row["ops"]), 4 * int(row["layers"]) + 2)
            self.assertGreater(float(row["total_ms"]), 0)
        self.assertEqual(shown, (folder / "study_scaling.csv").read_text(encoding="utf-8"))
        self.look(folder, "study_scaling",
                  {"simulate": [float(row["simulate_ms"]) for row in table],
                   "build, lower, simulate, report": [float(row["total_ms"]) for row in table]})

    def test_names_what_there_is(self):
        for arguments in ([], ["grid", "more"], ["other"]):
            done = subprocess.run([ROOT / "scripts/study", *arguments], capture_output=True,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("scripts/study isolated", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/bin")
    BIN = pathlib.Path(parser.parse_args().bin).resolve()
    unittest.main(argv=["study_test"])
