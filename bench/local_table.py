#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brackets on boxes against known exact values: bench/local_table.py LIPSCOPE NETS [--time 60] [--threads 1] [--only NAME]

NETS/local has networks X.onnx with boxes X.box.npz. One row per network, function and norm: the proved bracket, its
ratio, the distance to the exact value where one is known, processor seconds, and whether the certificate was accepted.
Then the bound before any split, with its seconds per output.
Exit 1 when a bracket excludes a known value or a certificate is rejected."""
import argparse, json, pathlib, resource, subprocess, sys, tempfile

# network, arguments, exact value (7 digits or more, or None), seconds to reach it
ROWS = [
    ("lipbab_SDnet_10-30-30-30-3_box0.1", ["--norm", "inf"], 39.110364, 0.1),
    ("lipbab_SDnet_10-30-30-30-3_box0.1", [], 19.46280, 2),
    ("lipmip_10x4-2_s0", ["--norm", "inf", "--margin", "0,1"], 0.14824268, 1),
    ("lipmip_mnist17_784-20-20-20-2_e0.1", ["--norm", "inf", "--margin", "0,1"], 136.24286, 0.2),
    ("mnist_784-20-20-10_e0.1", ["--norm", "inf", "--output", "7"], 203.85254, 3),
    ("mnist_784-20-20-10_e0.1", ["--output", "7"], 10.170271, 3),
    ("mnist_784-20-20-10_e0.1", ["--norm", "inf"], 244.07872, 3),
    ("mnist_784-100-100-10_e0.01", ["--norm", "inf", "--output", "7"], 317.53168, 4),
    ("mnistadv_784-100-100-10_e0.05", ["--norm", "inf", "--output", "7"], 33.574226, 13),
    ("mnistadv_784-100-100-10_e0.1", ["--norm", "inf", "--output", "7"], None, 60),
    ("mnist_784-100-100-10_e0.05", ["--norm", "inf", "--output", "7"], None, 60),
    ("exlipbab_bike_net_13x20x16x8x3_ReLU_R10000", [], 10802.404, 20),
    ("exlipbab_wine_net_11x24x24x1_ReLU_R100", [], None, 120),
    ("mnist_784-20-20-10_e0.1", [], None, 60),
    ("mnisttanh_784-50-50-10_e0.05", ["--norm", "inf", "--output", "7"], None, 60),
    ("mnisttanh_784-50-50-10_e0.05", ["--output", "7"], None, 60),
]


def run(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Networks of pictures around the first CIFAR-10 test image, radius 1/255: network, --norm.
PICTURES = [("resnet_2b", "inf"), ("resnet_2b", "2"), ("cifar_base_kw", "inf"), ("cifar_base_kw", "2")]


def print_picture(options, name, norm):
    """The margin of the two classes with the largest outputs."""
    model, data = options.nets / "cnn" / (name + ".onnx"), options.nets / "data" / "cifar10_test_first1000.bin"
    if not model.exists() or not data.exists():
        return 0
    with tempfile.TemporaryDirectory() as folder:
        record, certificate = pathlib.Path(folder) / "one.bin", folder + "/c.json"
        record.write_bytes(data.read_bytes()[:3073])
        done, _ = run(options.lipscope, "eval", str(model), "--input", str(record), "--scale", "1/255", "--json")
        logits = json.loads(done.stdout)["outputs"][0]["data"]
        first, second = sorted(range(len(logits)), key=lambda i: -logits[i])[:2]
        margin = f"{first},{second}"
        done, seconds = run(options.lipscope, "bound", str(model), "--at", str(record), "--scale", "1/255", "--radius", "1/255", "--norm",
                            norm, "--margin", margin, "--time", options.time, "--threads", options.threads, "--json", "--certificate", certificate)
        answer = json.loads(done.stdout)
        checked, check_seconds = run(options.lipscope, "check", str(model), certificate)
    lower, upper = (answer[side]["value"] for side in ("lower", "upper"))
    print(f"{name:44} {'--norm ' + norm + ' --margin ' + margin:26} {lower:12.8g} {upper:12.8g} {upper / lower:9.6f} {seconds:7.2f} {'':5}"
          f" {check_seconds:7.2f}  certificate {'valid' if checked.returncode == 0 else 'REJECTED'}", flush=True)
    return checked.returncode != 0


ROOT = "mnist_784-20-20-10_e0.1"


def print_root_bound(lipscope, net):
    """Seconds of the method on the wall, ranges of the units included: the least of five runs, over ten outputs."""
    if not pathlib.Path(str(net) + ".onnx").exists():
        return
    seconds, value = [], None
    for _ in range(5):
        done, _ = run(lipscope, "bound", str(net) + ".onnx", "--box", str(net) + ".box.npz", "--norm", "inf", "--methods",
                      "linear-jacobian", "--threads", "1", "--json")
        method = next(m for m in json.loads(done.stdout)["methods"] if m["method"] == "linear-jacobian")
        seconds.append(method["seconds"])
        value = method["value"]
    print(f"{net.name}: linear-jacobian {value:.6g}, {1e3 * min(seconds) / 10:.2f} ms per output")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lipscope")
    parser.add_argument("nets", type=pathlib.Path)
    parser.add_argument("--time", default="60")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    failures = 0
    print(f"{'network':44} {'function':26} {'lower':>12} {'upper':>12} {'ratio':>9} {'cpu s':>7} {'of':>5} {'check s':>7}  remark")
    for name, arguments, exact, allowed in ROWS:
        model = str(options.nets / "local" / (name + ".onnx"))
        box = str(options.nets / "local" / (name + ".box.npz"))
        if options.only not in name or not pathlib.Path(model).exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            certificate = folder + "/c.json"
            done, seconds = run(options.lipscope, "bound", model, "--box", box, "--json", "--time", options.time, "--threads",
                                options.threads, "--certificate", certificate, *arguments)
            if done.returncode != 0:
                print(f"{name:44} failed: {done.stderr.strip()}")
                failures += 1
                continue
            answer = json.loads(done.stdout)
            checked, check_seconds = run(options.lipscope, "check", model, certificate)
        lower, upper = ((answer[side] or {"value": 0})["value"] for side in ("lower", "upper"))
        remark = "certificate " + ("valid" if checked.returncode == 0 else "REJECTED")
        failures += checked.returncode != 0
        if exact and not lower * (1 - 2e-6) <= exact <= upper * (1 + 2e-6):
            remark += f", EXCLUDES {exact}"
            failures += 1
        print(f"{name:44} {' '.join(arguments):26} {lower:12.8g} {upper:12.8g} {upper / lower if lower else float('inf'):9.6f} {seconds:7.2f}"
              f" {allowed:5} {check_seconds:7.2f}  {remark}", flush=True)
    for name, norm in PICTURES:
        if options.only in name:
            failures += print_picture(options, name, norm)
    if options.only in ROOT:
        print_root_bound(options.lipscope, options.nets / "local" / ROOT)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
