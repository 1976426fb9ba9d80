#!/usr/bin/env python3
"""Checks docs/hard-cases.md and tools/mutations.json against the tests: each test in backticks, and each that is to
notice a break, is defined in its program; each break that the page names is in the table.

Usage: tools/check_hard_cases.py [--self-test]
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFINED = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)", re.M)
NAMED = re.compile(r"`(?:\w+/)?([A-Z]\w+\.[A-Z]\w+)`")


def tests_by_program():
    programs = {}
    for path in (ROOT / "tests").rglob("*_test.cc"):
        tests = {f"{suite}.{name}" for suite, name in DEFINED.findall(path.read_text())}
        programs.setdefault(path.parent.name + "_test", set()).update(tests)
    return programs


def core(test):
    """`Families/Suite.Name/parameter` without what an instance adds."""
    return next((part for part in test.split("/") if "." in part), test)


def faults(page, breaks, programs):
    found = []
    every = set().union(*programs.values())
    names = {entry["name"] for entry in breaks}
    for number, line in enumerate(page.splitlines(), 1):
        found += [f"docs/hard-cases.md:{number}: no test {test}" for test in NAMED.findall(line) if test not in every]
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 3 or "`" not in cells[1]:
            continue
        found += [f"docs/hard-cases.md:{number}: no break \"{name}\" in tools/mutations.json"
                  for name in cells[2].rstrip(" |").split("; ") if name not in names]
    for entry in breaks:
        program, _, test = entry.get("killed_by", "").partition(" ")
        if program and core(test) not in programs.get(program, set()):
            found.append(f"tools/mutations.json: \"{entry['name']}\" is noticed by {test} of {program}, which is not there")
    return found


def self_test():
    page = "| 1 | `Alpha.Here`, `X/Beta.Gone` | broken; unknown |\n"
    breaks = [{"name": "broken", "killed_by": "a_test X/Alpha.Here/avx2"}, {"name": "late", "killed_by": "b_test Alpha.Here"}]
    found = faults(page, breaks, {"a_test": {"Alpha.Here"}, "b_test": set()})
    return [] if len(found) == 3 else found + ["expected 3 faults"]


def main():
    if "--self-test" in sys.argv:
        found = self_test()
    else:
        breaks = json.loads((ROOT / "tools/mutations.json").read_text())["breaks"]
        found = faults((ROOT / "docs/hard-cases.md").read_text(), breaks, tests_by_program())
    print("\n".join(found) if found else "check_hard_cases: as expected")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
