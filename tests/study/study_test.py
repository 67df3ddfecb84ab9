#!/usr/bin/env python3
"""Runs scripts/study with programs that are built, `scaling` up to 64 layers, and looks at what it
leaves: rows and columns of its data, and in each figure the lines and how many points they have, by
the marks that gnuplot draws. Figures are not looked at where there is no gnuplot.
"""
import argparse
import collections
import csv
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
MICROBATCHES = ("2", "4", "8", "16", "32")
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
    """How many marks each line of a figure has, in all of its panels; without the one in the key."""
    counts = collections.Counter()
    for group in xml.etree.ElementTree.parse(path).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is None or not group.get("id", "").startswith("gnuplot_plot_"):
            continue
        marks = [use for use in group.iter(f"{SVG}use")
                 if re.match("#gpPt", use.get("{http://www.w3.org/1999/xlink}href", ""))]
        counts[title.text] += len(marks)
    return counts


class Study(unittest.TestCase):
    """What the studies leave."""

    def look(self, folder, name, expected):
        """The figure has these lines of so many points, and stands as PDF, too."""
        if shutil.which("gnuplot") is None:
            return
        drawn = points(folder / f"{name}.svg")
        self.assertEqual(set(drawn), set(expected), name)
        for line, count in expected.items():
            self.assertEqual(drawn[line], count, f"{name}: {line}")
        self.assertTrue((folder / f"{name}.pdf").read_bytes().startswith(b"%PDF"))

    def test_grid(self):
        _, folder = study("grid")
        table = rows(folder / "study_grid.csv")
        self.assertEqual(len(table), 52)
        for row in table:
            self.assertEqual((row["model"], row["layers"], row["dim"]),
                             ("mlp:layers=64,dim=8192", "64", "8192"))
            self.assertGreater(float(row["throughput_samples_per_s"]), 0)
        by_line = collections.Counter(row["num_microbatches"] for row in table)
        self.assertEqual(set(by_line), {"1", *MICROBATCHES})
        names = {k: f"{k} microbatch{'' if k == '1' else 'es'}" for k in by_line}
        # Lines that are in the key have a mark there.
        self.look(folder, "study_grid", {names[k]: by_line[k] + 1 for k in by_line})

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
            for value in values:
                of_value = [int(row[degree]) for row in table if row[column] == value]
                self.assertEqual(of_value, [2 ** i for i in range(1, count + 1)])
            self.look(folder, f"study_{degree}",
                      {f"{label} {value}": count + 1 for value in values})

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
                  {"simulate": 3, "build, lower, simulate, report": 3})

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
