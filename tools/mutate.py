#!/usr/bin/env python3
"""Mutation testing: are the tests awake? Breaks the program in named and in random ways and asks who notices.

Usage: tools/mutate.py                 builds, runs what has no result yet, writes bench/results/mutations.md
       tools/mutate.py --list          the mutants with their numbers
       tools/mutate.py --only TEXT     runs those whose name, file or number matches; --fresh forgets earlier results
       tools/mutate.py --write-killers notes in tools/mutations.json which test noticed each break, to be tried first
       tools/mutate.py --build         builds only; build/mutation may then be taken to a machine of more cores, where
       tools/mutate.py --prebuilt --processes N   runs what was built, N mutants at a time
       tools/mutate.py --self-test

All mutants are compiled into one copy of the sources under build/mutation/src; environment variable LATTE_MUTATION
chooses the one that runs, so one build serves all. The named breaks are tools/mutations.json, each with the test that is
to fail. The flips are drawn by a seed from src/{plan,attention,kv,decode}; each that survives needs a reason in
tools/mutation_explanations.json. Exit status 1 when a named break survives or a survivor is unexplained.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import subprocess
import sys
import time

import mutants

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build/mutation"
TABLE = ROOT / "tools/mutations.json"
EXPLANATIONS = ROOT / "tools/mutation_explanations.json"
REPORT = ROOT / "bench/results/mutations.md"
FLIPPED_FOLDERS = ["plan", "attention", "kv", "decode"]
SEED = 20
FLIPS = 60
# Test programs by the folder that was broken: the likeliest to notice, and the quickest, first.
ORDER = {
    "plan": ["plan", "attention", "device", "model", "decode", "api"],
    "kv": ["kv", "attention", "model", "decode", "api"],
    "attention": ["attention", "model", "decode", "api"],
    "decode": ["decode", "api", "model"],
    "device": ["device", "attention", "model", "decode"],
    "backend": ["backend", "device", "attention", "model"],
    "model": ["model", "decode", "api"],
    "weights": ["weights", "model", "decode"],
    "tensor": ["tensor", "kv", "device", "model"],
    "base": ["base", "decode"],
    "text": ["text", "api"],
    "api": ["api", "cli"],
    "cli": ["cli"],
}


def fail(message):
    print("error: " + message, file=sys.stderr)
    sys.exit(2)


def code_files(folders):
    for folder in folders:
        for path in sorted((ROOT / "src" / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(ROOT).as_posix()


def collect(dropped):
    """All mutants, numbered from 1: the named ones, then the flips that compile."""
    table = json.loads(TABLE.read_text())
    named = []
    for entry in table["breaks"]:
        try:
            named.append(mutants.named_edit(entry, (ROOT / entry["file"]).read_text()))
        except (OSError, ValueError) as error:
            fail(f"tools/mutations.json: {error}")
    candidates = [flip for file in code_files(FLIPPED_FOLDERS) for flip in mutants.flips_of(file, (ROOT / file).read_text())]
    flips = mutants.choose_flips([flip for flip in candidates if flip.key not in dropped], named, FLIPS, SEED)
    edits = named + flips
    for number, edit in enumerate(edits, 1):
        edit.number = number
    return edits, len(named)


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def copy_sources(edits):
    """Brings the copy up to date, touching only files that differ, so that a second build is short."""
    source = WORK / "src"
    by_file = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    wanted = {"CMakeLists.txt"}
    for folder in ["cmake", "include", "src", "tests", "apps"]:
        wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
    wanted = {file for file in wanted if not file.startswith("tests/data/") and "__pycache__" not in file}
    for file in sorted(wanted):
        if not (ROOT / file).exists():
            continue
        text = (ROOT / file).read_text(errors="surrogateescape")
        write_if_changed(source / file, mutants.apply(text, by_file.get(file, [])))
    for path in list(source.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.relative_to(source).as_posix() not in wanted | {"mutation.h"}:
            path.unlink()
    write_if_changed(source / "mutation.h", mutants.HEADER)
    for link, target in [(name, ROOT / name) for name in ["tests/data", "models", "tools", "docs"]]:
        if not (source / link).is_symlink():
            (source / link).parent.mkdir(parents=True, exist_ok=True)
            (source / link).symlink_to(target)


def test_programs():
    return sorted({name for order in ORDER.values() for name in order})


def build(edits, jobs):
    """Builds every test program. Returns the lines of mutated files that the compiler refused."""
    out = WORK / "build"
    if not (out / "build.ninja").exists():
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        subprocess.run(["cmake", "-S", WORK / "src", "-B", out, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DLATTE_WERROR=OFF",
                        "-DLATTE_BENCH=OFF", f"-DCMAKE_CXX_FLAGS=-include {WORK / 'src/mutation.h'}", *launcher],
                       check=True, stdout=subprocess.DEVNULL)
    targets = subprocess.run(["ninja", "-C", out, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    wanted = [f"{name}_test" for name in test_programs() if re.search(rf"^{name}_test:", targets, re.M)]
    run = subprocess.run(["cmake", "--build", out, "-j", str(jobs), "--target", *wanted, "--", "-k", "0"],
                         capture_output=True, text=True)
    if run.returncode == 0:
        return [], wanted
    refused = set(re.findall(r"mutation/src/([\w/.]+):(\d+):\d+: (?:fatal )?error", run.stdout))
    # A template or inline function is reported where it is used; the lines around name the mutant's own.
    refused |= set(re.findall(r"mutation/src/([\w/.]+):(\d+):\d+:\s+(?:required|in .constexpr)", run.stdout))
    lines = {(file, int(line)) for file, line in refused}
    guilty = [e for e in edits if any(file == e.file and e.line - 1 <= line <= e.line + 3 for file, line in lines)]
    if not guilty:
        fail("the mutated copy does not build and no mutant is near the message:\n" + run.stdout[-3000:])
    return guilty, wanted


def dropped_file():
    return WORK / "dropped.json"


def prepare(jobs):
    dropped = set(json.loads(dropped_file().read_text())) if dropped_file().exists() else set()
    for _ in range(12):
        edits, named = collect(dropped)
        copy_sources(edits)
        guilty, programs = build(edits, jobs)
        if not guilty:
            return edits, named, programs
        for edit in guilty:
            if edit.number <= named:
                fail(f"named break \"{edit.name}\" does not compile: {edit.file}:{edit.line}")
            print(f"dropped, does not compile: {edit.file}:{edit.line} {edit.name}")
        dropped |= {edit.key for edit in guilty}
        dropped_file().write_text(json.dumps(sorted(dropped)))
    fail("the mutated copy does not build after 12 attempts")


def built_before():
    """What `--build` left in build/mutation, here or on another machine."""
    dropped = set(json.loads(dropped_file().read_text())) if dropped_file().exists() else set()
    edits, named = collect(dropped)
    programs = [f"{name}_test" for name in test_programs() if (WORK / "build" / f"{name}_test").exists()]
    if not programs:
        fail("build/mutation holds no test program; run tools/mutate.py --build first")
    return edits, named, programs


def fingerprint(programs):
    """Of the built test programs' sources: results of another state of the code are run again."""
    parts = []
    for path in sorted((WORK / "src").rglob("*")):
        if path.suffix in (".h", ".cc") and path.is_file():
            parts.append(mutants.digest(path.relative_to(WORK).as_posix(), path.read_text(errors="surrogateescape")))
    return mutants.digest(*parts, *programs)


def run_program(program, gtest_filter, number, wall_seconds, cpu_seconds, extra=()):
    """One run of a test program. Returns (status, test that failed or '', seconds); status 'passed', 'failed', 'hung'."""
    environment = dict(os.environ, LATTE_MUTATION=str(number), LATTE_MODELS=str(ROOT / "models"))
    command = [WORK / "build" / program, "--gtest_brief=0", "--gtest_color=no", *extra]
    if gtest_filter:
        command.append("--gtest_filter=" + gtest_filter)

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))

    started = time.monotonic()
    try:
        run = subprocess.run(command, cwd=WORK / "src", env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=wall_seconds, preexec_fn=limits)
        output, status = run.stdout.decode(errors="replace"), run.returncode
    except subprocess.TimeoutExpired as error:
        output, status = (error.stdout or b"").decode(errors="replace"), None
    seconds = time.monotonic() - started
    if status == 0:
        return "passed", "", seconds
    failed = re.findall(r"^\[  FAILED  \] ([\w/.]+)", output, re.M)
    running = re.findall(r"^\[ RUN      \] ([\w/.]+)", output, re.M)
    test = failed[0] if failed else (running[-1] if running else "start of the program")
    if status is None or status in (-24, -9):
        return "hung", test, seconds
    how = "" if failed else f" (ended by signal {-status})" if status < 0 else f" (exit status {status})"
    return "failed", test + how, seconds


def baseline(programs, slow, processes):
    """Every program with no mutant: all must pass. Returns program -> (filter that leaves out slow tests, seconds)."""
    result = {}

    def run(program):
        return run_program(program, "", 0, 1800, 3600, [f"--gtest_output=json:{WORK / program}.json"])

    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        runs = list(pool.map(run, programs))
    for program, (status, test, seconds) in zip(programs, runs):
        report = WORK / f"{program}.json"
        if status != "passed":
            fail(f"{program} fails without a mutant: {test}")
        suites = json.loads(report.read_text()).get("testsuites", [])
        timed = [(f"{suite['name']}.{test['name']}", float(test["time"].rstrip("s"))) for suite in suites for test in suite["testsuite"]]
        left_out = [name for name, test_seconds in timed if test_seconds > slow]
        quick = sum(test_seconds for _, test_seconds in timed if test_seconds <= slow)
        result[program] = ("-" + ":".join(left_out) if left_out else "", quick)
        print(f"baseline {program}: {len(timed)} tests, {seconds:.1f} s, quick ones {quick:.1f} s"
              + (f", left out as slow: {', '.join(left_out)}" if left_out else ""), flush=True)
    return result


def run_mutant(edit, base):
    """Who notices? The test named first, then every program in order."""
    runs = []
    if edit.killed_by:
        program, _, gtest_filter = edit.killed_by.partition(" ")
        runs.append((program, gtest_filter))
    folder = edit.file.split("/")[1]
    runs += [(f"{name}_test", None) for name in ORDER[folder]]
    for program, gtest_filter in runs:
        if program not in base:
            continue
        quick_filter, seconds = base[program]
        limit = int(8 * seconds + 60)
        status, test, _ = run_program(program, quick_filter if gtest_filter is None else gtest_filter, edit.number, 4 * limit,
                                      2 * limit, ["--gtest_fail_fast"])
        if status != "passed":
            return {"status": "killed" if status == "failed" else "hung", "program": program, "test": test}
    return {"status": "survived", "program": "", "test": ""}


def explain_key(edit):
    return mutants.digest(edit.file, edit.source_line, edit.name, edit.replacement)


def write_report(edits, named, results):
    explanations = json.loads(EXPLANATIONS.read_text()) if EXPLANATIONS.exists() else {}
    processor = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
                     platform.processor())
    open_flips = [e for e in edits[named:] if e.key not in results]
    flips = [e for e in edits[named:] if e.key in results]
    killed = [e for e in flips if results[e.key]["status"] != "survived"]
    out = ["# Mutations", "", "Written by `tools/mutate.py`; the mutants are explained there. Tests whose run takes long are left out"
           f" unless a break names them. Machine: {processor}, {os.cpu_count()} cores.", "",
           f"Named breaks: {named}, noticed: {sum(results[e.key]['status'] != 'survived' for e in edits[:named])}. "
           f"Flips drawn with seed {SEED}: {len(flips)}, noticed: {len(killed)}, explained below: {len(flips) - len(killed)}"
           + (f", without a result yet: {len(open_flips)}." if open_flips else "."), "",
           "## Named breaks", "", "| break | file | noticed by |", "|---|---|---|"]
    bad = []
    cell = lambda text: text.replace("|", "\\|")
    for edit in edits[:named]:
        result = results[edit.key]
        noticed = f"`{result['test']}`" + (" (ran into its time limit)" if result["status"] == "hung" else "")
        if result["status"] == "survived":
            noticed = "**nobody**"
            bad.append(f"named break survives: {edit.name}")
        out.append(f"| {cell(edit.name)} | {edit.file} | {noticed} |")
    out += ["", "## Flips that survive", "", "| place | flip | why no test can or needs to tell |", "|---|---|---|"]
    for edit in flips:
        if results[edit.key]["status"] != "survived":
            continue
        reason = explanations.get(explain_key(edit), {}).get("why", "")
        if not reason:
            bad.append(f"unexplained: key {explain_key(edit)} {edit.file}:{edit.line} {edit.name}: {edit.replacement}")
            reason = "**unexplained**"
        out.append(f"| {edit.file}, `{cell(edit.source_line)}` | {cell(edit.name)} | {cell(reason)} |")
    out += ["", "## Flips that are noticed", "", "| place | flip | noticed by |", "|---|---|---|"]
    for edit in killed:
        result = results[edit.key]
        late = " (ran into its time limit)" if result["status"] == "hung" else ""
        out.append(f"| {edit.file}, `{cell(edit.source_line)}` | {cell(edit.name)} | `{result['test']}`{late} |")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(out) + "\n")
    return bad


def read_results(path, print_of_code):
    results = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        if row["code"] == print_of_code:
            results[row["key"]] = row
    return results


def write_killers(edits, results):
    table = json.loads(TABLE.read_text())
    by_name = {edit.name: results[edit.key] for edit in edits if edit.key in results}
    for entry in table["breaks"]:
        result = by_name.get(entry["name"])
        if result and result["status"] == "killed":
            entry["killed_by"] = f"{result['program']} {result['test'].split(' ')[0]}"
    TABLE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--write-killers", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--slow", type=float, default=5.0, help="seconds above which a test is left out")
    parser.add_argument("--report", type=pathlib.Path, help="write the table from these results, run nothing")
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--prebuilt", action="store_true")
    parser.add_argument("--baseline", type=pathlib.Path, help="filters and seconds of the programs, instead of a run of all")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        failures = mutants.self_test()
        print("\n".join(failures) if failures else "mutate self-test: as expected")
        return 1 if failures else 0
    WORK.mkdir(parents=True, exist_ok=True)
    if arguments.list:
        dropped = set(json.loads(dropped_file().read_text())) if dropped_file().exists() else set()
        for edit in collect(dropped)[0]:
            print(f"{edit.number:3} {edit.file}:{edit.line} {edit.name} | {edit.source_line} -> {edit.replacement}")
        return 0
    if arguments.report:
        dropped = set(json.loads(dropped_file().read_text())) if dropped_file().exists() else set()
        edits, named = collect(dropped)
        results = {row["key"]: row for row in map(json.loads, arguments.report.read_text().splitlines())}
        bad = write_report(edits, named, results)
        print("\n".join(bad))
        return 1 if bad else 0
    if arguments.prebuilt:
        edits, named, programs = built_before()
    else:
        edits, named, programs = prepare(arguments.jobs)
    if arguments.build:
        return 0
    code = fingerprint(programs)
    path = WORK / "results.jsonl"
    if arguments.fresh:
        path.unlink(missing_ok=True)
    results = read_results(path, code)
    todo = [e for e in edits if e.key not in results or arguments.only]
    if arguments.only:
        todo = [e for e in todo if arguments.only == str(e.number) or arguments.only in e.name or arguments.only in e.file]
    base_file = WORK / f"baseline-{code}.json"
    if arguments.baseline:
        base = json.loads(arguments.baseline.read_text())
    elif base_file.exists():
        base = json.loads(base_file.read_text())
    else:
        base = baseline(programs, arguments.slow, arguments.processes)
        base_file.write_text(json.dumps(base))

    def timed(edit):
        started = time.monotonic()
        return edit, run_mutant(edit, base), time.monotonic() - started

    with concurrent.futures.ThreadPoolExecutor(arguments.processes) as pool:
        for finished in concurrent.futures.as_completed([pool.submit(timed, edit) for edit in todo]):
            edit, outcome, seconds = finished.result()
            results[edit.key] = {"key": edit.key, "code": code, **outcome}
            with path.open("a") as file:
                file.write(json.dumps(results[edit.key]) + "\n")
            print(f"{edit.number:3} {outcome['status']:8} {seconds:6.1f} s  {edit.file}:{edit.line} {edit.name}"
                  f"  {outcome['test']}", flush=True)
    if any(edit.key not in results for edit in edits[:named]):
        print("not all named breaks have a result yet; run again without --only for the report")
        return 0
    if arguments.write_killers:
        write_killers(edits[:named], results)
    bad = write_report(edits, named, results)
    print("\n".join(bad) if bad else f"every named break is noticed, every survivor explained: {REPORT.relative_to(ROOT)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
