#!/usr/bin/env bash
# clang-tidy over the sources, or over the files named. Needs a configured clang build: cmake --preset clang
set -euo pipefail
cd "$(dirname "$0")/.."
if [ ! -f build/clang/compile_commands.json ]; then
  echo "error: build/clang has no compile_commands.json; run: cmake --preset clang" >&2
  exit 1
fi
if [ $# -eq 0 ]; then
  mapfile -t sources < <(git ls-files -- 'src/*.cc' 'apps/*.cc' 'examples/*.cc')
  set -- "${sources[@]}"
fi
printf '%s\n' "$@" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/clang --quiet
