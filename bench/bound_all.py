#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brackets of many models: how soon the first one is there, how long all of it takes, whether the
certificate is accepted.

  bench/bound_all.py build/release/lipscope ../shared/nets [--time 20] [--norm 2]
"""
import argparse, json, pathlib, subprocess, tempfile, time


def first_bracket(lines):
    """Seconds until both sides were there, from the events of --progress json."""
    for line in lines:
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if event.get("lower") and event.get("upper"):
            return event["seconds"]
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--time", type=float, default=20)
    parser.add_argument("--norm", default="2")
    parser.add_argument("--match", default="*.onnx")
    args = parser.parse_args()
    slow = late = rejected = failed = 0
    models = sorted(args.folder.rglob(args.match))
    for model in models:
        with tempfile.NamedTemporaryFile(suffix=".json") as proof:
            command = [args.program, "bound", str(model), "--json", "--progress", "json", "--time",
                       str(args.time), "--norm", args.norm]
            start = time.monotonic()
            run = subprocess.run(command + ["--certificate", proof.name], capture_output=True, text=True)
            if run.returncode == 4 and "no finite proved upper bound" in run.stderr:
                run = subprocess.run(command, capture_output=True, text=True)
            seconds = time.monotonic() - start
            if run.returncode != 0:
                failed += 1
                print(f"{model.relative_to(args.folder)}: exit {run.returncode} {run.stderr.splitlines()[-1:]}")
                continue
            answer = json.loads(run.stdout)
            first = first_bracket(run.stderr.splitlines())
            upper = answer["upper"] and answer["upper"]["value"]
            lower = answer["lower"] and answer["lower"]["value"]
            verdict = answer.get("no_bound", "")
            if upper != "inf" and upper is not None:
                check = subprocess.run([args.program, "check", str(model), proof.name], capture_output=True, text=True)
                verdict = "checked" if check.returncode == 0 else "REJECTED " + check.stdout.strip()
                rejected += check.returncode != 0
            late += first is None or first > 1
            slow += seconds > args.time + 1
            shown = "none" if first is None else f"{first:.2f}"
            print(f"{str(model.relative_to(args.folder)):44} {lower or 0:12.6g} <= L <= {upper!s:20} first {shown} s, "
                  f"all {seconds:.1f} s, {verdict}", flush=True)
    print(f"{len(models)} models: {failed} failed, {late} without a bracket in the first second, "
          f"{slow} over the time, {rejected} certificates rejected")
    return 1 if failed or rejected else 0


raise SystemExit(main())
