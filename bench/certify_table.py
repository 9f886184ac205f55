#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certified radii against attacks: certify_table.py PROGRAM NETS [--quick]

NETS has mlp/, cnn/, digits/ and data/. First the whole MNIST test set with global constants, then local radii of the first hundred images in
l-infinity and l2, then a few samples of every classifier that fits the data, and the inputs that come with each other model. Ends with
code 1 if any certified radius exceeds its attack.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy
except ModuleNotFoundError:
    numpy = None  # models that come with inputs of their own are left out

program, nets = sys.argv[1:3]
quick = "--quick" in sys.argv
data = os.path.join(nets, "data")
MNIST = ["--data", os.path.join(data, "mnist_t10k-images-idx3-ubyte.gz"), "--labels",
         os.path.join(data, "mnist_t10k-labels-idx1-ubyte.gz"), "--scale", "1/255"]
# What these were trained on; without it they are wrong nearly always.
NORMALISED = {"cifar_base_kw.onnx": ["--mean", "0.4914,0.4822,0.4465", "--std", "0.2471,0.2435,0.2616"],
              "vit_pgd_2_3_16.onnx": ["--mean", "0.4914,0.4822,0.4465", "--std", "0.2471,0.2435,0.2616"]}
CIFAR = ["--data", os.path.join(data, "cifar10_test_first1000.bin"), "--scale", "1/255"]
failed = False


def certify(model, *flags):
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.json")
        done = subprocess.run([program, "certify", model, *flags, "--json", "-o", result, "--quiet"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1]
        with open(result, encoding="utf-8") as file:
            return json.load(file), ""


def report(name, norm, result, why):
    global failed
    if result is None:
        print(f"{name:36} l{norm:4} {why[:120]}")
        return
    number = lambda x: float("inf") if x == "inf" else x
    pairs = [(number(s["radius"]), s["attack_radius"]) for s in result["samples"] if s["attack_radius"] is not None]
    beyond = sum(radius > attack for radius, attack in pairs)
    failed = failed or beyond > 0
    ratios = sorted(radius / attack for radius, attack in pairs if attack > 0)
    half = sum(r >= 0.5 for r in ratios)
    middle = f"{ratios[len(ratios) // 2]:.3f}" if ratios else "-"
    print(f"{name:36} l{norm:4} clean {result['clean_accuracy']:.4f}  attacked {len(pairs):4}  at least half {half:4}  "
          f"median ratio {middle}  beyond {beyond}  {result['seconds']:.1f} s, constants {result['seconds_constants']:.1f} s",
          flush=True)


def own_inputs(model, folder):
    """Flags for the inputs of MODEL.expected.npz, each with the class the model gives it; None where that cannot be."""
    expected = model.replace(".onnx", ".expected.npz")
    if numpy is None or not os.path.exists(expected):
        return None
    arrays = numpy.load(expected)
    if "input_1" in arrays or arrays["input_0"].dtype.kind != "f":
        return None
    outputs = arrays["output_0"]
    count = outputs.shape[0] if outputs.ndim > 1 and arrays["input_0"].shape[0] == outputs.shape[0] else 1
    paths = [os.path.join(folder, name) for name in ("own_x.npy", "own_y.npy")]
    numpy.save(paths[0], arrays["input_0"])
    numpy.save(paths[1], outputs.reshape(count, -1).argmax(1))
    return ["--data", paths[0], "--labels", paths[1]]


def main():
    mnist = os.path.join(nets, "mlp", "mnist-net_256x2.onnx")
    report("mnist-net_256x2, all, global", "2", *certify(mnist, *MNIST))
    for norm in ("inf", "2"):
        limit = "10" if quick else "100"
        report(f"mnist-net_256x2, {limit}, local", norm,
               *certify(mnist, *MNIST, "--norm", norm, "--scope", "local", "--attack", "--limit", limit, "--time", "600"))
    digits = os.path.join(data, "sklearn_digits.csv.gz")
    with tempfile.TemporaryDirectory() as folder:
        import gzip  # the last column is the label
        rows = [line.split(",") for line in gzip.open(digits, "rt").read().split()]
        paths = [os.path.join(folder, name) for name in ("x.csv", "y.csv")]
        with open(paths[0], "w", encoding="utf-8") as file:
            file.writelines(",".join(row[:64]) + "\n" for row in rows[:100])
        with open(paths[1], "w", encoding="utf-8") as file:
            file.writelines(row[64] + "\n" for row in rows[:100])
        small = ["--data", paths[0], "--labels", paths[1], "--scale", "1/16"]
        for model in sorted(glob.glob(os.path.join(nets, "*", "*.onnx"))):
            name = os.path.basename(model)
            for flags in (small, MNIST, CIFAR + NORMALISED.get(name, []), own_inputs(model, folder)):
                if flags is None:
                    continue
                for norm in ("1", "2", "inf"):
                    result, why = certify(model, *flags, "--norm", norm, "--scope", "local", "--attack", "--limit", "4",
                                          "--parts", "50", "--time", "20")
                    other = result is None and ("entries" in why or "classes" in why or "labels in" in why)
                    if other:
                        break  # other data
                    report(name, norm, result, why)
                if not other:
                    break
    sys.exit(1 if failed else 0)


main()
