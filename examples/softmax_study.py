#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How sensitive softmax is on real scores and logits.

Empirical Lipschitz constants (random and worst direction) and proved local constants of softmax on attention scores,
policies and classifiers, for several inverse temperatures. Everything is computed by the `lipscope` program; this script
only feeds it and collects what it says into one JSON document:

    examples/softmax_study.py --nets ../shared/nets -o study.json

`--nets` is a folder with attention_scores/, rl/, cnn/ and data/; what is missing there is left out.
"""
import argparse
import array
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

EPSILONS = "0.001,0.01,0.1,1"


def call(program, *arguments):
    done = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def write_csv(path, rows):
    path.write_text("".join(",".join(repr(x) for x in row) + "\n" for row in rows))


def write_npy(path, shape, values):
    """float32, version 1.0."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        array.array("f", values).tofile(file)


def cart_pole_states(count, rng):
    """States visited by random actions under the dynamics of CartPole-v1."""
    states, state = [], None
    while len(states) < count:
        if state is None or abs(state[0]) > 2.4 or abs(state[2]) > 12 * math.pi / 180:
            state = [rng.uniform(-0.05, 0.05) for _ in range(4)]
        x, speed, angle, turning = state
        force = rng.choice((-10.0, 10.0))
        push = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        angular = (9.8 * math.sin(angle) - math.cos(angle) * push) / (
            0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        linear = push - 0.05 * angular * math.cos(angle) / 1.1
        state = [x + 0.02 * speed, speed + 0.02 * linear, angle + 0.02 * turning, turning + 0.02 * angular]
        states.append(state)
    return states


def lunar_lander_states(count, rng):
    """Spread over the ranges LunarLander-v2 visits: place, speed, angle, turning, legs on the ground."""
    return [[rng.uniform(-1, 1), rng.uniform(-0.2, 1.5), rng.gauss(0, 0.4), rng.gauss(-0.4, 0.4), rng.gauss(0, 0.3),
             rng.gauss(0, 0.3), float(rng.random() < 0.1), float(rng.random() < 0.1)] for _ in range(count)]


def images_of(path):
    """CIFAR-10 records as numbers from 0 to 1, without the labels."""
    data = path.read_bytes()
    values = array.array("f", [byte / 255 for i, byte in enumerate(data) if i % 3073 != 0])
    return (len(data) // 3073, 3, 32, 32), values


def enlarged_images(path, count, side):
    """CIFAR-10 images as ImageNet-style input: nearest neighbour, usual mean and deviation."""
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    source = [i * 32 // side for i in range(side)]
    data, values = path.read_bytes(), array.array("f")
    for image in range(count):
        for channel in range(3):
            start = image * 3073 + 1 + channel * 1024
            plane = [(byte / 255 - mean[channel]) / deviation[channel] for byte in data[start:start + 1024]]
            for y in source:
                line = plane[y * 32:y * 32 + 32]
                values.extend([line[x] for x in source])
    return (count, 3, side, side), values


def logits_of(program, model, inputs, work, *flags):
    """The logits of a model as a file of rows."""
    output = call(program, "eval", model, "--input", inputs, *flags)["outputs"][0]
    width = output["shape"][-1]
    path = work / (model.stem + ".logits.csv")
    data = output["data"]
    write_csv(path, [data[i:i + width] for i in range(0, len(data), width)])
    return path


def sources(program, nets, work, rng):
    """Name, kind and a function that gives the file, for whatever is there."""
    for path in sorted(nets.glob("attention_scores/*.npz")):
        yield path.stem, "attention scores", lambda path=path: path
    cart, lander, images = work / "cart.csv", work / "lander.csv", nets / "data" / "cifar10_test_first1000.bin"
    write_csv(cart, cart_pole_states(2000, rng))
    write_csv(lander, lunar_lander_states(2000, rng))
    for path in sorted(nets.glob("rl/*.onnx")):
        states = lander if "Lunar" in path.name else cart
        yield path.stem, "policy", lambda path=path, states=states: logits_of(program, path, states, work)
    for name in ("resnet_2b", "cifar_base_kw"):
        path = nets / "cnn" / f"{name}.onnx"
        if path.exists() and images.exists():
            def cifar(path=path):
                write_npy(work / "cifar.npy", *images_of(images))
                return logits_of(program, path, work / "cifar.npy", work, "--precision", "float32")
            yield name, "CIFAR-10 classifier", cifar
    path = nets / "cnn" / "mobilenetv2_imagenet_int8_qdq.onnx"
    if path.exists() and images.exists():
        def mobilenet():
            big = work / "big.npy"
            write_npy(big, *enlarged_images(images, 16, 244))
            return logits_of(program, path, big, work, "--precision", "float32")
        yield path.stem, "ImageNet classifier", mobilenet


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(here / "build" / "release" / "lipscope"))
    parser.add_argument("--nets", type=pathlib.Path, default=here.parent / "shared" / "nets")
    parser.add_argument("--norms", default="1,2,8,inf")
    parser.add_argument("--lambdas", default="0.5,1,2,4")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("softmax_study.json"))
    options = parser.parse_args()
    norms = [flag for norm in options.norms.split(",") for flag in ("--norm", norm)]
    study, above = [], 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for name, kind, make in sources(options.program, options.nets, work, random.Random(1)):
            try:
                rows = make()
            except RuntimeError as error:
                print(f"{name}: left out: {error}", file=sys.stderr)
                continue
            for scale in options.lambdas.split(","):
                said = call(options.program, "softmax", rows, "--lambda", scale, *norms, "--empirical", EPSILONS,
                            "--summary")
                above += sum(cell["directed_max"] > float(scale) / 2 or cell["random_max"] > float(scale) / 2
                             for cell in said["empirical"] if cell["norm"].split(":")[0] == cell["norm"].split(":")[1])
                study.append({"name": name, "kind": kind, "lambda": said["lambda"], "rows": said["rows"],
                              "global": said["global"], "summary": said["summary"], "empirical": said["empirical"]})
                best = max(said["empirical"], key=lambda cell: cell["directed_max"])
                chance = max(cell["random_max"] for cell in said["empirical"])
                print(f"{name:32} lambda {scale:>3}  local l2 {said['summary'].get('2:2', {}).get('max', math.nan):.6f}"
                      f"  seen {best['directed_max']:.6f} ({chance:.6f} at random)  of {float(scale) / 2}",
                      file=sys.stderr)
    options.output.write_text(json.dumps({"schema": "lipscope.softmax-study/1", "above_half_lambda": above,
                                          "results": study}, indent=1) + "\n")
    return 1 if above or not study else 0


if __name__ == "__main__":
    sys.exit(main())
