#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD_DIR SOURCE_DIR VERSION: installs into a scratch folder and uses the package from outside.
set -euo pipefail
build=$1 source=$2 version=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
configure() {
  cmake -G Ninja -S "$source/tests/install" -B "$scratch/$1" -DCMAKE_PREFIX_PATH="$scratch/prefix" \
    -DWANTED_VERSION="$2" -DCMAKE_BUILD_TYPE=Release
}
configure good "$version" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
cmake --build "$scratch/good"
"$scratch/good/consumer" "$source/models/fashion_mlp.onnx"
"$scratch/prefix/bin/lipscope" version
"$source/tests/install/check_program.py" "$scratch/prefix/bin/lipscope" "$source" \
  "$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt")"
find "$scratch/prefix" -name NOTICE | grep -q . || { echo "NOTICE is not installed" >&2; exit 1; }
if configure other "99.0" >"$scratch/log" 2>&1; then
  echo "an incompatible version was accepted" >&2
  exit 1
fi
grep -q 'compatible' "$scratch/log" || { cat "$scratch/log"; exit 1; }
echo "installed package: works, and refuses version 99.0"
