"""Puts many mutants of a C++ file into one text, for tests/mutate: the one that the environment
names is on when the program runs (switches.h), so that a build serves all of them.

    b = a < 1;   becomes   b = (::orrery_mutation::IsOn(7) ? (a <= 1) : (a < 1));

What cannot be switched is found by the compiler: constants at compile time, operators that a type
does not have.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterable, Mapping

from mutants import Mutant, Token, tokens_of

HEADER = pathlib.Path(__file__).resolve().parent / "switches.h"
OPENERS, CLOSERS = ("(", "[", "{"), (")", "]", "}")
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=")
ENDS = (";", ",", "?", ":")
WORDS_BEFORE = ("return", "else", "do", "case", "throw", "co_return")
HEADS = ("if", "for", "while", "switch", "constexpr")
JUMPS = ("continue", "break")


@dataclasses.dataclass(frozen=True)
class Switch:
    """A mutant with its number, and the text of the file that is written twice for it."""

    number: int
    mutant: Mutant
    begin: int
    end: int


def group_before(tokens: list[Token], at: int) -> int:
    """The index of what opens the group that is closed at `at`; -1 if nothing does."""
    depth = 0
    for i in range(at, -1, -1):
        depth += (tokens[i].text in CLOSERS) - (tokens[i].text in OPENERS)
        if depth == 0:
            return i
    return -1


def first_of(tokens: list[Token], at: int) -> int:
    """The index of the first token of the expression that the one at `at` belongs to."""
    first = at
    while first > 0:
        text = tokens[first - 1].text
        if text in (*OPENERS, "}", *ENDS, *ASSIGNMENTS, *WORDS_BEFORE):
            break
        if text in CLOSERS:
            opener = group_before(tokens, first - 1)
            if opener > 0 and tokens[opener - 1].text in HEADS:
                break
            first = max(opener, 0)
        else:
            first -= 1
    return first


def last_of(tokens: list[Token], at: int) -> int:
    """The index of the last token of the expression that the one at `at` belongs to."""
    # What is assigned may be chosen by a condition.
    ends = (";", ",") if tokens[at].text in ASSIGNMENTS else ENDS
    depth, last = 0, at
    for i in range(at + 1, len(tokens)):
        text = tokens[i].text
        depth += (text in OPENERS) - (text in CLOSERS)
        if depth < 0 or (depth == 0 and text in ends):
            break
        last = i
    return last


def switch_of(tokens: list[Token], number: int, mutant: Mutant) -> Switch:
    """What has to be written twice for a mutant of the file that has these tokens."""
    at = next(i for i, token in enumerate(tokens) if token.begin == mutant.begin)
    first = last = at
    if tokens[at].kind == "sign" or tokens[at].text.startswith(("min", "max")):
        first, last = first_of(tokens, at), last_of(tokens, at)
    return Switch(number, mutant, tokens[first].begin, tokens[last].end)


def switches_of(text: str, numbered: Mapping[int, Mutant]) -> list[Switch]:
    """The switches of mutants of one file, without those that would tear another one apart."""
    tokens = tokens_of(text)
    kept: list[Switch] = []
    for number, mutant in numbered.items():
        new = switch_of(tokens, number, mutant)
        if not any(is_torn(new, old) for old in kept):
            kept.append(new)
    return kept


def is_torn(a: Switch, b: Switch) -> bool:
    """Whether the texts of two overlap, and neither has the other in it."""
    overlap = max(a.begin, b.begin) < min(a.end, b.end)
    nested = a.begin <= b.begin <= b.end <= a.end or b.begin <= a.begin <= a.end <= b.end
    return overlap and not nested


def render(text: str, begin: int, end: int, switches: Iterable[Switch]) -> str:
    """The text from `begin` to `end` with its switches, of which none is torn."""
    # The widest first: those inside stand in the last, unchanged branch.
    inside = sorted(switches, key=lambda s: (s.begin, -s.end))
    out, at = "", begin
    while inside:
        outer, rest = inside[0], inside[1:]
        nested = [s for s in rest if s.begin < outer.end]
        inside = rest[len(nested) :]
        out += text[at : outer.begin] + one_switch(text, outer, nested)
        at = outer.end
    return out + text[at:end]


def one_switch(text: str, switch: Switch, nested: list[Switch]) -> str:
    """The text of a switch, with those that lie in it."""
    mutant, question = switch.mutant, f"::orrery_mutation::IsOn({switch.number})"
    if mutant.old in JUMPS:
        return f"if ({question}) {mutant.new}; else {mutant.old}"
    changed = mutant.apply(text)[switch.begin : switch.end + len(mutant.new) - len(mutant.old)]
    # On one line, so that the others keep their numbers.
    changed = " ".join(token.text for token in tokens_of(changed))
    return f"({question} ? ({changed}) : ({render(text, switch.begin, switch.end, nested)}))"


def switched(text: str, switches: Iterable[Switch]) -> str:
    """The text of the file with all its switches; every line keeps its number."""
    return f'#include "{HEADER}"\n#line 1\n' + render(text, 0, len(text), switches)


def blamed(output: str, path: str, text: str, switches: Iterable[Switch]) -> list[Switch]:
    """The switches in lines of the file that the compiler names beside an error."""
    error = rf"{re.escape(path)}:(\d+)(?=:\d+: (?:fatal )?error|:\d+: +(?:recursively )?required)"
    lines = {int(line) for line in re.findall(error, output)}
    return [s for s in switches if lines & lines_of(text, s)]


def suspected(output: str, path: str, text: str, switches: Iterable[Switch]) -> list[Switch]:
    """Where the compiler names no line of a switch: those between the first and the last line that
    it names of the file, as in the initializer of a constant; in headers all that stand for the
    whole of an initializer, as defaults of members do, which are refused where they are used."""
    lines = [int(line) for line in re.findall(rf"{re.escape(path)}:(\d+):\d+: error", output)]
    between = set(range(min(lines), max(lines) + 1)) if lines else set()
    return [
        s
        for s in switches
        if between & lines_of(text, s) or (path.endswith(".h") and is_initializer(text, s))
    ]


def is_initializer(text: str, switch: Switch) -> bool:
    """Whether a switch stands between `=` and `;`."""
    before, after = text[: switch.begin].rstrip(), text[switch.end :].lstrip()
    return before.endswith("=") and before[-2:] not in ("==", "!=", "<=", ">=") and after[:1] == ";"


def lines_of(text: str, switch: Switch) -> set[int]:
    """The lines, from 1, of the unswitched file that a switch reaches over."""
    first = text.count("\n", 0, switch.begin) + 1
    return set(range(first, first + text.count("\n", switch.begin, switch.end) + 1))
