"""Tests of commands_test.py, on pages of its own and a program in Python."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import pages  # noqa: E402

# Prints its words a line each; the last one may be an exit code.
PROGRAM = """#!/usr/bin/env -S python3 -S
import pathlib, sys
words = sys.argv[1:]
code = int(words.pop()) if words and words[-1].isdigit() else 0
print(*words, sep="\\n")
if code:
    print("trouble", file=sys.stderr)
sys.exit(code)
"""


def fenced(*lines: str) -> str:
    return "\n".join(["```", *lines, "```", ""])


class Commands(unittest.TestCase):
    """What becomes of a page."""

    def check(self, page: str, *flags: str, bless: str = "0") -> tuple[int, str]:
        """Exit code and output, of a repository whose README is `page`."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / "docs").mkdir()
            (root / "bin").mkdir()
            (root / "examples").mkdir()
            (root / "examples/there.txt").write_text("one\n")
            (root / "README.md").write_text(page)
            (root / "bin/say").write_text(PROGRAM)
            (root / "bin/say").chmod(0o755)
            done = subprocess.run(
                [sys.executable, HERE / "commands_test.py", "--bin", root / "bin", "--root", root, *flags],
                capture_output=True, text=True, check=False,
                env={"PATH": "/usr/bin:/bin", "ORRERY_BLESS": bless},
            )  # fmt: skip
            self.assertEqual(done.stderr, "")
            self.page = (root / "README.md").read_text()
            self.files = {path.name for path in root.iterdir()}
            return done.returncode, done.stdout

    def expect(self, page: str, code: int, part: str, *flags: str) -> None:
        found, out = self.check(page, *flags)
        self.assertEqual(found, code, out)
        self.assertIn(part, out)

    def test_what_is_shown_has_to_be_printed(self) -> None:
        self.expect(fenced("$ build/bin/say a b", "a", "b"), 0, "1 commands were run")
        self.expect(fenced("$ build/bin/say a b", "a", "c"), 1, "README.md:2: $ build/bin/say a b")
        self.expect(fenced("$ build/bin/say a b", "a"), 1, "+b")
        self.expect(fenced("$ build/bin/say a b", "...", "b"), 0, "0 failures")
        self.expect(fenced("$ build/bin/say a b", "...", "a"), 1, "1 failures")
        self.expect(fenced("$ build/bin/say alpha", "al…a"), 0, "0 failures")

    def test_exit_codes_count(self) -> None:
        self.expect(fenced("build/bin/say a 3"), 1, "exit code 3, wanted 0")
        self.expect("<!-- exit: 3 -->\n" + fenced("build/bin/say a 3"), 0, "0 failures")
        shown = fenced("$ build/bin/say a 3", "a", "trouble")
        self.expect("<!-- exit: 3 -->\n" + shown, 0, "0 failures")
        self.expect(fenced("build/bin/none"), 1, "exit code 127")

    def test_indented_and_continued_lines_are_commands(self) -> None:
        self.expect("Text.\n\n    build/bin/say \\\n      a 4\n", 1, "exit code 4, wanted 0")
        self.expect("Text.\n\n    $ build/bin/say a\n    b\n", 1, "README.md:3:")

    def test_a_block_is_run_or_marked(self) -> None:
        self.expect(fenced("a", "b"), 1, "'a' is no command")
        self.expect("<!-- not run: why -->\n" + fenced("a", "b"), 0, "1 cannot be")
        self.expect("```cpp\nint a;\n```\n", 0, "0 failures")
        self.expect("```text\na\n```\n", 1, "'a' is no command")

    def test_slow_ones_are_run_when_asked(self) -> None:
        page = "<!-- slow: 9 s -->\n\n    build/bin/say a 1\n"
        self.expect(page, 0, "1 are slow and were not")
        self.expect(page, 1, "exit code 1", "--slow")

    def test_output_by_itself_names_its_command(self) -> None:
        self.expect("<!-- printed by: build/bin/say a b -->\n" + fenced("a", "b"), 0, "0 failures")
        self.expect("<!-- printed by: build/bin/say a b -->\n" + fenced("a"), 1, "+b")
        self.expect("<!-- excerpt of: build/bin/say a b -->\n" + fenced("a"), 0, "0 failures")

    def test_files_are_as_they_are_or_are_made(self) -> None:
        mark = "<!-- file: examples/there.txt -->\n"
        self.expect(mark + fenced("one"), 0, "1 files")
        self.expect(mark + fenced("two"), 1, "examples/there.txt is not as it is shown")
        made = "<!-- file: new.txt -->\n" + fenced("one")
        self.expect(made + "\n" + fenced("build/bin/say $(cat new.txt) 2"), 1, "one\n")

    def test_rows_of_tables(self) -> None:
        table = "<!-- rows: build/bin/say {1} x{1} -->\n| n | x |\n|---|---|\n| `a` | xa |\n"
        self.expect(table, 0, "1 commands were run")
        self.expect(table + "| `b` | xa |\n", 1, "README.md:5: no 'xa'")

    def test_blessing_writes_what_is_printed(self) -> None:
        self.check(fenced("$ build/bin/say a b", "c", "", "$ build/bin/say d", "e"), bless="1")
        self.assertEqual(self.page, fenced("$ build/bin/say a b", "a", "b", "", "$ build/bin/say d", "d"))
        self.check("<!-- excerpt of: build/bin/say a b -->\n" + fenced("bb"), bless="1")
        self.assertIn("```\nb\n```", self.page)
        command = "$ build/bin/say first 'time 3 s' last"
        self.check(fenced(command, "...", "time 4 s", "..."), bless="1")
        self.assertEqual(self.page, fenced(command, "...", "time 3 s", "..."))
        strange = fenced(command, "...", "something else altogether")
        self.check(strange, bless="1")
        self.assertEqual(self.page, strange)

    def test_nothing_lands_in_the_repository(self) -> None:
        page = fenced("build/bin/say a > out/a.txt") + "\n" + fenced("build/bin/say a > b.txt")
        self.expect(page, 0, "2 commands were run")
        self.assertEqual(self.files, {"README.md", "bin", "docs", "examples"})


class Lines(unittest.TestCase):
    """Single lines."""

    def test_clocks_are_left_out(self) -> None:
        line = "  simulated   91 tasks of 4 rank classes in 33.651 ms"
        self.assertEqual(pages.without_clocks(line), "  simulated   91 tasks of 4 rank classes in TIME")
        self.assertEqual(pages.without_clocks("done in 3 ms"), "done in 3 ms")

    def test_dots_of_a_timeline_are_dots(self) -> None:
        self.assertFalse(pages.is_shown("F0--x", "F0...x"))


if __name__ == "__main__":
    unittest.main()
