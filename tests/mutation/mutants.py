"""Finds what can be changed in C++ text, one operator or constant at a time, for tests/mutate.

A *mutant* is one such change. Text that no test can be asked to watch is left alone: comments,
strings, preprocessor lines, template arguments, static_assert, CHECK and DCHECK with what is
streamed into them, arguments of `reserve` and of error constructors.
"""

import dataclasses
import re
from collections.abc import Iterator

# Binary operators; clang-format puts blanks on both sides of these, and of nothing else that is
# spelled alike (templates, pointers, references, signs).
BINARY = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*",
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "&&": "||", "||": "&&",
}  # fmt: skip
WORDS = {"true": "false", "false": "true", "continue": "break", "break": "continue"}
EXTREMES = {"min": "max", "max": "min", "min_element": "max_element", "max_element": "min_element"}
# The name of a call whose arguments, up to the end of the statement or only in the parentheses,
# are left alone.
SKIPPED_STATEMENT = re.compile(r"(ORRERY_|ABSL_)?D?CHECK(_\w+)?|LOG|static_assert")
SKIPPED_CALL = re.compile(r"reserve|\w*Error|Annotated?")

TOKEN = re.compile(
    r"""(?P<blank>\s+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<directive>\#(?:\\\n|[^\n])*)
      | (?P<string>(?:u8|[uUL])?R"(?P<fence>[^(\s]*)\(.*?\)(?P=fence)"
                  |(?:u8|[uUL])?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
      | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[-+])*)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign><=>|<<=|>>=|\.\.\.|->\*?|\+\+|--|<<|>>|&&|\|\||[-+*/%<>=!&|^]=|::|.)""",
    re.VERBOSE | re.DOTALL,
)
INTEGER = re.compile(r"(0[xX][0-9a-fA-F']+|\d[\d']*)([uUlLzZ]*)")


@dataclasses.dataclass(frozen=True)
class Token:
    """A piece of C++ text: its kind (a group of TOKEN), itself, and where it begins."""

    kind: str
    text: str
    begin: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.begin + len(self.text)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change: in `path`, at `begin`, `old` becomes `new`.

    `place` tells equal changes of one line apart: 1 is the first. `code` is the line without the
    blanks around it.
    """

    path: str
    begin: int
    line: int
    code: str
    old: str
    new: str
    place: int

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it also after other lines have moved it: path, line, change."""
        change = f"{self.old} -> {self.new}" if self.new else f"{self.old} left out"
        return self.path, self.code, change + (f" #{self.place}" if self.place > 1 else "")

    def apply(self, text: str) -> str:
        """The text of the file with the change made."""
        end = self.begin + len(self.old)
        assert text[self.begin : end] == self.old, f"{self.path}: not the text it was found in"
        return text[: self.begin] + self.new + text[end:]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.key[2]}   {self.code}"


def tokens_of(text: str) -> list[Token]:
    """The tokens, comments and directives left out; blanks are what lies between them."""
    found = (Token(m.lastgroup or "", m[0], m.start()) for m in TOKEN.finditer(text))
    return [token for token in found if token.kind not in ("blank", "comment", "directive")]


def after_group(tokens: list[Token], at: int) -> int:
    """The index behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            return i + 1
    return len(tokens)


def after_template(tokens: list[Token], at: int) -> int:
    """The index behind the template arguments that begin at `at`; `at` if none do."""
    before, bracket = tokens[at - 1], tokens[at]
    tight = before.kind == "word" and before.end == bracket.begin and before.text != "operator"
    if bracket.text != "<" or not (tight or before.text == "template"):
        return at
    depth = 0
    for i in range(at, len(tokens)):
        text = tokens[i].text
        if text in (";", "{", "}"):
            break
        depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
        if depth <= 0:
            return i + 1
    return at


def after_skipped(tokens: list[Token], at: int) -> int:
    """The index behind what begins at `at` and is left alone; `at` if it is not."""
    if at > 0 and tokens[at].text == "<":
        return after_template(tokens, at)
    called = at + 1 < len(tokens) and tokens[at + 1].text == "("
    if tokens[at].kind != "word" or not called:
        return at
    if SKIPPED_CALL.fullmatch(tokens[at].text):
        return after_group(tokens, at + 1)
    if not SKIPPED_STATEMENT.fullmatch(tokens[at].text):
        return at
    end = after_group(tokens, at + 1)
    while end < len(tokens) and tokens[end].text not in (";", "}"):
        end += 1
    return end


def is_spaced(tokens: list[Token], at: int) -> bool:
    """Whether the token has something before and behind it, and blanks between."""
    if not 0 < at < len(tokens) - 1:
        return False
    return tokens[at - 1].end < tokens[at].begin and tokens[at].end < tokens[at + 1].begin


def larger(number: str) -> str | None:
    """The whole number that is larger by one, in the spelling of C++; None if it is none."""
    match = INTEGER.fullmatch(number)
    if match is None:
        return None
    digits, suffix = match[1].replace("'", ""), match[2]
    if digits[:2] in ("0x", "0X"):
        return f"{int(digits, 16) + 1:#x}{suffix}"
    return f"{int(digits, 8 if digits.startswith('0') else 10) + 1}{suffix}"


def replacement(tokens: list[Token], at: int) -> str | None:
    """What the token becomes in a mutant; None if it stays."""
    token, before = tokens[at], tokens[at - 1] if at > 0 else Token("", "", 0)
    if token.kind == "number":
        return larger(token.text)
    if token.kind == "word":
        # `numeric_limits<T>::max` is not the larger of two.
        if before.text == "::" and tokens[at - 2].kind == "word":
            return EXTREMES.get(token.text)
        return WORDS.get(token.text)
    if token.text == "!":
        return ""
    if token.text not in BINARY or before.text == "operator" or not is_spaced(tokens, at):
        return None
    joins_text = "string" in (before.kind, tokens[at + 1].kind)
    return None if token.text in ("+", "+=") and joins_text else BINARY[token.text]


def changes_of(tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Each token that can become another one, and which."""
    at = 0
    while at < len(tokens):
        end = after_skipped(tokens, at)
        if end > at:
            at = end
            continue
        new = replacement(tokens, at)
        if new is not None:
            yield tokens[at], new
        at += 1


def mutants_of(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    mutants: list[Mutant] = []
    seen: dict[tuple[int, str], int] = {}
    for token, new in changes_of(tokens_of(text)):
        begin = text.rfind("\n", 0, token.begin) + 1
        line = text.count("\n", 0, begin) + 1
        code = text[begin:].split("\n", 1)[0].strip()
        place = seen[line, token.text] = seen.get((line, token.text), 0) + 1
        mutants.append(Mutant(path, token.begin, line, code, token.text, new, place))
    return mutants


class SurvivorError(ValueError):
    """The list of survivors cannot be read."""


def read_survivors(text: str) -> dict[tuple[str, str, str], str]:
    """Reasons by mutant. Records stand apart by empty lines; lines that begin with # are comments.

    Each record is four lines: path, line of code, change, reason; more lines go on with the reason.
    """
    lines = [line.strip() for line in text.split("\n") if not line.startswith("#")]
    survivors = {}
    for record in re.split(r"\n{2,}", "\n".join(lines).strip()):
        parts = record.split("\n")
        if record and len(parts) < 4:
            raise SurvivorError(f"wanted path, line, change and reason; found:\n{record}")
        if record:
            survivors[parts[0], parts[1], parts[2]] = " ".join(parts[3:])
    return survivors


def write_survivor(mutant: Mutant, reason: str) -> str:
    """The record of a survivor, as `read_survivors` reads it."""
    return "\n    ".join([*mutant.key, reason]) + "\n"
