# SPDX-License-Identifier: Apache-2.0
"""Rows about time: limits, interrupts, models that never ended."""
import random

from . import models
from .kit import Outcome


# Token ids are no point of a function that begins behind their embedding.
TAKES_IDS = {"self-attention-sst"}


def questions(bench, model):
    """Commands about one network, without limits of time: name and arguments."""
    arrays = bench.expected(model)
    asked = [("inspect", ["inspect", model]), ("bound", ["bound", model])]
    if arrays:
        file = model.with_suffix(".expected.npz")
        asked.append(("eval", ["eval", model, "--input", file]))
        point = None if model.stem in TAKES_IDS else bench.point(model)
        if point:
            asked.append(("bound-ball", ["bound", model, "--at", point, "--radius", "0.01", "--norm", "inf"]))
        if model.parent.name == "transformer":
            asked.append(("attention", ["attention", model, "--input", file]))
    data = bench.data_for(model)
    if data:
        asked.append(("certify", ["certify", model, *data]))
        asked.append(("certify-local", ["certify", model, *data, "--norm", "inf", "--scope", "local", "--attack"]))
    box = model.with_suffix(".box.npz")
    if box.exists():
        asked.append(("bound-box", ["bound", model, "--box", box, "--norm", "inf"]))
    return asked


def payoffs(path, size=600):
    rng = random.Random(1)
    path.write_text("".join(",".join(f"{rng.random():.6f}" for _ in range(size)) + "\n" for _ in range(size)))


def other_questions(bench):
    """Commands that take no network, and those that take results of others."""
    asked = [("game", ["game", bench.made("payoffs.csv", payoffs), "--tau", "0.001"])]
    for scores in sorted((bench.nets / "attention_scores").glob("*.npz")):
        asked.append(("softmax", ["softmax", f"{scores}:scores", "--norm", "2", "--norm", "inf", "--norm", "3:1.5"]))
    certificate = bench.scratch / "certificate.json"
    picked = [n for n in ("global/lipsdp_mnist_weights", "mlp/mnist-net_256x4", "trained/mnist_2c2f_maxmin", "cnn/resnet_2b",
                          "transformer/vit_pgd_2_3_16") if (bench.nets / f"{n}.onnx").exists()]
    for name in picked[:2] if bench.quick else picked:
        model, file = bench.nets / f"{name}.onnx", certificate.with_name(name.replace("/", "-") + ".json")
        if bench.run("bound", model, "--time", 5, "--certificate", file).code == 0 and file.exists():
            asked.append(("check", ["check", model, file]))
    result = bench.scratch / "result.json"
    if bench.run("certify", bench.models / "fashion_mlp.onnx", *bench.fashion(), "--time", 3, "-o", result).code == 0:
        asked.append(("report", ["report", result, "-o", bench.scratch / "page.html"]))
    return asked


def allowed(seconds):
    return seconds + max(0.5, 0.1 * seconds)


def worst_of(pairs):
    """Of seconds and whether the machine was idle."""
    idle = [seconds for seconds, quiet in pairs if quiet]
    text = f"worst {max((seconds for seconds, _ in pairs), default=0):+.2f} s"
    return text + (f", {max(idle):+.2f} s in {len(idle)} idle runs" if idle else ", none of them idle")


def without_document(run):
    """Of commands that write no document, such as report: the exit code is the answer."""
    if run.arguments[0] == "report" and run.code in (0, 130):
        run.problems.clear()
    return run


def keeping_time(bench):
    """Every command on every network: wall time at most T + max(0.5 s, 10 %)."""
    networks = [bench.models / "fashion_mlp.onnx", bench.models / "fashion_cnn.onnx", *bench.networks()]
    if bench.quick:
        networks = networks[:2] + random.Random(bench.seed).sample(networks[2:], 8)
    asked = [q for model in networks for q in questions(bench, model)] + other_questions(bench)
    limits = (1,) if bench.quick else (1, 3, 10)
    late, busy, wrong, over = [], [], [], []
    for _, arguments in asked:
        for seconds in limits:
            # The shortest of three: what overruns by itself does so every time.
            tried = []
            while len(tried) < 3 and not (tried and tried[-1].wall <= allowed(seconds)):
                tried.append(without_document(bench.run(*arguments, "--time", seconds, kill=10 * seconds + 60)))
                if tried[-1].problems:
                    break
            run = min(tried, key=lambda r: r.wall)
            wrong += [f"{run.command()}: {p}" for r in tried for p in r.problems]
            over.append((run.wall - seconds, run.idle))
            if run.wall > allowed(seconds):
                (late if run.idle else busy).append(f"{run.wall:.2f} s: {run.command()} (others {run.others:.1f} cores)")
    measured = f"{len(over)} runs, {len(late)} late, {len(busy)} late on a busy machine, {len(wrong)} wrong; {worst_of(over)}"
    held = False if late or wrong else None if busy else True
    return Outcome(measured, held, wrong + late + busy)


def interrupts(bench):
    """Ctrl-C at a random moment: ends within a second, with valid output."""
    rng = random.Random(bench.seed)
    networks = [bench.models / "fashion_mlp.onnx", bench.models / "fashion_cnn.onnx", *bench.networks()]
    others = other_questions(bench)
    slow, busy, wrong, after = [], [], [], []
    for _ in range(20 if bench.quick else 100):
        arguments = rng.choice(others)[1] if rng.random() < 0.1 else rng.choice(questions(bench, rng.choice(networks)))[1]
        moment = 0.03 * 200 ** rng.random()  # from 0.03 s to 6 s
        run = without_document(bench.run(*arguments, "--time", 60, interrupt=moment, kill=90, codes=(0, 1, 4, 5, 130)))
        wrong += [f"{run.command()} after {moment:.3f} s: {p}" for p in run.problems]
        if run.after_signal is None:
            continue
        after.append((run.after_signal, run.idle))
        if run.after_signal > 1:
            (slow if run.idle else busy).append(f"{run.after_signal:.2f} s after {moment:.3f} s: {run.command()} (others {run.others:.1f} cores)")
    measured = f"{len(after)} interrupted, {len(slow)} slow, {len(busy)} slow on a busy machine, {len(wrong)} wrong; {worst_of(after)}"
    return Outcome(measured, False if slow or wrong else None if busy else True, wrong + slow + busy)


def hostile(bench):
    """Models that once never ended: inspect below a second."""
    files = [bench.made(f"{make.__name__}.onnx", make) for make in (models.squares, models.concat, models.wide_pads)]
    files += sorted(bench.nets.glob("cnn/mobilenetv2*int8*.onnx"))
    seen, late, busy, wrong = [], [], [], []
    for file in files:
        run = bench.run("inspect", file, kill=10)
        if 1 < run.wall < 10:
            run = min([run, bench.run("inspect", file, kill=10)], key=lambda r: r.wall)
        wrong += [f"{run.command()}: {p}" for p in run.problems]
        seen.append(f"{file.stem[:12]} {run.wall:.2f} s exit {run.code}")
        if run.wall > 1:
            (late if run.idle else busy).append(f"{run.wall:.2f} s: {run.command()} (others {run.others:.1f} cores)")
    return Outcome(", ".join(seen), False if late or wrong else None if busy else True, wrong + late + busy)
