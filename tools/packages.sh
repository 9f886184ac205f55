# SPDX-License-Identifier: Apache-2.0
# Debian packages of this project, and how to have them. Sourced by ./demo and ./check.

packages_build="g++ cmake ninja-build pkg-config libonnx-dev libprotobuf-dev protobuf-compiler libdnnl-dev
  libopenblas-pthread-dev libtbb-dev libcli11-dev nlohmann-json3-dev libfmt-dev zlib1g-dev libhwy-dev
  coinor-libcbc-dev"
packages_check="libgtest-dev libgmp-dev libmpfr-dev libonnx-testdata clang-format python3-minimal"
# For the test of pages in a browser, which is skipped without them.
packages_browser="chromium chromium-driver python3"

# ensure_packages NAME...: installs what is missing; without root or sudo prints the line and exits 2.
ensure_packages() {
  local missing="" name
  for name in "$@"; do
    dpkg-query -W -f='${Status}\n' "$name" 2>/dev/null | grep -q 'ok installed' || missing="$missing $name"
  done
  [ -n "$missing" ] || return 0
  local as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
      as_root="sudo"
    else
      echo "Some Debian packages are missing. As root, run:" >&2
      echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
      exit 2
    fi
  fi
  echo "installing:$missing"
  export DEBIAN_FRONTEND=noninteractive
  local log
  log=$(mktemp)
  if ! { $as_root apt-get update && $as_root apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "installing failed; the lines above say why" >&2
    exit 2
  fi
  rm -f "$log"
}
