#!/usr/bin/env python3
"""Writes tests/data/tokenizer: a small trained tokenizer and the ids that the `tokenizers` package gives.

    pip install tokenizers
    tools/make_tokenizer_goldens.py DATA_ROOT

DATA_ROOT holds data/tokenizers, data/heldout and models/latte-tiny (the folder that LATTE_TEST_DATA names in tests).
"""

import json
import random
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

OUT = Path(__file__).resolve().parent.parent / "tests" / "data" / "tokenizer"
SLICE_BYTES = 1 << 16
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BAILING = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")

TEXTS = [
    "", " ", "a", "Hello, world!", "  leading and trailing  ", "tab\tnew\nline\r\nend\r", "\n\n\n", " \n \n  x",
    "it's we'll I'M THEY'RE don't o'clock 'S'tuff", "3.14159 1000000 12 1 ٣٤٥ ⅷ ½ 1234567890123",
    "def f(x):\n    return {'a': [x**2 for _ in range(10)]}  # ok\n\n\tif x != 1 && y >= 2: pass;",
    "#include <vector>\nint main() { return *p++ ? 0x1F : ~0; }",
    "中文分词测试，这是一个句子。日本語のテキスト、カタカナとひらがな。한국어 문장입니다.",
    "العربية نص تجريبي ١٢٣، עברית טקסט", "ภาษาไทยไม่มีช่องว่าง", "हिन्दी देवनागरी पाठ है।", "Ελληνικά и Русский текст",
    "e\u0301 vs \u00e9, A\u030a vs \u00c5, \u1e9b\u0323, \uac00 vs \u1100\u1161, q\u0307\u0323 q\u0323\u0307",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🤷‍♀️", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 ℵ₀ ∑∫√ ≤≥≠ →⇒",
    "\u00a0nbsp\u3000ideographic\u2003em\u200bzero\u2028line\u2029para\u0085nel\u180emvs\u202fnn",
    "a" * 300, " " * 100 + "x" + " " * 65, "-" * 70, "ab" * 40, "=" * 9 + "\n" * 5 + "\t" * 7,
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case file.name.ext /usr/local/bin C:\\path",
    "http://example.com/a?b=c&d=%20#frag user@example.com", "\x00\x01\x02\x7f\u0080\u009f", "\ufeffBOM \ufffd \uffff",
    "ſ ſtuff 'ſ K'elvin'S \u212a", "ﬁ ﬂ ﬀ ǅ ß ẞ İ ı", "¡¿«»„“”‘’—–…·•§¶†‡", "!@#$%^&*()_+-=[]{}|;':\",./<>?`~",
    "!hello .world @name #tag $var %pct ^up &and *star (paren", "mixed中文andEnglish混排123数字ＡＢＣ１２３",
    "x\r\ny\r\r\nz \r \n", "１２３ ４５６７ 八九十 Ⅻ ㊿ 🄰", "ا\u064b\u0651 ب\u0650 क्षि ਸ਼੍ਰੀ",
]
BYTES = [bytes([b]) for b in (0, 10, 65, 127, 128, 191, 192, 193, 194, 224, 237, 240, 244, 245, 255)] + [
    b"ok \xf0\x9f\x98 cut", b"\xed\xa0\x80 surrogate", b"\xc0\xaf overlong", b"\xe2\x82", b"\xf4\x90\x80\x80",
    b"\xf0\x9f\x98\x80\xf0\x9f\x98", b"a\x80\x80b\xff\xfec", b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41",
]
MARKED = [
    "<|begin|>Hello<|end|>", " <|pad|>  x <|pad|> ", "a <left>b  <left> c", "d<right>  e<right>f", "word oneword one twoone",
    "<|begin|><|begin|>", "<|beg<|begin|>in|>", "<tool> call </tool>", "caf\u00e9tok cafe\u0301tok", "x<|end|>  <left>y",
]


def fnv(ids):
    value = 0xCBF29CE484222325
    for number in ids:
        for byte in number.to_bytes(4, "little"):
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def random_bytes(seed, count):
    rng = random.Random(seed)
    return [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 40))) for _ in range(count)]


def encode(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False).ids


def text_cases(tokenizer):
    cases = [{"text": text, "ids": encode(tokenizer, text)} for text in TEXTS]
    for raw in BYTES + random_bytes(7, 40):
        cases.append({"hex": raw.hex(), "ids": encode(tokenizer, raw.decode("utf-8", errors="replace"))})
    return cases


def decode_cases(tokenizer, vocab_size, seed):
    """Random ids. The package takes Latin-1 letters in an added token for bytes; latte prints such a token as written."""
    rng = random.Random(seed)
    odd = tokenizer.token_to_id("caf\u00e9tok")
    cases = []
    for _ in range(40):
        ids = [id for id in (rng.randrange(vocab_size) for _ in range(rng.randrange(1, 12))) if id != odd]
        cases.append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False)})
    return cases


def held_out(tokenizer, root):
    documents = []
    for path in sorted((root / "data" / "heldout").glob("*.txt")):
        raw = path.read_bytes()
        for begin in range(0, len(raw), SLICE_BYTES):
            ids = encode(tokenizer, raw[begin:begin + SLICE_BYTES].decode("utf-8", errors="replace"))
            documents.append({"file": path.name, "begin": begin, "bytes": SLICE_BYTES, "count": len(ids), "fnv": fnv(ids)})
    return documents


def random_mixture(tokenizer):
    """Long pseudo-random texts over many scripts, kept as a seed by their text: the test reads it from the file."""
    rng = random.Random(11)
    ranges = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x5D0, 0x6FF), (0x900, 0x97F), (0xE00, 0xE5B),
              (0x1100, 0x11FF), (0x2000, 0x206F), (0x3040, 0x30FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F)]
    cases = []
    for _ in range(60):
        low, high = rng.choice(ranges)
        text = "".join(chr(rng.randrange(*rng.choice([(low, high), (0x20, 0x7E), (9, 14)]))) for _ in range(30))
        cases.append({"text": text, "fnv": fnv(encode(tokenizer, text))})
    return cases


def train_small(root):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    text = (root / "data" / "heldout" / "heldout_docs.txt").read_text(errors="replace")[:120_000]
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken("<|begin|>", special=True), AddedToken("<|end|>", special=True),
                        AddedToken("<|pad|>", special=True, lstrip=True, rstrip=True)], show_progress=False))
    tokenizer.add_tokens([
        AddedToken("<left>", lstrip=True), AddedToken("<right>", rstrip=True), AddedToken("one", single_word=True),
        AddedToken("<tool>", normalized=False), AddedToken("</tool>", normalized=False), AddedToken("caf\u00e9tok")])
    return tokenizer


def variants(source):
    """The small vocabulary under other pre-tokenizers and normalizers."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}

    def split(pattern, behavior, invert=False):
        return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}

    def then(*steps):
        return {"type": "Sequence", "pretokenizers": [*steps, byte_level]}

    choices = [{"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}
               for prefix in (False, True) for regex in (False, True)]
    for behavior in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            choices.append(then(split({"Regex": r"[\s,]"}, behavior, invert)))
            choices.append(then(split({"String": "a"}, behavior, invert)))
    choices += [then({"type": "Digits", "individual_digits": one}) for one in (False, True)]
    choices += [then({"type": "Whitespace"}), then({"type": "WhitespaceSplit"})]
    for pattern in (LLAMA3, KIMI, BAILING, r"x*", r"\b", r"^.", r"$", r"[\w&&[^\d]]+", r"[a-c[x-z]]+", r"[^a[\d]]+", r"\h+",
                    r"\u0061|\p{Greek}+|\p{^L}+", r"(?m:.+)", r"[\s\S]"):
        choices.append(then(split({"Regex": pattern}, "Isolated")))
    texts = TEXTS[2:24] + TEXTS[26:]
    result = []
    for normalizer in (None, {"type": "Sequence", "normalizers": [{"type": "NFC"}]}):
        for pre_tokenizer in choices if normalizer is None else choices[-14:-11]:
            file = dict(source, pre_tokenizer=pre_tokenizer, normalizer=normalizer)
            tokenizer = Tokenizer.from_str(json.dumps(file))
            result.append({"pre_tokenizer": pre_tokenizer, "normalizer": normalizer,
                           "fnv": [fnv(encode(tokenizer, text)) for text in texts]})
    file = json.loads(json.dumps(source))
    file["model"]["ignore_merges"] = True
    ignoring = Tokenizer.from_str(json.dumps(file))
    return {"texts": texts, "variants": result, "ignore_merges": [fnv(encode(ignoring, text)) for text in texts]}


def write(name, value):
    (OUT / name).write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    root = Path(sys.argv[1])
    (OUT / "small").mkdir(parents=True, exist_ok=True)
    small = train_small(root)
    source = json.loads(small.to_str())
    write("small/tokenizer.json", source)
    write("small/tokenizer_config.json", {"add_bos_token": True, "bos_token": "<|begin|>", "eos_token": {"content": "<|end|>"}})
    golden = {"cases": text_cases(small), "decode": decode_cases(small, small.get_vocab_size(), 3),
              "marked": [{"text": text, "ids": encode(small, text)} for text in MARKED]}
    write("small_golden.json", golden)
    write("variants_golden.json", variants(source))
    for name, folder in (("deepseek-v3", "data/tokenizers/deepseek-v3"), ("qwen3", "data/tokenizers/qwen3"),
                         ("latte-tiny", "models/latte-tiny")):
        tokenizer = Tokenizer.from_file(str(root / folder / "tokenizer.json"))
        vocab = json.loads((root / folder / "tokenizer.json").read_text())
        names = [token["content"] for token in vocab["added_tokens"]]
        size = 1 + max([token["id"] for token in vocab["added_tokens"]] + list(vocab["model"]["vocab"].values()))
        marked = [f"{a}hi {b}\n{a}{a} x{b}" for a, b in zip(names[:6] + names[-6:], names[-6:] + names[:6])]
        write(f"{name}_golden.json", {
            "folder": folder, "vocab_size": size, "cases": text_cases(tokenizer), "mixture": random_mixture(tokenizer),
            "decode": decode_cases(tokenizer, size, 5), "held_out": held_out(tokenizer, root),
            "marked": [{"text": text, "ids": encode(tokenizer, text)} for text in marked]})


if __name__ == "__main__":
    main()
