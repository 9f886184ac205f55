#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_program.py PROGRAM SOURCE_DIR BUILD_TYPE: what readelf says of the program.

RUNPATH holds absolute folders only (an empty entry is the current folder), the protections of the linker and the compiler are
there, and NOTICE has an entry for every library it is linked to."""
import re
import subprocess
import sys


def readelf(option, program):
    return subprocess.run(["readelf", "-W", option, program], capture_output=True, text=True, check=True).stdout


def faults_of_paths(dynamic):
    """Entries of RUNPATH and RPATH that depend on where the program is started, or are nothing."""
    paths = re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic)
    entries = [entry for path in paths for entry in path.split(":")]
    return [f"'{entry}' in RUNPATH is no absolute folder" for entry in entries if not entry.startswith("/")]


def missing_protections(header, segments, dynamic, symbols, optimised):
    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1)\)(.*)", dynamic)).replace("Flags:", "").split()
    stack = re.search(r"GNU_STACK.*", segments)
    names = set(re.findall(r"UND (\w+)", symbols))
    there = {
        "position-independent code (PIE)": "PIE" in flags and re.search(r"Type:\s+DYN", header),
        "BIND_NOW": "NOW" in flags or "BIND_NOW" in flags,
        "RELRO": "GNU_RELRO" in segments,
        "a stack that cannot be executed": stack and "E" not in stack.group().split()[-2],
        "stack protector": "__stack_chk_fail" in names,
        "_FORTIFY_SOURCE": not optimised or any(name.endswith("_chk") for name in names),
    }
    return [f"no {name}" for name, present in there.items() if not present]


def unlisted_libraries(dynamic, notice):
    listed = {name for line in re.findall(r"^  Files: (.*)$", notice, re.MULTILINE) for name in line.split(", ")}
    needed = re.findall(r"\(NEEDED\).*\[(.*?)\.so", dynamic)
    if not needed:
        return ["no NEEDED entries: is this a program?"]
    return [f"{name} is linked, but NOTICE does not say under which licence" for name in needed if name not in listed]


def check_the_checks():
    def path(entries):
        return f" 0x1d (RUNPATH)  Library runpath: [{entries}]\n"

    assert not faults_of_paths(path("/usr/lib/a:/opt/b"))
    for entries in ("/usr/lib/a:", ":/usr/lib/a", "/a::/b", "", "lib", "/a:../b", "."):
        assert faults_of_paths(path(entries)), entries
    assert len(missing_protections("", "GNU_STACK 0x0 0x0 0x0 0x0 0x0 RWE 0x10", "", "", True)) == 6
    assert unlisted_libraries(" (NEEDED) Shared library: [libother.so.3]\n", "  Files: libz, libm\n")
    assert not unlisted_libraries(" (NEEDED) Shared library: [libm.so.6]\n", "  Files: libz, libm\n")


def main():
    check_the_checks()
    program, source, build_type = sys.argv[1:]
    dynamic = readelf("-d", program)
    with open(source + "/NOTICE", encoding="utf-8") as file:
        faults = unlisted_libraries(dynamic, file.read())
    faults += faults_of_paths(dynamic)
    faults += missing_protections(readelf("-h", program), readelf("-l", program), dynamic, readelf("--dyn-syms", program),
                                  build_type == "Release")
    for fault in faults:
        print(f"{program}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
