#!/usr/bin/env bash
# The MTP layer agrees with the main model as often as in training, within 0.01, on the first 1024 tokens of each held-out document. The table
# over whole documents is in bench/results.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${LATTE_TEST_DATA:-}" ] || [ ! -d "$root/models/latte-tiny" ]; then
  echo "skipped: held-out texts are read where LATTE_TEST_DATA points, latte-tiny from models/"
  exit 77
fi
exec "$1" "$root/models/latte-tiny" "$LATTE_TEST_DATA/data/heldout" "$root/tests/data/latte-tiny/eval.json" 1024 code docs
