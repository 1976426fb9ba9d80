"""Times steps of llama.cpp for peers.py: a request a line on standard input, an answer a line on standard output.

  llama_steps.py MODEL THREADS CONTEXT PROCESSORS
{"rows": L, "depth": T, "repeats": N} -> {"milliseconds": median of N after a first}; {} -> {"version": ...}. The cache is
filled to depth T once, on every processor that this process was given, and rewound to it after every step. Steps are timed
with THREADS threads on PROCESSORS ("2,3", or "all"). Those of more than 16 rows are prompts: their last logits alone are
wanted.
"""

import json
import os
import random
import statistics
import sys
import time

import llama_cpp

PROMPT_ROWS = 512
MOST_VERIFY_ROWS = 16
GGML_TYPE_F16 = 1
quiet = llama_cpp.llama_log_callback(lambda level, text, user: None)


class Steps:
    def __init__(self, path, threads, context, processors):
        self.threads = threads
        self.all_processors = os.sched_getaffinity(0)
        self.processors = self.all_processors if processors == "all" else {int(word) for word in processors.split(",")}
        llama_cpp.llama_log_set(quiet, None)
        llama_cpp.llama_backend_init()
        model_options = llama_cpp.llama_model_default_params()
        model_options.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), model_options)
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_batch, options.n_ubatch = context, PROMPT_ROWS, PROMPT_ROWS
        options.n_threads = options.n_threads_batch = threads
        options.flash_attn_type = 1
        options.type_k = options.type_v = GGML_TYPE_F16
        self.context = llama_cpp.llama_init_from_model(self.model, options) if self.model else None
        if not self.context:
            sys.exit(f"error: llama.cpp cannot open {path}")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.batch = llama_cpp.llama_batch_init(PROMPT_ROWS, 0, 1)
        self.random = random.Random(1)
        self.filled = 0

    def step(self, rows, position, all_logits):
        batch = self.batch
        batch.n_tokens = rows
        for i in range(rows):
            batch.token[i] = self.random.randrange(self.vocab)
            batch.pos[i] = position + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = all_logits or i == rows - 1
        started = time.perf_counter()
        if llama_cpp.llama_decode(self.context, batch) != 0:
            sys.exit(f"error: llama.cpp failed on {rows} rows at {position}")
        llama_cpp.llama_synchronize(self.context)
        return (time.perf_counter() - started) * 1e3

    def rewind(self, length):
        llama_cpp.llama_memory_seq_rm(self.memory, 0, length, -1)
        self.filled = length

    def run_on(self, processors, threads):
        """Moves every thread of this process, those that llama.cpp keeps from step to step among them."""
        llama_cpp.llama_set_n_threads(self.context, threads, threads)
        for task in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(task), processors)

    def fill(self, depth):
        if self.filled > depth:
            self.rewind(depth)
        if self.filled == depth:
            return
        self.run_on(self.all_processors, len(self.all_processors))
        while self.filled < depth:
            count = min(PROMPT_ROWS, depth - self.filled)
            self.step(count, self.filled, False)
            self.filled += count

    def measure(self, rows, depth, repeats):
        self.fill(depth)
        self.run_on(self.processors, self.threads)
        times = []
        for _ in range(repeats + 1):
            times.append(self.step(rows, depth, rows <= MOST_VERIFY_ROWS))
            self.rewind(depth)
        return statistics.median(times[1:] or times)  # the first finds weights and code cold


def main():
    steps = Steps(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    for line in sys.stdin:
        request = json.loads(line)
        if request:
            answer = {"milliseconds": steps.measure(request["rows"], request["depth"], request["repeats"])}
        else:
            answer = {"version": llama_cpp.__version__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
