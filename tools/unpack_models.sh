#!/usr/bin/env bash
# Unpacks assets/*.tar.zst into models/. A folder whose stamp names the archive's checksum and whose files still have the
# sizes written then is left alone; anything else (absent, half unpacked, damaged, another version) is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

# The files of a folder with size and time of change: what a stat can tell of damage without reading 60 MB.
listing() { (cd "$1" && find . -type f ! -name .stamp -printf '%P %s %T@\n' | LC_ALL=C sort); }

unpack() {
  local archive=$1 checksum=$2 name folder scratch actual
  name=$(basename "$archive" .tar.zst)
  folder=models/$name
  if [ -f "$folder/.stamp" ] && [ "$(cat "$folder/.stamp")" = "$checksum"$'\n'"$(listing "$folder")" ]; then
    return
  fi
  actual=$(sha256sum "$archive" | cut -d' ' -f1)
  if [ "$actual" != "$checksum" ]; then
    echo "error: $archive: sha256 $actual, expected $checksum; the file is damaged, restore it with: git checkout $archive" >&2
    return 1
  fi
  mkdir -p models
  scratch=$(mktemp -d "models/.$name.XXXXXX")
  if ! zstd -q -dc "$archive" | tar -xf - --no-same-owner -C "$scratch"; then
    rm -rf "$scratch"
    echo "error: $archive could not be unpacked into models/, expected about 60 MB of free space there; free some and run again" >&2
    return 1
  fi
  printf '%s\n%s\n' "$checksum" "$(listing "$scratch")" > "$scratch/.stamp"
  chmod 755 "$scratch"
  rm -rf "$folder"
  mv "$scratch" "$folder"
  echo "models/$name: unpacked" >&2
}

while read -r checksum file; do
  unpack "assets/$file" "$checksum"
done < assets/SHA256SUMS
