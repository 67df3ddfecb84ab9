#!/usr/bin/env python3
"""Opens traces in speedscope, in a headless Chromium: each is read, and without a complaint.

    /usr/bin/python3 tests/traces/speedscope_test.py --bin build/bin

Exits with 77 where there is no browser.
"""
import argparse
import base64
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEEDSCOPE = ROOT / "third_party/speedscope/index.html"
GPT = ("--model gpt:layers=4,hidden=64,heads=4,seq=32,vocab=96 --batch-size 16 --cluster dgx-h100:1 --dp 2 --hp 2 --pp 2"
       " --micro-batches 4 --sharding megatron")
# Flags, and what the page then shows: the first thread of the first process.
TRACES = {
    "op": (f"{GPT} --trace-level op", "rank 0 · dp0 hp0 pp0 · node0/gpu0 (x4)"),
    "stage": (f"{GPT} --trace-level stage", "rank 0 · dp0 hp0 pp0"),
    "flow": (f"{GPT} --trace-level flow --trace-ranks 5", "rank 5 · dp0 hp1 pp1 · node0/gpu5"),
    "offload": (f"{GPT} --offload optimizer+activations --recompute full", "rank 0"),
    "program": (f"--program {ROOT}/examples/programs/overlap.ranks --cluster dgx-a100:1", "rank 0"),
}


def start_browser():
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


def complaints(driver):
    """What speedscope's reader says on the console, but for what it is doing."""
    return [entry["message"] for entry in driver.get_log("browser")
            if entry["level"] in ("WARNING", "SEVERE") and "GL Driver Message" not in entry["message"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    programs = parser.parse_args().bin.resolve()
    failed = 0
    driver = start_browser()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, (flags, shown) in TRACES.items():
            trace, script = folder / f"{name}.json", folder / f"{name}.js"
            subprocess.run([programs / "simulate", *flags.split(), "--trace", trace], check=True, stdout=subprocess.DEVNULL)
            packed = base64.b64encode(trace.read_bytes()).decode()
            script.write_text(f'speedscope.loadFileFromBase64("{name}.json", "{packed}")')
            driver.get(f"{SPEEDSCOPE.as_uri()}#localProfilePath={script}")
            driver.refresh()  # another fragment alone loads nothing
            text = ""
            for _ in range(60):
                time.sleep(0.25)
                text = driver.find_element("tag name", "body").text
                if shown in text:
                    break
            problems = complaints(driver)
            good = shown in text and not problems
            failed += not good
            print(f"{name}: {'read' if good else 'NOT READ'}", "" if good else (text[:300], problems[:3]), flush=True)
    driver.quit()
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        print("speedscope_test: python3-selenium is not installed; skipped")
        sys.exit(SKIPPED)
    if shutil.which("chromedriver") is None:
        print("speedscope_test: chromium-driver is not installed; skipped")
        sys.exit(SKIPPED)
    sys.exit(main())
