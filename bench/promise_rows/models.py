# SPDX-License-Identifier: Apache-2.0
"""Models that the rows need and no collection has: hostile ones, and a wide chain."""
import array
import random


def varint(n):
    out = bytearray()
    while True:
        out.append(n & 127 | (128 if n > 127 else 0))
        n >>= 7
        if not n:
            return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, numbers):
    return b"".join(field(1, d) for d in dims) + field(2, 1) + field(8, name) + field(9, numbers.tobytes())


def ints(name, values):
    return field(1, name) + field(20, 7) + b"".join(field(8, v) for v in values)


def node(op, inputs, output, *attributes):
    return (b"".join(field(1, i) for i in inputs) + field(2, output) + field(3, output) + field(4, op)
            + b"".join(field(5, a) for a in attributes))


def value(name, dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(nodes, weights, given, wanted):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "made") + b"".join(field(5, w) for w in weights)
             + field(11, given) + field(12, wanted))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))


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
