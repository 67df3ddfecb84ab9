"""Asks the programs: a case is a command line of `simulate` in parts, an answer what it reports."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

TIMEOUT_S = 30


class Passed(Exception):
    """The case is none of what an invariant speaks of: a plan that is infeasible, say."""


@dataclasses.dataclass(frozen=True)
class Case:
    """One training step: what is trained, where, and how it is spread."""

    model: str
    batch: int
    cluster: str
    flags: tuple[tuple[str, str], ...] = ()  # without the dashes; "" for those without a value

    def get(self, flag: str, default: str = "") -> str:
        """The value of a flag."""
        return dict(self.flags).get(flag, default)

    def having(self, **changes: str | int | None) -> Case:
        """With other values of flags, `_` for a dash; None leaves the flag out."""
        flags = dict(self.flags)
        for name, value in changes.items():
            name = name.replace("_", "-")
            if value is None:
                flags.pop(name, None)
            else:
                flags[name] = str(value)
        return dataclasses.replace(self, flags=tuple(flags.items()))

    def words(self) -> list[str]:
        """The command line."""
        words = ["--model", self.model, "--batch-size", str(self.batch), "--cluster", self.cluster]
        for flag, value in self.flags:
            words += [f"--{flag}", value] if value else [f"--{flag}"]
        return words


@dataclasses.dataclass(frozen=True)
class Answer:
    """What `simulate` says of a case."""

    report: dict  # empty where the plan is infeasible
    text: str  # of people, or why it is infeasible

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.report["step_time_s"]

    @property
    def peak(self) -> int:
        """Bytes that the fullest device holds at once."""
        return self.report["peak_memory_bytes"]

    @property
    def fits(self) -> bool:
        """Whether there is memory for it."""
        return self.report["fits"]


class Programs:
    """The programs of a build, run in a folder of their own beside `examples` and `tests`."""

    def __init__(self, bin_dir: pathlib.Path, root: pathlib.Path) -> None:
        self._bin = bin_dir
        self._root = root
        self._answers: dict[Case, Answer] = {}
        self._orders = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, self._orders, ignore_errors=True)

    def run(self, program: str, words: list[str], folder: pathlib.Path) -> tuple[int, str, str]:
        """Exit code, standard output and standard error."""
        for name in ("examples", "tests"):
            if not (folder / name).exists():
                (folder / name).symlink_to(self._root / name)
        done = subprocess.run(
            [self._bin / program, *words], cwd=folder, capture_output=True, text=True,
            check=False, timeout=TIMEOUT_S,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def files(self, program: str, words: list[str], *names: str) -> list[str]:
        """The texts of files that a program writes; Passed where it fails."""
        return self.files_and_text(program, words, *names)[0]

    def files_and_text(
        self, program: str, words: list[str], *names: str
    ) -> tuple[list[str], str]:
        """The texts of files that a program writes, and what it says; Passed where it fails."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            code, out, err = self.run(program, words, folder)
            self.check_exit(code, err, [program, *words])
            if code != 0:
                raise Passed(err)
            return [(folder / file).read_text() for file in names], out

    @staticmethod
    def check_exit(code: int, err: str, words: list[str]) -> None:
        """Programs end by themselves, and say in a line why they do."""
        if code not in (0, 1, 2, 3) or (code != 0 and err.count("\n") != 1):
            raise AssertionError(f"exit code {code}: {' '.join(words)}\n{err}")

    def orders(self, words: list[str]) -> str:
        """The path of a file with the orders that `schedule` prints."""
        path = pathlib.Path(self._orders) / ("_".join(words) + ".csv")
        if not path.exists():
            code, out, err = self.run("schedule", words, path.parent)
            if code != 0:
                raise Passed(err)
            lines = [line for line in out.splitlines() if re.match(r"\d+[FIBW]", line)]
            # Others may ask for the same file meanwhile: it is there as a whole, or not.
            with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
                file.write("\n".join(lines) + "\n")
            os.replace(file.name, path)
        return str(path)

    def ask(self, case: Case) -> Answer:
        """What `simulate` says; Passed where it refuses the case."""
        known = self._answers.get(case)
        if known is None:
            known = self._answers[case] = self._simulate(case)
        if not known.report:
            raise Passed(known.text)
        return known

    def _simulate(self, case: Case) -> Answer:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            words = [*case.words(), "--json", "report.json"]
            code, out, err = self.run("simulate", words, folder)
            self.check_exit(code, err, ["simulate", *words])
            if not (folder / "report.json").exists():
                return Answer({}, err)
            return Answer(json.loads((folder / "report.json").read_text()), out)
