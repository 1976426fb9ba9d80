#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "latte/error.h"
#include "latte/options.h"
#include "latte/report.h"

namespace latte {

/// A model and the folder that its quantised form is written to.
struct QuantizeRequest {
  std::string model;                    ///< directory, embedded name or org/name, as EngineOptions::model
  std::string directory;                ///< a new folder, or an empty one
  Quantize quantize = Quantize::kNone;  ///< what the matrices become; not kNone
  int threads = 0;                      ///< 0: the physical cores this process may use
  /// Tensor data a file holds at most, in bytes; one tensor is never divided.
  std::int64_t most_shard_bytes = 5'000'000'000;
};

/// Tensors that were written as one type.
struct QuantizedType {
  std::string type;  ///< "Q4", "Q8", or as they were stored: "BF16", "F32", ...
  std::int64_t tensors = 0;
  std::int64_t bytes_before = 0;  ///< of the same tensors as they were stored
  std::int64_t bytes = 0;
};

/// What quantize_model wrote.
struct QuantizeReport {
  std::string model;              ///< folder that was read
  std::string directory;          ///< folder that was written
  std::string quantize;           ///< "q8", "q4", "q4:q8-attn"
  std::int64_t bytes_before = 0;  ///< of all tensors in use
  std::int64_t bytes = 0;
  std::vector<QuantizedType> types;
  int weight_files = 0;
  std::vector<std::string> copied;    ///< names of the other files: tokenizer, templates, licence, ...
  std::vector<DroppedName> left_out;  ///< tensors that no step reads
  bool mtp = false;                   ///< the MTP layer is in it
  double seconds = 0;
};

/// Told how many bytes are written, of all; return false to stop.
using QuantizeProgress = std::function<bool(std::int64_t bytes_done, std::int64_t bytes_in_all)>;

/// Writes a model with its matrices quantised as a folder that Engine::open maps without making anything
/// (docs/weight-formats.md): its logits are those of the model opened with the same EngineOptions::quantize, bit for
/// bit. The folder appears whole or not at all. Matrices are in memory some MiB at a time, so the model may be larger
/// than it. Errors: a model that cannot be read or is quantised already, something in the folder's place, no room on
/// the disk, kCancelled when `progress` says so.
Result<QuantizeReport> quantize_model(const QuantizeRequest& request, const QuantizeProgress& progress = {});

}  // namespace latte
