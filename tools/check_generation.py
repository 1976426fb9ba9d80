#!/usr/bin/env python3
"""Checks what `./quickstart --json` writes, read from standard input: the MTP layer drafts, its drafts pay, generated rows
are absorbed."""

import json
import sys


def main():
    result = json.load(sys.stdin)
    claims = {
        f"speculation by {result['spec_type']}, expected mtp": result["spec_type"] == "mtp",
        f"drafted {result['drafted']}, expected some": result["drafted"] > 0,
        f"emitted per round {result['emitted_per_round']:.2f}, expected at least 1.4": result["emitted_per_round"] >= 1.4,
        f"paths {result['paths']}, expected absorbed steps": result["paths"]["absorbed"] > 0,
        f"{result['generated_tokens']} tokens of text, expected some": bool(result["text"]),
    }
    for claim, holds in claims.items():
        print(("ok: " if holds else "error: ") + claim)
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
