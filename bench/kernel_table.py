#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The semidefinite bound by kernel and threads: bench/kernel_table.py LIPSCOPE MODEL [REPEATS]

Best processor and wall seconds of lipsdp on one thread with the kernel OpenBLAS chooses by itself, with the one the program
chooses, and of the latter on two threads. Asked for: kernel at most 0.5 where the two differ; two threads 1.5 times faster.
MODEL: chain_784-2000x5-10.onnx of make_large_models.py."""
import ctypes, ctypes.util, json, os, resource, subprocess, sys, time


def spent(program, model, threads, kernel):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    if kernel:
        environment["OPENBLAS_CORETYPE"] = kernel
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
    out = subprocess.run([program, "bound", "--json", "--quiet", "--methods", "lipsdp", "--time", "600", "--threads", str(threads),
                          model], env=environment, capture_output=True, text=True, check=True)
    wall, after = time.time() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert json.loads(out.stdout)["upper"]["guarantee"] == "proved"
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    program, model = sys.argv[1:3]
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    version = json.loads(subprocess.run([program, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    blas = ctypes.CDLL(ctypes.util.find_library("openblas"))
    blas.openblas_get_corename.restype = ctypes.c_char_p
    plain = blas.openblas_get_corename().decode()
    rows = [(plain, 1, plain), (version["blas"]["kernel"], 1, ""), (version["blas"]["kernel"], 2, "")]
    best = [(float("inf"), float("inf"))] * len(rows)
    for _ in range(repeats):
        for i, (_, threads, kernel) in enumerate(rows):
            best[i] = tuple(map(min, best[i], spent(program, model, threads, kernel)))
    print(version["processor"])
    for (name, threads, _), (wall, cpu) in zip(rows, best):
        print(f"{name:<14} {threads} thread{'s' * (threads > 1)}: {wall:.2f} s, {cpu:.2f} s of the processor")
    print(f"kernel {best[1][1] / best[0][1]:.2f}, two threads {best[1][0] / best[2][0]:.2f}")


if __name__ == "__main__":
    main()
