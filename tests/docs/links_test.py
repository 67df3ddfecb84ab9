#!/usr/bin/env python3
"""Links of README.md and docs/ to files, pictures and headings of the repository lead somewhere."""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
import pages  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^()\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


def anchors(text: str) -> set[str]:
    """What a page can be entered at: what GitHub makes of headings, and names that are given."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    inside = False
    for line in text.split("\n"):
        inside ^= line.startswith("```")
        if inside or not line.startswith("#"):
            continue
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        place = sum(1 for other in found if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
        found.add(f"{name}-{place}" if name in found else name)
    return found


def text_of(page: pathlib.Path) -> str:
    """A page without what stands in blocks and between ticks."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S))


def trouble(page: pathlib.Path, link: str) -> str:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target.read_text()):
        return "no such heading"
    return ""


def main() -> int:
    count, broken = 0, 0
    for page in [*pages.pages(ROOT), ROOT / "CHANGELOG.md"]:
        for found in LINK.finditer(text_of(page)):
            link = found[1] or found[2]
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            if what := trouble(page, link):
                broken += 1
                print(f"FAILED: {page.relative_to(ROOT)}: {link}: {what}")
    print(f"{count} links, {broken} broken")
    return 1 if broken or count < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
