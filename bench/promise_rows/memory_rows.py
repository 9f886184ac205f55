# SPDX-License-Identifier: Apache-2.0
"""Row about --memory."""
from .kit import Outcome


def memory(bench):
    """Peak of resident memory at most 1.05 times the limit and 30 MB, or refused at once."""
    names = ["digits/fnn3_seed0", "mlp/mnist-net_256x4", "mlp/mlp_L65_W64", "cnn/Convnet_maxpool", "cnn/cifar_base_kw", "cnn/resnet_2b",
             "cnn/mobilenetv2_imagenet_int8_qdq", "transformer/vit_pgd_2_3_16", "transformer/self-attention-mnist-small",
             "trained/mnist_2c2f_maxmin"]
    networks = [bench.nets / f"{name}.onnx" for name in names if (bench.nets / f"{name}.onnx").exists()]
    over, wrong, refused, worst = [], [], 0, 0.0
    for model in networks[::3] if bench.quick else networks:
        for limit in (0.1, 0.3, 1.0):
            run = bench.run("bound", model, "--time", 5, "--memory", limit, kill=60)
            wrong += [f"{run.command()}: {p}" for p in run.problems]
            refused += run.code == 4
            excess = run.peak - (1.05e9 * limit + 30e6)
            worst = max(worst, run.peak / (1e9 * limit))
            if excess > 0:
                over.append(f"{run.peak / 1e6:.0f} MB, exit {run.code}, {run.wall:.1f} s: {run.command()}")
            elif run.code == 4 and run.wall > 2:
                over.append(f"refused after {run.wall:.1f} s: {run.command()}")
    return Outcome(f"{len(over)} over, {refused} refused, largest peak {worst:.2f} times the limit", not over and not wrong, wrong + over)
