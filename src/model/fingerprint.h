#pragma once

#include "io/checkpoint.h"
#include "io/checksum.h"
#include "io/json_file.h"
#include "model/stored_quantisation.h"

namespace latte {

/// Digest of a config.json: of all its keys but those that no cached row depends on (stop tokens, versions, paths), and
/// but how its weights are quantised, which weights_digest() and the choice tell. The order of keys and white space do
/// not count.
Digest config_digest(const Json& config);

/// Digest of a checkpoint: every tensor's name, type and shape, and its bytes: all of them up to kWholeBytes over all
/// tensors, else evenly placed samples of every tensor, kSampledBytes in all. The division into files does not count.
/// Some 20 ms for weights that are in memory. It tells a fine-tune from its base; a change that touches few elements of
/// a large model can escape it.
Digest weights_digest(const Checkpoint& checkpoint);

/// The weights that rows are computed from, whether a folder stores them as floats or quantised: of one that latte
/// quantised the digest of the model that it was made from, as long as its own tensors are those that were written;
/// else weights_digest(). 32 hexadecimal digits.
std::string model_weights_digest(const Checkpoint& checkpoint, const std::optional<StoredQuantisation>& quantised);

inline constexpr std::size_t kWholeBytes = std::size_t{64} << 20;
inline constexpr std::size_t kSampledBytes = std::size_t{16} << 20;

/// The same with other limits.
Digest weights_digest(const Checkpoint& checkpoint, std::size_t whole_bytes, std::size_t sampled_bytes);

}  // namespace latte
