#!/usr/bin/env bash
# Packs model folders into assets/NAME.tar.zst: the same folder gives the same bytes whatever its owner, dates or modes.
# Usage: tools/pack_models.sh FOLDER_OF_MODELS [NAME...]   (names default to latte-tiny latte-tiny-draft)
set -euo pipefail

if [ $# -lt 1 ] || [ ! -d "$1" ]; then
  echo "error: got '${1:-}', expected a folder that holds latte-tiny/ and latte-tiny-draft/; pass it first" >&2
  exit 2
fi
source_dir=$(cd "$1" && pwd)
shift
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(latte-tiny latte-tiny-draft)

cd "$(dirname "$0")/.."
mkdir -p assets
for name in "${names[@]}"; do
  folder=$source_dir/$name
  files=(config.json generation_config.json tokenizer.json tokenizer_config.json)
  mapfile -t weights < <(cd "$folder" && LC_ALL=C ls model*)
  archive=assets/$name.tar.zst
  # --long=27 lets the entropy stage see the whole archive and is the largest window that zstd decodes unasked.
  tar --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode='u=rw,go=r' -C "$folder" \
    -cf - "${files[@]}" "${weights[@]}" | zstd -q -19 --long=27 -T2 -f -o "$archive"
  echo "$archive: $(stat -c %s "$archive") bytes"
done
(cd assets && sha256sum -- *.tar.zst > SHA256SUMS)
