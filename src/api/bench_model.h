#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/counting_backend.h"
#include "decode/open_model.h"
#include "latte/bench.h"

namespace latte {

/// A model as the bench measures it: its device counts bytes.
struct BenchModel {
  std::shared_ptr<OpenModel> open;
  CountingBackend* counter = nullptr;  ///< the device of `open`
  bool random = false;                 ///< made for the measurement
  std::string name;
};

/// Refuses what needs more memory than is free, in numbers, before any is taken. `hint` is what to do.
Status check_memory(std::string_view what, std::int64_t bytes, std::int64_t available, std::string_view hint);

/// The configuration that a request names, cut to `layers`, and what to call the model.
struct BenchConfig {
  ModelConfig config;
  std::string name;
};
Result<BenchConfig> read_bench_config(const BenchRequest& request);

/// Opens a model from its folder, or makes one of random weights for a configuration, with sessions of `context` rows.
/// Errors as measure_steps says.
Result<BenchModel> open_bench_model(const BenchRequest& request, int context, const BenchProgress& progress);

/// What a report says of model and device.
BenchReport begin_report(const BenchModel& model);

/// Documents of a text parted by NUL bytes, one after the other, each with BOS where the tokenizer says so; without a
/// text, or a tokenizer to read it with, random ids. At least `count`; a short text is repeated.
Result<std::vector<TokenId>> bench_ids(const OpenModel& model, const BenchRequest& request, std::size_t count);

}  // namespace latte
