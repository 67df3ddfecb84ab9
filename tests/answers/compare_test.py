"""Tests of scripts/compare_answers, with programs in Python in place of those of two builds."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS / "answers"))
import commands  # noqa: E402

# Says something about its flags, and something else whenever it is run.
PROGRAM = """#!/usr/bin/env -S python3 -S
import json, pathlib, sys, time, zlib
hashed = zlib.crc32(" ".join(sys.argv[1:]).encode())
clock = time.monotonic()
print(f"  simulated    91 tasks of 4 rank classes in {clock:.3f} ms")
if hashed % 4 == 0 and "grid.csv" not in sys.argv:
    sys.exit(f"{sys.argv[0]}: infeasible")
report = {"step_time_s": 0.1, "fits": True, "devices": [{"rank": 0}], "wall_time_s": clock}
rows = [["model", "dp", "reason"], ["m", str(hashed), "y"]]
NEW
if "report.json" in sys.argv:
    pathlib.Path("report.json").write_text(json.dumps(report, indent=1))
if "grid.csv" in sys.argv:
    pathlib.Path("grid.csv").write_text("".join(",".join(row) + "\\n" for row in rows))
"""


class Compares(unittest.TestCase):
    """Two builds of which the new one differs by a line."""

    def compare(self, change: str, *flags: str) -> tuple[int, str]:
        """Exit code and output of a comparison with programs that the line changes."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for build, line in (("old", "pass"), ("new", change)):
                (folder / build).mkdir()
                for program in commands.PROGRAMS:
                    (folder / build / program).write_text(PROGRAM.replace("NEW", line))
                    (folder / build / program).chmod(0o755)
            command = [SCRIPTS / "compare_answers", folder / "old", folder / "new", "--count", "6"]
            done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout

    def test_clocks_are_no_difference(self) -> None:
        code, out = self.compare("pass")
        self.assertEqual(code, 0, out)
        self.assertIn("6 of 6 agree", out)

    def test_a_digit_is_one(self) -> None:
        code, out = self.compare('report["step_time_s"] = 0.10000000000000002')
        self.assertEqual(code, 1)
        self.assertIn('\n-"step_time_s": 0.1,\n+"step_time_s": 0.10000000000000002,\n',
                      out.replace("- ", "-").replace("+ ", "+"))  # fmt: skip

    def test_exit_codes_and_files_are_one(self) -> None:
        self.assertIn("\nexit code 0 -> 3\n", self.compare("sys.exit(3)")[1])
        self.assertIn("\nreport.json: only old\n", self.compare("sys.exit(0)")[1])

    def test_new_columns_where_they_are_allowed(self) -> None:
        change = 'report["devices"][0]["new"] = 1; rows[0][1:1] = ["new"]; rows[1][1:1] = ["5"]'
        self.assertEqual(self.compare(change)[0], 1)
        code, out = self.compare(change, "--allow-new-columns")
        self.assertEqual(code, 0, out)
        code, out = self.compare(f'{change}; rows[1][2] = "other"', "--allow-new-columns")
        self.assertIn("\n+m,other,y\n", out)


class Draws(unittest.TestCase):
    """The command lines."""

    def test_the_same_seed_draws_the_same(self) -> None:
        self.assertEqual(commands.draw(40, 7), commands.draw(60, 7)[:40])
        self.assertNotEqual(commands.draw(40, 7), commands.draw(40, 8))

    def test_every_program_and_schedule_is_drawn(self) -> None:
        drawn = commands.draw(300, 1)
        self.assertEqual({command.program for command in drawn}, set(commands.PROGRAMS))
        words = {word for command in drawn for flag in command.flags for word in flag.split(",")}
        self.assertLessEqual(set(commands.SCHEDULES), words)


if __name__ == "__main__":
    unittest.main()
