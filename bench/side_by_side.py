#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds side by side: bench/side_by_side.py OLD NEW NETS [--repeats 5] [--only TEXT] [--quick]

Asks both programs the questions of the benchmark tables, each method by itself, in turn and on one thread: global bounds of the
networks in NETS and bounds on the boxes of NETS/local. Questions that both finish within the time are
rows: both bounds, and the median of the processor seconds (load on the machine hardly moves them). Each row is compared.
Exit 1 where an upper bound is looser or a lower bound smaller by more than 0.1 %, a median is above 1.1 times the old one
(by more than 20 ms of processor time, below which the clock of processes decides), or the brackets contradict each other."""
import argparse, json, pathlib, resource, statistics, subprocess, sys

GLOBAL_METHODS = ["layer-product", "dag", "eclipse-fast", "seqlip", "loop-transform", "lipsdp", "exact-global"]
LOCAL_METHODS = ["dag", "fast-lip", "recur-jac", "linear-jacobian", "gram-l2", "local-lipsdp", "exact-local"]
LOCAL_ROWS = [
    ("lipbab_SDnet_10-30-30-30-3_box0.1", []),
    ("lipmip_10x4-2_s0", ["--margin", "0,1"]),
    ("lipmip_mnist17_784-20-20-20-2_e0.1", ["--margin", "0,1"]),
    ("mnist_784-20-20-10_e0.1", []),
    ("mnist_784-20-20-10_e0.1", ["--output", "7"]),
    ("mnist_784-100-100-10_e0.01", ["--output", "7"]),
    ("mnistadv_784-100-100-10_e0.05", ["--output", "7"]),
    ("exlipbab_iris_net_4x6x6x3_ReLU_R100", []),
    ("exlipbab_wine_net_11x24x24x1_ReLU_R100", []),
    ("rand_10-20-20-10_unit_s0", []),
    ("rand_10-30-30-30-3_e0.1_s0", []),
]
FINISHED = ("finished", "target")


def ask(program, question):
    """The answer as JSON (None where there is none) and the processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *question, "--json", "--quiet"], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (json.loads(done.stdout) if done.returncode in (0, 5) else None), seconds


def value(answer, side):
    bound = answer[side]
    if bound is None or bound["guarantee"] != "proved":
        return None
    return float(bound["value"])


def questions(nets, quick):
    """Name and arguments of every question."""
    models = sorted(nets.rglob("*.onnx"))
    if quick:
        models = models[::5]
    for model in models:
        if model.parent.name in ("local", "acasxu", "mnistfc"):
            continue
        for method in GLOBAL_METHODS:
            yield f"{model.parent.name}/{model.stem} {method}", ["bound", str(model), "--methods", method]
        for norm in ("1", "inf"):
            yield f"{model.parent.name}/{model.stem} l{norm}", ["bound", str(model), "--norm", norm, "--methods", "layer-product,dag"]
    for name, arguments in LOCAL_ROWS[:: 3 if quick else 1]:
        stem = nets / "local" / name
        for norm in ("2", "inf"):
            for method in LOCAL_METHODS:
                yield (f"local/{name} {' '.join(arguments)} l{norm} {method}",
                       ["bound", f"{stem}.onnx", "--box", f"{stem}.box.npz", "--norm", norm, "--methods", method, *arguments])


def compare(old, new):
    """What is wrong with the new answer, in words."""
    faults = []
    old_up, new_up, old_low, new_low = (value(a, s) for s in ("upper", "lower") for a in (old, new))
    if old_up is not None and (new_up is None or new_up > old_up * 1.001):
        faults.append("LOOSER")
    if old_low is not None and (new_low is None or new_low < old_low * 0.999):
        faults.append("SMALLER")
    for low, up in ((old_low, new_up), (new_low, old_up)):
        if low is not None and up is not None and low > up:
            faults.append("CONTRADICTION")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("nets", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--time", default="20")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    limits = ["--time", options.time, "--threads", "1"]
    rows = unfinished = wrong = 0
    print(f"{'question':66} {'old upper':>13} {'new / old - 1':>13} {'old s':>7} {'new s':>7} {'ratio':>6}")
    for name, question in questions(options.nets, options.quick):
        if options.only not in name:
            continue
        answers, seconds = {}, {options.old: [], options.new: []}
        for _ in range(options.repeats):
            for program in (options.old, options.new):
                answers[program], spent = ask(program, question + limits)
                seconds[program].append(spent)
            if any(a is None or a["outcome"] not in FINISHED for a in answers.values()):
                break
        old, new = answers[options.old], answers[options.new]
        if old is None or new is None or not {old["outcome"], new["outcome"]} <= set(FINISHED):
            unfinished += 1
            continue
        if value(old, "upper") is None and value(old, "lower") is None:
            continue  # the method does not apply
        rows += 1
        faults = compare(old, new)
        before, after = (statistics.median(seconds[p]) for p in (options.old, options.new))
        if after > 1.1 * before and after - before > 0.02:
            faults.append("SLOWER")
        wrong += bool(faults)
        up = [value(a, "upper") for a in (old, new)]
        change = f"{up[1] / up[0] - 1:+.1e}" if all(u not in (None, 0, float("inf")) for u in up) else "-"
        print(f"{name:66} {up[0]!s:>13.13} {change:>13} {before:7.3f} {after:7.3f} {after / before:6.2f}  {' '.join(faults)}",
              flush=True)
    print(f"{rows} rows, {unfinished} questions not finished by both, {wrong} rows with a fault")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
