#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The semidefinite bound against a generic solver: bench/csdp_compare.py LIPSCOPE [10 100 100 100 10]

Writes a random ReLU chain of these sizes, solves its matrix inequality with csdp (Debian: coinor-csdp) and with lipscope,
and prints both optima and both times. Fails when the optima differ by more than 1e-4. Needs numpy."""
import json, pathlib, subprocess, sys, tempfile, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import make_large_models as models


def inequality(layers):
    """The matrix inequality in SDPA's sparse format: variables rho and one multiplier per unit; blocks M and T >= 0."""
    sizes = [layers[0].shape[0]] + [w.shape[1] for w in layers]
    start = [sum(sizes[:k]) for k in range(len(sizes))]
    units = sum(sizes[1:-1])
    lines, number = [], 1
    for j in range(layers[-1].shape[0]):  # minus the constant part: [0 C'; C I]
        for i in range(sizes[-1]):
            lines.append((0, start[-2] + j + 1, start[-1] + i + 1, -float(layers[-1][j, i])))
    lines += [(0, start[-1] + i + 1, start[-1] + i + 1, -1.0) for i in range(sizes[-1])]
    lines += [(1, j + 1, j + 1, 1.0) for j in range(sizes[0])]
    text = []
    for k in range(1, len(sizes) - 1):
        for i in range(sizes[k]):
            number += 1
            row = start[k] + i + 1
            lines.append((number, row, row, 2.0))
            lines += [(number, start[k - 1] + j + 1, row, -float(layers[k - 1][j, i])) for j in range(sizes[k - 1])]
            text.append(f"{number} 2 {number - 1} {number - 1} 1.0")
    objective = "1.0 " + " ".join(["0.0"] * units)
    head = [str(units + 1), "2", f"{sum(sizes)} -{units}", objective]
    return "\n".join(head + [f"{m} 1 {i} {j} {v!r}" for m, i, j, v in lines] + text) + "\n"


def main():
    program = sys.argv[1]
    sizes = [int(n) for n in sys.argv[2:]] or [10, 100, 100, 100, 10]
    layers = models.gaussian(sizes, 1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "net.onnx").write_bytes(models.chain(sizes, 1))
        (folder / "net.dat-s").write_text(inequality(layers))
        start = time.time()
        ours = subprocess.run([program, "bound", "--json", "--methods", "lipsdp", "--time", "60", folder / "net.onnx"],
                              capture_output=True, text=True, check=True)
        our_seconds = time.time() - start
        upper = json.loads(ours.stdout)["upper"]["value"]
        start = time.time()
        theirs = subprocess.run(["csdp", folder / "net.dat-s"], capture_output=True, text=True)
        their_seconds = time.time() - start
        found = [l for l in theirs.stdout.splitlines() if l.startswith("Dual objective value")]
        optimum = float(found[0].split(":")[1]) ** 0.5
    print(f"{'-'.join(map(str, sizes))}: lipscope {upper:.8g} proved in {our_seconds:.3f} s, "
          f"csdp {optimum:.8g} in {their_seconds:.2f} s, ratio of times {their_seconds / our_seconds:.0f}, "
          f"difference {upper / optimum - 1:.1e}")
    sys.exit(abs(upper / optimum - 1) > 1e-4)


if __name__ == "__main__":
    main()
