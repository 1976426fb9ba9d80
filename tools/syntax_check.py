#!/usr/bin/env python3
"""Has a compiler read every file of a configured build folder and write none: its warnings, without the rest of its work.

Usage: tools/syntax_check.py BUILD_DIR [TEXT]   TEXT: only files whose path holds it. Exit status 1 when a file is refused.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


# What nearly every test includes: read once for all of them.
TEST_HEADERS = ["gtest/gtest.h", "rapidcheck.h", "nlohmann/json.hpp", "fmt/format.h", "algorithm", "filesystem", "functional",
                "map", "memory", "optional", "random", "string", "vector"]


def is_test(entry):
    return "/tests/" in entry["file"]


def compile_words(entry):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    # Nothing is made, so nothing is optimised: a precompiled header serves files of every level.
    return [word for word in words[:output] if not re.fullmatch(r"-O[0-3sgz]?", word)]


def read_test_headers(build, entries):
    """A precompiled header for the tests, or nothing where it cannot be made: they are then read without it."""
    tests = [entry for entry in entries if is_test(entry)]
    if len(tests) < 2:
        return None
    header = build / "test_headers.h"
    header.write_text("".join(f"#include <{name}>\n" for name in TEST_HEADERS))
    words = [word for word in compile_words(tests[0]) if not word.startswith("-DLATTE_")]
    made = header.with_suffix(".pch").resolve()
    run = subprocess.run(words + ["-x", "c++-header", str(header.resolve()), "-o", str(made)], cwd=tests[0]["directory"],
                         capture_output=True)
    return made if run.returncode == 0 else None


def check(entry, headers):
    known = ["-include-pch", str(headers)] if headers is not None and is_test(entry) else []
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
    headers = read_test_headers(build, entries)
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
