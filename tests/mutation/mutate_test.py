"""Tests of tests/mutate, without a compiler: `tests/mutate --self-test` runs them."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest
import unittest.mock

import mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Stands for cmake: "builds" a test program that reads the source it stands for. Like a compiler it
# refuses `x -`, and the program hangs where a loop does not end.
CMAKE = r"""#!/usr/bin/env python3
import pathlib, sys
words = sys.argv[1:]
if words[0] == "-S":
    (pathlib.Path(words[3]) / "bin").mkdir(parents=True, exist_ok=True)
    sys.exit(0)
text = pathlib.Path("toy/sum.cc").read_text()
program = pathlib.Path(words[1]) / "bin" / words[-1]
hangs = "import time; time.sleep(60)" if "i -=" in text else ""
fails = "sum < limit" not in text or "int sum = 0" not in text
program.write_text(f"#!/usr/bin/env python3\n{hangs}\nimport sys; sys.exit({int(fails)})\n")
program.chmod(0o755)
sys.exit(1 if "x -" in text else 0)
"""

TOY = """// Adds up to 10.
int Sum(int limit, int x) {
  int sum = 0;
  for (int i = 0; sum < limit; i += 2) sum = x + i;
  return sum;
}
"""


def load_mutate():  # type: ignore[no-untyped-def]
    """The script, which has no ending, as a module."""
    loader = importlib.machinery.SourceFileLoader("mutate_script", str(ROOT / "tests" / "mutate"))
    spec = importlib.util.spec_from_loader("mutate_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


mutate = load_mutate()


def changes(text: str) -> list[str]:
    """The changes that are found in the text."""
    return [mutant.key[2] for mutant in mutants.mutants_of("a.cc", text)]


class FindsChanges(unittest.TestCase):
    """What becomes a mutant, and what does not."""

    def expect(self, text: str, *wanted: str) -> None:
        """The text has these changes."""
        self.assertEqual(changes(text), list(wanted), text)

    def test_operators(self) -> None:
        self.expect("a < b && c >= d", "< -> <=", "&& -> ||", ">= -> >")
        self.expect("a == b || c != d", "== -> !=", "|| -> &&", "!= -> ==")
        self.expect("a + b - c * d / e % f", "+ -> -", "- -> +", "* -> /", "/ -> *", "% -> *")
        self.expect("a += b; c /= d;", "+= -> -=", "/= -> *=")
        self.expect("a\n    && b", "&& -> ||")
        self.expect("if (!a) b = !c();", "! left out", "! left out #2")

    def test_constants_and_words(self) -> None:
        self.expect("f(0, 1, 41, -7)", "0 -> 1", "1 -> 2", "41 -> 42", "7 -> 8")
        self.expect("f(1'000u, 0xffU, 017)", "1'000u -> 1001u", "0xffU -> 0x100U", "017 -> 16")
        self.expect("bool a = true, b = false;", "true -> false", "false -> true")
        self.expect("std::min(a, std::ranges::max(b))", "min -> max", "max -> min")
        self.expect("if (a) continue;\nbreak;", "continue -> break", "break -> continue")

    def test_what_looks_alike(self) -> None:
        self.expect("std::vector<int> a; const T& b; T&& c; int* d; auto&& [e, f] = g;")
        self.expect("a->b; *c = -d; ++e; f << g;")
        self.expect("template <typename T, int N = 3>\nstd::array<T, 4> F(std::map<int, A<T>> a);")
        self.expect("bool operator<(A a); bool operator==(A a); auto operator<=>(const A&) const;")
        self.expect("return a<b> (c);\nfloat x = 1.5e-3f + .5;", "+ -> -")
        self.expect("std::numeric_limits<int64_t>::max(); flags.min; max(a)")

    def test_what_is_left_alone(self) -> None:
        self.expect('// a < 1\n/* b + 2\n c */ s = "d && 3" + f; R"(x < 4)"; \'+\';')
        self.expect('#include <a/1.h>\n#define F(x) \\\n  (x < 1)\n  #if 2\nint a;')
        self.expect("static_assert(sizeof(A) == 4);\nDCHECK_EQ(a, 3);")
        self.expect("ORRERY_CHECK(a < 1) << b + 2;")
        self.expect("v.reserve(n + 1);\nreturn absl::InvalidArgumentError(absl::StrCat(a + 1));")
        self.expect("a = NotAnErrorAtAll(1);", "1 -> 2")

    def test_what_follows_what_is_left_alone(self) -> None:
        self.expect("CHECK(a) << b;\nc < d;", "< -> <=")
        self.expect("v.reserve(2 * n); w += 3;", "+= -> -=", "3 -> 4")
        self.expect("std::vector<int> a(7);", "7 -> 8")

    def test_where_it_stands(self) -> None:
        text = "int a;\n  b = c < d && e < f;\n"
        mutant = mutants.mutants_of("x/y.cc", text)[2]
        self.assertEqual(str(mutant), "x/y.cc:2: < -> <= #2   b = c < d && e < f;")
        self.assertEqual(mutant.apply(text), "int a;\n  b = c < d && e <= f;\n")


class ReadsSurvivors(unittest.TestCase):
    """The list of mutants that compute the same."""

    def test_round_trip(self) -> None:
        mutant = mutants.mutants_of("a.cc", "b < c")[0]
        text = "# Says what it is.\n\n" + mutants.write_survivor(mutant, "b is never c")
        self.assertEqual(mutants.read_survivors(text), {mutant.key: "b is never c"})

    def test_lines_are_missing(self) -> None:
        with self.assertRaisesRegex(mutants.SurvivorError, "found:\na.cc"):
            mutants.read_survivors("a.cc\n    b < c\n")

    def test_those_of_the_repository_are_there(self) -> None:
        for path, code, change in mutate.known_survivors(ROOT):
            text = (ROOT / path).read_text()
            keys = {mutant.key for mutant in mutants.mutants_of(path, text)}
            self.assertIn((path, code, change), keys, "tests/mutate_survivors.txt is out of date")


class ReadsTheRepository(unittest.TestCase):
    """Files and their tests."""

    def test_every_source_can_be_read(self) -> None:
        found = mutate.mutants_below(ROOT, "simulator", "")
        self.assertGreater(len(found), 500)
        for mutant in found:
            self.assertNotIn("_test", mutant.path)
            text = (ROOT / mutant.path).read_text()
            self.assertNotEqual(mutant.apply(text), text)

    def test_programs_of_a_file(self) -> None:
        tests = [str(test) for test in mutate.tests_of(ROOT, "simulator/report/report.cc")]
        self.assertEqual(tests[0], "simulator_report_test")
        self.assertIn("semantics_test", tests)
        self.assertEqual(len(tests), len(set(tests)))

    def test_a_file_is_put_back(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cc"
            path.write_text("b < c")
            mutant = mutants.mutants_of("a.cc", "b < c")[0]
            with self.assertRaises(KeyboardInterrupt), mutate.changed(path, mutant):
                self.assertEqual(path.read_text(), "b <= c")
                raise KeyboardInterrupt
            self.assertEqual(path.read_text(), "b < c")


class RunsAToy(unittest.TestCase):
    """A repository of one file, with a program in place of cmake."""

    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root = self.folder / "root"
        self.write("bin/cmake", CMAKE).chmod(stat.S_IRWXU)
        self.write("root/toy/sum.cc", TOY)
        self.write("root/toy/CMakeLists.txt", "orrery_add_folder(toy)\n")
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        self.enterContext(unittest.mock.patch.dict(os.environ, {"PATH": path}))
        self.enterContext(unittest.mock.patch.object(mutate, "LEAST_TEST_TIMEOUT_S", 3))
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "-m", "toy")

    def write(self, name: str, text: str) -> pathlib.Path:
        """A file below the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *words: str) -> None:
        """Calls git in the toy."""
        subprocess.run(["git", "-C", str(self.root), *words], check=True)

    def mutate(self, *flags: str) -> str:
        """What a run over the toy prints."""
        arguments = mutate.read_arguments(["simulator", *flags])
        arguments.folder = "toy"
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            mutate.mutate(self.root, arguments)
        return out.getvalue()

    def test_verdicts(self) -> None:
        out = self.mutate()
        for verdict, change in (
            ("killed by toy_test", "3: 0 -> 1 "),
            ("survived", "4: 0 -> 1 "),
            ("killed by toy_test", "4: < -> <= "),
            ("timed out by toy_test", "4: [+]= -> -= "),
            ("survived", "4: 2 -> 3 "),
            ("did not compile", "4: [+] -> - "),
        ):
            self.assertRegex(out, rf"\[\d/6\] {verdict}, \d+ s: toy/sum.cc:{change}")
        self.assertTrue(out.endswith("\n3 killed of 5 (60.0 %)\n"), out)
        self.assertEqual((self.root / "toy/sum.cc").read_text(), TOY)
        worktrees = subprocess.check_output(["git", "-C", str(self.root), "worktree", "list"])
        self.assertEqual(len(worktrees.splitlines()), 1)

    def test_goes_on_and_knows_survivors(self) -> None:
        build = str(self.folder / "work")
        first = self.mutate("--build", build)
        code = "for (int i = 0; sum < limit; i += 2) sum = x + i;"
        record = f"toy/sum.cc\n    {code}\n    2 -> 3\n    Steps do not matter.\n"
        self.write("root/tests/mutate_survivors.txt", record)
        with unittest.mock.patch.object(mutate.Judge, "judge", side_effect=AssertionError):
            second = self.mutate("--build", build)
        self.assertRegex(second, r"equivalent, \d+ s: toy/sum.cc:4: 2 -> 3")
        self.assertTrue(first.endswith("\n3 killed of 5 (60.0 %)\n"), first)
        self.assertTrue(second.endswith("\n3 killed of 4 (75.0 %)\n"), second)

    def test_tests_that_fail_already(self) -> None:
        self.write("root/toy/sum.cc", TOY.replace("sum = 0", "sum = 7"))
        self.git("-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "-am", "broken")
        with self.assertRaisesRegex(mutate.MutateError, "toy_test fails without any change"):
            self.mutate()


if __name__ == "__main__":
    unittest.main()
