#!/usr/bin/env bash
# Perplexity of latte-tiny with quantised weights and cached rows on held-out texts, as a Markdown table.
#
# Usage: bench/quantised_perplexity.sh LATTE CONTEXT BYTES FILE...
#   BYTES: what is read of each file from its start, 0 for all of it.
set -euo pipefail
if [ $# -lt 4 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
latte=$1 context=$2 bytes=$3
shift 3
part=$(mktemp)
trap 'rm -f "$part"' EXIT

perplexity() {  # FILE OPTIONS...: tokens and negative log-likelihood
  if [ "$bytes" = 0 ]; then cat "$1" >"$part"; else head -c "$bytes" "$1" | iconv -c -f utf-8 -t utf-8 >"$part"; fi
  "$latte" eval -m latte-tiny -f "$part" -c "$context" -t 2 --no-calibration --json "${@:2}" |
    python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["tokens"], r["nll"])'
}

printf '| options |'
for file in "$@"; do printf ' %s |' "$(basename "$file" .txt)"; done
printf ' all |\n|---|'
for _ in "$@" all; do printf -- '---|'; done
printf '\n'
declare -A stored
for options in '' '--quantize q8' '--quantize q4' '--quantize q4:q8-attn' '-ctk q8'; do
  printf '| %s |' "${options:-as stored}"
  tokens_all=0 nll_all=0
  for file in "$@" all; do
    if [ "$file" = all ]; then
      tokens=$tokens_all nll=$nll_all
    else
      # shellcheck disable=SC2086  # the options are words
      read -r tokens nll <<<"$(perplexity "$file" $options)"
      tokens_all=$((tokens_all + tokens)) nll_all=$(python3 -c "print($nll_all + $nll)")
    fi
    each=$(python3 -c "print($nll / $tokens)")
    [ -n "$options" ] || stored[$file]=$each
    python3 -c "from math import exp; print(f' {exp($each):.3f} ({100 * (exp($each - ${stored[$file]}) - 1):+.2f}%) |', end='')"
  done
  printf '\n'
done
