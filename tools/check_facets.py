#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where something outside src/ops finds out what kind an operator is: by a cast, or by its name.

Analyses ask operators for facets (include/lipscope/op.h). Names are for people, for importers, and for what recognises
patterns of nodes."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Casts of something that is no operator, by target.
OTHER_CASTS = {
    "WatchingClock",  # the clock of a run that watches another one
    "BoundedSearch",  # regions of a search by cases
    "OsiClpSolverInterface",  # of the integer programming library
}
# Who may look at names: recognisers of patterns, and readers of ONNX files, where names are all there is.
RECOGNISERS = ("src/passes/", "src/io/", "src/attention/find.cpp", "src/attention/special_heads.cpp")
# Names of nodes that are made there, not asked for.
GIVEN_NAMES = {("src/bounds/gradient_graph.cpp", name) for name in ("Abs", "Add", "Sum")}

CAST = re.compile(r"\b(?:dynamic_cast|dynamic_pointer_cast|typeid)\s*[<(]\s*(?:const\s+)?([\w:]+(?:<\w+>)?)")
CALL = re.compile(r"\bop(?:_|\(\))?\s*(?:->|\.)\s*name\(\)\s*(?:==|!=)|(?:==|!=)\s*[\w.>()*-]*\bop(?:_|\(\))?(?:->|\.)name\(\)")
LITERAL = re.compile(r'"([A-Z]\w*)"')
COMMENT = re.compile(r"//.*")


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp") and not path.stem.endswith(("_test", "_for_test")):
                yield path, path.relative_to(ROOT).as_posix()


def operator_names():
    names = set()
    for path, _ in sources("src/ops"):
        text = path.read_text()
        names.update(re.findall(r'kName = "(\w+)"', text))
        names.update(re.findall(r'\{"([A-Z]\w*)",\s*(?:import|\[|&|\w+<)', text))
    return names


def own_classes(text):
    """Classes a file of src/ops defines: it may read back what it has made itself."""
    return set(re.findall(r"\b(?:class|struct)\s+(\w+)", text))


def faults_of(text, name, names):
    own = own_classes(text) if name.startswith("src/ops/") and name.endswith(".cpp") else set()
    for number, line in enumerate(text.splitlines(), 1):
        line = COMMENT.sub("", line)
        for target in CAST.findall(line):
            argument = re.search(r"<(\w+)>", target)
            if target in OTHER_CASTS or (argument.group(1) if argument else target) in own:
                continue
            yield f"{name}:{number}: cast to {target}; ask the operator for a facet (include/lipscope/op.h)"
        if name.startswith(("src/ops/",) + RECOGNISERS):
            continue
        found = [n for n in LITERAL.findall(line) if n in names and (name, n) not in GIVEN_NAMES]
        if found or CALL.search(line):
            yield f"{name}:{number}: asks for the name of an operator{': ' + found[0] if found else ''}; ask for a facet"


def forgotten_facets():
    """An operator that has the interface of a facet says so."""
    facets = re.findall(r"virtual const (\w+)\* \w+\(\) const", (ROOT / "include/lipscope/op.h").read_text())
    for path, name in sources("src"):
        text = path.read_text()
        bases = re.findall(r"\bclass \w+(?: final)?\s*:\s*(public [^{]*)\{", text)
        for facet in facets:
            having = sum(bool(re.search(rf"\bpublic {facet}\b", base)) for base in bases)
            telling = len(re.findall(rf"const {facet}\* \w+\(\) const override", text))
            if facet != "Elementwise" and having > telling:
                yield f"{name}: {having} classes are a {facet}, {telling} tell"


# Each has to be found.
FAULTY = (
    'const auto* curve = dynamic_cast<const Elementwise*>(node.op.get());',
    'if (typeid(*node.op) == typeid(other)) return;',
    'if (node.op->name() != other) return;',
    'const bool max = name == "Max";',
    'static const std::set<std::string_view> kKnown = {"Relu", "Tanh"};',
)


def accessor_faults():
    """Every facet of op.h is in the list of src/ops/facets.cpp."""
    body = (ROOT / "include/lipscope/op.h").read_text().split("class Op {")[1]
    listed = (ROOT / "src/ops/facets.cpp").read_text()
    for name in re.findall(r"virtual [^;{]*?\b(\w+)\(", body):
        if name in ("Op", "infer", "eval", "name", "jvp", "vjp"):  # all have them, or by differentiable()
            continue
        if not re.search(rf"\bOp::{name}\b|\bop\.{name}\(", listed):
            yield f"include/lipscope/op.h: {name} is not in the list of src/ops/facets.cpp"


def page_faults():
    """docs/reference/operators.md lists what src/ops/facets.cpp does."""
    rows = re.findall(r'\{\{"([\w-]+)",\s*"([^"]+)"\}', (ROOT / "src/ops/facets.cpp").read_text())
    page = "docs/reference/operators.md"
    shown = re.findall(r"^\| ([\w-]+) \| ([^|]+) \| `", (ROOT / page).read_text(), re.MULTILINE)
    if not rows or rows != shown:
        yield f"{page}: its table is not that of src/ops/facets.cpp: {sorted(set(rows) ^ set(shown))}"


def main():
    names = operator_names()
    if len(names) < 100:
        sys.exit(f"only {len(names)} names of operators found in src/ops")
    faults = [fault for path, name in sources("include", "src", "app") for fault in faults_of(path.read_text(), name, names)]
    faults += [*accessor_faults(), *forgotten_facets(), *page_faults()]
    faults += [f"not found: {line}" for line in FAULTY if not list(faults_of(line, "src/bounds/x.cpp", names))]
    print("\n".join(faults) if faults else "facets: in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
