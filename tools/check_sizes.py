#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a function of the sources has more than 80 lines or a file more than 500 (of tests: 600)."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("app", "bench", "examples", "fuzz", "include", "src", "tests")
MOST_FUNCTION, MOST_FILE, MOST_TEST = 80, 500, 600
# Comments, strings and characters; raw strings before the others.
SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def without_text(code):
    """The same lines without comments and strings."""
    return SILENT.sub(lambda found: "\n" * found.group().count("\n"), code)


def functions(code):
    """First line and number of lines of each function that is not inside another."""
    scopes, head, line = [], 0, 1
    for place, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            before = code[head:place]
            inside = any(kind == "function" for kind, _ in scopes)
            opens = not inside and "(" in before and not SCOPE.search(before.split("(")[0])
            scopes.append(("function" if opens else "other", line - before.lstrip().count("\n")))
            head = place + 1
        elif char == "}":
            kind, first = scopes.pop() if scopes else ("other", line)
            if kind == "function":
                yield first, line - first + 1
            head = place + 1
        elif char == ";":
            head = place + 1


def main():
    faults = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            code = path.read_text(encoding="utf-8")
            name = path.relative_to(ROOT)
            lines = code.count("\n")
            most = MOST_TEST if path.stem.endswith("_test") else MOST_FILE
            if lines > most:
                faults.append(f"{name}: {lines} lines, at most {most}")
            for first, length in functions(without_text(code)):
                if length > MOST_FUNCTION:
                    faults.append(f"{name}:{first}: a function of {length} lines, at most {MOST_FUNCTION}")
    print("\n".join(faults) if faults else "sizes: in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
