#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a source file is not laid out as .clang-format says. `tools/check_format.sh --fix` mends it.
set -euo pipefail
cd "$(dirname "$0")/.."
mode="--dry-run -Werror"
[ "${1:-}" = "--fix" ] && mode="-i"
find include src app tests fuzz bench -name '*.h' -o -name '*.cpp' | xargs clang-format --style=file $mode
echo "format: in order"
