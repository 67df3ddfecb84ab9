"""Tests of scripts/gallery: a short gallery, and the pictures that stand in docs/pictures."""

import html.parser
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs/pictures"
sys.dont_write_bytecode = True


def load() -> object:
    """scripts/gallery as a module."""
    loader = importlib.machinery.SourceFileLoader("gallery", str(ROOT / "scripts/gallery"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gallery", loader))
    sys.modules["gallery"] = module
    loader.exec_module(module)
    return module


class Links(html.parser.HTMLParser):
    """Where a page leads, and what it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found |= {value for name, value in attributes if name in ("href", "src") and value}


def version(picture: str) -> str:
    """Of the gnuplot that drew it: others draw otherwise."""
    found = re.search(r"Produced by (.*)", picture)
    return found[1] if found else ""


class Gallery(unittest.TestCase):
    def test_a_short_one_is_whole(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "gallery"
            command = [ROOT / "scripts/gallery", "--short", "--bin", BIN, "--out", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            links = Links()
            links.feed((folder / "index.html").read_text())
            pages = {link for link in links.found if link.endswith(".html")}
            self.assertEqual(pages, {f"{item.name}.html" for item in load().ITEMS})
            self.assertEqual(len(pages), 7)
            for link in links.found:
                text = (folder / link).read_text()
                self.assertGreater(len(text), 1000, link)
            for page in pages:
                self.assertIn("<!doctype html>", (folder / page).read_text()[:200].lower())
            if shutil.which("gnuplot"):
                self.assertEqual(len(links.found), 2 * len(pages))

    def test_a_failing_program_ends_it(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for program in ("grid_search", "simulate"):
                (folder / program).write_text("#!/bin/sh\nexit 3\n")
                (folder / program).chmod(0o755)
            command = [ROOT / "scripts/gallery", "--short", "--bin", folder, "--out", folder / "out"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("gallery: exit code 3 of build/bin/grid_search", done.stderr)
            self.assertFalse((folder / "out/index.html").exists())


class Pictures(unittest.TestCase):
    def test_they_are_few_and_small_and_the_tutorial_has_their_commands(self) -> None:
        page = (ROOT / "docs/tutorial.md").read_text()
        wanted = load().PICTURES
        self.assertEqual({path.name for path in PICTURES.iterdir()}, {name for name, _, _ in wanted})
        for name, command, _ in wanted:
            self.assertIn(f"](pictures/{name})", page)
            self.assertIn(f"build/bin/{command}\n", page)
            self.assertLess((PICTURES / name).stat().st_size, 200_000, name)

    @unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
    def test_plots_are_as_they_would_be_drawn(self) -> None:
        for name, command, height in load().PICTURES:
            if height != 0:
                continue
            with tempfile.TemporaryDirectory() as folder:
                program, *words = command.split()
                subprocess.run([BIN / program, *words], cwd=folder, stdout=subprocess.DEVNULL, check=True)
                drawn = (pathlib.Path(folder) / words[-1]).read_text()
            stands = (PICTURES / name).read_text()
            if version(drawn) == version(stands):
                self.assertTrue(drawn == stands, f"{name} has changed: scripts/gallery --pictures, and look at it")


if __name__ == "__main__":
    BIN = pathlib.Path(os.environ["ORRERY_BIN"]).resolve()
    unittest.main()
