#!/usr/bin/env bash
# Line coverage that the committed fuzz corpora reach in the parsers they feed; fails below 90% in any of them.
# Usage: tools/fuzz_coverage.sh [build folder]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/fuzz-coverage}

declare -A parsers=(
  [safetensors]="src/io/safetensors.cc src/io/json_file.cc"
  [prompt_cache]="src/decode/prompt_cache.cc"
  [config]="src/model/config.cc src/model/key_reader.cc src/model/family_name.cc src/model/rope.cc"
  [tokenizer]="src/text/tokenizer_json.cc src/text/added_tokens.cc src/text/normalizer.cc src/text/pre_tokenizer.cc src/text/pattern_syntax.cc src/text/decoder_entry.cc"
  [tiktoken]="src/text/tiktoken.cc src/text/rank_bpe.cc"
  [sentencepiece]="src/text/sentencepiece.cc src/text/sentencepiece_proto.cc src/text/sentencepiece_charsmap.cc"
)

cmake --preset fuzz -S "$root" -B "$build" -DLATTE_TESTS=OFF -DLATTE_BENCH=OFF \
  -DCMAKE_CXX_FLAGS="-fprofile-instr-generate -fcoverage-mapping" >/dev/null
status=0
for name in "${!parsers[@]}"; do
  cmake --build "$build" --target "fuzz_$name" >/dev/null
  program=$(find "$build" -maxdepth 2 -type f -name "fuzz_$name" -perm -u+x)
  LLVM_PROFILE_FILE="$build/$name.profraw" "$program" -runs=0 "$root/fuzz/corpus/$name" 2>/dev/null
  llvm-profdata merge -sparse "$build/$name.profraw" -o "$build/$name.profdata"
  for file in ${parsers[$name]}; do
    # columns of the report: regions 2-4, functions 5-7, lines 8-10 (lines, missed, covered)
    covered=$(llvm-cov report "$program" -instr-profile="$build/$name.profdata" "$root/$file" 2>/dev/null | awk '$1 == "TOTAL" { sub("%", "", $10); print $10 }')
    echo "$name: $file: $covered% of lines"
    if awk -v c="$covered" 'BEGIN { exit !(c < 90) }'; then status=1; fi
  done
done
exit $status
