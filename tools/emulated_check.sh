#!/usr/bin/env bash
# The AVX-512 and AMX kernels without such a processor: builds with a stand-in for their instructions (tests/emulation)
# and runs every test that names one of those sets, with speculation's equality of bits among them. Fails when one fails.
# Usage: tools/emulated_check.sh [filter of test names, as "amx"; default: avx512 and amx]
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset emulated >/dev/null
cmake --build --preset emulated --target device_test model_test attention_test decode_test
names=${1:-avx512|amx}
# What times the processor says nothing here; the longest prompts take an emulator hours.
exec ctest --test-dir build/emulated -j"$(nproc)" --output-on-failure --no-tests=error -R "$names" \
  -E 'DotRates|LongPrompts|AcrossALengthClass|_NOT_BUILT'
