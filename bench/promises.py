#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program promises of itself, measured on this machine, as one table.

  bench/promises.py PROGRAM NETS [--rows a,b,...] [--quick] [--json FILE] [--seed N]

NETS is a folder of ONNX networks and data; the bundled models are taken from models/. Every answer is checked (exit code, one JSON
document, lower <= upper, certified radius <= attack) before its row counts. A row that fails while others use the machine is not
judged. Ends with code 1 if a promise is broken. A row is one function below promise_rows/ and one entry here."""
import argparse
import dataclasses
import json
import os
import pathlib
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from promise_rows import certify_rows, memory_rows, thread_rows, time_rows  # noqa: E402
from promise_rows.kit import Bench, Outcome, busy_seconds  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Row:
    what: str
    must: str
    measure: object


ROWS = {
    "time": Row("every command on every network, --time 1, 3 and 10", "wall at most T + max(0.5 s, 10 %)", time_rows.keeping_time),
    "interrupt": Row("Ctrl-C at a random moment, 100 times", "ends within 1 s, valid output", time_rows.interrupts),
    "hostile": Row("inspect of 60 x Mul(t, t), Concat of 4,000, Conv with pads 1e5, int8 MobileNet", "below 1 s", time_rows.hostile),
    "busy": Row("bound fashion_mlp --time 5 beside 2 busy loops per core", "ratio within 2 % of the idle one, wall at most 6 s",
                thread_rows.busy_machine),
    "threads": Row("default threads against --threads 1, --effort 1, ten networks; lipsdp of 784-2000x5-10",
                   "not slower by more than 10 %; 1.5 times faster with 2", thread_rows.threads_idle),
    "threads-busy": Row("the same beside 2 busy loops per core, equal --time", "bracket ratio within 5 %", thread_rows.threads_busy),
    "repeat": Row("one command 20 times, --effort 1, 1, 2 and 4 threads, idle and busy", "the same document but for seconds",
                  thread_rows.same_answer),
    "certify-cnn": Row("certify fashion_cnn, 500 images, --time 5", "at most 0.5 points below 60 s at each radius", certify_rows.cnn),
    "certify-maxmin": Row("certify mnist_2c2f_maxmin, 10,000 images, --time 20", "at least 96.6 % at 0.3", certify_rows.maxmin),
    "kernel": Row("lipsdp of 784-2000x5-10, one thread, where OpenBLAS knows the processor too little",
                  "at most 0.5 times the time of its own kernel", thread_rows.kernel),
    "certify-local": Row("certify fashion_mlp, 500 images, l-infinity, --scope local, 60 s",
                         "no sample below its global radius, more decided than after 20 s, three resumed runs end where 180 s end (2 %)",
                         certify_rows.local),
    "shards": Row("4 shards merged against one run, --effort 1", "the same document", certify_rows.shards),
    "memory": Row("--memory 0.1, 0.3 and 1 on ten networks", "peak at most 1.05 times and 30 MB, or refused at once", memory_rows.memory),
}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    before, start = busy_seconds(), time.monotonic()
    time.sleep(1)
    used = (busy_seconds() - before) / (time.monotonic() - start)
    return {"processor": names[0] if names else "unknown", "cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "used": used}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("nets", type=pathlib.Path)
    parser.add_argument("--rows", default=",".join(ROWS), help="of " + ",".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="a smaller sample of each")
    parser.add_argument("--json", type=pathlib.Path, help="write the table to this file, too")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    names = arguments.rows.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']:.2f}, {about['used']:.2f} cores in use", flush=True)
    if about["used"] > 0.2 or about["load"] > 0.7:
        print("warning: the machine is not idle; times are not judged where others take part in them")
    print("| row | what | must | measured | verdict |\n| --- | --- | --- | --- | --- |", flush=True)
    table, details = [], []
    bench = Bench(arguments.program, arguments.nets, arguments.quick, arguments.seed)
    for name in names:
        row, start = ROWS[name], time.monotonic()
        try:
            found = row.measure(bench)
        except Exception as error:  # one row must not take the others with it
            found = Outcome(f"{type(error).__name__}: {error}", False)
        verdict = {True: "held", False: "BROKEN", None: "not judged"}[found.held]
        print(f"| {name} | {row.what} | {row.must} | {found.measured} | {verdict} |", flush=True)
        details += [f"{name}: {line}" for line in found.details]
        table.append({"row": name, "what": row.what, "must": row.must, "measured": found.measured, "verdict": verdict,
                      "details": found.details, "seconds": time.monotonic() - start})
    print("".join(f"\n  {line}" for line in details))
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": about, "quick": arguments.quick, "rows": table}, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row["verdict"] == "BROKEN" for row in table) else 0


if __name__ == "__main__":
    raise SystemExit(main())
