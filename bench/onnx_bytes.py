# SPDX-License-Identifier: Apache-2.0
"""The few messages of an ONNX file that the models of the benchmarks are made of, as bytes."""


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
