#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Global l2 brackets of the shared networks against their references: bench/global_table.py LIPSCOPE NETS [--time 10] [--check]

Prints one row per network: proved lower and upper bound, the reference's semidefinite optimum and lower bound, the
ratios to both, seconds of the upper bound and of the whole. --check also writes a certificate and has it verified."""
import argparse, csv, json, pathlib, subprocess, sys, tempfile, time


def run(program, *arguments):
    start = time.time()
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    return done, time.time() - start


def references(nets):
    known = {}
    for row in csv.DictReader((l for l in open(nets / "digits/reference.tsv") if l[0] != "#"), delimiter="\t"):
        known["digits/" + row["net"]] = (float(row["lipsdp"]), float(row["lower"]), None)
    for row in csv.DictReader((l for l in open(nets / "global/published.tsv") if l[0] != "#"), delimiter="\t"):
        number = lambda key: float(row[key]) if row.get(key) else None
        known["global/" + row["net"]] = (number("lipsdp"), number("lower"), number("exact"))
    known["mlp/acasxu_1_1"] = (88258.8, None, None)
    known["mlp/mnist-net_256x2"] = (312.416, None, None)
    known["mlp/mnist-net_256x4"] = (17678.67, None, None)
    known["cnn/cifar_base_kw"] = (5.3349, None, None)
    known["cnn/resnet_2b"] = (46.390, None, None)
    return known


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lipscope")
    parser.add_argument("nets", type=pathlib.Path)
    parser.add_argument("--time", default="10")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    known = references(options.nets)
    print(f"{'network':44} {'lower':>11} {'upper':>11} {'up/low':>8} {'up/sdp':>9} {'low/ref':>8} {'upper s':>8} {'all s':>6}  remark")
    failures = 0
    for name in sorted(known):
        if options.only not in name or not (options.nets / (name + ".onnx")).exists():
            continue
        sdp, low, exact = known[name]
        model = str(options.nets / (name + ".onnx"))
        extra = ["--output", "7"] if name.startswith("digits/") else []
        with tempfile.TemporaryDirectory() as folder:
            certificate = folder + "/c.json"
            save = ["--certificate", certificate] if options.check else []
            done, seconds = run(options.lipscope, "bound", "--json", "--time", options.time, *extra, *save, model)
            if done.returncode != 0:
                print(f"{name:44} failed: {done.stderr.strip()}")
                failures += 1
                continue
            answer = json.loads(done.stdout)
            lower, upper = ((answer[side] or {"value": 0})["value"] for side in ("lower", "upper"))
            spent = {m["method"]: m.get("seconds", 0) for m in answer.get("methods", [])}
            remark = ""
            if exact:
                remark = f"exact {exact}: lower {lower / exact - 1:+.1e}, upper {upper / exact - 1:+.1e}"
            if options.check:
                verified, _ = run(options.lipscope, "check", model, certificate)
                remark += " certificate " + ("valid" if verified.returncode == 0 else "REJECTED")
                failures += verified.returncode != 0
        ratio = lambda a, b: f"{a / b:.5f}" if a and b else "-"
        print(f"{name:44} {lower:11.5g} {upper:11.6g} {ratio(upper, lower):>8} {ratio(upper, sdp):>9} {ratio(lower, low):>8}"
              f" {spent.get('lipsdp', 0):8.2f} {seconds:6.1f}  {remark}", flush=True)
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
