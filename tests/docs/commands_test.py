#!/usr/bin/env python3
"""Runs each command that README.md and docs/ show, and compares what it prints with the page.

A page has a scratch folder that sees build/bin, examples, data and tests, and its commands run
there one after the other. What is slow (with `--slow` it runs, too) or cannot be run is marked as such in the
page and counted; a block that is neither run nor marked is a failure. docs/adding.md has the form.
ORRERY_BLESS=1 writes what is printed into the page; look at the difference.
"""

import argparse
import concurrent.futures
import dataclasses
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import pages  # noqa: E402

LONGEST_S = {False: 120, True: 1800}  # of a command, and of one that is marked as slow
SEEN = ("data", "examples", "scripts", "tests")


@dataclasses.dataclass
class Tally:
    """What became of the blocks of a page."""

    run: int = 0
    slow: int = 0
    not_run: int = 0
    files: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    times: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    blessed: list[tuple[int, int, list[str]]] = dataclasses.field(default_factory=list)

    def add(self, other: "Tally") -> None:
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Scratch:
    """The folder in which the commands of a page run."""

    def __init__(self, folder: pathlib.Path, root: pathlib.Path, programs: pathlib.Path):
        self.folder = folder
        (folder / "out").mkdir()
        (folder / "build").mkdir()
        (folder / "build/bin").symlink_to(programs)
        for name in SEEN:
            if (root / name).exists():
                (folder / name).symlink_to(root / name)

    def run(self, command: str, longest_s: float) -> tuple[int, list[str]]:
        """Exit code and printed lines, of a failure with those of standard error behind them."""
        try:
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command], cwd=self.folder, timeout=longest_s,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                env={**os.environ, "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, [f"still runs after {longest_s} s; is a mark 'slow' missing?"]
        printed = done.stdout + (done.stderr if done.returncode != 0 else "")
        return done.returncode, [pages.without_clocks(line) for line in printed.splitlines()]


class Page:
    """Runs what a page has."""

    def __init__(self, block_list: list[pages.Block], scratch: Scratch, root: pathlib.Path, slow: bool):
        self.blocks, self.scratch, self.root, self.slow = block_list, scratch, root, slow
        self.tally = Tally()

    def fail(self, block: pages.Block, line: int, what: str) -> None:
        self.tally.failures.append(f"{block.page}:{line}: {what}")

    def check(self) -> Tally:
        for block in self.blocks:
            if block.trouble:
                self.fail(block, block.line, f"{block.trouble}; wanted commands, or a mark above")
            elif "file" in block.marks:
                self.check_file(block)
            elif "not run" in block.marks:
                self.tally.not_run += max(1, len(block.commands))
            elif "slow" in block.marks and not self.slow:
                self.tally.slow += max(1, len(block.commands))
            elif "rows" in block.marks:
                self.check_rows(block)
            else:
                for command in block.commands:
                    self.check_command(block, command)
        return self.tally

    def run(self, block: pages.Block, line: int, text: str) -> list[str] | None:
        begun = time.monotonic()
        code, printed = self.scratch.run(text, LONGEST_S["slow" in block.marks])
        self.tally.times.append((time.monotonic() - begun, f"{block.page}:{line}"))
        self.tally.run += 1
        wanted = int(block.marks.get("exit", "0"))
        if code == wanted:
            return printed
        rest = "\n".join(printed[-20:])
        self.fail(block, line, f"exit code {code}, wanted {wanted}\n$ {text}\n{rest}")
        return None

    def check_command(self, block: pages.Block, command: pages.Command) -> None:
        printed = self.run(block, command.line, command.text)
        if printed is None or command.shown is None:
            return
        shown = [pages.without_clocks(line) for line in command.shown]
        # A blank line between a command and the next is for the eye.
        while shown and not shown[-1]:
            shown.pop()
        while printed and not printed[-1]:
            printed.pop()
        if pages.agrees(printed, shown):
            return
        self.bless(block, command, printed)
        difference = difflib.unified_diff(shown, printed, "shown", "printed", lineterm="", n=1)
        self.fail(block, command.line, "\n".join([f"$ {command.text}", *difference]))

    def bless(self, block: pages.Block, command: pages.Command, printed: list[str]) -> None:
        shown = list(command.shown)
        while shown and not shown[-1]:
            shown.pop()
        if (refreshed := pages.refreshed(printed, shown)) is None:
            return
        first, count = command.line + command.text.count("\n") + 1, len(shown)
        for kind in ("printed by", "excerpt of"):
            if kind in block.marks:
                first = block.line
        if "excerpt of" in block.marks:
            refreshed, count = refreshed[1:-1], count - 2
        self.tally.blessed.append((first, count, refreshed))

    def check_file(self, block: pages.Block) -> None:
        """A file of the repository is as the page shows it; another one is there from now on."""
        self.tally.files += 1
        name, text = block.marks["file"], "\n".join(block.lines) + "\n"
        there = self.root / name
        if not there.exists():
            (self.scratch.folder / name).write_text(text)
        elif there.read_text() != text:
            self.fail(block, block.line, f"{name} is not as it is shown")

    def check_rows(self, block: pages.Block) -> None:
        """What the command prints of a row has each cell of the row in it."""
        for offset, row in enumerate(block.lines[2:], 2):
            row_cells = pages.cells(row)
            text = block.marks["rows"]
            for place, cell in enumerate(row_cells, 1):
                text = text.replace(f"{{{place}}}", cell)
            printed = self.run(block, block.line + offset, text)
            for cell in row_cells if printed is not None else ():
                if cell not in text and cell not in "\n".join(printed):
                    rest = "\n".join(printed)
                    self.fail(block, block.line + offset, f"no '{cell}' in\n$ {text}\n{rest}")


def write_blessed(path: pathlib.Path, changes: list[tuple[int, int, list[str]]]) -> None:
    lines = path.read_text().split("\n")
    for first, count, printed in sorted(changes, reverse=True):
        indent = "    " if lines[first - 2].startswith("    ") else ""
        lines[first - 1 : first - 1 + count] = [(indent + line).rstrip() for line in printed]
    path.write_text("\n".join(lines))


def check_page(path: pathlib.Path, root: pathlib.Path, programs: pathlib.Path, slow: bool) -> Tally:
    text = path.read_text()
    block_list = pages.blocks(text, str(path.relative_to(root)))
    if pages.PAGE_MARK.search(text):
        return Tally(not_run=sum(len(block.commands) for block in block_list))
    with tempfile.TemporaryDirectory(prefix="orrery_docs_") as folder:
        scratch = Scratch(pathlib.Path(folder), root, programs)
        tally = Page(block_list, scratch, root, slow).check()
    if tally.blessed and os.environ.get("ORRERY_BLESS") == "1":
        write_blessed(path, tally.blessed)
    return tally


def report(page_count: int, tally: Tally, times: bool) -> int:
    for failure in tally.failures:
        print(f"FAILED: {failure}\n")
    if times:
        for seconds, where in sorted(tally.times, reverse=True)[:20]:
            print(f"{seconds:8.2f} s  {where}")
    print(f"{page_count} pages: {tally.run} commands were run, {tally.slow} are slow and were not, "
          f"{tally.not_run} cannot be; {tally.files} files; {len(tally.failures)} failures")  # fmt: skip
    return 1 if tally.failures else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path, help="folder of the programs")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[2])  # fmt: skip
    parser.add_argument("--page", help="only pages whose name has this")
    parser.add_argument("--part", default="1/1", help="i/n: every n-th page, from the i-th on")
    parser.add_argument("--slow", action="store_true", help="also what is marked as slow")
    parser.add_argument("--jobs", type=int, default=1, help="pages at once")
    parser.add_argument("--times", action="store_true", help="print what took longest")
    flags = parser.parse_args()
    part, parts = (int(number) for number in flags.part.split("/"))
    root, programs = flags.root.resolve(), flags.bin.resolve()
    paths = [path for path in pages.pages(root) if (flags.page or "") in str(path.relative_to(root))]
    paths = paths[part - 1 :: parts]
    total = Tally()
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        for tally in pool.map(lambda path: check_page(path, root, programs, flags.slow), paths):
            total.add(tally)
    return report(len(paths), total, flags.times)


if __name__ == "__main__":
    sys.exit(main())
