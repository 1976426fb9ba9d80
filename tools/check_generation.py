#!/usr/bin/env python3
"""Runs what ./quickstart shows with --json and checks it: the MTP layer drafts, its drafts pay, generated rows are absorbed."""

import json
import pathlib
import subprocess
import sys

PROMPT = "A list is a sequence of values. To add an item to the end of a list, use the"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    command = [root / "build/latte", "generate", "-m", "latte-tiny", "--spec-type", "mtp", "-p", PROMPT, "-n", "160", "--json"]
    run = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    result = json.loads(run.stdout)
    emitted = result["generated_tokens"] / max(result["rounds"], 1)
    claims = {
        f"drafted {result['drafted']}, expected some": result["drafted"] > 0,
        f"emitted per round {emitted:.2f}, expected at least 1.4": emitted >= 1.4,
        f"paths {result['paths']}, expected absorbed steps": result["paths"].get("absorbed", 0) > 0,
        f"generated {result['generated_tokens']} tokens, expected text": result["generated_tokens"] > 0 and result["text"],
    }
    for claim, holds in claims.items():
        print(("ok: " if holds else "error: ") + claim)
    return 0 if all(claims.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
