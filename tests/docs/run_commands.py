#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of how-to pages as they stand: run_commands.py PROGRAM SOURCE PAGE.md..."""
import os
import re
import subprocess
import sys
import tempfile

program, source, pages = sys.argv[1], sys.argv[2], sys.argv[3:]
for page in pages:
    with open(page, encoding="utf-8") as file:
        text = file.read()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not blocks:
        sys.exit(f"{page}: no commands")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        if not os.path.exists(os.path.join(os.path.dirname(page), link)):
            sys.exit(f"{page}: the link {link} leads nowhere")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(source, "models"), os.path.join(folder, "models"))
        os.symlink(program, os.path.join(folder, "lipscope"))
        for block in blocks:
            path = folder + os.pathsep + os.environ["PATH"]
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=folder, env={**os.environ, "PATH": path},
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"{page}: exit code {done.returncode} of\n{block}{done.stdout}{done.stderr}")
    print(f"{os.path.basename(page)}: {len(blocks)} blocks of commands")
