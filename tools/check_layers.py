#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file includes a module that src/LAYERS does not allow, or a public header includes src/."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def read_layers():
    """Modules that each module, and each folder outside src/, may include."""
    direct, alone = {}, {}
    for line in (ROOT / "src" / "LAYERS").read_text().splitlines():
        line = line.split("#")[0].strip()
        if "=" in line:
            name, uses = line.split("=")
            alone[name.strip()] = set(uses.split())
        elif line:
            name, uses = line.split(":")
            direct[name.strip()] = uses.split()
    closed = {}

    def close(name, path=()):
        if name in path:
            sys.exit(f"src/LAYERS: cycle through {name}")
        if name not in closed:
            closed[name] = {name}.union(*(close(use, path + (name,)) for use in direct[name]))
        return closed[name]

    for name in direct:
        close(name)
    return closed | alone


def outside_faults(layers, modules):
    """Of files outside src/."""
    folders = sorted((name for name in layers if name not in modules), key=len, reverse=True)
    for folder in {name.split("/")[0] for name in folders}:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            name = str(path.relative_to(ROOT))
            allowed = layers[next(prefix for prefix in folders if name.startswith(prefix + "/"))]
            for include in INCLUDE.findall(path.read_text()):
                if include.split("/")[0] in modules - allowed:
                    yield f"{name}: may not include {include}"


def main():
    layers = read_layers()
    modules = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
    faults = list(outside_faults(layers, modules))
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        module = path.relative_to(ROOT / "src").parts[0]
        if module not in layers:
            faults.append(f"src/{module}: not listed in src/LAYERS")
            continue
        for include in INCLUDE.findall(path.read_text()):
            target = include.split("/")[0]
            test_only = path.stem.endswith("_test") or "for_test" in path.stem
            if target in modules - layers[module] and not test_only:
                faults.append(f"{path.relative_to(ROOT)}: {module} may not include {include}")
    for path in sorted((ROOT / "include").rglob("*.h")):
        for include in INCLUDE.findall(path.read_text()):
            if not include.startswith("lipscope/"):
                faults.append(f"{path.relative_to(ROOT)}: public headers include lipscope/ only, not {include}")
        for include in re.findall(r"#\s*include\s+<([^>]+)>", path.read_text()):
            if "/" in include or "." in include:
                faults.append(f"{path.relative_to(ROOT)}: third-party header <{include}>")
    faults += [f"src/LAYERS: src/{name} is not there" for name in layers
               if not (ROOT / "src" / name).is_dir() and not (ROOT / name).is_dir()]
    print("\n".join(faults) if faults else "layers: in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
