"""Tests of tests/mutate, without a build of Orrery: `tests/mutate --self-test` runs them."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import stat
import subprocess
import tempfile
import unittest
import unittest.mock

import mutants
import switches

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
program = pathlib.Path(words[1]) / "bin" / words[words.index("--target") + 1]
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
        tests = [str(test) for test in mutate.tests_of(ROOT, "lowering/placement/fuse_runs.cc")]
        self.assertEqual(tests[:2], ["lowering_placement_test", "lowering_test"])

    def test_what_tests_use_is_no_source(self) -> None:
        found = {m.path for m in mutate.mutants_below(ROOT, "simulator", "random_program|play.cc")}
        self.assertEqual(found, {"simulator/engine/play.cc"})

    def test_a_file_is_put_back(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cc"
            path.write_text("b < c")
            mutant = mutants.mutants_of("a.cc", "b < c")[0]
            with self.assertRaises(KeyboardInterrupt), mutate.changed(path, mutant):
                self.assertEqual(path.read_text(), "b <= c")
                raise KeyboardInterrupt
            self.assertEqual(path.read_text(), "b < c")


# A program of everything that can be switched; prints what it computes.
ZOO = r"""#include <cstdio>

namespace own {
static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a < b ? b : a; }
}  // namespace own

constexpr int kTwo = 1 + 1;

static int Count(int n, bool odd) {
  int count = 0;  // of 3
  for (int i = 0; i < n; ++i) {
    if (!odd && i % 2 == 1) continue;
    if (i >= 7 || count > 4) break;
    count += odd ? i * 2 : own::min(i, 5);
  }
  return count;
}

struct Pair {
  int first = 4;
  bool second = false;
};

int main() {
  int a[6] = {1, 2, kTwo, 4, 5, 6};
  const Pair pair = {.first = a[1 + 1] * (a[2] - 3), .second = a[0] == a[1] && true};
  int sum = pair.first + Count(9, pair.second) -
            // Not 1 + 1.
            Count(own::max(3, a[1] + 1), !pair.second);
  if (sum < 5) sum -= 1;
  else sum /= 2;
  const auto twice = [&](int x) { return x + x > 12 ? x - sum : x * sum; };
  std::printf("%d %d %d %d\n", sum, twice(4), twice(8), pair.second || sum != 3 ? a[2] : 0);
}
"""

# Stands for cmake where switches are compiled: builds the toy, which is a program by itself.
COMPILES = r"""#!/usr/bin/env python3
import pathlib, subprocess, sys
words = sys.argv[1:]
out = pathlib.Path(words[3] if words[0] == "-S" else words[1]) / "bin"
out.mkdir(parents=True, exist_ok=True)
if words[0] == "--build":
    command = ["c++", "-std=c++20", "toy/sum.cc", "-o", str(out / "toy_test")]
    sys.exit(subprocess.run(command).returncode)
"""


def compiled(folder: pathlib.Path, text: str, name: str) -> str:
    """What the compiler says of the text as folder/name.cc; it makes folder/name."""
    (folder / f"{name}.cc").write_text(text)
    command = ["c++", "-std=c++20", "-O0", f"{name}.cc", "-o", name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr


def printed(program: pathlib.Path, on: int = -1) -> str:
    """What the program prints with that mutant on, and how it ends."""
    environment = os.environ | {"ORRERY_MUTANT": str(on)}
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=10, check=False
    )
    return f"{done.returncode} {done.stdout}"


class SwitchesMutants(unittest.TestCase):
    """Many mutants in one text."""

    def expect(self, text: str, place: int, wanted: str) -> None:
        """The mutant at that place of the text's becomes this switch; `on` stands for its name."""
        numbered = {5: mutants.mutants_of("a.cc", text)[place]}
        out = switches.switched(text, switches.switches_of(text, numbered)).split("\n", 2)[2]
        self.assertEqual(out.replace("::orrery_mutation::IsOn(5)", "on"), wanted)

    def test_what_is_written_twice(self) -> None:
        self.expect("return a < b;", 0, "return (on ? (a <= b) : (a < b));")
        self.expect("x = f(a, b + c);", 0, "x = f(a, (on ? (b - c) : (b + c)));")
        self.expect("x += a ? b : c;", 0, "(on ? (x -= a ? b : c) : (x += a ? b : c));")
        self.expect("if (a) x += b;", 0, "if (a) (on ? (x -= b) : (x += b));")
        self.expect("f(a) * b ? c : d;", 0, "(on ? (f ( a ) / b) : (f(a) * b)) ? c : d;")
        self.expect("x = {.y = !a[1], .z = 2};", 0, "x = {.y = (on ? (a [ 1 ]) : (!a[1])), .z = 2};")
        self.expect("x = 3;", 0, "x = (on ? (4) : (3));")
        self.expect("if (a) break;", 0, "if (a) if (on) continue; else break;")
        self.expect("y = std::min(a, b);", 0, "y = (on ? (std :: max ( a , b )) : (std::min(a, b)));")
        self.expect("a &&  // 1\n b;", 0, "(on ? (a || b) : (a &&  // 1\n b));")

    def test_each_computes_what_it_would_by_itself(self) -> None:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        found = mutants.mutants_of("zoo.cc", ZOO)
        some = switches.switches_of(ZOO, dict(enumerate(found)))
        self.assertEqual(len(some), len(found))
        refused = switches.blamed(
            compiled(folder, switches.switched(ZOO, some), "zoo"), "zoo.cc", ZOO, some
        )
        self.assertEqual({s.mutant.code for s in refused}, {"constexpr int kTwo = 1 + 1;"})
        some = [switch for switch in some if switch not in refused]
        self.assertEqual(compiled(folder, switches.switched(ZOO, some), "zoo"), "")
        self.assertEqual(compiled(folder, ZOO, "plain"), "")
        self.assertEqual(printed(folder / "zoo"), printed(folder / "plain"))
        different = 0
        for switch in some:
            self.assertEqual(compiled(folder, switch.mutant.apply(ZOO), "single"), "")
            wanted = printed(folder / "single")
            self.assertEqual(printed(folder / "zoo", switch.number), wanted, switch.mutant)
            different += wanted != printed(folder / "plain")
        self.assertGreater(different, len(some) // 3)


class Suspects(unittest.TestCase):
    """What is left out where the compiler names no line of a switch."""

    TEXT = "const Record kRecord = {\n    .name = 1,\n    .finds = true,\n};\nint f = 2 + 3;\n"

    def suspects(self, path: str, output: str) -> set[str]:
        """The code of those suspected in a file of that path."""
        found = mutants.mutants_of(path, self.TEXT)
        some = switches.switches_of(self.TEXT, dict(enumerate(found)))
        self.assertEqual(switches.blamed(output, path, self.TEXT, some), [])
        return {s.mutant.code for s in switches.suspected(output, path, self.TEXT, some)}

    def test_between_the_lines_that_are_named(self) -> None:
        output = "a.cc:1:14: error: no constant initializer\na.cc:4:1: error: call to IsOn\n"
        self.assertEqual(self.suspects("a.cc", output), {".name = 1,", ".finds = true,"})
        self.assertEqual(self.suspects("b.cc", output), set())

    def test_whole_initializers_in_headers(self) -> None:
        self.assertEqual(self.suspects("a.h", "b.cc:1:1: error: of IsOn"), {"int f = 2 + 3;"})


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
        arguments.folders = ["toy"]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            mutate.mutate(self.root, arguments)
        return out.getvalue()

    def test_verdicts(self) -> None:
        out = self.mutate("--one-by-one")
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

    def test_switches_come_to_the_same_verdicts(self) -> None:
        self.write("bin/cmake", COMPILES)
        toy = TOY.replace("sum < limit;", "sum < limit && i * i < 99;")
        toy += "constexpr int kNine = 9;\nint main() { return Sum(kNine, 5) != 9; }\n"
        self.write("root/toy/sum.cc", toy)
        self.git("-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "-am", "main")
        lines = [sorted(self.mutate(*flags).split("\n")) for flags in ((), ("--one-by-one",))]
        self.assertIn("13 of 14 mutants are in one build", lines[0])
        verdicts = [
            [re.sub(r"^\[.*?\] | \d+ s:", "", line) for line in some if ": toy/sum.cc" in line]
            for some in lines
        ]
        self.assertEqual(sorted(verdicts[0]), sorted(verdicts[1]))
        self.assertEqual(len(verdicts[0]), 14)

    def test_goes_on_and_knows_survivors(self) -> None:
        build = str(self.folder / "work")
        first = self.mutate("--build", build, "--one-by-one")
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
            self.mutate("--one-by-one")


if __name__ == "__main__":
    unittest.main()
