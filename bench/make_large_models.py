#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random models of about ten million parameters, for timing: bench/make_large_models.py FOLDER

mlp_10m: 784-2048-2048-2048-10 with ReLU. vgg_7m: six 3x3 convolutions on 3x32x32 and two dense layers; weights are
Kaiming-like. Then chains with ReLU and independent Gaussian weights of variance 1/fan-in, no bias, for the semidefinite
bound: chain_784-2000x5-10, chain_100-300x50-10 and chain_100-1000x50-10 (49 million weights), and some smaller ones of
which the growth of time with width and depth is read. All from fixed seeds; the chains need numpy."""
import array, pathlib, random, sys

from onnx_bytes import field, ints, model, node, value


def tensor(name, dims, spread, rng):
    count = 1
    for d in dims:
        count *= d
    block = array.array("f", (rng.gauss(0, spread) for _ in range(min(count, 1 << 16))))
    data = array.array("f", block)
    while len(data) < count:  # shifted copies of one block: random enough for timing
        shift = rng.randrange(1, len(block))
        data.extend(block[shift:] + block[:shift])
    raw = data[:count].tobytes()
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, raw)


def mlp(rng):
    sizes, nodes, weights, x = [784, 2048, 2048, 2048, 10], [], [], "x"
    for i, (n, k) in enumerate(zip(sizes, sizes[1:])):
        weights += [tensor(f"w{i}", [n, k], (2 / n) ** 0.5, rng), tensor(f"b{i}", [k], 0.1, rng)]
        nodes.append(node("Gemm", [x, f"w{i}", f"b{i}"], f"h{i}"))
        x = f"h{i}"
        if k != 10:
            nodes.append(node("Relu", [x], f"r{i}"))
            x = f"r{i}"
    return model(nodes, weights, value("x", [1, 784]), value(x, [1, 10]))


def gaussian(sizes, seed):
    import numpy
    rng = numpy.random.default_rng(seed)
    return [(rng.standard_normal((n, k)) / n**0.5).astype("<f4") for n, k in zip(sizes, sizes[1:])]


def chain(sizes, seed):
    nodes, weights, x = [], [], "x"
    for i, matrix in enumerate(gaussian(sizes, seed)):
        (n, k), raw = matrix.shape, matrix.tobytes()
        weights.append(field(1, n) + field(1, k) + field(2, 1) + field(8, f"w{i}") + field(9, raw))
        nodes.append(node("MatMul", [x, f"w{i}"], f"h{i}"))
        x = f"h{i}"
        if i + 2 < len(sizes):
            nodes.append(node("Relu", [x], f"r{i}"))
            x = f"r{i}"
    return model(nodes, weights, value("x", [1, sizes[0]]), value(x, [1, sizes[-1]]))


CHAINS = {"784-2000x5-10": [784] + [2000] * 5 + [10], "100-300x50-10": [100] + [300] * 50 + [10],
          "100-1000x50-10": [100] + [1000] * 50 + [10]}
CHAINS |= {f"64-64x{n}-10": [64] + [64] * n + [10] for n in (5, 10, 20, 40, 80, 200)}
CHAINS |= {f"64-{n}x5-10": [64] + [n] * 5 + [10] for n in (32, 128, 256, 512, 1024)}


def vgg(rng):
    nodes, weights, x, channels = [], [], "x", 3
    for i, (k, pool) in enumerate([(64, 0), (64, 1), (128, 0), (128, 1), (256, 0), (256, 1)]):
        weights += [tensor(f"w{i}", [k, channels, 3, 3], (2 / (9 * channels)) ** 0.5, rng), tensor(f"b{i}", [k], 0.1, rng)]
        nodes.append(node("Conv", [x, f"w{i}", f"b{i}"], f"c{i}", ints("pads", [1, 1, 1, 1])))
        nodes.append(node("Relu", [f"c{i}"], f"r{i}"))
        x, channels = f"r{i}", k
        if pool:
            nodes.append(node("MaxPool", [x], f"p{i}", ints("kernel_shape", [2, 2]), ints("strides", [2, 2])))
            x = f"p{i}"
    nodes.append(node("Flatten", [x], "flat"))
    for i, (n, k) in enumerate([(4096, 1400), (1400, 10)]):
        weights += [tensor(f"v{i}", [n, k], (2 / n) ** 0.5, rng), tensor(f"a{i}", [k], 0.1, rng)]
        nodes.append(node("Gemm", ["flat" if i == 0 else "s", f"v{i}", f"a{i}"], f"d{i}"))
        if i == 0:
            nodes.append(node("Relu", ["d0"], "s"))
    return model(nodes, weights, value("x", [1, 3, 32, 32]), value("d1", [1, 10]))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    (folder / "mlp_10m.onnx").write_bytes(mlp(rng))
    (folder / "vgg_7m.onnx").write_bytes(vgg(rng))
    for name, sizes in CHAINS.items():
        (folder / f"chain_{name}.onnx").write_bytes(chain(sizes, 1))


if __name__ == "__main__":
    main()
