#!/usr/bin/env bash
# What quickstart, check and .ci/run share: packages, models and the configured build folder. Each part looks whether it is
# done and then costs nothing. Usage: tools/setup.sh [ci]   (ci adds the second compiler)
# LATTE_WERROR=ON makes warnings errors: off here, so that a newer compiler's new warnings do not stop a newcomer.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build pkg-config python3 zstd libfmt-dev nlohmann-json3-dev libcli11-dev libpcre2-dev
          libutf8proc-dev libsentencepiece-dev libxxhash-dev libzstd-dev libedit-dev libgtest-dev librapidcheck-dev)
if [ "${1:-}" = ci ]; then
  packages+=(clang)
fi

install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    echo "note: this is not Debian or Ubuntu; expected to be installed: ${packages[*]}" >&2
    return
  fi
  local present missing=() as_root=()
  present=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
  for package in "${packages[@]}"; do
    grep -qxF -- "$package" <<< "$present" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "error: missing packages: ${missing[*]}; run as root or install them, then run again" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2 </dev/null
}

configure() {
  local werror=${LATTE_WERROR:-OFF}
  if [ -f build/build.ninja ] && grep -q "^LATTE_WERROR:BOOL=$werror$" build/CMakeCache.txt; then
    return
  fi
  local launcher=()
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  cmake --preset release -DLATTE_WERROR="$werror" "${launcher[@]}" >&2
}

install_missing
tools/unpack_models.sh
configure
