#!/usr/bin/env python3
"""Has a compiler read every file of a configured build folder and write none: its warnings, without the rest of its work.

Usage: tools/syntax_check.py BUILD_DIR [TEXT]   TEXT: only files whose path holds it. Exit status 1 when a file is refused.
"""

import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


# What nearly every file includes, and nearly every test: read once for all of them.
HEADERS = ["fmt/format.h", "nlohmann/json.hpp", "algorithm", "array", "cmath", "cstdint", "filesystem", "functional", "map",
           "memory", "optional", "span", "string", "string_view", "utility", "vector"]
TEST_HEADERS = ["gtest/gtest.h", "rapidcheck.h", "random"] + HEADERS
FEWEST = 8  # files that repay a precompiled header


def is_test(entry):
    return "/tests/" in entry["file"]


def compile_words(entry):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    # Nothing is made, so nothing is optimised: a precompiled header serves files of every level.
    return [word for word in words[:output] if not re.fullmatch(r"-O[0-3sgz]?", word)]


def settings(entry):
    """What a precompiled header and the files that use it have to agree on. Tests differ in search paths alone."""
    words = compile_words(entry)[1:]
    return (is_test(entry),) + tuple(sorted(word for word in words if not word.startswith(("-I", "-isystem", "-DLATTE_"))))


def read_headers(build, entries):
    """Precompiled headers by settings. Where one cannot be made the files are read without it."""
    groups = collections.defaultdict(list)
    for entry in entries:
        groups[settings(entry)].append(entry)
    made = {}
    for number, (common, group) in enumerate(groups.items()):
        if len(group) < FEWEST:
            continue
        header = (build / f"headers{number}.h").resolve()
        header.write_text("".join(f"#include <{name}>\n" for name in (TEST_HEADERS if common[0] else HEADERS)))
        words = [word for word in compile_words(group[0]) if not word.startswith("-DLATTE_")]
        run = subprocess.run(words + ["-x", "c++-header", str(header), "-o", str(header.with_suffix(".pch"))],
                             cwd=group[0]["directory"], capture_output=True)
        if run.returncode == 0:
            made[common] = header.with_suffix(".pch")
    return made


def check(entry, headers):
    header = headers.get(settings(entry))
    known = ["-include-pch", str(header)] if header is not None else []
    words = compile_words(entry) + known + ["-fsyntax-only", "-c", entry["file"]]
    run = subprocess.run(words, cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return entry["file"], run.returncode, run.stdout


def main():
    build = pathlib.Path(sys.argv[1])
    entries = json.loads((build / "compile_commands.json").read_text())
    # What the build makes itself may not be there yet, and is nobody's to mend.
    entries = [entry for entry in entries if build.resolve() not in pathlib.Path(entry["file"]).resolve().parents]
    entries = [entry for entry in entries if len(sys.argv) < 3 or sys.argv[2] in entry["file"]]
    if not entries:
        print(f"error: {build}/compile_commands.json names no file to check", file=sys.stderr)
        return 1
    headers = read_headers(build, entries)
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, text in pool.map(lambda entry: check(entry, headers), entries):
            if status != 0:
                refused += 1
                print(f"{file}: refused\n{text}", flush=True)
    print(f"syntax_check: {len(entries)} files read, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
