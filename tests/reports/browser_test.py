#!/usr/bin/env python3
"""Opens reports in a headless Chromium, and uses them as a person would.

Programs write a small report, one of 100,000 candidates and one of a single step; then, at three
widths, light and dark: nothing is asked of any address, the console has no complaint, axe finds
nothing, sorting, filtering and choosing work, also by the keyboard alone, and numbers on the page
are those of the JSON. Times are printed, not judged. Exits with 77 where there is no browser.
"""
import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
AXE = ROOT / "third_party/axe/axe.min.js"
WIDTHS = (360, 800, 1600)
SMALL = ["--model", "gpt2-small", "--batch-size", "32", "--cluster", "dgx-a100:1"]
LARGE = ["--model", "gpt3-1.3b", "--batch-size", "64", "--cluster", "dgx-a100:2", "--space", "full",
         "--budget", "2"]
STEP = SMALL + ["--dp", "2", "--hp", "2", "--pp", "2", "--micro-batches", "4"]

failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"FAILED: {what}", flush=True)


def start_browser():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service(DRIVER), options=options)
    driver.set_script_timeout(120)
    return driver


class Page:
    """A report in a window of some width."""

    def __init__(self, driver, path, width=1600, dark=False):
        self.name = f"{path.stem} at {width}{' dark' if dark else ''}"
        self.driver = driver
        cdp = self.driver.execute_cdp_cmd
        cdp("Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
        cdp("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(path.as_uri())
        self.later("window.orrery.ready.then(done)")
        check(self.js("return window.orrery.failed") is None, f"{self.name}: opens")
        self.js("window.orrery.drawAll()")
        time.sleep(0.5)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def later(self, code):
        return self.driver.execute_async_script(
            f"const done = arguments[arguments.length - 1]; {code}")

    def settle(self):
        self.later("requestAnimationFrame(() => setTimeout(() => done(), 60))")

    def check_quiet(self):
        """Nothing in the console, nothing asked of any address."""
        for entry in self.driver.get_log("browser"):
            check(False, f"{self.name}: console: {entry['message'][:300]}")
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] != "Network.requestWillBeSent":
                continue
            url = message["params"]["request"]["url"]
            check(url.startswith(("file:", "data:", "blob:")), f"{self.name}: asks for {url[:200]}")

    def check_access(self):
        """What axe says of contrast, labels, roles."""
        self.js(AXE.read_text())
        found = self.later("axe.run(document).then((r) => done(r.violations.map("
                           "(v) => [v.id, v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160))])))")
        for name, nodes in found:
            check(False, f"{self.name}: axe: {name}: {nodes}")

    def check_width(self):
        wide = self.js("return [document.documentElement.scrollWidth, innerWidth]")
        check(wide[0] <= wide[1], f"{self.name}: is {wide[0]} wide, of {wide[1]}")


def run(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stderr[-300:]}")


def check_numbers(page, rows, count):
    """Cells of the page beside those of the JSON."""
    search = "window.orrery.searches[0]"
    names = page.js(f"return {search}.columns")
    check(set(names) == set(rows[0]), f"{page.name}: columns are those of the JSON")
    kept = page.js(f"return {search}.rows().length")
    check(kept == min(len(rows), 100_000), f"{page.name}: has {kept} of {len(rows)} rows")
    draw = random.Random(21)
    places = page.js("return Array.from(window.orrery.document.searches[0].ranked)")
    by_plan = {plan_of(row): row for row in rows}
    axes = page.js("return window.orrery.document.searches[0].columns"
                   ".filter((c) => c.axis).map((c) => c.name)")
    checked = 0
    while checked < count:
        row = draw.choice(places)
        name = draw.choice([n for n in names])
        plan = page.js("const [row, names] = arguments;"
                       f"return names.map((name) => {search}.value(name, row))", row, axes)
        found = page.js(f"return {search}.value(arguments[0], arguments[1])", name, row)
        expected = by_plan.get(tuple(json.dumps(v) for v in plan))
        check(expected is not None and expected[name] == found,
              f"{page.name}: {name} of row {row}: {found}, not {expected and expected[name]}")
        checked += 1


AXES = []


def plan_of(row):
    return tuple(json.dumps(row[name]) for name in AXES)


def shown_cells(page, field):
    return page.js("return Array.from(document.querySelectorAll("
                   f"'.candidates .tabulator-row .tabulator-cell[tabulator-field=\"{field}\"]'))"
                   ".map((cell) => cell.textContent.trim())")


def check_table(page):
    """Sorts, filters, resets."""
    search = "window.orrery.searches[0]"
    all_rows = page.js(f"return {search}.rows().length")
    page.settle()
    page.js(f"{search}.sort('peak_memory_bytes', 'asc')")
    page.settle()
    order = page.js(f"return {search}.rows().slice(0, 50)"
                    f".map((row) => {search}.value('peak_memory_bytes', row))")
    numbers = [value for value in order if value is not None]
    check(numbers == sorted(numbers) and numbers, f"{page.name}: sorts by memory")
    took = page.later(f"const from = performance.now(); {search}.setFilter('hp', '2');"
                      "requestAnimationFrame(() => done(performance.now() - from))")
    page.settle()
    print(f"{page.name}: a filter of {all_rows} rows takes {took:.0f} ms", flush=True)
    values = page.js(f"return {search}.rows().map((row) => {search}.value('hp', row))")
    check(values and set(values) == {2}, f"{page.name}: filters by hp 2: {set(values)}")
    check(set(shown_cells(page, "hp")) == {"2"}, f"{page.name}: shows hp 2 alone")
    page.js(f"{search}.resetFilters()")
    page.settle()
    check(page.js(f"return {search}.rows().length") == all_rows, f"{page.name}: resets filters")


def check_configurations(page):
    """Chooses A and B; both are shown, and what they differ in."""
    runs = page.js("return window.orrery.document.searches[0].runs.map((run) => run.name)")
    check(len(runs) >= 2, f"{page.name}: has runs")
    page.js("window.orrery.searches[0].select('A', 1); window.orrery.searches[0].select('B', 0)")
    page.settle()
    chosen = page.js("return window.orrery.searches[0].selected()")
    check(chosen == {"A": runs[1], "B": runs[0]}, f"{page.name}: compares {chosen}")
    text = page.js("return document.body.innerText")
    check("Where A and B differ" in text, f"{page.name}: tells what differs")


def check_keyboard(page):
    """Tab comes to all that can be used, and Enter uses it."""
    page.js("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(400):
        webdriver.ActionChains(page.driver).send_keys(Keys.TAB).perform()
        focused = page.js("const e = document.activeElement; return e === document.body ? null :"
                          "[e.tagName, (e.getAttribute('aria-label') || e.textContent || '')"
                          ".trim().slice(0, 60), getComputedStyle(e).outlineStyle !== 'none' ||"
                          "getComputedStyle(e).boxShadow !== 'none' || e.tagName === 'CANVAS', e.className]")
        if focused is None:
            break
        check(focused[2], f"{page.name}: focus of {focused[:2] + focused[3:]} is seen")
        seen.add(tuple(focused[:2]))
    texts = " | ".join(text for _, text in seen)
    for wanted in ("Show as table", "Reset filters", "Copy", "Filter hp"):
        check(wanted in texts, f"{page.name}: Tab comes to '{wanted}'")
    check(any(tag == "SELECT" for tag, _ in seen), f"{page.name}: Tab comes to a list")


def check_hover(page):
    """A tooltip over a chart."""
    box = page.js("const c = document.querySelector('canvas'); c.scrollIntoView({block: 'center'});"
                  "const b = c.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]")
    found = False
    for step in range(1, 40):
        page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {
            "type": "mouseMoved", "x": box[0] + box[2] * step / 40,
            "y": box[1] + box[3] * (0.25 + 0.5 * (step % 5) / 5)})
        time.sleep(0.02)
        found = found or page.js("return Array.from(document.querySelectorAll('div')).some("
                                 "(d) => d.style.pointerEvents === 'none' && d.innerText.trim() &&"
                                 "getComputedStyle(d).visibility === 'visible')")
    check(found, f"{page.name}: a chart tells of what is under the pointer")


def first_paint(page):
    return page.js("const p = performance.getEntriesByName('first-contentful-paint');"
                   "return p.length ? p[0].startTime : -1")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--keep", help="folder for reports and screenshots")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test(pathlib.Path(arguments.bin), pathlib.Path(arguments.keep or folder).resolve(),
             bool(arguments.keep))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def test(binaries, folder, keeps):
    folder.mkdir(exist_ok=True)
    small, large, step = (folder / name for name in ("small.html", "large.html", "step.html"))
    rows = {}
    for path, flags in ((small, SMALL), (large, LARGE)):
        table = path.with_suffix(".json")
        run(binaries / "grid_search", *flags, "--report", str(path), "--json", str(table))
        rows[path] = json.loads(table.read_text())
    run(binaries / "simulate", *STEP, "--report", str(step))
    check(len(rows[large]) >= 100_000, f"the large search has {len(rows[large])} candidates")

    driver = start_browser()
    try:
        use(driver, small, large, rows)
        look(driver, [small, step], folder if keeps else None)
    finally:
        driver.quit()


def use(driver, small, large, rows):
    """Reports of searches, as who looks for a plan uses them."""
    page = Page(driver, small)
    AXES[:] = page.js("return window.orrery.document.searches[0].columns"
                      ".filter((c) => c.axis).map((c) => c.name)")
    check_numbers(page, rows[small], 120)
    check_table(page)
    check_configurations(page)
    check_hover(page)
    check_keyboard(page)
    page.check_quiet()
    page = Page(driver, large)
    print(f"{page.name}: first paint after {first_paint(page):.0f} ms", flush=True)
    check_numbers(page, rows[large], 80)
    check_table(page)
    page.check_quiet()


def look(driver, paths, folder):
    """Each at all widths, light and dark. `folder`: of screenshots, if any."""
    for path in paths:
        for width in WIDTHS:
            for dark in (False, True):
                page = Page(driver, path, width, dark)
                page.check_width()
                page.check_access()
                page.check_quiet()
                if folder:
                    name = re.sub(r"\W+", "-", page.name)
                    driver.save_screenshot(str(folder / f"{name}.png"))


if __name__ == "__main__":
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
        from selenium.webdriver.common.keys import Keys
    except ImportError:
        print("no python3-selenium: skipped")
        sys.exit(SKIPPED)
    DRIVER = "/usr/bin/chromedriver"
    if not pathlib.Path(DRIVER).exists():
        print("no chromium-driver: skipped")
        sys.exit(SKIPPED)
    sys.exit(main())
