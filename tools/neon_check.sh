#!/usr/bin/env bash
# The NEON kernels without an Arm machine: cross-compiles the two CPU backends and their operation tests for AArch64 and
# runs them under qemu-user. Prints the test program's closing lines; fails when a NEON test fails or none ran.
# Needs g++-aarch64-linux-gnu, qemu-user-static, libgtest-dev (with its sources) and libfmt-dev; apt has them.
# Usage: tools/neon_check.sh [build folder]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/neon}
compiler=aarch64-linux-gnu-g++
emulator=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if ! command -v $compiler >/dev/null || [ -z "$emulator" ] || [ ! -d /usr/src/googletest ]; then
  echo "error: $compiler, qemu-aarch64-static or /usr/src/googletest is missing; apt-get install g++-aarch64-linux-gnu qemu-user-static libgtest-dev" >&2
  exit 1
fi
mkdir -p "$build/include" "$build/objects"
# Header-only libraries of the host, and nothing else of its /usr/include.
for library in fmt nlohmann; do ln -sfn "/usr/include/$library" "$build/include/$library"; done

shopt -s nullglob
sources=(src/base/*.cc src/tensor/*.cc src/plan/*.cc src/backend/*.cc src/device/*.cc src/device/cpu/*.cc
  src/device/reference/*.cc tests/support/device_memory.cc tests/support/*_cases.cc tests/support/random_rows.cc
  tests/support/test_backends.cc tests/support/tolerance.cc tests/device/operations_test.cc tests/device/row_invariance_test.cc
  tests/device/merge_empty_slots_test.cc
  /usr/src/googletest/googletest/src/gtest-all.cc /usr/src/googletest/googletest/src/gtest_main.cc)
compile() {
  local object
  object=$1/objects/$(echo "$2" | tr / _).o
  if [ -e "$object" ] && [ -z "$(find "$2" src tests/support include -newer "$object" -print -quit)" ]; then return; fi
  $3 -std=c++20 -O2 -DNDEBUG -DFMT_HEADER_ONLY -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi \
    -DLATTE_SOURCE_DIR="\"$PWD\"" -Isrc -Iinclude -Itests -isystem "$1/include" -isystem /usr/src/googletest/googletest/include \
    -isystem /usr/src/googletest/googletest -c "$2" -o "$object"
}
export -f compile
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compile "$@"' _ "$build" {} $compiler
$compiler -static "$build"/objects/*.o -o "$build/neon_test" -pthread
"$emulator" "$build/neon_test" --gtest_filter='*neon*' --gtest_brief=1 | tail -3
"$emulator" "$build/neon_test" --gtest_filter='*neon*' --gtest_list_tests | grep -c '/.*neon' | sed 's/$/ tests name neon/'
