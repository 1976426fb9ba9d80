#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/sequence.h"

namespace latte::test {

/// How a text is cut into steps.
struct TeacherForcedRun {
  std::vector<int> steps;  ///< rows of each step, their sum is the text's length
  int redo = 0;            ///< after every step of more rows than this, rewind this many and feed them again
  int redo_from = 0;       ///< ... from this step on
  MlaPath path = MlaPath::kAuto;
  DType cache_dtype = DType::kF32;
  int context = 0;    ///< declared context of the sequence; 0: the text's length
  int role_from = 1;  ///< steps from this index on are generated, up to kMaxDecodeRows rows
};

/// Logits of every position, and of the MTP layer where the model has one.
struct TeacherForcedLogits {
  std::vector<float> main;  ///< [T, V]
  std::vector<float> mtp;   ///< [T - 1, V]: row i from hidden i and token i + 1
  PathCounters paths;
};

/// "48,1x8": one step of 48 rows, eight of one.
std::vector<int> parse_steps(const std::string& text);

/// Feeds `ids` as `run` says, the MTP layer in the same steps (its last row of a step waits for the next token).
Result<TeacherForcedLogits> teacher_forced(const Model& model, Backend& backend, std::span<const TokenId> ids,
                                           const TeacherForcedRun& run);

/// Second draft step of every row: row i feeds depth-1 output z_i and token i + 2, at position i + 1, attending to
/// depth-1 rows 0..i and itself. [T - 2, V].
Result<std::vector<float>> chained_mtp_logits(const Model& model, Backend& backend, std::span<const TokenId> ids,
                                              DType cache_dtype);

}  // namespace latte::test
