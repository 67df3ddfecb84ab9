"""A private copy of the tree that tests/mutate changes, builds and tests."""

import contextlib
import dataclasses
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence

from mutants import Mutant

CONFIGURE = (
    "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
    "-DORRERY_BENCH=OFF", "-DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST",
)  # fmt: skip
TEST_MEMORY_BYTES = 8 << 30


class MutateError(Exception):
    """Nothing can be measured; the text says why."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, None where it ran out of time, and its output."""

    code: int | None
    output: str
    seconds: float


@dataclasses.dataclass(frozen=True)
class Test:
    """A test program with a GoogleTest filter, or all tests that ctest finds by an expression."""

    program: str = ""
    filter: str = "*"
    ctest: str = ""

    def __str__(self) -> str:
        if self.ctest:
            return f"ctest -R {self.ctest}"
        return self.program if self.filter == "*" else f"{self.program}:{self.filter}"


def limit_memory() -> None:
    """A mutant may ask for memory in a loop without end."""
    resource.setrlimit(resource.RLIMIT_AS, (TEST_MEMORY_BYTES, TEST_MEMORY_BYTES))


def run(
    command: Sequence[object],
    timeout: float,
    cwd: pathlib.Path,
    limited: bool,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """Runs a command, and ends it with all that it has started when its time is over."""
    start = time.monotonic()
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=os.environ | dict(environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        preexec_fn=limit_memory if limited else None,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Outcome(None, process.communicate()[0], time.monotonic() - start)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Outcome(process.returncode, output, time.monotonic() - start)


def git(folder: pathlib.Path, *words: object) -> str:
    """What git says in that folder."""
    command = ["git", "-C", str(folder), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise MutateError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def restored(paths: Sequence[pathlib.Path]) -> Iterator[None]:
    """The files are afterwards as they were, whatever happens."""
    originals = {path: path.read_text() for path in paths}
    try:
        yield
    finally:
        for path, text in originals.items():
            if path.read_text() != text:
                path.write_text(text)


@contextlib.contextmanager
def changed(path: pathlib.Path, mutant: Mutant) -> Iterator[None]:
    """The file with the change made, and as it was afterwards, whatever happens."""
    with restored([path]):
        path.write_text(mutant.apply(path.read_text()))
        yield


class Copy:
    """A private copy of the tree, and its build."""

    def __init__(self, root: pathlib.Path, folder: pathlib.Path, build_timeout: float) -> None:
        self.source, self.build = folder / "source", folder / "build"
        self._root, self._build_timeout = root, build_timeout
        self.revision = git(root, "rev-parse", "HEAD")

    def prepare(self, more: Sequence[str]) -> None:
        """Checks the last commit out, and configures its build."""
        if (self.source / ".git").exists():
            git(self.source, "checkout", "--quiet", "--force", "--detach", self.revision)
        else:
            git(self._root, "worktree", "prune")
            git(self._root, "worktree", "add", "--quiet", "--detach", self.source, self.revision)
        # A change that makes a variable unused has to compile.
        for file in (self.source / "cmake").glob("*.cmake"):
            file.write_text(file.read_text().replace(" -Werror", ""))
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        self._must("cmake", "-S", self.source, "-B", self.build, *CONFIGURE, *launcher, *more)

    def remove(self) -> None:
        """Takes the worktree away, if it came to that."""
        if (self.source / ".git").exists():
            git(self._root, "worktree", "remove", "--force", self.source)

    def make(self, tests: Sequence[Test], jobs: int) -> Outcome:
        """Builds what the tests run, and all that can be built where something cannot."""
        programs = [test.program for test in tests]
        target = ["--target", *programs] if all(programs) else []
        command = ["cmake", "--build", self.build, "--parallel", jobs, *target, "--", "-k", "0"]
        return run(command, self._build_timeout, self.source, limited=False)

    def ask(self, test: Test, timeout: float, jobs: int, mutant: int = -1) -> Outcome:
        """Runs the test, up to its first failure, with that mutant of switches.h on."""
        if test.ctest:
            command = ["ctest", "--test-dir", self.build, "-R", test.ctest, "-j", jobs]
            command = [*command, "--stop-on-failure"]
        else:
            flags = ["--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={test.filter}"]
            command = [self.build / "bin" / test.program, *flags]
        # Several run at once: none may see another one's files.
        with tempfile.TemporaryDirectory(prefix="mutate.test.") as own:
            environment = {"ORRERY_MUTANT": str(mutant), "TMPDIR": own, "TEST_TMPDIR": own}
            return run(command, timeout, self.build, True, environment)

    def _must(self, *command: object) -> None:
        done = run(command, self._build_timeout, self._root, limited=False)
        if done.code != 0:
            raise MutateError(f"{' '.join(map(str, command))}:\n{done.output[-2000:]}")
