#!/usr/bin/env bash
# Installs the build into a folder of its own and builds a program against it twice: with find_package and with pkg-config.
# Usage: run.sh BUILD_DIR CXX
set -euo pipefail
build=$1 cxx=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
model=$here/../data/families/deepseek_v3

cmake --install "$build" --prefix "$prefix/usr" >"$prefix/log"
cmake -S "$here" -B "$prefix/build" -DCMAKE_PREFIX_PATH="$prefix/usr" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_FLAGS=-O0 >>"$prefix/log"
cmake --build "$prefix/build" >>"$prefix/log"
"$prefix/build/uses_latte" "$model"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix/usr" -name latte.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$here/main.cc" -o "$prefix/by_pkg_config" $(pkg-config --cflags --libs latte)
"$prefix/by_pkg_config" "$model"

version=$("$prefix/usr/bin/latte" --version)
[ "$version" = "latte $(pkg-config --modversion latte)" ] || { echo "latte.pc and the program differ: $version"; exit 1; }
for file in man/man1/latte.1 bash-completion/completions/latte zsh/site-functions/_latte fish/vendor_completions.d/latte.fish; do
  [ -s "$prefix/usr/share/$file" ] || { echo "share/$file is missing or empty"; exit 1; }
done
