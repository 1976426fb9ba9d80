#!/usr/bin/env python3
"""Writes the tests/data/tokenizer folders kimi, sentencepiece, unigram, llama and the pre-tokenizers of families_golden.json.

    pip install tokenizers tiktoken sentencepiece
    tools/make_text_model_goldens.py DATA_ROOT

Small vocabularies are trained on data/heldout of DATA_ROOT (the folder that LATTE_TEST_DATA names in tests); the ids beside
them are those of the packages tiktoken, sentencepiece and tokenizers.
"""

import base64
import json
import random
import re
import sys
from pathlib import Path

import sentencepiece as spm
import tiktoken
from make_tokenizer_goldens import BAILING, BYTES, KIMI, LLAMA3, OUT, SLICE_BYTES, TEXTS, fnv, random_bytes
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SCRIPTS = [(0x20, 0x7E), (0xA1, 0x17F), (0x370, 0x3FF), (0x400, 0x45F), (0x5D0, 0x5EA), (0x620, 0x64A), (0x904, 0x939), (0xE01, 0xE30),
           (0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3), (0x1F300, 0x1F64F), (9, 14)]
YOUTU_FIRST = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
CASED = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
YOUTU = (r"[^\r\n\p{L}\p{N}]?%s*%s+%s|[^\r\n\p{L}\p{N}]?%s+%s*%s" % (CASED * 2) +
         r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+")
DEEPSEEK_LLM_LETTERS = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ\u1f5f-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fecῲ-ῴῶ-ῼ"
    "ℂℇℊ-ℓℕℙ-ℝℤ\u2126\u2128\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⲲⲳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
DEEPSEEK_V3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"""
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def write(name, value):
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def mixtures(seed, count=60):
    rng = random.Random(seed)
    return ["".join(chr(rng.randrange(*rng.choice([rng.choice(SCRIPTS), SCRIPTS[0], (0x20, 0x21)]))) for _ in range(40)) for _ in range(count)]


def text_cases(encode):
    cases = [{"text": text, "ids": encode(text)} for text in TEXTS]
    cases += [{"hex": raw.hex(), "ids": encode(raw.decode("utf-8", errors="replace"))} for raw in BYTES + random_bytes(7, 40)]
    return cases


def mixture_cases(encode):
    return [{"text": text, "fnv": fnv(encode(text))} for text in mixtures(13)]


def held_out(encode, root):
    documents = []
    for path in sorted((root / "data" / "heldout").glob("*.txt")):
        raw = path.read_bytes()
        for begin in range(0, len(raw), SLICE_BYTES):
            ids = encode(raw[begin:begin + SLICE_BYTES].decode("utf-8", errors="replace"))
            documents.append({"file": path.name, "begin": begin, "bytes": SLICE_BYTES, "count": len(ids), "fnv": fnv(ids)})
    return documents


def corpus(root):
    parts = [(root / "data" / "heldout" / f"heldout_{kind}.txt").read_text(errors="replace")[:60_000] for kind in ("code", "docs", "prose")]
    return parts + TEXTS * 3 + mixtures(5, 200)


# -- tiktoken --------------------------------------------------------------------------------------------------------------

KIMI_TOKENS = ["[BOS]", "[EOS]", "<|im_end|>", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>", "[PAD]"]


def kimi(root):
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(KIMI), "isolated"),
                                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trained.decoder = decoders.ByteLevel()
    trained.train_from_iterator(corpus(root), trainers.BpeTrainer(vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                                  show_progress=False))
    byte_of = byte_of_char()
    words = sorted(trained.get_vocab().items(), key=lambda item: item[1])
    ranks = {bytes(byte_of[c] for c in word): rank for rank, (word, _) in enumerate(words)}
    folder = OUT / "kimi"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiktoken.model").write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    # Ids leave a gap, as the released files do.
    specials = {token: len(ranks) + 2 * i for i, token in enumerate(KIMI_TOKENS)}
    write("kimi/tokenizer_config.json", {
        "tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]", "eos_token": "[EOS]",
        "added_tokens_decoder": {str(id): {"content": token, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
                                           "special": token[0] == "[" or "end" in token} for token, id in specials.items()}})
    encoding = tiktoken.Encoding("kimi-small", pat_str=KIMI, mergeable_ranks=ranks, special_tokens=specials)

    def encode(text):
        return encoding.encode(text, disallowed_special=())

    marked = [f"{a}hi {b}\n{a}{a} x{b}" for a, b in zip(KIMI_TOKENS, KIMI_TOKENS[1:])] + ["[BO[BOS]S]", "<|im_<|im_end|>"]
    rng = random.Random(3)
    decode = [[rng.choice(list(ranks.values()) + list(specials.values())) for _ in range(rng.randrange(1, 12))] for _ in range(40)]
    write("kimi_golden.json", {
        "cases": text_cases(encode), "mixture": mixture_cases(encode), "held_out": held_out(encode, root),
        "marked": [{"text": text, "ids": encoding.encode(text, allowed_special="all")} for text in marked],
        "decode": [{"ids": ids, "text": encoding.decode_bytes(ids).decode("utf-8", errors="replace")} for ids in decode]})


def byte_of_char():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    for byte in range(256):
        if byte not in printable:
            table[chr(256 + len(table) - len(printable))] = byte
    return table


# -- SentencePiece -----------------------------------------------------------------------------------------------------------

ADDED = {"<|im_start|>": dict(special=True), "<|im_end|>": dict(special=True), "<tool>": dict(special=False),
         "<left>": dict(special=False, lstrip=True), "<right>": dict(special=False, rstrip=True)}


def decoded(processor, ids, specials):
    """The text of ids: special tokens written out, as transformers does, the rest by the library."""
    runs, current = [], []
    for id in ids:
        if id in specials:
            runs += [current, specials[id]]
            current = []
        else:
            current.append(id)
    runs.append(current)
    first = True
    text = ""
    for run in runs:
        if isinstance(run, str):
            text += run
            continue
        # The library drops the space at the start of a text alone; a piece before it keeps the space.
        text += processor.decode(run) if first and not text else processor.decode([PAD_PIECE(processor), *run])[1:]
        first = first and not text
    return text


def PAD_PIECE(processor):
    return processor.piece_to_id("a")


def encode_with_tokens(processor, text, tokens):
    """Parts between added tokens, each encoded on its own, as the slow LlamaTokenizer does in its legacy form."""
    pattern = "|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True))
    ids = []
    parts = re.split(f"({pattern})", text)
    for i, part in enumerate(parts):
        if part in tokens:
            ids.append(tokens[part])
            continue
        if i > 0 and parts[i - 1] == "<right>":
            part = part.lstrip()
        if i + 1 < len(parts) and parts[i + 1] == "<left>":
            part = part.rstrip()
        ids += processor.encode(part)
    return ids


def train_sentencepiece(root, folder, **options):
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    lines = [line for text in corpus(root) for line in text.split("\n") if line.strip()]
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=str(OUT / folder / "tokenizer"), minloglevel=2,
                                   max_sentence_length=20000, num_threads=1, **options)
    (OUT / folder / "tokenizer.vocab").unlink()
    return spm.SentencePieceProcessor(model_file=str(OUT / folder / "tokenizer.model"))


def sentencepiece_bpe(root):
    processor = train_sentencepiece(root, "sentencepiece", vocab_size=1200, model_type="bpe", byte_fallback=True, character_coverage=0.98,
                                    normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
                                    allow_whitespace_only_pieces=True, user_defined_symbols=["<user>", "</user>", "▁▁", "\n\n"])
    size = processor.get_piece_size()
    added = {token: size + i for i, token in enumerate(ADDED)}
    write("sentencepiece/tokenizer_config.json", {
        "tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_bos_token": True,
        "added_tokens_decoder": {str(id): {"content": token, "lstrip": False, "rstrip": False, "single_word": False, "normalized": False,
                                           **ADDED.get(token, dict(special=True))}
                                 for token, id in {"<unk>": 0, "<s>": 1, "</s>": 2, **added}.items()}})
    tokens = {**added, "<s>": 1, "</s>": 2, "<unk>": 0}
    marked = ["<s>hello<|im_end|> there", "a <left> b<right>  c", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<tool>x</tool>",
              "<user>in</user> out", "<user>", "x<user> y", "</s></s> z", "<0x41> <s", "▁a ▁b", "    four\n\n\nlines"]
    rng = random.Random(3)
    decode = [[rng.randrange(size) for _ in range(rng.randrange(1, 12))] for _ in range(30)]
    decode += [[*processor.encode(text)] for text in TEXTS[3:] if text.strip()]
    bytes_first = processor.piece_to_id("<0x00>")
    decode += [[bytes_first + byte for byte in raw] for raw in BYTES + random_bytes(5, 20)]
    decode += [[1, *processor.encode(" two spaces")], processor.encode("  x")]
    specials = {0: "<unk>", 1: "<s>", 2: "</s>"}
    write("sentencepiece_golden.json", {
        # the symbols of the user match in text for the library, here in marked texts alone
        "cases": [case for case in text_cases(processor.encode) if "user>" not in case.get("text", "")],
        "mixture": mixture_cases(processor.encode), "held_out": held_out(processor.encode, root),
        "marked": [{"text": text, "ids": encode_with_tokens(processor, text, tokens)} for text in marked],
        "decode": [{"ids": ids, "text": decoded(processor, ids, specials)} for ids in decode]})
    return processor, added


def sentencepiece_unigram(root):
    rules = OUT / "unigram" / "rules.tsv"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text("".join(f"{a:X}\t{b}\n" for a, b in [(0xFF21 + i, f"{0x41 + i:X}") for i in range(26)] +
                             [(0xA0, "20"), (0x3000, "20"), (0xFB01, "66 69"), (0x2026, "2E 2E 2E"), (0x200B, ""), (9, "20")]))
    processor = train_sentencepiece(root, "unigram", vocab_size=600, model_type="unigram", normalization_rule_tsv=str(rules),
                                    character_coverage=0.98)
    rules.unlink()
    write("unigram_golden.json", {
        # Versions of the library choose differently among segmentations of one score, which long runs have.
        "cases": [case for case in text_cases(processor.encode) if not re.search(r"(.)\1{19}", case.get("text", ""))],
        "mixture": mixture_cases(processor.encode),
        "marked": [{"text": text, "ids": processor.encode(text)} for text in ("a < s > b", "<s", "x </ s>")],
        "decode": [{"ids": ids, "text": processor.decode(ids)} for ids in (processor.encode(text) for text in TEXTS[3:16]) if 0 not in ids]})


# -- tokenizer.json of SentencePiece vocabularies ----------------------------------------------------------------------------

def llama_json(processor, added):
    """The file that a conversion of the model has: merges are all pairs of pieces that make a piece, best score first."""
    pieces = [processor.id_to_piece(id) for id in range(processor.get_piece_size())]
    vocab = {piece: id for id, piece in enumerate(pieces)}
    merges = []
    for piece, id in vocab.items():
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece)) if piece[:cut] in vocab and piece[cut:] in vocab]
        pairs.sort(key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
        merges += [(processor.get_score(id), *pair) for pair in pairs]
    merges.sort(key=lambda merge: merge[0], reverse=True)
    tokens = [(0, "<unk>", True), (1, "<s>", True), (2, "</s>", True)] + [(id, token, ADDED[token]["special"]) for token, id in added.items()]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": id, "content": token, "single_word": False, "lstrip": ADDED.get(token, {}).get("lstrip", False),
                          "rstrip": ADDED.get(token, {}).get("rstrip", False), "normalized": False, "special": special}
                         for id, token, special in tokens],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                           {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                                    {"Sequence": {"id": "A", "type_id": 0}}],
                           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                                     {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": vocab, "merges": [f"{a} {b}" for _, a, b in merges]}}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def llama(root, processor, added):
    source = llama_json(processor, added)
    write("llama/tokenizer.json", source)
    write("llama/tokenizer_config.json", {"bos_token": "<s>", "eos_token": "</s>"})
    tokenizer = Tokenizer.from_str(json.dumps(source))

    def encode(text, tokenizer=tokenizer):
        return tokenizer.encode(text, add_special_tokens=False).ids

    marked = ["<s>hello<|im_end|> there", "a <left> b<right>  c", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<tool>x</tool>",
              "</s></s> z", "▁a ▁b", " <s> a", "x<s>"]
    rng = random.Random(3)
    size = processor.get_piece_size() + len(added)
    bytes_first = processor.piece_to_id("<0x00>")
    decode = [[id for id in (rng.randrange(size) for _ in range(rng.randrange(1, 12))) if not bytes_first <= id < bytes_first + 128 + 128]
              for _ in range(40)]
    decode += [encode(text) for text in TEXTS[2:]] + [encode(text) for text in marked]
    variants = []
    changes = [{"normalizer": None, "pre_tokenizer": metaspace(scheme, split)} for scheme in ("always", "first", "never") for split in (False, True)]
    changes += [{"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}, {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}]
    changes += [{"model": {**source["model"], "byte_fallback": False, "fuse_unk": fuse}, "decoder": {
        "type": "Sequence", "decoders": [source["decoder"]["decoders"][0], {"type": "Fuse"}]}} for fuse in (False, True)]
    texts = TEXTS[2:24] + TEXTS[26:]
    for change in changes:
        other = Tokenizer.from_str(json.dumps({**source, **change}))
        known = {"model": {key: change["model"][key] for key in ("byte_fallback", "fuse_unk")}} if "model" in change else {}
        variants.append({"change": {**change, **known}, "fnv": [fnv(encode(text, other)) for text in texts],
                         "marked": [fnv(encode(text, other)) for text in marked],
                         "decoded": [other.decode(encode(text, other), skip_special_tokens=False) for text in marked]})
    write("llama_golden.json", {
        "cases": text_cases(encode), "mixture": mixture_cases(encode), "held_out": held_out(encode, root), "texts": texts, "variants": variants,
        "marked": [{"text": text, "ids": encode(text)} for text in marked],
        "decode": [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=False)} for ids in decode]})


# -- pre-tokenizers of the families ----------------------------------------------------------------------------------------------

def families(source):
    """The small byte-level vocabulary under each family's own pre-tokenizer, normalizer and options."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}

    def split(pattern):
        return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}

    def then(*steps):
        return {"type": "Sequence", "pretokenizers": [*steps, byte_level]}

    digits = {"type": "Digits", "individual_digits": True}
    deepseek_v2 = [split(r"[\r\n]"), split(DEEPSEEK_LLM_LETTERS), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), split(r"\s+$"),
                   split(r"[一-龥ࠀ-一가-퟿]+")]
    nfc = {"type": "NFC"}
    choices = {
        "deepseek_v2": (then(*deepseek_v2, digits), None, False), "deepseek_v2_runs": (then(*deepseek_v2, split(r"\p{N}+")), None, False),
        "deepseek_v3": (then(split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(DEEPSEEK_V3)), None, False),
        "kimi": (then(split(KIMI)), None, False), "glm4": (then(split(LLAMA3)), None, False), "glm4_ignore_merges": (then(split(LLAMA3)), None, True),
        "youtu": (then(split(YOUTU_FIRST), split(YOUTU)), None, True), "bailing": (then(split(BAILING)), None, False),
        "qwen2": (then(split(QWEN)), nfc, False), "qwen3.5": (then(split(QWEN35)), nfc, False),
    }
    texts = TEXTS + mixtures(17, 120)
    result = []
    for name, (pre_tokenizer, normalizer, ignore_merges) in choices.items():
        file = json.loads(json.dumps(dict(source, pre_tokenizer=pre_tokenizer, normalizer=normalizer)))
        file["model"]["ignore_merges"] = ignore_merges
        tokenizer = Tokenizer.from_str(json.dumps(file))
        result.append({"name": name, "pre_tokenizer": pre_tokenizer, "normalizer": normalizer, "ignore_merges": ignore_merges,
                       "fnv": [fnv(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]})
    write("families_golden.json", {"texts": texts, "families": result})


def main():
    root = Path(sys.argv[1])
    kimi(root)
    processor, added = sentencepiece_bpe(root)
    sentencepiece_unigram(root)
    llama(root, processor, added)
    families(json.loads((OUT / "small" / "tokenizer.json").read_text()))


if __name__ == "__main__":
    main()
