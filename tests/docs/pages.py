"""Reads the blocks of a Markdown page that a test can hold: commands, what they print, files, tables.

The form of such blocks is described in docs/adding.md, "A page". A block is fenced, or indented by
four spaces. What a reader need not see stands in HTML comments above it, the marks.
"""

import dataclasses
import difflib
import pathlib
import re

MARK = re.compile(r"^<!-- (slow|not run|exit|file|printed by|excerpt of|rows): *(.*?) *-->$")
PAGE_MARK = re.compile(r"^<!-- page not run: *(.*?) *-->$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\s*$")
COMMAND = re.compile(r"^(build/bin/|scripts/|python3 |mpirun )")
REST = ("...", "…")
# Of these nothing is run, and nobody takes them for what a program prints.
SOURCES = ("cmake", "cpp", "csv", "json", "python", "textproto")


@dataclasses.dataclass
class Command:
    """A command, and the lines that the page shows of what it prints; None: it shows none."""

    line: int
    text: str
    shown: list[str] | None = None


@dataclasses.dataclass
class Block:
    """Lines of a page, without the fence or the indentation; `line` is the number of the first."""

    page: str
    line: int
    language: str
    lines: list[str]
    marks: dict[str, str]
    commands: list[Command] = dataclasses.field(default_factory=list)
    trouble: str = ""


def marks_above(lines: list[str], at: int) -> dict[str, str]:
    """The marks that stand above line `at`, with blank lines between or without."""
    marks = {}
    while at > 0 and (not lines[at - 1].strip() or MARK.match(lines[at - 1])):
        at -= 1
        if found := MARK.match(lines[at]):
            marks[found[1]] = found[2]
    return marks


def session(block: Block) -> None:
    """Fills in the commands of a block, or what is wrong with it."""
    shows = any(line.startswith("$ ") for line in block.lines)
    continues = False
    for offset, line in enumerate(block.lines):
        number = block.line + offset
        if continues:
            block.commands[-1].text += "\n" + line
        elif shows and line.startswith("$ "):
            block.commands.append(Command(number, line[2:], []))
        elif not shows and COMMAND.match(line):
            block.commands.append(Command(number, line))
        elif shows and block.commands:
            block.commands[-1].shown.append(line.rstrip())
            continue
        elif line.strip() and not line.startswith("#"):
            block.trouble = f"'{line}' is no command, and belongs to none"
            return
        continues = line.endswith("\\")


def interpret(block: Block) -> None:
    """Says what a block is of: commands, or with a mark something else."""
    for kind in ("printed by", "excerpt of"):
        if kind in block.marks:
            shown = [line.rstrip() for line in block.lines]
            if kind == "excerpt of":
                shown = [REST[0], *shown, REST[0]]
            block.commands = [Command(block.line, block.marks[kind], shown)]
            return
    if "file" in block.marks or "rows" in block.marks or block.language in SOURCES:
        return
    session(block)
    if block.trouble or not block.commands:
        block.trouble = "" if "not run" in block.marks else block.trouble or "no command"


def fenced_end(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].rstrip() != "```":
        at += 1
    return at


def indented_end(lines: list[str], at: int) -> int:
    while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
        at += 1
    while not lines[at - 1].strip():
        at -= 1
    return at


def table_end(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].startswith("|"):
        at += 1
    return at


def blocks(text: str, page: str) -> list[Block]:
    """All blocks of a page, and the tables that have a mark `rows`."""
    lines = text.split("\n")
    found = []
    at = 0
    while at < len(lines):
        start, end, language, cut = at, at + 1, "", 0
        above = lines[at - 1] if at > 0 else ""
        apart = not above.strip() or MARK.match(above)
        if fence := FENCE.match(lines[at]):
            start, language = at + 1, fence[1]
            end = fenced_end(lines, start)
        elif lines[at].startswith("    ") and apart:
            end, cut = indented_end(lines, at), 4
        elif lines[at].startswith("|") and "rows" in marks_above(lines, at):
            end = table_end(lines, at)
        else:
            at += 1
            continue
        inside = [line[cut:] for line in lines[start:end]]
        block = Block(page, start + 1, language, inside, marks_above(lines, at))
        interpret(block)
        found.append(block)
        at = end + (1 if fence else 0)
    return found


def cells(row: str) -> list[str]:
    """The cells of a row of a table, without the ticks around code."""
    return [cell.strip().strip("`") for cell in row.strip().strip("|").split("|")]


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def without_clocks(line: str) -> str:
    """A line without what no two runs print alike: how long the simulation itself took."""
    return re.sub(r"(rank class(es)? in )[\d.]+ \w+$", r"\1TIME", line.rstrip())


def is_shown(line: str, shown: str) -> bool:
    """Whether `line` is `shown`, in which … stands for anything."""
    parts = shown.split("…")
    return line == shown or re.fullmatch(".*".join(re.escape(part) for part in parts), line) is not None


def agrees(printed: list[str], shown: list[str]) -> bool:
    """Whether the lines are those shown; a line that is only an ellipsis stands for any lines."""
    reached = {0}  # how many printed lines the shown ones up to here may stand for
    for line in shown:
        if line.strip() in REST:
            reached = set(range(min(reached), len(printed) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(printed) and is_shown(printed[at], line)}
        if not reached:
            return False
    return len(printed) in reached


def like(line: str, other: str) -> float:
    return difflib.SequenceMatcher(None, line, other, autojunk=False).ratio()


def refreshed(printed: list[str], shown: list[str]) -> list[str] | None:
    """The shown lines as they should be: all that is printed, or around ellipses what is most like
    them, in order; None where a line is like none."""
    if not any(line.strip() in REST for line in shown):
        return printed
    result, at = [], 0
    for line in shown:
        if line.strip() in REST:
            result.append(line)
            continue
        rest = range(at, len(printed))
        same = [place for place in rest if is_shown(printed[place], line)]
        place = same[0] if same else max(rest, key=lambda n: like(printed[n], line), default=None)
        if place is None or not same and like(printed[place], line) < 0.6:
            return None
        result.append(line if same else printed[place])
        at = place + 1
    return result if agrees(printed, result) else None
