#!/usr/bin/env python3
"""Checks who includes whom, the table of docs/architecture.md, and the other rules that a reader relies on.

Usage: tools/check_layers.py [--root DIR]     every finding on one line, exit status 1 when there is one
       tools/check_layers.py --self-test      plants each violation in a small tree and expects it to be found
"""

import argparse
import pathlib
import re
import sys
import tempfile

# Folder of src/ -> folders it may include besides itself. `latte/error.h` is open to all; OPEN_TO_PUBLIC may include every
# public header.
MAY_INCLUDE = {
    "base": set(),
    "tensor": {"base"},
    "plan": {"base"},
    "io": {"base", "tensor"},
    "text": {"base", "io"},
    "backend": {"base", "tensor", "plan"},
    "device/reference": {"base", "tensor", "plan", "backend"},
    "device/cpu": {"base", "tensor", "plan", "backend"},
    "device/cuda": {"base", "tensor", "plan", "backend"},
    "device/mlx": {"base", "tensor", "plan", "backend"},
    "comm": {"base", "tensor"},
    "calibrate": {"base", "tensor", "plan", "backend"},
    "kv": {"base", "tensor", "backend"},
    "weights": {"base", "tensor", "plan", "io", "backend"},
    "attention": {"base", "tensor", "plan", "backend", "kv", "weights", "comm"},
}
MAY_INCLUDE["model"] = {"base", "tensor", "plan", "io", "backend", "comm", "calibrate", "kv", "weights", "attention"}
MAY_INCLUDE["decode"] = MAY_INCLUDE["model"] | {"text", "model", "device"}
MAY_INCLUDE["api"] = MAY_INCLUDE["decode"] | {"decode"}
# src/device itself holds open_backend and nothing else.
MAY_INCLUDE["device"] = {"base", "tensor", "plan", "backend"}
OPEN_TO_PUBLIC = {"decode", "api"}

# Headers of machines and runtimes, each with the folders that may see it: the first, and a stand-in for it in tests.
GUARDED_HEADERS = [
    (re.compile(r"^(\w*intrin\.h|arm_neon\.h|arm_sve\.h|cpuid\.h)$"), ["src/device/cpu", "tests/emulation"]),
    (re.compile(r"^(cuda\w*(\.h|/.*)|cublas\w*\.h|cutlass/.*|cute/.*)$"), ["src/device/cuda"]),
    (re.compile(r"^mlx/.*$"), ["src/device/mlx"]),
    (re.compile(r"^(mpi\.h|nccl\.h)$"), ["src/comm"]),
]
APP_LIBRARIES = re.compile(r"^(CLI/.*|nlohmann/.*|fmt/.*|sys/\w+\.h|[a-z0-9_]+\.h|[a-z0-9_]+)$")
STANDARD_HEADER = re.compile(r"^([a-z0-9_]+|stdint\.h|stddef\.h|stdbool\.h)$")

SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".mm", ".py", ".sh"}
CODE_FOLDERS = ["include", "src", "apps", "examples", "tests", "bench", "fuzz", "tools", "python"]
MOST_LINES = 700

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
ROW_COMPARISON = re.compile(r"(?<![\w])\w*(?:rows|row_count|new_tokens)\w*(?:\(\))?\s*(?:<=|>=|<|>)(?![<>=])"
                            r"|(?<![<>=-])(?:<=|>=|<|>)\s*\w*(?:rows|row_count|new_tokens)\w*")
TAKES_FORM = re.compile(r"(?<![=!]=)(?<![=!]=\s)(?<!case )MlaForm::k\w+")


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, file, line, text):
        self.lines.append(f"{file}:{line}: {text}")


def folder_of(path):
    """'src/device/cpu/x.cc' -> 'device/cpu', 'src/device/open_backend.h' -> 'device', 'src/model/families/x.cc' -> 'model'."""
    parts = path.split("/")[1:-1]
    if not parts:
        return ""
    return "/".join(parts[:2]) if parts[0] == "device" and len(parts) > 1 else parts[0]


def includes_of(text):
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)


def check_source(file, text, root, findings, edges):
    folder = folder_of(file)
    if folder not in MAY_INCLUDE:
        findings.add(file, 1, f"folder src/{folder} is not in the table; add it to tools/check_layers.py and to the architecture page")
        return
    for line, kind, name in includes_of(text):
        if name.startswith("latte/"):
            if name != "latte/error.h" and folder not in OPEN_TO_PUBLIC:
                findings.add(file, line, f"src/{folder} includes <{name}>; below decode only latte/error.h is public")
            continue
        if kind == "<":
            continue
        if not (root / "src" / name).exists():
            findings.add(file, line, f'"{name}" is no file under src/; write includes from src/ on')
            continue
        target = folder_of("src/" + name)
        if target == folder:
            continue
        edges.setdefault(folder, {}).setdefault(target, f"{file}:{line}")
        if folder == "device" and target.startswith("device/"):
            if not re.match(r"^src/device/open_backend\.(h|cc)$", file):
                findings.add(file, line, f"only src/device/open_backend names src/{target}")
        elif target not in MAY_INCLUDE[folder]:
            allowed = ", ".join(sorted(MAY_INCLUDE[folder])) or "nothing"
            findings.add(file, line, f"src/{folder} includes src/{target}; it may include {allowed}")
        elif target == "device" and name != "device/open_backend.h":
            findings.add(file, line, f'"{name}": of src/device only open_backend.h is open to others')


def check_public(file, text, findings):
    for line, kind, name in includes_of(text):
        if not name.startswith("latte/") and not (kind == "<" and STANDARD_HEADER.match(name)):
            findings.add(file, line, f"public header includes {name}; only <latte/...> and the standard library")


def check_app(file, text, root, findings):
    for line, kind, name in includes_of(text):
        if name.startswith("latte/"):
            continue
        own = (root / file).parent / name
        if kind == '"' and not own.exists():
            findings.add(file, line, f'"{name}" is neither of this program nor <latte/...>')
        elif kind == "<" and not APP_LIBRARIES.match(name):
            findings.add(file, line, f"<{name}> is neither <latte/...> nor a library that programs may use")


def check_guarded(file, text, findings):
    for line, _, name in includes_of(text):
        for pattern, homes in GUARDED_HEADERS:
            if pattern.match(name) and not file.startswith(tuple(home + "/" for home in homes)):
                findings.add(file, line, f"<{name}> belongs in {homes[0]}/ alone")


def check_form_choice(file, text, findings):
    """A statement outside src/plan that names a form and, itself or in the `if` before it, compares a row count."""
    if not file.startswith(("src/", "apps/")) or file.startswith("src/plan/") or "MlaForm::" not in text:
        return
    code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    condition, position = "", 0
    for piece in re.split(r"([;{}])", code):
        named = TAKES_FORM.search(piece)
        if named and ROW_COMPARISON.search(condition + " " + piece):
            line = code.count("\n", 0, position + named.start()) + 1
            findings.add(file, line, "a row count picks the form here; only src/plan/choose_form.h may, call choose_form")
        if piece.strip() not in ("", "{"):
            condition = piece if re.search(r"\b(if|else|while)\b", piece) else ""
        position += len(piece)


def check_cycles(edges, findings):
    """Depth first over the includes that are really there; each cycle is told once, with one include that closes it."""
    done, path = set(), []

    def visit(folder):
        path.append(folder)
        for target, where in sorted(edges.get(folder, {}).items()):
            if target in path:
                circle = " > ".join(path[path.index(target):] + [target])
                findings.lines.append(f"{where}: folders include each other in a circle: {circle}")
            elif target not in done:
                visit(target)
        done.add(path.pop())

    for folder in sorted(edges):
        if folder not in done:
            visit(folder)


def check(root):
    findings, edges = Findings(), {}
    for top in CODE_FOLDERS:
        for path in sorted((root / top).rglob("*")) if (root / top).is_dir() else []:
            file = path.relative_to(root).as_posix()
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file() or "/data/" in file:
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            lines = text.count("\n")
            if lines > MOST_LINES:
                findings.add(file, lines, f"{lines} lines, at most {MOST_LINES}; split it by idea")
            if path.suffix in (".py", ".sh"):
                continue
            check_guarded(file, text, findings)
            check_form_choice(file, text, findings)
            if top == "src":
                check_source(file, text, root, findings, edges)
            elif top == "include":
                check_public(file, text, findings)
            elif top in ("apps", "examples", "python"):
                check_app(file, text, root, findings)
    check_cycles(edges, findings)
    return findings.lines


# Each violation: file, its text, and a piece of the finding it must give.
PLANTED = [
    ("src/base/low.h", '#include "plan/geometry.h"\n', "src/base includes src/plan"),
    ("src/plan/memory.cc", '#include "tensor/dtype.h"\n', "src/plan includes src/tensor"),
    ("src/kv/pages.cc", "#include <latte/engine.h>\n", "only latte/error.h is public"),
    ("src/device/cpu/spy.cc", '#include "device/reference/oracle.h"\n', "src/device/cpu includes src/device/reference"),
    ("src/model/fast.cc", '#include "device/cpu/kernels.h"\n', "src/model includes src/device/cpu"),
    ("src/decode/fast.cc", '#include "device/cpu/kernels.h"\n', "src/decode includes src/device/cpu"),
    ("src/device/chooser.cc", '#include "device/cpu/kernels.h"\n', "only src/device/open_backend names"),
    ("src/model/reader.cc", '#include "text/tokenizer.h"\n', "src/model includes src/text"),
    ("src/utils/misc.h", "int x;\n", "is not in the table"),
    ("src/io/lost.cc", '#include "file_map.h"\n', "is no file under src/"),
    ("include/latte/bad.h", '#include "base/contract.h"\n', "public header includes base/contract.h"),
    ("include/latte/json.h", "#include <nlohmann/json.hpp>\n", "public header includes nlohmann"),
    ("apps/cli/inside.cc", '#include "decode/session.h"\n', "neither of this program"),
    ("examples/boost.cc", "#include <boost/any.hpp>\n", "nor a library that programs may use"),
    ("src/tensor/fast.cc", "#include <immintrin.h>\n", "belongs in src/device/cpu/ alone"),
    ("src/kv/gpu.cc", "#include <cuda_runtime.h>\n", "belongs in src/device/cuda/ alone"),
    ("src/attention/step.cc", "void f() {\n  form = new_rows < 171 ? MlaForm::kAbsorbed : MlaForm::kMaterialised;\n}\n",
     "a row count picks the form"),
    ("src/attention/step2.cc", "void f() {\n  if (args.rows >= 16) {\n    form = MlaForm::kMaterialised;\n  }\n}\n",
     "a row count picks the form"),
    ("src/plan/long.cc", "\n" * (MOST_LINES + 1), "at most 700"),
]
SOUND = {
    "src/base/fail.h": "#include <string>\n#include \"latte/error.h\"\n",
    "src/base/contract.h": "\n",
    "src/tensor/dtype.h": "#include \"base/contract.h\"\n",
    "src/plan/geometry.h": "inline auto f(int rows) { return rows < 3 ? MlaForm::kAbsorbed : MlaForm::kMaterialised; }\n",
    "src/backend/backend.h": "#include \"plan/geometry.h\"\n",
    "src/device/cpu/kernels.h": "#include <immintrin.h>\n#include \"backend/backend.h\"\n",
    "tests/emulation/wide.h": "#include <immintrin.h>\n",
    "src/device/reference/oracle.h": "\n",
    "src/device/open_backend.h": "\n",
    "src/device/open_backend.cc": "#include \"device/cpu/kernels.h\"\n",
    "src/text/tokenizer.h": "\n",
    "src/attention/form.cc": "void f() {\n  if (form == MlaForm::kAbsorbed) g(rows < 3);\n  // rows < 3 ? MlaForm::kAbsorbed\n}\n",
    "src/decode/session.h": "#include \"device/open_backend.h\"\n#include \"text/tokenizer.h\"\n#include <latte/engine.h>\n",
    "include/latte/error.h": "#include <string>\n",
    "include/latte/engine.h": "#include \"latte/error.h\"\n",
    "apps/cli/main.cc": "#include <CLI/CLI.hpp>\n#include <latte/engine.h>\n#include \"options.h\"\n",
    "apps/cli/options.h": "\n",
}


def self_test():
    def write(root, file, text):
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for file, text in SOUND.items():
            write(root, file, text)
        if check(root):
            failures.append("a sound tree has findings: " + "; ".join(check(root)))
        for file, text, expected in PLANTED:
            write(root, file, text)
            found = check(root)
            if not any(line.startswith(file + ":") and expected in line for line in found):
                failures.append(f"{file}: planted '{expected}', found {found}")
            (root / file).unlink()
        edges = {"a": {"b": "a/x.h:1"}, "b": {"c": "b/x.h:1"}, "c": {"a": "c/x.h:1"}}
        findings = Findings()
        check_cycles(edges, findings)
        if findings.lines != ["c/x.h:1: folders include each other in a circle: a > b > c > a"]:
            failures.append(f"planted a circle of folders, found {findings.lines}")
    for failure in failures:
        print("self-test: " + failure)
    print(f"check_layers self-test: {len(PLANTED) + 2 - len(failures)} of {len(PLANTED) + 2} as expected")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    found = check(arguments.root)
    print("\n".join(found) if found else "check_layers: nothing to mend")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
