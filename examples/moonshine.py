#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The encoder of Moonshine, a speech model distributed through npm, at a sound of 1.4 seconds (58 tokens).

    examples/moonshine.py build/release/lipscope [FOLDER]

Fetches @usefulsensors/moonshine-js@0.1.2 with `npm pack` (108 MB; kept in FOLDER if one is given), finds its attention and prints
the local constant of every head, of every block and of the whole model. Exit code 77 where npm or the network is missing.
"""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "@usefulsensors/moonshine-js@0.1.2"
MEMBER = "package/dist/model/tiny/float/encoder_model.onnx"
SAMPLES = 22783  # 58 tokens after the three convolutions


def fetch(folder):
    encoder = folder / MEMBER
    if encoder.exists():
        return encoder
    if shutil.which("npm") is None:
        print("skipped: npm is not installed")
        sys.exit(77)
    packed = subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True)
    if packed.returncode != 0:
        print("skipped: npm could not fetch", PACKAGE)
        sys.exit(77)
    with tarfile.open(folder / packed.stdout.strip().splitlines()[-1]) as archive:
        archive.extract(MEMBER, folder)
    return encoder


def run(program, *arguments):
    return json.loads(subprocess.run([program, *arguments, "--json"], check=True, capture_output=True, text=True).stdout)


def number(bound):
    return "-" if bound is None else f"{bound['value']:.6g} {bound['guarantee']}"


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else scratch)
        encoder = str(fetch(folder))
        sound = pathlib.Path(scratch) / "sound.csv"
        sound.write_text(",".join(f"{0.1 * math.sin(0.05 * i + 1e-5 * i * i):.8f}" for i in range(SAMPLES)) + "\n")
        blocks = run(program, "inspect", encoder, "--dim", f"num_samples={SAMPLES}")["attention"]
        assert len(blocks) == 6 and all(b["heads"] == 8 and b["rows"] == 58 for b in blocks), blocks
        found = run(program, "attention", encoder, "--input", str(sound), "--time", "300")
    local = found["model"]["local"]
    print(f"whole model: {number(local['lower'])} .. {number(local['upper'])}, {found['model']['seconds']:.1f} s")
    assert local["lower"]["value"] > 0 and local["lower"]["guarantee"] == "proved"
    for block in found["blocks"]:
        print(f"layer {block['layer']}: {number(block['local']['lower'])} .. {number(block['local']['upper'])}"
              f"   ({block.get('outside', 'covered')})")
        for head in block["heads"]:
            print(f"  head {head['head']}: softmax {head['softmax']['2:2']['max']:.4f}, {number(head['local']['lower'])}")
            assert head["local"]["lower"]["guarantee"] == "proved"
            assert 0 < head["softmax"]["2:2"]["max"] <= 0.5
    print(f"{found['seconds']:.1f} s in all")


if __name__ == "__main__":
    main()
