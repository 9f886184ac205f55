# SPDX-License-Identifier: Apache-2.0
"""Rows about certified radii: what more time and a second run bring, and parts of the work."""
import json
import math

from .kit import Outcome, number, timeless


def certify(bench, *arguments):
    run = bench.run("certify", *arguments, codes=(0,))
    return run, [f"{run.command()}: {p}" for p in run.problems]


def by_radius(document):
    return {row["radius"]: row["accuracy"] for row in document["certified"]}


def cnn(bench):
    """fashion_cnn: five seconds against sixty, at each default radius."""
    command = [bench.models / "fashion_cnn.onnx", *bench.fashion()]
    (short, wrong), (long, more) = certify(bench, *command, "--time", 5), certify(bench, *command, "--time", 20 if bench.quick else 60)
    if wrong or more:
        return Outcome("wrong answers", False, wrong + more)
    least, most = by_radius(short.document), by_radius(long.document)
    lost = {radius: 100 * (most[radius] - least[radius]) for radius in most}
    worst = max(lost.values())
    held = worst <= 0.5
    text = ", ".join(f"{r:.3g}: {100 * least[r]:.1f} of {100 * most[r]:.1f} %" for r in most)
    return Outcome(f"worst loss {worst:.2f} points; {text}", held if held or short.idle else None)


def maxmin(bench):
    """A network trained with certified margins, global constants."""
    run, wrong = certify(bench, bench.nets / "trained" / "mnist_2c2f_maxmin.onnx", *bench.mnist(), "--radii", "0.3", "--time", 20)
    if wrong:
        return Outcome("wrong answer", False, wrong)
    share = 100 * by_radius(run.document)[0.3]
    return Outcome(f"{share:.2f} % at 0.3 in {run.wall:.1f} s", share >= 96.6 and run.wall <= 22)


def decided(document):
    """Pairs of a sample and a requested radius that are proved or refuted."""
    count = 0
    for row in document["samples"]:
        attack = math.inf if row["attack_radius"] is None else number(row["attack_radius"])
        count += sum(number(row["radius"]) >= c["radius"] or attack <= c["radius"] for c in document["certified"])
    return count


def alike(a, b):
    """Share of samples at whose requested radii the two say the same."""
    def verdicts(document):
        return {row["index"]: [number(row["radius"]) >= c["radius"] for c in document["certified"]] for row in document["samples"]}
    first, second = verdicts(a), verdicts(b)
    return sum(first[k] == second[k] for k in first) / len(first)


def local(bench):
    """fashion_mlp in l-infinity around every sample: more time decides more, and a resumed run ends where one long one does."""
    limit, unit = (60, 9) if bench.quick else (500, 60)
    command = [bench.models / "fashion_mlp.onnx", *bench.fashion(limit), "--norm", "inf"]
    log = bench.scratch / "samples.jsonl"
    steps = {"global": ["--time", unit], "third": ["--scope", "local", "--time", unit / 3],
             "first": ["--scope", "local", "--time", unit, "--resume", log]}
    steps |= {name: steps["first"] for name in ("second", "resumed")}
    steps["long"] = ["--scope", "local", "--time", 3 * unit]
    found, wrong, idle = {}, [], True
    for name, flags in steps.items():
        run, problems = certify(bench, *command, *flags)
        wrong += problems
        idle = idle and run.idle
        found[name] = run.document
    if wrong:
        return Outcome("wrong answers", False, wrong)
    below = [row["index"] for row, whole in zip(found["first"]["samples"], found["global"]["samples"])
             if number(row["radius"]) < number(whole["radius"]) and whole["predicted"] == whole["label"]]
    few, some = decided(found["third"]), decided(found["first"])
    same = alike(found["resumed"], found["long"])
    backwards = [a["index"] for one, other in (("first", "second"), ("second", "resumed"))
                 for a, b in zip(found[one]["samples"], found[other]["samples"]) if number(b["radius"]) < number(a["radius"])]
    held = not below and some > few and same >= 0.98 and not backwards
    measured = (f"{len(below)} below the global radius; decided {few} after {unit / 3:.0f} s, {some} after {unit} s, "
                f"{decided(found['resumed'])} after three runs, {decided(found['long'])} after {3 * unit} s; alike {100 * same:.1f} %")
    details = [f"samples below their global radius: {below[:10]}"] if below else []
    details += [f"samples that a resumed run made worse: {backwards[:10]}"] if backwards else []
    return Outcome(measured, held if held or idle or below or backwards else None, details)


def shards(bench):
    """Four parts, merged, against one run."""
    different, wrong = [], []
    model = bench.models / "fashion_mlp.onnx"
    limit = 40 if bench.quick else 200
    asked = [[model, *bench.fashion(limit)],
             [model, *bench.fashion(limit), "--norm", "inf", "--scope", "local", "--attack", "--parts", 20]]
    for k, command in enumerate(asked):
        parts = [bench.scratch / f"part{k}-{i}.json" for i in range(4)]
        whole, problems = certify(bench, *command, "--effort", 1)
        wrong += problems
        for i, part in enumerate(parts):
            run = bench.run("certify", *command, "--effort", 1, "--shard", f"{i + 1}/4", "-o", part)
            if run.code != 0:
                wrong.append(f"{run.command()}: exit {run.code}")
        merged = bench.run("merge", *parts)
        if merged.code != 0 or wrong:
            wrong.append(f"{merged.command()}: exit {merged.code} {merged.errors[-200:]}")
            continue
        a, b = timeless(whole.document), timeless(json.loads(merged.text))
        different += [f"{command[1:]}: {key} differs" for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)]
    return Outcome(f"{len(asked)} questions, {len(different)} fields that differ", not different and not wrong, wrong + different)
