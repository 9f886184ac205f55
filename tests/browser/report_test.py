#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of `lipscope report` in a real browser: report_test.py PROGRAM SOURCE [SCREENSHOT_FOLDER].

Numbers against the result documents, sorting, clicks, light and dark, phone width, no errors on the console. Needs Debian's
chromium and chromium-driver; exits 77 (skipped) without them.
"""
import base64
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

program, source = sys.argv[1:3]
shots = sys.argv[3] if len(sys.argv) > 3 else None


class Browser:
    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}", "--silent"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        wish = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                "goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")}}
        for _ in range(100):
            try:
                session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wish}})
                break
            except (ConnectionError, urllib.error.URLError):
                time.sleep(0.1)
        self.base = "/session/" + session["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"},
                                         method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def post(self, path, **body):
        return self.call("POST", self.base + path, body)

    def run(self, script, *arguments):
        return self.post("/execute/sync", script=script, args=list(arguments))

    def open(self, path, width=1200, dark=False):
        self.post("/goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride",
                  params={"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600})
        self.post("/goog/cdp/execute", cmd="Emulation.setEmulatedMedia",
                  params={"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.post("/url", url="file://" + path)

    def errors(self):
        return [row for row in self.post("/se/log", type="browser") if row["level"] in ("SEVERE", "WARNING")]

    def click(self, selector):
        found = self.post("/element", using="css selector", value=selector)
        self.post("/element/" + next(iter(found.values())) + "/click")

    def shot(self, name):
        if shots:
            picture = self.call("GET", self.base + "/screenshot")
            with open(os.path.join(shots, name + ".png"), "wb") as file:
                file.write(base64.b64decode(picture))

    def close(self):
        try:
            self.call("DELETE", self.base)
        finally:
            self.driver.terminate()
            self.driver.wait()


def check(condition, message):
    if not condition:
        sys.exit("browser test: " + message)


def make(folder, name, *arguments):
    result, page = os.path.join(folder, name + ".json"), os.path.join(folder, name + ".html")
    subprocess.run([program, *arguments, "--json", "-o", result, "--quiet"], check=True)
    subprocess.run([program, "report", result, "-o", page], check=True)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    outside = [url for url in re.findall(r'(?:src|href)="([^"]*)"', text) if not url.startswith(("data:", "#"))]
    check(not outside and "@import" not in text, f"{name}: the page loads {outside}")
    with open(result, encoding="utf-8") as file:
        return page, json.load(file)


def luminance(browser, selector, key):
    colour = browser.run("return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]", selector, key)
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(browser, selector):
    ink, paper = luminance(browser, selector, "color"), luminance(browser, "body", "backgroundColor")
    return (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)


def column(browser, name):
    """Numbers of a column of the table of samples, as shown and as kept for sorting."""
    return browser.run("""
        var t = document.querySelector('#sample-0').closest('table'), heads = Array.from(t.querySelectorAll('th'));
        var i = heads.findIndex(h => h.textContent.startsWith(arguments[0]));
        return Array.from(t.tBodies[0].rows).map(r => [r.cells[i].textContent, parseFloat(r.cells[i].dataset.v)]);""", name)


def test_certify(browser, folder):
    models = os.path.join(source, "models")
    page, result = make(folder, "certify", "certify", os.path.join(models, "fashion_mlp.onnx"), "--data",
                        os.path.join(models, "fashion_test_images.idx3.gz"), "--labels",
                        os.path.join(models, "fashion_test_labels.idx1.gz"), "--scale", "1/255", "--limit", "30",
                        "--attack", "--effort", "1")
    check(os.path.getsize(page) < 300_000, "certify: the page is too large")
    for width in (1200, 390):
        for dark in (False, True):
            browser.open(page, width, dark)
            name = f"certify-{width}-{'dark' if dark else 'light'}"
            browser.shot(name)
            paper = luminance(browser, "body", "backgroundColor")
            check(paper < 0.1 if dark else paper > 0.8, f"{name}: the background is not {'dark' if dark else 'light'}")
            for selector in ("h1", ".sub", "td", ".facts dd", ".badge", ".gallery a"):
                check(contrast(browser, selector) > 4.5, f"{name}: too little contrast of {selector}")
            wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
            check(wide[0] <= wide[1], f"{name}: the page is wider than the window: {wide}")
    browser.open(page)
    facts = browser.run("return document.querySelector('.facts').textContent")
    check(f"{100 * result['clean_accuracy']:.2f} %" in facts, "certify: clean accuracy is not shown")
    radii = [sample["radius"] for sample in result["samples"]]
    shown = column(browser, "radius")
    check([value for _, value in shown] == radii, "certify: radii differ from the document")
    check(all(float(text) <= value and value - float(text) <= 1e-5 * value for text, value in shown),
          "certify: radii are not rounded down")
    attacks = [sample["attack_radius"] for sample in result["samples"]]
    check(all((value is None and text == "–") or (kept == value <= float(text))
              for (text, kept), value in zip(column(browser, "attack"), attacks)), "certify: attacks are not rounded up")
    place = browser.run("""
        var t = document.querySelector('#sample-0').closest('table'); t.dataset.test = 'samples';
        return Array.from(t.querySelectorAll('th')).findIndex(h => h.textContent.startsWith('radius')) + 1""")
    for order in (sorted(radii), sorted(radii, reverse=True)):
        browser.click(f"table[data-test=samples] th:nth-child({place}) button")
        check([value for _, value in column(browser, "radius")] == order, "certify: sorting does not sort")
    target = browser.run("return document.querySelector('.gallery a').getAttribute('href')")
    browser.click(".gallery a")
    check(browser.run("return location.hash") == target and
          browser.run("return document.querySelector('tr.here').id") == target[1:], "certify: a picture leads nowhere")
    loaded = browser.run("return Array.from(document.images).every(i => i.complete && i.naturalWidth == 28)")
    check(loaded, "certify: a picture cannot be shown")
    check(browser.run("return document.querySelectorAll('svg.plot path.line').length") >= 2, "certify: no curves")


def test_others(browser, folder):
    models = os.path.join(source, "models")
    model = os.path.join(models, "fashion_mlp.onnx")
    page, result = make(folder, "bound", "bound", model, "--at", os.path.join(models, "fashion_image.npy"), "--radius",
                        "0.001,0.01", "--margin", "3,5", "--effort", "0.1")
    browser.open(page)
    browser.shot("bound")
    facts = browser.run("return Array.from(document.querySelectorAll('.facts dd')).map(d => d.textContent)")
    for text, side in zip(facts, ("lower", "upper")):
        value = result[side]["value"]
        shown = float(re.match(r"[\d.e+-]+", text).group())
        check(text.endswith(result[side]["guarantee"]), f"bound: no guarantee beside {text}")
        check(shown <= value if side == "lower" else shown >= value, f"bound: {side} bound is rounded inward")
    for name, arguments in {"inspect": ("inspect", model), "methods": ("methods",),
                            "game": ("game", os.path.join(folder, "payoff.csv"), "--tau", "0.1")}.items():
        page, result = make(folder, name, *arguments)
        browser.open(page)
        browser.shot(name)
        check(browser.run("return document.querySelectorAll('tbody tr').length") > 0, f"{name}: nothing is shown")


def main():
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("skipped: Debian's chromium and chromium-driver are not installed")
        sys.exit(77)
    browser = Browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "payoff.csv"), "w", encoding="utf-8") as file:
                file.write("1,2\n3,0\n")
            test_certify(browser, folder)
            test_others(browser, folder)
            check(not browser.errors(), f"the console says {browser.errors()}")
    finally:
        browser.close()
    print("pages are in order")


main()
