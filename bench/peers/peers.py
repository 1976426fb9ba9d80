#!/usr/bin/env python3
"""latte and llama.cpp on random weights of one geometry, in turns on the same threads: milliseconds of a step and their ratio.

  python3 -m venv peers && peers/bin/pip install numpy gguf llama-cpp-python     (compiles llama.cpp for this machine)
  peers/bin/python bench/peers/peers.py --latte build/latte --config config.json --threads 2

A step is one forward pass of L rows whose logits are all wanted, behind a cache of T rows: what a verify step is. Prompts
are steps of 512 rows whose last logits are wanted. Each round measures latte, then llama.cpp, cell by cell; the medians of
all rounds and their ratio are printed. Both hold attention and feed-forward matrices in 4.5 bits a weight and the head in
8.5; what expands the latent is bf16 in latte and Q8_0 in llama.cpp. Rows of the cache are 16 bits wide, bf16 in
latte and f16, its default, in llama.cpp, whose flash attention is on.
llama.cpp knows DeepSeek-V2-Lite by its 27 layers: pass --layers 0 (all), which takes 9 GB of disk or /dev/shm (--gguf),
twice 9 GB of memory and, on two cores, some minutes a round, most of it llama.cpp's prompts and filling its cache.
On a machine with AMX build llama.cpp without it, where its AMX code aborts on latent attention:
  CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON -DGGML_AVX512=ON
  -DGGML_AVX512_VNNI=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_BF16=ON"
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

PROMPT = 512


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latte", default="build/latte", help="the program")
    parser.add_argument("--config", required=True, help="config.json of a model with latent attention and experts")
    parser.add_argument("--layers", type=int, default=4, help="of the model, 0: all; both programs hold it at once")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=numbers, default=[1, 2, 4, 8])
    parser.add_argument("--depths", type=numbers, default=[0, 4096])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt-depths", type=numbers, help="depths that prompts are read at, of --depths (all)")
    parser.add_argument("--repeats", type=int, default=3, help="steps of llama.cpp a cell and round, after one more")
    parser.add_argument("--prompt-repeats", type=int, default=3, help="the same for its prompts, which can take minutes")
    parser.add_argument("--processors", default="all",
                        help="those that both are timed on, as 2,3; llama.cpp fills its cache on all that there are")
    parser.add_argument("--isa", default="auto", help="latte's instruction set")
    parser.add_argument("--gguf", help="keep the peer's file here; one that is there is taken as made for --config and --layers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.prompt_depths is None:
        options.prompt_depths = options.depths
    if not all(1 <= rows <= 16 for rows in options.rows):
        parser.error(f"--rows {options.rows}: a verify step has 1 to 16 rows, a prompt is of {PROMPT}")
    if not set(options.prompt_depths) <= set(options.depths):
        parser.error(f"--prompt-depths {options.prompt_depths}: expected some of --depths {options.depths}")
    return options


def rows_at(options, depth):
    return [PROMPT] * (depth in options.prompt_depths) + options.rows


def pin(processors):
    if processors != "all":
        os.sched_setaffinity(0, set(numbers(processors)))


def latte_bench(options, *tests):
    """One run of latte bench: (rows, depth) -> milliseconds."""
    layers = ["--layers", str(options.layers)] if options.layers else []
    command = [options.latte, "bench", "--config", options.config, "--random-weights", "--quantize", "q4", *layers,
               "--threads", str(options.threads), "--isa", options.isa, "-n", "0", *tests, "-r", "3", "-o", "json"]
    run = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: pin(options.processors))
    if run.returncode != 0:
        sys.exit(f"error: {' '.join(command)}: {run.stderr.strip()}")
    rows = json.loads(run.stdout)
    rows = rows["rows"] if isinstance(rows, dict) else rows
    return {(row["rows"], row["depth"]): row["median_seconds"] * 1e3 for row in rows}


def latte_cells(options):
    depths, prompt_depths = (",".join(map(str, of)) for of in (options.depths, options.prompt_depths))
    found = latte_bench(options, "-p", "0", "-nv", ",".join(map(str, options.rows)), "-d", depths)
    if options.prompt_depths:
        found |= latte_bench(options, "-p", str(PROMPT), "-d", prompt_depths)
    for (rows, depth), milliseconds in found.items():
        print(f"latte, {rows} rows at depth {depth}: {milliseconds:.1f} ms", file=sys.stderr)
    return found


class LlamaCpp:
    """llama.cpp in a process of its own, which waits while latte is measured."""

    def __init__(self, options, gguf):
        self.process = subprocess.Popen([sys.executable, str(pathlib.Path(__file__).with_name("llama_steps.py")), gguf,
                                         str(options.threads), str(max(options.depths) + PROMPT + 64),
                                         options.processors],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.ask({})["version"]

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: llama.cpp ended with status {self.process.wait()} at {request}")
        return json.loads(line)

    def cells(self, options):
        found = {}
        for depth in sorted(options.depths):
            for rows in rows_at(options, depth):
                repeats = options.prompt_repeats if rows == PROMPT else options.repeats
                answer = self.ask({"rows": rows, "depth": depth, "repeats": repeats})
                found[(rows, depth)] = answer["milliseconds"]
                print(f"llama.cpp, {rows} rows at depth {depth}: {answer['milliseconds']:.1f} ms", file=sys.stderr)
        return found


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    options = parse()
    try:
        from random_gguf import RandomModel
    except ImportError as missing:
        sys.exit(f"error: {missing}: install what the head of {sys.argv[0]} names (--help)")
    with tempfile.TemporaryDirectory() as folder:
        gguf = options.gguf or os.path.join(folder, "random.gguf")
        if not os.path.exists(gguf):
            RandomModel(options.config, options.layers).write(gguf)
        peer = LlamaCpp(options, gguf)
        ours, theirs = {}, {}
        for number in range(options.rounds):
            for found, into in ((latte_cells(options), ours), (peer.cells(options), theirs)):
                for cell, milliseconds in found.items():
                    into.setdefault(cell, []).append(milliseconds)
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    rows = []
    for depth in sorted(options.depths):
        for count in rows_at(options, depth):
            a, b = (statistics.median(of[(count, depth)]) for of in (ours, theirs))
            rows.append({"rows": count, "depth": depth, "latte_ms": a, "llama_cpp_ms": b, "ratio": b / a})
    machine = f"{processor()}, {options.threads} threads; load {os.getloadavg()[0]:.1f}; llama-cpp-python {peer.version}"
    if options.json:
        print(json.dumps({"machine": machine, "rows": rows}))
        return
    print(f"{machine}\n\n| step | latte ms | llama.cpp ms | llama.cpp / latte |\n|---|---:|---:|---:|")
    for row in rows:
        name = f"pp{PROMPT}" if row["rows"] == PROMPT else f"v{row['rows']}"
        where = f" @ d{row['depth']}" if row["depth"] else ""
        print(f"| {name}{where} | {row['latte_ms']:.1f} | {row['llama_cpp_ms']:.1f} | {row['ratio']:.2f} |")


if __name__ == "__main__":
    main()
