#!/usr/bin/env python3
"""Has a compiler read every file of a configured build folder and write none: its warnings, without the rest of its work.

Usage: tools/syntax_check.py BUILD_DIR [TEXT] [--but TEXT]   TEXT: only files whose path in the repository holds it, or
all but those. Exit status 1 when a file is refused.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    output = words.index("-o")
    run = subprocess.run(words[:output] + words[output + 2:] + ["-fsyntax-only"], cwd=entry["directory"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return entry["file"], run.returncode, run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--but", metavar="TEXT")
    arguments = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent

    def wanted(entry):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        return arguments.text in path and (arguments.but is None or arguments.but not in path)

    entries = [entry for entry in json.loads((arguments.build / "compile_commands.json").read_text()) if wanted(entry)]
    if not entries:
        print(f"error: {arguments.build}/compile_commands.json names no file to check", file=sys.stderr)
        return 1
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, status, text in pool.map(check, entries):
            if status != 0:
                refused += 1
                print(f"{file}: refused\n{text}", flush=True)
    print(f"syntax_check: {len(entries)} files read, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
