"""Random weights of a real geometry as GGUF, for timing alone: what `latte bench --config --random-weights` makes, for a peer.

Matrices of attention and feed-forward layers are Q4_0, the output head, the embedding and what expands the latent Q8_0,
which is 4.5 and 8.5 bits a weight, as latte's q4 and q8 are. Needs numpy and gguf from PyPI.
"""

import json

import gguf
import numpy as np

BLOCK = 32
POOL = 1 << 24  # bytes
BYTES = {gguf.GGMLQuantizationType.Q4_0: 18, gguf.GGMLQuantizationType.Q8_0: 34}
# Scales that keep activations near 1 through random layers. The embedding's rows are as large as what a layer adds: rows
# stay as different as their tokens, and choose experts of their own.
SCALE = {gguf.GGMLQuantizationType.Q4_0: 0.006, gguf.GGMLQuantizationType.Q8_0: 0.0005}
EMBEDDING_SCALE = 0.0137


class RandomModel:
    """Writes one architecture, deepseek2: latent attention and experts."""

    def __init__(self, config_path, layers, seed=1):
        config = json.load(open(config_path))
        self.config = config.get("text_config", config)
        self.layers = layers or self.config["num_hidden_layers"]
        self.random = np.random.default_rng(seed)
        self.pools = {}

    def write(self, path):
        self.writer = gguf.GGUFWriter(path, "deepseek2")
        self.write_settings()
        self.write_tensors()
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()

    def write_settings(self):
        c, key = self.config, "deepseek2."
        r, p, n, v = c["kv_lora_rank"], c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["v_head_dim"]
        integers = {
            "vocab_size": c["vocab_size"], "block_count": self.layers, "context_length": c["max_position_embeddings"],
            "embedding_length": c["hidden_size"], "feed_forward_length": c["intermediate_size"],
            "leading_dense_block_count": self.dense_layers(), "attention.head_count": c["num_attention_heads"],
            "attention.head_count_kv": 1, "attention.kv_lora_rank": r, "attention.key_length": r + p,
            "attention.value_length": r, "attention.key_length_mla": n + p, "attention.value_length_mla": v,
            "rope.dimension_count": p, "expert_count": c["n_routed_experts"], "expert_used_count": c["num_experts_per_tok"],
            "expert_shared_count": c.get("n_shared_experts") or 0, "expert_feed_forward_length": c["moe_intermediate_size"],
            "expert_gating_func": 2 if self.sigmoid() else 1,
        }
        if c.get("q_lora_rank"):
            integers["attention.q_lora_rank"] = c["q_lora_rank"]
        for name, value in integers.items():
            self.writer.add_uint32(key + name, value)
        self.writer.add_float32(key + "attention.layer_norm_rms_epsilon", c["rms_norm_eps"])
        self.writer.add_float32(key + "expert_weights_scale", c.get("routed_scaling_factor") or 1.0)
        self.writer.add_float32(key + "rope.freq_base", c.get("rope_theta") or 10000.0)
        self.writer.add_bool(key + "expert_weights_norm", bool(c.get("norm_topk_prob")))
        self.writer.add_string("tokenizer.ggml.model", "no_vocab")

    def dense_layers(self):
        return min(self.config.get("first_k_dense_replace") or 0, self.layers)

    def sigmoid(self):
        return self.config.get("scoring_func") == "sigmoid"

    def blocks(self, name, shape, kind, scale=None):
        """Random codes under one scale, the same again after POOL of them; `shape` ends with the inputs of a row. Codes
        are zero in the mean: else every row of every layer would go the same way."""
        count = int(np.prod(shape)) // BLOCK
        scale = scale or SCALE[kind]
        if (kind, scale) not in self.pools:
            blocks = POOL // BYTES[kind]
            pool = np.empty((blocks, BYTES[kind]), np.uint8)
            pool[:, :2] = np.frombuffer(np.float16(scale).tobytes(), np.uint8)
            if kind == gguf.GGMLQuantizationType.Q4_0:
                low, high = self.random.integers(1, 16, (2, blocks, BYTES[kind] - 2), dtype=np.uint8)
                pool[:, 2:] = low | high << 4
            else:
                pool[:, 2:] = self.random.integers(-127, 128, (blocks, BLOCK), dtype=np.int8).view(np.uint8)
            self.pools[kind, scale] = pool
        data = np.resize(self.pools[kind, scale], (count, BYTES[kind]))
        self.writer.add_tensor(name, data.reshape(*shape[:-1], shape[-1] // BLOCK * BYTES[kind]), raw_dtype=kind)

    def q4(self, name, *shape):
        self.blocks(name, shape, gguf.GGMLQuantizationType.Q4_0)

    def q8(self, name, *shape, scale=None):
        self.blocks(name, shape, gguf.GGMLQuantizationType.Q8_0, scale)

    def ones(self, name, width):
        self.writer.add_tensor(name, np.ones(width, np.float32))

    def normal(self, name, *shape):
        self.writer.add_tensor(name, self.random.normal(0, 0.02, shape).astype(np.float32))

    def write_tensors(self):
        c = self.config
        width, vocab = c["hidden_size"], c["vocab_size"]
        self.q8("token_embd.weight", vocab, width, scale=EMBEDDING_SCALE)
        self.ones("output_norm.weight", width)
        self.q8("output.weight", vocab, width)
        for layer in range(self.layers):
            self.attention(f"blk.{layer}.")
            self.feed_forward(f"blk.{layer}.", layer)

    def attention(self, at):
        c = self.config
        width, heads = c["hidden_size"], c["num_attention_heads"]
        r, p, n, v = c["kv_lora_rank"], c["qk_rope_head_dim"], c["qk_nope_head_dim"], c["v_head_dim"]
        self.ones(at + "attn_norm.weight", width)
        if c.get("q_lora_rank"):
            self.q4(at + "attn_q_a.weight", c["q_lora_rank"], width)
            self.ones(at + "attn_q_a_norm.weight", c["q_lora_rank"])
            self.q4(at + "attn_q_b.weight", heads * (n + p), c["q_lora_rank"])
        else:
            self.q4(at + "attn_q.weight", heads * (n + p), width)
        self.q8(at + "attn_kv_a_mqa.weight", r + p, width)
        self.ones(at + "attn_kv_a_norm.weight", r)
        self.q8(at + "attn_k_b.weight", heads, r, n)
        self.q8(at + "attn_v_b.weight", heads, v, r)
        self.q4(at + "attn_output.weight", width, heads * v)
        self.ones(at + "ffn_norm.weight", width)

    def feed_forward(self, at, layer):
        c = self.config
        width = c["hidden_size"]
        if layer < self.dense_layers():
            inner = c["intermediate_size"]
            self.q4(at + "ffn_gate.weight", inner, width)
            self.q4(at + "ffn_up.weight", inner, width)
            self.q4(at + "ffn_down.weight", width, inner)
            return
        experts, inner = c["n_routed_experts"], c["moe_intermediate_size"]
        self.normal(at + "ffn_gate_inp.weight", experts, width)
        if self.sigmoid():
            self.normal(at + "exp_probs_b.bias", experts)
        self.q4(at + "ffn_gate_exps.weight", experts, inner, width)
        self.q4(at + "ffn_up_exps.weight", experts, inner, width)
        self.q4(at + "ffn_down_exps.weight", experts, width, inner)
        shared = inner * (c.get("n_shared_experts") or 0)
        if shared:
            self.q4(at + "ffn_gate_shexp.weight", shared, width)
            self.q4(at + "ffn_up_shexp.weight", shared, width)
            self.q4(at + "ffn_down_shexp.weight", width, shared)
