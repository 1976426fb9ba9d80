#pragma once

#include "arguments.h"

namespace latte::cli {

// Every command prints its result alone on standard output and returns the exit code: 0, 1 the work failed, 2 usage,
// 130 interrupted.

int run_generate(const Arguments& arguments);
int run_chat(const Arguments& arguments);
int run_logits(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_plan(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_quantize(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_tune(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_detokenize(const Arguments& arguments);
int run_apply_template(const Arguments& arguments);
int run_completion(const Arguments& arguments);
int run_man(const Arguments& arguments);

}  // namespace latte::cli
