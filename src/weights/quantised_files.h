#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "io/new_folder.h"
#include "latte/error.h"
#include "weights/model_weights.h"
#include "weights/quantise_plan.h"

namespace latte {

// A model's weights as files that latte maps and reads as they are (docs/weight-formats.md): safetensors whose data
// starts on a page. First come the grouped matrices, panels of tensor/grouped.h as U8 [panels, bytes of a panel], each
// on a cache line since blocks are whole ones; then all other tensors byte for byte, wider types first, so that each is
// aligned. One file, or shards with an index.

/// Tensors of one type.
struct TypeBytes {
  std::int64_t tensors = 0;
  std::int64_t bytes_before = 0;  ///< 0 for a head that was the embedding table
  std::int64_t bytes = 0;
};

struct QuantisedFiles {
  std::map<std::string, TypeBytes> by_type;  ///< "Q4", "BF16", ...
  int files = 0;                             ///< that hold tensors
};

struct QuantisedFilesOptions {
  int threads = 0;                                ///< 0: the cores this process may use
  std::int64_t most_shard_bytes = 5'000'000'000;  ///< a tensor that is larger has a shard of its own
  std::function<bool(std::int64_t done, std::int64_t all)> on_progress = {};  ///< bytes; false stops
};

/// Writes the weights of a model that was loaded for quantising (loader.h): `plan`'s matrices grouped, what else is in
/// use as it is stored. A matrix is in memory some MiB at a time. Errors: no room on the disk, which is looked at
/// before anything is written; what the system refuses; kCancelled.
Result<QuantisedFiles> write_quantised_files(ModelWeights& weights, const QuantisePlan& plan, const NewFolder& folder,
                                             const QuantisedFilesOptions& options);

}  // namespace latte
