#!/usr/bin/env python3
"""Train the two Fashion-MNIST demo classifiers and export them to ONNX.

Writes, into the output folder:

  fashion_mlp.onnx, fashion_cnn.onnx     the trained classifiers
  fashion_*.expected.npz                 three inputs and PyTorch's logits for them
  fashion_test_images.idx3.gz            the first 500 test images
  fashion_test_labels.idx1.gz            and their labels

Both networks take pixels in [0, 1], shape [batch, 1, 28, 28], and return ten
logits. The training loss is cross-entropy plus a small multiple of the sum of
the squared spectral norms of all layers, which keeps the Lipschitz constants
moderate (README.md gives figures with and without it).

Needs PyTorch, NumPy and the data (Debian: python3-torch, python3-numpy,
dataset-fashion-mnist).
"""

import argparse
import gzip
import struct
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DEFAULT_DATA = Path("/usr/share/datasets/fashion-mnist")
DEFAULT_OUT = Path(__file__).resolve().parents[2] / "models"
BUNDLED = 500  # test images written next to the models
REFERENCE = 3  # test images in each .expected.npz


def read_idx(path):
    """Read a gzip-compressed idx file of unsigned bytes."""
    with gzip.open(path, "rb") as f:
        raw = f.read()
    zero, dtype, ndim = struct.unpack(">HBB", raw[:4])
    if zero != 0 or dtype != 0x08:
        raise ValueError(f"{path}: not an idx file of unsigned bytes")
    shape = struct.unpack(f">{ndim}I", raw[4 : 4 + 4 * ndim])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def write_idx(path, array):
    """Write unsigned bytes as gzip-compressed idx, without name or time stamp."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape)
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(header + array.tobytes())


def make_mlp():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 128), nn.ReLU(),
        nn.Linear(128, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )


def make_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),   # 16 x 14 x 14
        nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),  # 32 x 7 x 7
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64), nn.ReLU(),
        nn.Linear(64, 10),
    )


class SpectralPenalty:
    """Sum of squared spectral norms, each by one power-iteration step per call."""

    def __init__(self, model, sample):
        self.layers, self.vectors = [], []
        x = sample[:1]
        for layer in model:
            if isinstance(layer, (nn.Linear, nn.Conv2d)):
                self.layers.append(layer)
                self.vectors.append(F.normalize(torch.randn_like(x).flatten(), dim=0).view_as(x))
            x = layer(x).detach()

    @staticmethod
    def apply(layer, v):
        """The layer's linear part, without its bias."""
        if isinstance(layer, nn.Linear):
            return F.linear(v, layer.weight)
        return F.conv2d(v, layer.weight, None, layer.stride, layer.padding)

    def step(self, i):
        """Advance v <- A^T A v / |A^T A v| for layer i."""
        v = self.vectors[i].requires_grad_(True)
        half = 0.5 * self.apply(self.layers[i], v).square().sum()
        (g,) = torch.autograd.grad(half, v)
        self.vectors[i] = g / g.norm()

    def __call__(self):
        total = 0.0
        for i, layer in enumerate(self.layers):
            self.step(i)
            total = total + self.apply(layer, self.vectors[i]).square().sum()
        return total

    def norms(self, steps=200):
        """Converged estimates of the layers' spectral norms."""
        for i in range(len(self.layers)):
            for _ in range(steps):
                self.step(i)
        with torch.no_grad():
            return [self.apply(l, v).norm().item() for l, v in zip(self.layers, self.vectors)]


def accuracy(model, x, y):
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item()
                   for a, b in zip(x.split(1000), y.split(1000)))
    return 100.0 * hits / len(y)


def train(name, model, x, y, args):
    """Adam with a one-cycle learning rate; returns the penalty object."""
    penalty = SpectralPenalty(model, x)
    steps = -(-len(x) // args.batch_size)
    optimiser = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=args.lr, epochs=args.epochs, steps_per_epoch=steps)
    for epoch in range(1, args.epochs + 1):
        total = 0.0
        for idx in torch.randperm(len(x)).split(args.batch_size):
            cross_entropy = F.cross_entropy(model(x[idx]), y[idx])
            loss = cross_entropy + args.spectral * penalty()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += cross_entropy.item() * len(idx)
        print(f"{name}: epoch {epoch:2d}/{args.epochs}  cross-entropy {total / len(x):.4f}",
              flush=True)
    return penalty


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0],
                                formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    p.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with the four idx .gz files")
    p.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write to")
    p.add_argument("--models", nargs="+", choices=["mlp", "cnn"], default=["mlp", "cnn"])
    p.add_argument("--epochs", type=int, default=15)
    p.add_argument("--batch-size", type=int, default=128)
    p.add_argument("--lr", type=float, default=4e-3, help="peak learning rate")
    p.add_argument("--spectral", type=float, default=1e-3, help="weight of the spectral penalty")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="one thread keeps runs repeatable")
    args = p.parse_args()

    torch.set_num_threads(args.threads)
    torch.use_deterministic_algorithms(True)
    args.out.mkdir(parents=True, exist_ok=True)

    def load(part):
        images = read_idx(args.data / f"{part}-images-idx3-ubyte.gz")
        labels = read_idx(args.data / f"{part}-labels-idx1-ubyte.gz")
        x = torch.from_numpy(images.astype(np.float32) / np.float32(255)).unsqueeze(1)
        return images, labels, x, torch.from_numpy(labels.astype(np.int64))

    _, _, x_train, y_train = load("train")
    images, labels, x_test, y_test = load("t10k")
    write_idx(args.out / "fashion_test_images.idx3.gz", images[:BUNDLED])
    write_idx(args.out / "fashion_test_labels.idx1.gz", labels[:BUNDLED])

    for kind in args.models:
        name = f"fashion_{kind}"
        torch.manual_seed(args.seed)
        model = {"mlp": make_mlp, "cnn": make_cnn}[kind]()
        start = time.perf_counter()
        penalty = train(name, model, x_train, y_train, args)
        seconds = time.perf_counter() - start

        model.eval()
        norms = penalty.norms()
        print(f"{name}: {sum(t.numel() for t in model.parameters())} parameters, "
              f"{args.epochs} epochs in {seconds:.0f} s")
        print(f"{name}: accuracy train {accuracy(model, x_train, y_train):.2f} %, "
              f"test {accuracy(model, x_test, y_test):.2f} %, "
              f"first {BUNDLED} test {accuracy(model, x_test[:BUNDLED], y_test[:BUNDLED]):.2f} %")
        print(f"{name}: spectral norms {', '.join(f'{n:.3f}' for n in norms)}; "
              f"product {np.prod(norms):.3f}", flush=True)

        torch.onnx.export(
            model, x_test[:1], str(args.out / f"{name}.onnx"), opset_version=13,
            input_names=["input"], output_names=["logits"],
            dynamic_axes={"input": {0: "batch"}, "logits": {0: "batch"}})
        x = x_test[:REFERENCE]
        with torch.no_grad():
            np.savez(args.out / f"{name}.expected.npz", input_0=x.numpy(), output_0=model(x).numpy())


if __name__ == "__main__":
    main()
