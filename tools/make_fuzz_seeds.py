#!/usr/bin/env python3
"""Writes the seed files of fuzz/corpus: one small file per rule of each format. Of tokenizer it writes the files of BPE over
characters alone.

Usage: python3 tools/make_fuzz_seeds.py
"""

import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"


def safetensors(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def safetensors_seeds():
    u8 = tensor("U8", [2], 0, 2)
    yield "empty", b""
    yield "short", b"1234567"
    yield "length", safetensors(b"{}", length=2**64 - 1)
    yield "length_100mb", safetensors(b"{}", length=100_000_001)
    yield "no_tensors", safetensors({})
    yield "not_json", safetensors(b'{"a":')
    yield "bad_utf8", safetensors(b'{"\xff":1}')
    yield "list", safetensors([])
    yield "deep", safetensors(b"[" * 80)
    yield "repeated", safetensors(b'{"a":{},"a":{}}')
    yield "metadata", safetensors({"__metadata__": {"format": "pt"}, "a": u8}, b"ab")
    yield "metadata_list", safetensors({"__metadata__": []})
    yield "metadata_number", safetensors({"__metadata__": {"a": 1.5}})
    yield "entry", safetensors({"a": "b"})
    yield "entry_list", safetensors({"a": [1, -2, True, None]})
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I64": 8, "I32": 4, "I16": 2, "I8": 1,
             "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1}
    header, end = {}, 0
    for word, size in sizes.items():
        header[word] = tensor(word, [1, 2], end, end + 2 * size)
        end += 2 * size
    yield "dtypes", safetensors(header, bytes(end))
    yield "dtype_unknown", safetensors({"a": tensor("F4", [2], 0, 1)}, b"a")
    yield "dtype_missing", safetensors({"a": {"shape": [1], "data_offsets": [0, 1]}}, b"a")
    yield "shape_missing", safetensors({"a": {"dtype": "U8", "data_offsets": [0, 1]}}, b"a")
    yield "shape_negative", safetensors({"a": tensor("U8", [-1], 0, 1)}, b"a")
    yield "shape_huge", safetensors({"a": tensor("F32", [2**32, 2**32], 0, 0)})
    yield "shape_scalar", safetensors({"a": tensor("U8", [], 0, 1), "b": tensor("F32", [0, 3], 1, 1)}, b"a")
    yield "offsets_missing", safetensors({"a": {"dtype": "U8", "shape": [1]}}, b"a")
    yield "offsets_three", safetensors({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1, 2]}}, b"a")
    yield "offsets_reversed", safetensors({"a": tensor("U8", [1], 1, 0)}, b"a")
    yield "offsets_outside", safetensors({"a": tensor("U8", [4], 0, 4)}, b"a")
    yield "size", safetensors({"a": tensor("F32", [2], 0, 4)}, b"abcd")
    yield "overlap", safetensors({"a": u8, "b": tensor("U8", [2], 1, 3)}, b"abc")
    yield "hole", safetensors({"a": u8, "b": tensor("U8", [1], 3, 4)}, b"abcd")
    yield "trailing", safetensors({"a": u8}, b"abcd")
    yield "trailing_only", safetensors({}, b"abcd")


def config_seeds():
    yarn = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "beta_fast": 0.3, "beta_slow": 0.03, "mscale": 1.0,
            "mscale_all_dim": 1.0}
    small = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "torch_dtype": "float32", "hidden_size": 48,
             "intermediate_size": 80, "num_hidden_layers": 4, "num_attention_heads": 3, "qk_nope_head_dim": 24, "qk_rope_head_dim": 16,
             "v_head_dim": 20, "kv_lora_rank": 32, "q_lora_rank": 40, "vocab_size": 272, "n_routed_experts": 16, "num_experts_per_tok": 4,
             "moe_intermediate_size": 16, "n_shared_experts": 1, "routed_scaling_factor": 2.5, "first_k_dense_replace": 1, "n_group": 4,
             "topk_group": 2, "norm_topk_prob": True, "rms_norm_eps": 1e-6, "num_nextn_predict_layers": 1, "max_position_embeddings": 64,
             "rope_theta": 10000, "rope_scaling": yarn, "bos_token_id": 0, "eos_token_id": 1}
    yield "small", small
    yield "defaults", {"model_type": "kimi_k2"}
    yield "by_architecture", {"model_type": "new", "architectures": ["DeepseekV3ForCausalLM"]}
    yield "nulls", dict.fromkeys(small) | {"model_type": "deepseek_v3"}
    yield "rope_parameters", small | {"rope_scaling": None, "rope_parameters": {"rope_theta": 5e4, "rope_type": "deepseek_yarn", "factor": None,
                                                                               "truncate": False, "attention_factor": 1.25}}
    yield "text_config", {"model_type": "outer", "text_config": small}
    changes = {
        "family": {"model_type": "llama", "architectures": []}, "type_number": {"model_type": 3}, "architectures": {"architectures": "x"},
        "architectures_number": {"architectures": [1]}, "fp8": {"quantization_config": {"quant_method": "fp8"}},
        "mlx": {"quantization": {"bits": 4}}, "quantization_word": {"quantization": "x"}, "act": {"hidden_act": "gelu"},
        "bias": {"attention_bias": True}, "dtype": {"torch_dtype": "int8"}, "half": {"torch_dtype": "torch.float16"},
        "double": {"torch_dtype": None, "dtype": "float64"}, "zero": {"vocab_size": 0}, "negative": {"hidden_size": -1},
        "fraction": {"num_hidden_layers": 4.5}, "big": {"num_hidden_layers": 4097}, "overflow": {"num_attention_heads": 2**64},
        "odd": {"qk_rope_head_dim": 15}, "wide": {"num_attention_heads": 65536, "qk_nope_head_dim": 1 << 20}, "groups": {"n_group": 3},
        "thin_groups": {"n_group": 16}, "top_groups": {"topk_group": 5}, "top_k": {"num_experts_per_tok": 9}, "dense": {"n_routed_experts": None},
        "softmax": {"scoring_func": "softmax"}, "scoring": {"scoring_func": "x"}, "topk_method": {"topk_method": "greedy"},
        "types": {"mlp_layer_types": ["dense", "sparse", "dense", "sparse", "dense"]}, "types_word": {"mlp_layer_types": ["x"] * 4},
        "types_short": {"mlp_layer_types": []}, "types_dense": {"n_routed_experts": None, "mlp_layer_types": ["sparse"] * 4},
        "eos_list": {"eos_token_id": [1, 2]}, "eos_bad": {"eos_token_id": [1, "x"]}, "eos_word": {"eos_token_id": "x"}, "bool": {"tie_word_embeddings": "x"},
        "theta": {"rope_theta": 1, "rope_scaling": None}, "theta_yarn": {"rope_theta": 0.5}, "rope_list": {"rope_scaling": []},
        "rope_type": {"rope_scaling": yarn | {"type": "longrope"}}, "rope_no_type": {"rope_scaling": {"factor": 4}},
        "rope_factor": {"rope_scaling": yarn | {"factor": 0.5}}, "rope_negative": {"rope_scaling": yarn | {"mscale": -1}},
        "rope_meet": {"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 6}},
        "rope_one": {"rope_scaling": yarn | {"factor": 1, "mscale_all_dim": 0}},
        "generation": {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95}, "temperature": {"temperature": -1, "top_p": 2},
    }
    for name, change in changes.items():
        yield name, small | change


def section(name, payload=b"", length=None):
    """A section of a prompt cache file. Its checksum is left at 0: the fuzz target makes those of its second pass hold."""
    return name + struct.pack("<IQ", 0, len(payload) if length is None else length) + payload + bytes(16)


def prompt_cache(header, tokens=4, rows=3, tail=b"", version=1, mtp=None, draft=None, end=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file = b"latte-pc" + struct.pack("<II", version, 0) + section(b"HEAD", text) + section(b"NOTE", b"note")
    file += section(b"TOKN", bytes(4 * tokens)) + section(b"ROWS", bytes(32 * rows))
    if mtp is not None:
        file += section(b"MTPR", bytes(16 * mtp)) + section(b"MTPQ", bytes(24))
    if draft is not None:
        file += section(b"DRFT", bytes(4 * draft))
    return file + (section(b"END ") if end is None else end) + tail


def prompt_cache_seeds():
    def shape(layers, width, dtype, rows):
        return {"layers": layers, "width": width, "dtype": dtype, "rows": rows}

    model = {"family": "deepseek_v3", "directory": "a", "config": "c", "weights": "w"}
    plain = {"row_format": 1, "model": model, "computed": "cpu avx2, f32, fast, auto", "rows": shape(2, 4, "F32", 3), "tokens": 4,
             "generated_from": 2, "drafter": "none"}
    mtp = plain | {"drafter": "mtp", "mtp": {"rows": shape(1, 4, "F32", 2), "first_row": 0, "kept_first": 2, "kept_rows": 1,
                                             "kept_row_bytes": 24}}
    draft = plain | {"drafter": "draft", "draft": {"model": model, "rows": shape(1, 2, "BF16", 2), "first_token": 1}}
    yield "empty", b""
    yield "magic", b"latte-pc"
    yield "foreign", b"Once upon a time"
    yield "version", prompt_cache(plain, version=2)
    yield "plain", prompt_cache(plain)
    yield "mtp", prompt_cache(mtp, mtp=2)
    yield "draft", prompt_cache(draft, draft=2)
    yield "both", prompt_cache(mtp | {"draft": draft["draft"]}, mtp=2, draft=2)
    yield "empty_session", prompt_cache(plain | {"rows": shape(2, 4, "F32", 0), "tokens": 0, "generated_from": 0}, tokens=0, rows=0)
    yield "cut", prompt_cache(plain)[:300]
    yield "grown", prompt_cache(plain, tail=b"more")
    yield "end_holds", prompt_cache(plain, end=section(b"END ", b"x"))
    yield "length", b"latte-pc" + struct.pack("<II", 1, 0) + section(b"HEAD", b"{}", length=2**64 - 1)
    yield "order", b"latte-pc" + struct.pack("<II", 1, 0) + section(b"NOTE", b"{}")
    yield "no_json", prompt_cache(b"{")
    yield "list", prompt_cache(b"[]")
    yield "tokens", prompt_cache(plain | {"tokens": 7})
    yield "many_tokens", prompt_cache(plain | {"tokens": 7}, tokens=7)
    yield "generated", prompt_cache(plain | {"generated_from": 9})
    yield "dtype", prompt_cache(plain | {"rows": shape(2, 4, "Q3", 3)})
    yield "f64", prompt_cache(plain | {"rows": shape(1, 4, "F64", 3)})
    yield "f16", prompt_cache(plain | {"rows": shape(4, 4, "F16", 3)})
    yield "huge", prompt_cache(plain | {"rows": shape(1 << 16, 1 << 20, "F64", 2**31 - 1)})
    yield "place", prompt_cache(mtp | {"mtp": mtp["mtp"] | {"first_row": 2}}, mtp=2)
    yield "queue", prompt_cache(mtp | {"mtp": mtp["mtp"] | {"kept_rows": 2}}, mtp=2)
    yield "layers", prompt_cache(mtp | {"mtp": mtp["mtp"] | {"rows": shape(2, 2, "F32", 2)}}, mtp=2)
    yield "draft_place", prompt_cache(draft | {"draft": draft["draft"] | {"first_token": 2}}, draft=2)
    yield "missing", prompt_cache({"row_format": 1})
    yield "types", prompt_cache(plain | {"model": 1, "rows": [], "tokens": "4", "mtp": 3, "draft": "x"})


def tiktoken_seeds():
    """A byte FF cuts the file from its tokenizer_config.json; lines for the 256 bytes come before it besides."""
    config = json.dumps({"bos_token": "<s>", "add_bos_token": True, "added_tokens_decoder": {
        "300": {"content": "<s>", "special": True}, "303": {"content": "</s>", "special": True, "lstrip": True},
        "304": {"content": "Hi", "single_word": True}}}).encode()
    yield "words", b"SGk= 256\nIGE= 257\r\n\nw6k= 258\n5Lg= 259\n\xff" + config
    yield "no_config", b"ICA= 256\n"
    yield "empty", b""
    for name, line in {"no_rank": b"SGk=", "padding": b"SG=k 256", "cut": b"SGk 256", "bits": b"SGl= 256", "negative": b"SGk= -1", "huge": b"SGk= 4000000000",
                       "digits": b"SGk= 99999999999999999999", "behind": b"SGk= 256 x", "twice": b"YQ== 256", "same_rank": b"SGk= 65"}.items():
        yield "line_" + name, line + b"\n"
    for name, text in {"list": "[]", "added_list": '{"added_tokens_decoder": []}', "added_word": '{"added_tokens_decoder": {"x": {}}}',
                       "added_number": '{"added_tokens_decoder": {"300": 1}}', "added_id": '{"added_tokens_decoder": {"99999999": {"content": "a"}}}',
                       "added_taken": '{"added_tokens_decoder": {"3": {"content": "<a>"}}}', "bos": '{"bos_token": "<nope>"}'}.items():
        yield "config_" + name, b"\xff" + text.encode()


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def piece(word, score=0.0, kind=1):
    return text(1, text(1, word.encode()) + varint(2 << 3 | 5) + struct.pack("<f", score) + number(3, kind))


def charsmap():
    """A trie of one walk: the letter a becomes b."""
    units = [1 << 31] * 512  # no byte leads to such a unit
    units[0] = 256 << 10  # the root's children begin at 256
    units[256 ^ ord("a")] = 0x41 << 10 | 1 << 8 | ord("a")
    units[256 ^ ord("a") ^ 0x41] = 1 << 31  # the text at 0
    trie = b"".join(struct.pack("<I", unit) for unit in units)
    return struct.pack("<I", len(trie)) + trie + b"b\0"


def sentencepiece_seeds():
    """A byte FF cuts the tokenizer_config.json from the model."""
    head = piece("<unk>", kind=2) + piece("<s>", kind=3) + piece("</s>", kind=3)
    words = head + b"".join(piece(word, -i) for i, word in enumerate(["▁H", "i", "▁", "a", "▁Hi", "H", "1", "2", "c", "f", "<", "s", ">", "b"]))
    symbols = words + piece("<0x41>", kind=4) + piece("▁▁", kind=4) + piece("x!", kind=5)
    fallback = words + b"".join(piece(f"<0x{byte:02X}>", kind=6) for byte in range(256))
    bpe, unigram, bytes_on = text(2, number(3, 2)), text(2, number(3, 1)), text(2, number(35, 1))
    plain = text(3, text(1, b"identity") + number(4, 0))
    mapped = text(3, text(2, charsmap()))
    config = json.dumps({"bos_token": "<s>", "legacy": False, "added_tokens_decoder": {"400": {"content": "[EOS]", "special": True},
                                                                                       "7": {"content": "▁Hi", "special": True}}}).encode()
    models = {"bpe": words + bpe + plain, "unigram": words + unigram + plain, "trims": words + unigram, "symbols": symbols + bpe + plain,
              "fallback": fallback + bpe + bytes_on + plain, "mapped": words + unigram + mapped, "prefix": words + bpe + text(3, number(3, 0) + number(5, 0)),
              "no_unknown": piece("a") + bpe, "two_unknown": head + head, "empty": b"", "suffix": words + text(2, number(24, 1)),
              "word": words + text(2, number(3, 3)), "byte": head + piece("x", kind=6), "type": head + piece("x", kind=9), "nan": head + piece("x", float("nan")),
              "no_text": head + piece(""), "cut": words[:-3], "group": b"\x0b", "fixed": b"\x09" + bytes(8), "bytes_missing": words + bytes_on + bpe,
              "map_short": words + text(3, text(2, b"\xff\xff\xff\x7f")), "map_long": words + text(3, text(2, b"\x04\0\0\0\0\xfe\xff\xffab"))}
    for name, model in models.items():
        yield name, b"\xff" + model
    for name in ("bpe", "unigram", "symbols", "fallback", "trims"):
        yield name + "_config", config + b"\xff" + models[name]
    yield "config_list", b"[]\xff" + models["bpe"]
    yield "config_legacy", b'{"legacy": 1}\xff' + models["bpe"]


def jinja_seeds():
    """Templates of the golden file that render or end in an error; a byte FF cuts the names from a template."""
    snippets = json.loads((CORPUS.parent.parent / "tests" / "data" / "template" / "snippets.json").read_text())["snippets"]
    for i, snippet in enumerate(snippets):
        yield f"snippet{i:03}", snippet["source"].encode()
    yield "names", "{% for k, v in x.items() %}{{ k }}={{ v|tojson }}{% endfor %}\xff".encode("latin-1") + b'{"x": {"a": [1, {"b": null}]}}'


def tokenizer_seeds():
    """A byte FF cuts a tokenizer.json from its tokenizer_config.json."""
    words = ["<unk>", "<s>", "</s>", "▁", "H", "i", "a", "▁H", "▁Hi", "1", "2", "x", "!"]
    vocab = {word: id for id, word in enumerate(words)}
    bytes_on = vocab | {f"<0x{byte:02X}>": len(words) + byte for byte in range(256)}
    space = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
    steps = [space, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": bytes_on, "merges": ["▁ H", ["▁H", "i"]]}
    prepend, replace = {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    llama = {"added_tokens": [{"id": id, "content": words[id], "special": True, "normalized": False} for id in range(3)],
             "normalizer": {"type": "Sequence", "normalizers": [prepend, replace]}, "pre_tokenizer": None,
             "decoder": {"type": "Sequence", "decoders": steps}, "model": model}
    unknown = {"model": model | {"byte_fallback": False, "vocab": vocab}, "decoder": {"type": "Sequence", "decoders": [space, {"type": "Fuse"}]}}

    def spaces(**options):
        return {"normalizer": None, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁"} | options}

    def decoder(*decoders):
        return {"decoder": {"type": "Sequence", "decoders": list(decoders)}}

    changes = {
        "plain": {}, "unknown": unknown, "split_unknown": unknown | {"model": unknown["model"] | {"fuse_unk": False}}, "whole": {"model": model | {"ignore_merges": True}},
        "always": spaces(prepend_scheme="always"), "first": spaces(prepend_scheme="first", split=False), "never": spaces(add_prefix_space=False),
        "regex": {"normalizer": {"type": "Replace", "pattern": {"Regex": " +"}, "content": "▁"}}, "normalized": {
            "added_tokens": [{"id": 2, "content": "</s>"}]},
        "fault_scheme": spaces(prepend_scheme="x"), "fault_space": spaces(replacement="_"), "fault_space_type": spaces(replacement=1), "fault_split": spaces(split=1),
        "fault_add": spaces(add_prefix_space="x"), "fault_scheme_type": spaces(prepend_scheme=3),
        "fault_prepend": {"normalizer": {"type": "Prepend"}}, "fault_content": {"normalizer": {"type": "Replace", "pattern": {"String": " "}}},
        "fault_replace": {"normalizer": {"type": "Replace", "content": "", "pattern": {"Regex": "("}}}, "fault_normal": {"normalizer": {"type": "Sequence"}},
        "fault_merges": {"model": model | {"merges": None}}, "fault_merges_text": {"model": model | {"merges": "a b"}},
        "fault_order": decoder(*steps[::-1]), "fault_fuse": decoder(space), "fault_no_space": decoder(*steps[1:]), "fault_step": decoder(space, 3),
        "fault_strip": decoder(*steps[:3], steps[3] | {"start": 99}), "fault_other": decoder(space | {"content": "x"}), "fault_decoders": {"decoder": {"type": "Sequence"}},
        "fault_fallback_off": {"model": model | {"byte_fallback": False}}, "fault_byte_level": {"pre_tokenizer": {"type": "ByteLevel"}},
    }
    config = json.dumps({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True}).encode()
    for name, change in changes.items():
        yield "llama_" + name, json.dumps(llama | change, ensure_ascii=False).encode() + b"\xff" + config


def main():
    for folder, seeds in {"prompt_cache": prompt_cache_seeds, "tokenizer": tokenizer_seeds, "tiktoken": tiktoken_seeds, "sentencepiece": sentencepiece_seeds, "jinja": jinja_seeds}.items():
        (CORPUS / folder).mkdir(exist_ok=True)
        for name, data in seeds():
            (CORPUS / folder / name).write_bytes(data)
    for name, data in safetensors_seeds():
        (CORPUS / "safetensors" / name).write_bytes(data)
    for name, value in config_seeds():
        (CORPUS / "config" / name).write_text(json.dumps(value))
    for name, text in {"list": "[]", "empty": "", "number": "1e999", "deep": "[" * 80, "repeated": '{"a":1,"a":2}', "utf8": '"\\ud800"'}.items():
        (CORPUS / "config" / ("text_" + name)).write_text(text)
    (CORPUS / "config" / "text_nested").write_text('{"text_config":{"text_config":{}}}')


main()
