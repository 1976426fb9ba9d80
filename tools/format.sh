#!/usr/bin/env bash
# Formats every C++ file of the repository; with --check it changes nothing, names the files that differ and exits 1.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run --Werror)
fi
git ls-files -z -- '*.h' '*.cc' '*.cu' | xargs -0 clang-format --style=file "${mode[@]}"
