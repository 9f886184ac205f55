# SPDX-License-Identifier: Apache-2.0
"""Models that the rows need and no collection has: hostile ones, and a wide chain."""
import array
import random

from onnx_bytes import field, ints, model, node, value


def tensor(name, dims, numbers):
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, numbers.tobytes())


def squares(path, count=60):
    """t Mul(t, t), again and again: as many paths as 2^count."""
    nodes = [node("Mul", [f"t{i}", f"t{i}"], f"t{i + 1}") for i in range(count)]
    path.write_bytes(model(nodes, [], value("t0", [1, 4]), value(f"t{count}", [1, 4])))


def concat(path, count=4000):
    """As many branches of one input, side by side."""
    nodes = [node("Relu", ["x"], f"r{i}") for i in range(count)]
    nodes.append(node("Concat", [f"r{i}" for i in range(count)], "y", field(1, "axis") + field(20, 2) + field(3, 1)))
    path.write_bytes(model(nodes, [], value("x", [1, 4]), value("y", [1, 4 * count])))


def wide_pads(path, pads=100_000):
    """A convolution of 8 x 8 pixels with a margin that makes 4 x 10^10 places of them."""
    side = 8 + 2 * pads - 2
    conv = node("Conv", ["x", "w"], "y", ints("pads", [pads] * 4))
    kernel = tensor("w", [1, 1, 3, 3], array.array("f", [0.1] * 9))
    path.write_bytes(model([conv], [kernel], value("x", [1, 1, 8, 8]), value("y", [1, 1, side, side])))


def chain(path, sizes=(784, 2000, 2000, 2000, 2000, 2000, 10), seed=1):
    """Dense layers with ReLU, independent Gaussian weights of variance 1 / fan-in, no bias."""
    rng, nodes, weights, x = random.Random(seed), [], [], "x"
    for i, (n, k) in enumerate(zip(sizes, sizes[1:])):
        spread = n ** -0.5
        weights.append(tensor(f"w{i}", [n, k], array.array("f", (rng.gauss(0, spread) for _ in range(n * k)))))
        nodes.append(node("MatMul", [x, f"w{i}"], f"h{i}"))
        x = f"h{i}"
        if i + 2 < len(sizes):
            nodes.append(node("Relu", [x], f"r{i}"))
            x = f"r{i}"
    path.write_bytes(model(nodes, weights, value("x", [1, sizes[0]]), value(x, [1, sizes[-1]])))
