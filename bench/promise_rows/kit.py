# SPDX-License-Identifier: Apache-2.0
"""Runs the program, checks what it says, and knows whether the machine was idle meanwhile."""
import array
import ast
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

# Cores that others may use before a time is not judged.
IDLE = 0.15
# Refusals that are answers: usage, input, support, not decided.
ANSWERS = (0, 1, 4, 5)


@dataclasses.dataclass
class Outcome:
    """What a row measured. held: None where it could not be judged."""
    measured: str
    held: bool | None
    details: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Run:
    arguments: list
    code: int
    wall: float
    cpu: float
    peak: float  # bytes, resident
    others: float  # cores used by everybody else meanwhile
    text: str
    errors: str
    after_signal: float | None = None  # seconds from Ctrl-C to the end
    problems: list = dataclasses.field(default_factory=list)
    document: dict | None = None

    @property
    def idle(self):
        return self.others <= IDLE

    def command(self):
        return "lipscope " + " ".join(str(a) for a in self.arguments)


def number(value):
    """Of a field of a document: infinity is a word there."""
    return float(value) if isinstance(value, str) else value


def ratio(document):
    """Upper over lower of a bound; infinity where one is missing."""
    if not document or not document.get("upper") or not document.get("lower"):
        return math.inf
    lower = number(document["lower"]["value"])
    return number(document["upper"]["value"]) / lower if lower > 0 else math.inf


def crossed(value, place=""):
    """Places in a document where a lower end is above its upper one."""
    found = []
    if isinstance(value, dict):
        for low, high in (("lower", "upper"), ("radius", "attack_radius")):
            ends = [value.get(k) for k in (low, high)]
            ends = [e.get("value") if isinstance(e, dict) else e for e in ends]
            if all(isinstance(e, (int, float)) or e == "inf" for e in ends) and number(ends[0]) > number(ends[1]):
                found.append(f"{place}: {low} {ends[0]} > {high} {ends[1]}")
        for key, entry in value.items():
            found += crossed(entry, f"{place}/{key}")
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            found += crossed(entry, f"{place}/{i}")
    return found


def timeless(value):
    """A document without its seconds."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if not k.startswith("seconds")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def check(run, codes):
    """Fills in what is wrong with an answer before it may count."""
    try:
        run.document = json.loads(run.text)
    except ValueError:
        run.problems.append(f"exit {run.code}, no JSON document: {run.text[:60]!r} {run.errors.strip()[-120:]!r}")
        return
    schema = run.document.get("schema", "")
    if run.code not in codes:
        run.problems.append(f"exit {run.code}: {run.document.get('message', '')[:120]}")
    if schema != "lipscope.error/1" and not schema.startswith(f"lipscope.{run.arguments[0]}/"):
        run.problems.append(f"schema {schema!r}")
    run.problems += crossed(run.document)[:3]


def busy_seconds():
    """Processor seconds of the whole machine, those that the hypervisor took included."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def busy_loops(count):
    """Processes that burn a core each."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def read_npy(data):
    """Shape and numbers of an .npy file; None for types that are no plain numbers."""
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else (struct.unpack("<I", data[8:12])[0], 12)
    header = ast.literal_eval(data[start:start + size].decode("latin1"))
    kinds = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|u1": "B", "|i1": "b"}
    if header["descr"] not in kinds or header["fortran_order"]:
        return None
    return header["shape"], array.array(kinds[header["descr"]], data[start + size:])


def read_npz(path):
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): read_npy(archive.read(name)) for name in archive.namelist()}


def write_npy(path, shape, entries):
    header = repr({"descr": {"f": "<f4", "d": "<f8"}[entries.typecode], "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + entries.tobytes())


class Bench:
    """One program, the networks, a folder for what is made on the way."""

    def __init__(self, program, nets, quick, seed):
        self.program = str(pathlib.Path(program).resolve())
        self.nets = pathlib.Path(nets).resolve()
        self.models = pathlib.Path(__file__).resolve().parents[2] / "models"
        self.quick = quick
        self.seed = seed
        self.cores = len(os.sched_getaffinity(0))
        self._folder = tempfile.TemporaryDirectory(prefix="promises-")
        self.scratch = pathlib.Path(self._folder.name)
        self._made = {}

    def run(self, *arguments, codes=ANSWERS, interrupt=None, kill=None, environment=None):
        """Runs the program with --json; interrupt: seconds until Ctrl-C; kill: seconds after which it is given up."""
        arguments = [str(a) for a in arguments]
        sent = []
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            start, before = time.monotonic(), busy_seconds()
            process = subprocess.Popen([self.program, *arguments, "--json", "--quiet"], stdout=out, stderr=errors,
                                       stdin=subprocess.DEVNULL, start_new_session=True,
                                       env={**os.environ, **(environment or {})})

            def send(which):
                sent.append((which, time.monotonic()))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, which)

            timers = [threading.Timer(kill or 300, send, [signal.SIGKILL])]
            if interrupt is not None:
                timers.append(threading.Timer(interrupt, send, [signal.SIGINT]))
            for timer in timers:
                timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            end = time.monotonic()
            for timer in timers:
                timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            wall, cpu = end - start, usage.ru_utime + usage.ru_stime
            others = max(0.0, busy_seconds() - before - cpu) / max(wall, 0.05)
            out.seek(0)
            errors.seek(0)
            found = Run(arguments, process.returncode, wall, cpu, usage.ru_maxrss * 1024.0, others,
                        out.read().decode(errors="replace"), errors.read().decode(errors="replace"))
        for which, moment in sent:
            if which == signal.SIGINT:
                found.after_signal = end - moment
        check(found, codes)
        return found

    def made(self, name, make):
        """A file of the scratch folder, made once: make(path)."""
        path = self.scratch / name
        if name not in self._made:
            make(path)
            self._made[name] = path
        return path

    def networks(self):
        return sorted(self.nets.rglob("*.onnx"))

    def some_networks(self):
        """Ten of different kinds, for rows that run each many times."""
        names = ["digits/fnn3_seed0", "digits/cnn2_seed0", "global/lipsdp_mnist_weights", "global/rand_10-100x3-10_s3",
                 "local/mnist_784-100-100-10_e0.05", "mlp/mnist-net_256x2", "mlp/mlp_L17_W64", "cnn/cnn_mnist_pytorch",
                 "rl/sb3_ppo_CartPole-v1", "trained/mnist_2c2f_maxmin"]
        found = [self.nets / f"{name}.onnx" for name in names]
        found = [path for path in found if path.exists()]
        return found[:4] if self.quick else found

    def name(self, model):
        return model.relative_to(self.nets).with_suffix("").as_posix() if self.nets in model.parents else model.stem

    # Flags for data.

    def mnist(self, limit=None):
        data = self.nets / "data"
        return self._flags(data / "mnist_t10k-images-idx3-ubyte.gz", data / "mnist_t10k-labels-idx1-ubyte.gz", limit)

    def fashion(self, limit=500):
        return self._flags(self.models / "fashion_test_images.idx3.gz", self.models / "fashion_test_labels.idx1.gz", limit)

    @staticmethod
    def _flags(images, labels, limit):
        return ["--data", images, "--labels", labels, "--scale", "1/255"] + (["--limit", limit] if limit else [])

    def expected(self, model):
        """Arrays that came with a network; empty where there are none."""
        path = model.with_suffix(".expected.npz")
        return read_npz(path) if path.exists() else {}

    def samples(self, model):
        """Shape, entries and number of the inputs that came with a network of one floating input, and its outputs; or None."""
        arrays = self.expected(model)
        first, out = arrays.get("input_0"), arrays.get("output_0")
        if first is None or out is None or "input_1" in arrays or first[1].typecode not in "fd":
            return None
        count = first[0][0] if first[0] and out[0] and first[0][0] == out[0][0] else 1
        return *first, count, out[1]

    def point(self, model):
        """A file with the first of those inputs; None where there is none."""
        found = self.samples(model)
        if found is None:
            return None
        shape, entries, count, _ = found
        if count > 1:
            shape, entries = (1, *shape[1:]), entries[:len(entries) // count]
        return self.made(self.name(model).replace("/", "-") + ".point.npy", lambda path: write_npy(path, shape, entries))

    def data_for(self, model):
        """Flags for a data set of samples that fit, or for the inputs that came with the network; None where nothing fits."""
        found = self.samples(model)
        if found is None:
            return None
        _, entries, samples, out = found
        classes, size = len(out) // samples, len(entries) // samples
        if classes < 2:
            return None
        if size == 784 and classes == 10:
            return self.mnist()
        if size == 3072 and classes == 10:
            return ["--data", self.nets / "data" / "cifar10_test_first1000.bin", "--scale", "1/255"]
        rows = [out[s * classes:(s + 1) * classes] for s in range(samples)]
        labels = self.made(self.name(model).replace("/", "-") + ".labels.csv",
                           lambda path: path.write_text("".join(f"{row.index(max(row))}\n" for row in rows)))
        return ["--data", f"{model.with_suffix('.expected.npz')}:input_0", "--labels", labels]
