#!/usr/bin/env bash
# The CPU backend on another machine (one with AVX-512, say): every operation, model and decoding test on each
# instruction set that it has, and the tables of bench/.
#   tools/device_cpu.sh pack [BUILD_DIR]   here: collect built programs, their libraries and test data in build/device
#   tools/device_cpu.sh run [OUT_DIR]     there, in a copy of the tree with build/device: every test
#   tools/device_cpu.sh tables [OUT_DIR]  there: the tables of bench/ into OUT_DIR
# LATTE_TEST_DATA names the folder with models/ and data/ (pack copies the few files that are needed).
set -euo pipefail
cd "$(dirname "$0")/.."
programs="device_test model_test decode_test bench_step_floor bench_attention_layer bench_mtp_agreement latte"

pack() {
  local from=${1:-build}
  rm -rf build/device
  mkdir -p build/device/bin build/device/lib build/device/data/models/latte-tiny build/device/data/data
  for program in $programs; do cp "$from/$program" build/device/bin/; done
  strip build/device/bin/*
  cp "$(command -v zstd)" build/device/bin/
  # The C library stays the other machine's own.
  for program in build/device/bin/*; do
    ldd "$program" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libpthread|libdl|librt|ld-linux[^/]*)\.so' |
      xargs -r -I{} cp -n {} build/device/lib/
  done
  mkdir -p build/device/data/models/latte-tiny-draft
  cp "$LATTE_TEST_DATA"/models/latte-tiny/{config.json,generation_config.json,golden_long.safetensors} build/device/data/models/latte-tiny/
  cp "$LATTE_TEST_DATA"/models/latte-tiny-draft/{config.json,generation_config.json} build/device/data/models/latte-tiny-draft/
  cp -r "$LATTE_TEST_DATA/data/heldout" build/device/data/data/
  cp -r "$LATTE_TEST_DATA/models/configs" build/device/data/models/
  mkdir -p build/device/data/models/families
  cp -r "$LATTE_TEST_DATA/models/families/deepseek_v3_negbias" build/device/data/models/families/
  chmod -R u+w build/device
  pwd >build/device/source_dir
  du -sh build/device
}

run() {
  local out=${1:-build/device/out} source
  mkdir -p "$out"
  export LD_LIBRARY_PATH=$PWD/build/device/lib PATH=$PWD/build/device/bin:$PATH
  export LATTE_TEST_DATA=$PWD/build/device/data
  source=$(cat build/device/source_dir)
  # Test programs know their data by the folder they were built in.
  if [ ! -e "$source" ]; then mkdir -p "$(dirname "$source")" && ln -s "$PWD" "$source"; fi
  tools/unpack_models.sh
  export LATTE_MODELS=$PWD/models
  {
    grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
    echo "threads: $(nproc); instruction sets: $(grep -m1 flags /proc/cpuinfo | grep -oE '\b(avx2|avx512f|avx512_bf16|avx512_vnni|amx_bf16)\b' | sort -u | tr '\n' ' ')"
  } | tee "$out/machine.txt"
  local failed=0
  for test in device_test model_test decode_test; do
    "$test" >"$out/$test.log" 2>&1 || { failed=1; grep -E '^\[  FAILED|Failure' "$out/$test.log" | head -20; }
    echo "$test: $(grep -E '^\[  (PASSED|SKIPPED|FAILED)  \] [0-9]+ test' "$out/$test.log" | tr '\n' ' ')" | tee -a "$out/machine.txt"
  done
  return $failed
}

tables() {
  local out=${1:-build/device/out}
  export LD_LIBRARY_PATH=$PWD/build/device/lib PATH=$PWD/build/device/bin:$PATH
  mkdir -p "$out"
  tools/unpack_models.sh
  for isa in avx2 avx512 avx512_bf16 amx; do
    taskset -c 0,1 bench_step_floor models/latte-tiny build/device/data/data/heldout 2 "$isa" >"$out/step_floor_$isa.md"
  done
  timeout 240 bench_mtp_agreement models/latte-tiny build/device/data/data/heldout tests/data/latte-tiny/eval.json >"$out/mtp_agreement.md" || true
  timeout 260 taskset -c 0,1 bench_attention_layer 2 >"$out/attention_layer_2_threads.md" || true
  timeout 100 bench_attention_layer 16 >"$out/attention_layer_16_threads.md" || true
}

case ${1:-} in
  pack) pack "${2:-}" ;;
  run) run "${2:-}" ;;
  tables) tables "${2:-}" ;;
  *) echo "usage: tools/device_cpu.sh pack [BUILD_DIR] | run [OUT_DIR] | tables [OUT_DIR]" >&2; exit 2 ;;
esac
