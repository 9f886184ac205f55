# SPDX-License-Identifier: Apache-2.0
"""Rows about a machine that others use, threads and the same answer in every run."""
import ctypes
import ctypes.util
import json
import statistics
import subprocess

from . import models
from .kit import IDLE, Outcome, busy_loops, ratio, timeless

WIDE = "chain_784-2000x5-10.onnx"


def wrong_in(runs):
    return [f"{run.command()}: {p}" for run in runs for p in run.problems]


def busy_machine(bench):
    """bound fashion_mlp beside twice as many busy loops as cores."""
    command = ["bound", bench.models / "fashion_mlp.onnx", "--time", 5]
    quiet = [bench.run(*command) for _ in range(1 if bench.quick else 3)]
    with busy_loops(2 * bench.cores):
        beside = [bench.run(*command) for _ in range(1 if bench.quick else 3)]
    wrong = wrong_in(quiet + beside)
    best, worst = min(ratio(r.document) for r in quiet), max(ratio(r.document) for r in beside)
    wall = max(r.wall for r in beside)
    measured = f"ratio {worst:.4f} busy, {best:.4f} idle ({100 * (worst / best - 1):+.1f} %); wall {wall:.2f} s"
    held = not wrong and worst <= 1.02 * best and wall <= 6
    idle = all(r.idle for r in quiet)
    return Outcome(measured, held if held or idle or wrong else None, wrong)


def threads_idle(bench):
    """Default threads against one, by wall time; lipsdp of a wide chain with two."""
    repeats, slower, wrong, seen, idle = 3 if bench.quick else 5, [], [], [], True
    for model in bench.some_networks():
        runs = {flags: [] for flags in ((), ("--threads", 1))}
        for _ in range(repeats):  # side by side, so that both see the same machine
            for flags in runs:
                runs[flags].append(bench.run("bound", model, "--effort", 1, *flags))
        every = sum(runs.values(), [])
        wrong += wrong_in(every)
        idle = idle and statistics.median(r.others for r in every) <= IDLE
        many, one = (statistics.median(r.wall for r in runs[flags]) for flags in runs)
        seen.append(many / one)
        if many > 1.1 * one + 0.02:  # a start of the program varies by that
            slower.append(f"{bench.name(model)}: {many:.2f} s by default, {one:.2f} s with one thread")
    measured = f"default / one thread {min(seen):.2f} to {max(seen):.2f}, {len(slower)} slower"
    file = bench.made(WIDE, models.chain)
    lipsdp = ["bound", file, "--methods", "lipsdp", "--time", 600]
    pairs = [[bench.run(*lipsdp, "--threads", n) for n in (1, 2)] for _ in range(1 if bench.quick else 3)]
    wrong += wrong_in(sum(pairs, []))
    one, two = (min(pair[i].wall for pair in pairs) for i in (0, 1))
    idle = idle and all(r.idle for r in sum(pairs, []))
    measured += f"; wide chain {one / two:.2f} times faster with two"
    held = not slower and not wrong and one / two >= 1.5
    return Outcome(measured, held if held or idle or wrong else None, wrong + slower)


def threads_busy(bench):
    """The same beside busy loops: equal time, the brackets."""
    wrong, worse, seen = [], [], []
    with busy_loops(2 * bench.cores):
        for model in bench.some_networks():
            many, one = (bench.run("bound", model, "--time", 5, *flags) for flags in ((), ("--threads", 1)))
            wrong += wrong_in([many, one])
            a, b = ratio(many.document), ratio(one.document)
            seen.append(1.0 if a == b else a / b)
            if not a <= 1.05 * b:
                worse.append(f"{bench.name(model)}: ratio {a:.5g} by default, {b:.5g} with one thread")
    measured = f"default / one thread {min(seen):.4f} to {max(seen):.4f}, {len(worse)} worse"
    return Outcome(measured, not worse and not wrong, wrong + worse)


def same_answer(bench):
    """One command under --effort: the same document however it is run."""
    asked = [["bound", bench.models / "fashion_mlp.onnx"], ["bound", bench.nets / "digits" / "cnn2_seed0.onnx"]]
    rounds, different, wrong, count = 1 if bench.quick else 4, [], [], 0
    for command in asked[:1 if bench.quick else 2]:
        seen = {}
        for _ in range(rounds):
            for threads in (1, 2, 4):
                runs = [bench.run(*command, "--effort", 1, "--threads", threads)]
                if threads != 1:
                    with busy_loops(2 * bench.cores):
                        runs.append(bench.run(*command, "--effort", 1, "--threads", threads))
                wrong += wrong_in(runs)
                for run in runs:
                    count += 1
                    seen.setdefault(json.dumps(timeless(run.document), sort_keys=True), []).append(threads)
        if len(seen) > 1:
            different.append(f"{command}: {len(seen)} documents, by threads {list(seen.values())}")
    return Outcome(f"{count} runs, {len(different)} commands with more than one document", not different and not wrong,
                   wrong + different)


def kernel(bench):
    """lipsdp of a wide chain on one thread: the kernel the program starts with against the one OpenBLAS chooses."""
    library = ctypes.util.find_library("openblas")
    if library is None:
        return Outcome("no OpenBLAS to ask", None)
    blas = ctypes.CDLL(library)
    blas.openblas_get_corename.restype = ctypes.c_char_p
    plain = blas.openblas_get_corename().decode()
    version = subprocess.run([bench.program, "version", "--json"], capture_output=True, text=True, check=True)
    chosen = json.loads(version.stdout)["blas"]["kernel"]
    if plain == chosen:
        return Outcome(f"both take {plain}", None)
    command = ["bound", bench.made(WIDE, models.chain), "--methods", "lipsdp", "--time", 600, "--threads", 1]
    pairs = [(bench.run(*command), bench.run(*command, environment={"OPENBLAS_CORETYPE": plain}))
             for _ in range(1 if bench.quick else 3)]
    wrong = wrong_in(run for pair in pairs for run in pair)
    ours, theirs = (min(pair[i].cpu for pair in pairs) for i in (0, 1))  # by the processor: one thread
    return Outcome(f"{ours:.1f} s with {chosen}, {theirs:.1f} s with {plain}: {ours / theirs:.2f}",
                   not wrong and ours <= 0.5 * theirs, wrong)
