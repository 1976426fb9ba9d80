"""Mutants of C++ text: named breaks from a table and seeded flips of operators and constants, all in one text.

A mutant is an expression or statement chosen at run time: `(latte::mutation(7) ? (a <= b) : (a < b))`. The sources are
formatted by clang-format, so an operator with a space on both sides is a binary one; templates, pointers and references
have none. What does not compile all the same is dropped by the caller, by the line of the compiler's message.
"""

import dataclasses
import hashlib
import re

HEADER = """#pragma once
#include <cstdlib>
namespace latte {
inline const int kActiveMutation = [] {
  const char* text = std::getenv("LATTE_MUTATION");
  return text == nullptr ? 0 : std::atoi(text);
}();
/// Whether mutant n is the one that runs; never while a constant is evaluated, so static_assert sees the sound program.
constexpr bool mutation(int n) { return !__builtin_is_constant_evaluated() && n == kActiveMutation; }
}  // namespace latte
"""

FLIPS = {
    "<": ["<=", ">", ">="], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["+"], "&&": ["||"], "||": ["&&"],
}
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|<|>|\+|-|\*|&&|\|\|)(?=[ \n])")
CONSTANT = re.compile(r"(?<![\w.'])(?<!e-)\d+(?![\w.'])")
HIDDEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#[^\n]*", re.S | re.M)
# Statements whose flips say nothing about behaviour: claims that stop the program, texts of errors, compile-time facts.
SILENT = re.compile(r"\b(expects|fail|format|format_to|static_assert|template|operator|requires|using|enum|reserve)\b"
                    r"|constexpr [\w:<>]+ k[A-Z]|\) = 0;|const = 0;|= default|= delete")
OPENING, CLOSING = "([{", ")]}"


@dataclasses.dataclass
class Edit:
    """One mutant: text[start:end] of `file` becomes `replacement` while the mutant is active."""
    key: str
    name: str
    file: str
    start: int
    end: int
    replacement: str
    kind: str  # "expression", "statement" or "raw"
    line: int
    killed_by: str = ""
    number: int = 0
    source_line: str = ""


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def mask(text):
    """The text with comments, directives and what stands in quotes blanked, length and lines kept."""

    def blank(match):
        hidden = match.group()
        if hidden[-1] in "\"'":  # an expression may end in a literal: its last quote stays
            return re.sub(r"[^\n]", " ", hidden[:-1]) + hidden[-1]
        return re.sub(r"[^\n]", " ", hidden)

    return HIDDEN.sub(blank, text)


def is_assignment(code, i):
    return code[i] == "=" and code[i - 1] not in "=!<>" and code[i + 1:i + 2] != "="


def expression_around(code, position):
    """[start, end) of the delimited expression that holds position, or None when it is not an expression by itself."""
    depth, start = 0, position
    while start > 0:
        c = code[start - 1]
        if c in CLOSING:
            depth += 1
        elif c in OPENING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            single_colon = c == ":" and code[start - 2] != ":" and code[start:start + 1] != ":"
            if c in ",;?" or single_colon or is_assignment(code, start - 1):
                break
            if re.search(r"\breturn$", code[max(0, start - 7):start]) and code[start] in " \n":
                break
        start -= 1
    depth, end = 0, position
    while end < len(code):
        c = code[end]
        if c in OPENING:
            depth += 1
        elif c in CLOSING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            if is_assignment(code, end):
                return None
            if c in ",;?" or (c == ":" and code[end - 1] != ":" and code[end + 1:end + 2] != ":"):
                break
        end += 1
    while start < end and code[start].isspace():
        start += 1
    while end > start and code[end - 1].isspace():
        end -= 1
    body = code[start:end]
    if not body or re.search(r"[{};]|\[[&=\w]*\]\s*[({]|\b(return|const|auto|if|for|while|case|else)\b", body):
        return None
    return start, end


def statement_around(code, position):
    """The text from the last `;`, `{` or `}` before position to the next one: what SILENT looks at."""
    start = max(code.rfind(c, 0, position) for c in ";{}") + 1
    end = min((e for e in (code.find(c, position) for c in ";{}") if e >= 0), default=len(code) - 1)
    return code[start:end + 1]


def flips_of(file, text):
    """Every flip of one file, in the order of the text."""
    code = mask(text)
    found = []
    matches = [(m, FLIPS[m.group()]) for m in OPERATOR.finditer(code)]
    matches += [(m, [str(int(m.group()) + 1)]) for m in CONSTANT.finditer(code) if len(m.group()) < 9]
    for match, replacements in sorted(matches, key=lambda pair: pair[0].start()):
        span = expression_around(code, match.start())
        line_start = text.rfind("\n", 0, match.start()) + 1
        line_end = text.find("\n", match.start())
        source_line = text[line_start:line_end].strip()
        if span is None or SILENT.search(statement_around(code, match.start())) or SILENT.search(code[line_start:line_end]):
            continue
        start, end = span
        column = match.start() - line_start - (len(text[line_start:line_end]) - len(text[line_start:line_end].lstrip()))
        for replacement in replacements:
            mutated = text[start:match.start()] + replacement + text[match.end():end]
            key = digest(file, source_line, str(column), replacement)
            twin = sum(other.key.startswith(key) for other in found)  # the same line again further down
            found.append(Edit(key=key + (f"-{twin}" if twin else ""),
                              name=f"`{match.group()}` becomes `{replacement}`", file=file, start=start, end=end,
                              replacement=mutated.replace("\n", " "), kind="expression",
                              line=text.count("\n", 0, match.start()) + 1, source_line=source_line))
    return found


def named_edit(entry, text):
    """The edit of one table entry. Raises ValueError when its snippet is not in the file exactly once."""
    snippet = r"\s+".join(re.escape(word) for word in entry["find"].split())  # wherever the formatter breaks lines
    places = list(re.finditer(snippet, text))
    if len(places) != 1:
        raise ValueError(f"{entry['name']}: snippet {entry['find']!r} is {len(places)} times in {entry['file']}, expected once")
    start = places[0].start()
    return Edit(key=digest(entry["name"], entry["file"], entry["find"], entry["replace"]), name=entry["name"],
                file=entry["file"], start=start, end=places[0].end(), replacement=entry["replace"],
                kind=entry.get("kind", "expression"), line=text.count("\n", 0, start) + 1,
                killed_by=entry.get("killed_by", ""), source_line=entry["find"].strip().split("\n")[0])


def choose_flips(candidates, named, count, seed):
    """`count` flips, shared among folders by the square root of their size, none overlapping another or a named break.

    The order of draws is by a hash of seed and flip, so that a change of the code elsewhere leaves the choice as it was.
    """
    by_folder = {}
    for flip in sorted(candidates, key=lambda flip: digest(str(seed), flip.key)):
        by_folder.setdefault("/".join(flip.file.split("/")[:2]), []).append(flip)
    weights = {folder: len(flips) ** 0.5 for folder, flips in by_folder.items()}
    taken, chosen = [(e.file, e.start, e.end) for e in named], []
    served = {folder: 0 for folder in by_folder}
    while len(chosen) < count and any(by_folder.values()):
        folder = min((f for f in sorted(by_folder) if by_folder[f]), key=lambda f: (served[f] + 1) / weights[f])
        flip = by_folder[folder].pop(0)
        if any(file == flip.file and flip.start < end and start < flip.end for file, start, end in taken):
            continue
        taken.append((flip.file, flip.start, flip.end))
        chosen.append(flip)
        served[folder] += 1
    return chosen


def apply(text, edits):
    """The text with all edits in it, each behind its number. Edits of one span are alternatives; others may not overlap."""
    spans = {}
    for edit in edits:
        spans.setdefault((edit.start, edit.end, edit.kind), []).append(edit)
    result, position = [], 0
    for (start, end, kind), alternatives in sorted(spans.items()):
        if start < position:
            raise ValueError(f"{alternatives[0].name}: overlaps another mutant of {alternatives[0].file}")
        original = text[start:end]
        result.append(text[position:start])
        if kind == "raw":
            if len(alternatives) > 1:
                raise ValueError(f"{alternatives[0].name}: a raw mutant cannot share its place")
            result.append(alternatives[0].replacement.replace("$M", f"::latte::mutation({alternatives[0].number})"))
        elif kind == "statement":
            for edit in alternatives:
                result.append(f"if (::latte::mutation({edit.number})) {{ {edit.replacement} }} else ")
            result.append("{ " + original + " }")
        else:
            chain = "".join(f"::latte::mutation({edit.number}) ? ({edit.replacement}) : " for edit in alternatives)
            result.append(f"({chain}({original}))")
        position = end
    result.append(text[position:])
    return "".join(result)


def self_test():
    """What is not as it should be, on a small text; empty when all is well."""
    text = """#include <map>  // a < b
int f(std::span<const int> rows, int* p) {
  const int width = rows.size() * 2;
  if (width < 3 && p != nullptr) return g(width - 1, h<int>(width));
  expects(width > 0, "a < b");
  for (int i = 0; i < width; ++i) x += y ? a + b : c;
  const bool named = name == "a, b";
  return width == 7;
}
"""
    flips = flips_of("src/plan/f.cc", text)
    seen = {(flip.source_line.split("(")[0].strip(), flip.name, flip.replacement) for flip in flips}
    expected = [
        ("const int width = rows.size", "`*` becomes `+`", "rows.size() + 2"),
        ("if", "`<` becomes `<=`", "width <= 3 && p != nullptr"),
        ("if", "`&&` becomes `||`", "width < 3 || p != nullptr"),
        ("if", "`-` becomes `+`", "width + 1"),
        ("for", "`<` becomes `>`", "i > width"),
        ("for", "`+` becomes `-`", "a - b"),
        ("const bool named = name == \"a, b\";", "`==` becomes `!=`", "name != \"a, b\""),
        ("return width == 7;", "`==` becomes `!=`", "width != 7"),
        ("return width == 7;", "`7` becomes `8`", "width == 8"),
    ]
    failures = [f"flip {item} not found" for item in expected if item not in seen]
    failures += [f"line {flip.line} must not be flipped: {flip.name}" for flip in flips if flip.line in (1, 2, 5)]
    chosen = choose_flips(flips, [], 4, seed=1)
    if len(chosen) != 4 or [c.key for c in chosen] != [c.key for c in choose_flips(flips, [], 4, seed=1)]:
        failures.append("the choice is not a function of the seed")
    broken = named_edit({"name": "n", "file": "f", "find": "return width == 7;", "replace": "return true;",
                         "kind": "statement"}, text)
    broken.number = 9
    out = apply(text, [broken])
    if "if (::latte::mutation(9)) { return true; } else { return width == 7; }" not in out:
        failures.append("a statement is not replaced: " + out)
    first = next(flip for flip in flips if flip.replacement == "width != 7")
    first.number = 3
    if "return (::latte::mutation(3) ? (width != 7) : (width == 7));" not in apply(text, [first]):
        failures.append("an expression is not replaced")
    try:
        named_edit({"name": "twice", "file": "f", "find": "width", "replace": ""}, text)
        failures.append("an ambiguous snippet is accepted")
    except ValueError:
        pass
    return failures
