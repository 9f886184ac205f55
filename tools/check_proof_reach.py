#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how many lines of this project the checker of certificates can reach, and fails when they are too many or when a
search is among them.

Reached are the files of src/proof, every project header one of them includes, directly or not, and the source file behind
each such header."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FEWER_THAN = 26_700
FOLDERS = ("src/search/", "src/estimate/", "src/robust/", "app/")
NAMES = re.compile(r"(^|_)(search|ascent|planner|branching|attack|sampler|solver|methods?)(_|$)|^lipsdp")
CLOCKS = re.compile(r"std::chrono|stop_token|steady_clock|random_device|\btime\(|[^_]thread::sleep")


def is_test(path):
    return path.stem.endswith("_test") or "for_test" in path.stem


def header(name):
    for folder in ("src", "include"):
        path = ROOT / folder / name
        if path.exists():
            return path
    return None


def reached():
    """Every reached file with the one that reaches it."""
    todo = [(path, None) for path in sorted((ROOT / "src/proof").iterdir())
            if path.suffix in (".h", ".cpp") and not is_test(path)]
    found = {}
    while todo:
        path, by = todo.pop()
        if path in found:
            continue
        found[path] = by
        todo += [(target, path) for target in map(header, INCLUDE.findall(path.read_text())) if target]
        if path.suffix == ".h" and path.with_suffix(".cpp").exists():
            todo.append((path.with_suffix(".cpp"), path))
    return found


def way_to(path, found):
    way = []
    while path is not None:
        way.append(str(path.relative_to(ROOT)))
        path = found[path]
    return " <- ".join(way)


def main():
    found = reached()
    lines, faults = 0, []
    for path in sorted(found):
        text = path.read_text()
        lines += text.count("\n")
        name = str(path.relative_to(ROOT))
        if name.startswith(FOLDERS) or NAMES.search(path.stem):
            faults.append(f"a search: {way_to(path, found)}")
        elif CLOCKS.search(text):
            faults.append(f"a clock or a source of randomness: {way_to(path, found)}")
    print(f"the checker reaches {lines} lines in {len(found)} files; the limit is {FEWER_THAN}")
    if "--list" in sys.argv:
        print("\n".join(str(path.relative_to(ROOT)) for path in sorted(found)))
    if lines >= FEWER_THAN:
        faults.append("too many lines")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
