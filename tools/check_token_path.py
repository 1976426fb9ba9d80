#!/usr/bin/env python3
"""Checks docs/token-path.md against the code: each file in backticks exists, each `name()` is defined in its file ("`name()`
of `file`", else the file named last), and each other name in backticks occurs there.

Usage: tools/check_token_path.py [--self-test]
"""

import pathlib
import re
import sys
import tempfile

PAGE = "docs/token-path.md"
QUOTED = re.compile(r"`([^`\n]+)`")
IS_FILE = re.compile(r"^[\w./-]+\.(h|cc|md|py)$")
IS_FUNCTION = re.compile(r"^(?:(\w+)::)?(~?\w+)\(\)$")
IS_NAME = re.compile(r"^(?:\w+::)?\w+$")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def defines(code, owner, name):
    """Whether code holds a definition of the function: its name, parameters, then a body or an initialiser list."""
    prefix = rf"\b{owner}::" if owner else r"(?<![\w.>])"
    for match in re.finditer(prefix + re.escape(name) + r"\s*\(", code):
        depth, i = 1, match.end()
        while i < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[i], 0)
            i += 1
        if re.match(r"\s*(const\b|noexcept\b|override\b|final\b|->[^{;]+|\s)*[{:]", code[i:]):
            return True
    return False


def quotations(page):
    """Every word in backticks outside code blocks, with its line and the text up to the next one."""
    blanked = re.sub(r"^```.*?^```", lambda m: re.sub(r"[^\n]", " ", m.group()), page, flags=re.S | re.M)
    matches = list(QUOTED.finditer(blanked))
    for match, following in zip(matches, matches[1:] + [None]):
        gap = blanked[match.end():following.start()] if following else ""
        yield match.group(1), blanked.count("\n", 0, match.start()) + 1, " ".join(gap.split())


def is_file(word):
    return "/" in word and bool(IS_FILE.match(word))


def homes(words):
    """The file each word is looked for in: the next one when the page says "x of FILE" or "x, y and z in FILE", else the last."""
    result = [None] * len(words)
    for i in reversed(range(len(words) - 1)):
        gap, (following, _, _) = words[i][2], words[i + 1]
        if is_file(following) and gap in ("of", "in"):
            result[i] = following
        elif gap in ("and", ",", ", and", "or"):
            result[i] = result[i + 1]
    last = None
    for i, (word, _, _) in enumerate(words):
        last = word if is_file(word) else last
        result[i] = result[i] or last
    return result


def check(root):
    words = list(quotations((root / PAGE).read_text()))
    findings, texts, files, functions = [], {}, 0, 0
    for (word, line, _), home in zip(words, homes(words)):
        where = f"{PAGE}:{line}"
        if home is not None and home not in texts:
            texts[home] = COMMENT.sub("", (root / home).read_text()) if (root / home).is_file() else ""
        code = texts.get(home, "")
        if is_file(word):
            files += 1
            if not (root / word).is_file():
                findings.append(f"{where}: file {word} does not exist")
        elif function := IS_FUNCTION.match(word):
            functions += 1
            owner, name = function.groups()
            # A method defined inside its class has no owner written before its name.
            inside = owner and re.search(rf"\b(class|struct)\s+{owner}\b", code) and defines(code, None, name)
            if not (defines(code, owner, name) or inside):
                findings.append(f"{where}: {word} is not defined in {home or 'any file named here'}")
        elif IS_NAME.match(word) and home is not None and not re.search(rf"\b{word.split('::')[-1]}\b", code):
            findings.append(f"{where}: {word} does not occur in {home}")
    return findings, files, functions


def self_test():
    code = "struct Plan { int rows() const { return 1; } };\nint walk(const Plan& plan,\n         int n) {\n  return call(n);\n}\n"
    page = "`walk()` and `Plan::rows()` of `src/a.h`; `walk()` takes a `Plan`.\n"
    wrong = {"`src/b.h` is gone": "file src/b.h does not exist", "`src/a.h`: `call()`": "call() is not defined",
             "`src/a.h`: `Plan::cols()`": "Plan::cols() is not defined", "`src/a.h` has a `Plot`": "Plot does not occur"}
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "src").mkdir()
        (root / "docs").mkdir()
        (root / "src/a.h").write_text(code)
        (root / PAGE).write_text(page)
        if check(root)[0]:
            failures.append(f"a true page has findings: {check(root)[0]}")
        for text, expected in wrong.items():
            (root / PAGE).write_text(page + text + "\n")
            found = check(root)[0]
            if len(found) != 1 or expected not in found[0]:
                failures.append(f"{text}: expected '{expected}', found {found}")
    return failures


def main():
    failures = self_test()
    if "--self-test" in sys.argv or failures:
        print("\n".join(failures) if failures else "check_token_path self-test: as expected")
        return 1 if failures else 0
    findings, files, functions = check(pathlib.Path(__file__).resolve().parent.parent)
    print("\n".join(findings) if findings else f"check_token_path: {files} files and {functions} functions are where the page says")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
