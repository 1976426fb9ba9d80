#!/usr/bin/env bash
# Line coverage that the committed fuzz corpora reach in the parsers they feed; fails below 90% in any file of them.
# A file that several readers share counts the lines that the corpora of all of them reach.
# Usage: tools/fuzz_coverage.sh [build folder]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$root/build/fuzz-coverage}

# Fuzz targets, and the files that these together have to cover.
parsers=(
  "safetensors: src/io/safetensors.cc src/io/json_file.cc"
  "prompt_cache: src/decode/prompt_cache.cc"
  "config: src/model/config.cc src/model/key_reader.cc src/model/family_name.cc src/model/rope.cc"
  "tokenizer: src/text/tokenizer_json.cc src/text/pre_tokenizer.cc src/text/pattern_syntax.cc src/text/decoder_entry.cc"
  "tiktoken: src/text/tiktoken.cc src/text/rank_bpe.cc"
  "sentencepiece: src/text/sentencepiece.cc src/text/sentencepiece_proto.cc src/text/sentencepiece_charsmap.cc"
  "tokenizer tiktoken sentencepiece: src/text/added_tokens.cc src/text/added_token_matcher.cc src/text/normalizer.cc"
)

program_of() { find "$build" -maxdepth 2 -type f -name "fuzz_$1" -perm -u+x; }

cmake --preset fuzz -S "$root" -B "$build" -DLATTE_TESTS=OFF -DLATTE_BENCH=OFF \
  -DCMAKE_CXX_FLAGS="-fprofile-instr-generate -fcoverage-mapping" >/dev/null
for name in safetensors prompt_cache config tokenizer tiktoken sentencepiece; do
  cmake --build "$build" --target "fuzz_$name" >/dev/null
  LLVM_PROFILE_FILE="$build/$name.profraw" "$(program_of "$name")" -runs=0 "$root/fuzz/corpus/$name" 2>/dev/null
done

status=0
for parser in "${parsers[@]}"; do
  read -ra names <<<"${parser%%:*}"
  profiles=() programs=("$(program_of "${names[0]}")")
  for name in "${names[@]}"; do
    profiles+=("$build/$name.profraw")
    programs+=(-object "$(program_of "$name")")
  done
  llvm-profdata merge -sparse "${profiles[@]}" -o "$build/sum.profdata"
  for file in ${parser#*:}; do
    # columns of the report: regions 2-4, functions 5-7, lines 8-10 (lines, missed, covered)
    covered=$(llvm-cov report "${programs[@]}" -instr-profile="$build/sum.profdata" "$root/$file" 2>/dev/null |
      awk '$1 == "TOTAL" { sub("%", "", $10); print $10 }')
    echo "${names[*]}: $file: ${covered:-no}% of lines"
    if [[ -z $covered ]] || awk -v c="$covered" 'BEGIN { exit !(c < 90) }'; then status=1; fi
  done
done
exit $status
