#!/usr/bin/env python3
"""Writes tests/data/yarn.json: rope speeds, magnitude and softmax scale in numpy float64, written from the YaRN definition alone.

Usage: python3 tools/make_yarn_golden.py > tests/data/yarn.json        (needs numpy)
"""

import json

import numpy as np


def yarn(width, nope, theta, scaling):
    pairs = np.arange(width // 2, dtype=np.float64)
    plain = theta ** -(2 * pairs / width)
    scale = (nope + width) ** -0.5
    if scaling is None:
        return plain, 1.0, scale
    s, original = scaling["factor"], scaling["original_max_position_embeddings"]

    def pair_of(rotations):
        return width * np.log(original / (2 * np.pi * rotations)) / (2 * np.log(theta))

    low, high = pair_of(scaling.get("beta_fast", 32)), pair_of(scaling.get("beta_slow", 1))
    if scaling.get("truncate", True):
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, width - 1)
    if low == high:
        high += 0.001
    extended = np.minimum(np.maximum((pairs - low) / (high - low), 0), 1)
    speeds = plain / s * extended + plain * (1 - extended)

    def magnitude(k):
        return 1.0 if s <= 1 else 0.1 * k * np.log(s) + 1

    all_dim = scaling.get("mscale_all_dim", 0)
    factor = scaling.get("attention_factor", magnitude(scaling.get("mscale", 1)) / magnitude(all_dim))
    return speeds, factor, scale * (magnitude(all_dim) ** 2 if all_dim else 1)


def scaling(factor, original, **more):
    return {"type": "yarn", "factor": factor, "original_max_position_embeddings": original, **more}


CASES = [
    ("deepseek_v3", 64, 128, 1e4, scaling(40, 4096, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)),
    ("v2_lite: unequal mscale", 16, 24, 1e4, scaling(4, 16, beta_fast=32, beta_slow=1, mscale=0.7, mscale_all_dim=0.5)),
    ("kimi_k2: equal betas, adjacent bounds", 64, 128, 5e4, scaling(32, 4096, beta_fast=1.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0)),
    ("tiny kimi_k2", 16, 24, 5e4, scaling(32, 16, beta_fast=1.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0)),
    ("tiny deepseek_v3", 16, 24, 1e4, scaling(4, 16, beta_fast=0.3, beta_slow=0.03, mscale=1.0, mscale_all_dim=1.0)),
    ("latte-tiny", 32, 64, 1e4, scaling(16, 1024, beta_fast=32, beta_slow=1, mscale=1.0, mscale_all_dim=1.0)),
    ("bounds meet at 0", 16, 24, 1e4, scaling(4, 6, beta_fast=32, beta_slow=1)),
    ("bounds meet without rounding", 64, 128, 5e4, scaling(32, 4096, beta_fast=1.0, beta_slow=1.0, truncate=False)),
    ("not truncated", 64, 128, 1e4, scaling(40, 4096, beta_fast=32, beta_slow=1, truncate=False)),
    ("attention_factor", 64, 128, 1e4, scaling(8, 4096, attention_factor=1.25, mscale=0.5, mscale_all_dim=0.8)),
    ("defaults", 64, 128, 1e4, scaling(8, 4096)),
    ("factor 1", 32, 32, 1e4, scaling(1, 4096, mscale=2.0, mscale_all_dim=2.0)),
    ("no scaling", 64, 128, 5e4, None),
]


def main():
    out = []
    for name, width, nope, theta, rope_scaling in CASES:
        speeds, factor, scale = yarn(width, nope, theta, rope_scaling)
        out.append({"name": name, "p": width, "n": nope, "rope_theta": theta, "rope_scaling": rope_scaling,
                    "inv_freq": [float(x) for x in speeds], "magnitude": float(factor), "softmax_scale": float(scale)})
    print(json.dumps(out, indent=1))


main()
