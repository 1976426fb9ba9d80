#pragma once

#include <span>
#include <string_view>

#include "model/config.h"
#include "model/key_reader.h"

namespace latte {

/// One model family: what its configuration calls it and how that is read. docs/adding-a-family.md tells how to add
/// one.
struct Family {
  std::string_view name;                    ///< as reports say it
  std::span<const std::string_view> words;  ///< every model_type and architecture that means it
  /// Fills everything of the configuration but names: what it refuses stays in the reader.
  void (*read)(KeyReader& reader, ModelConfig& config);
};

/// A family that latte knows by name and does not run.
struct RefusedFamily {
  std::string_view name;
  std::span<const std::string_view> words;
  std::string_view reason;   ///< what it has that latte lacks
  std::string_view nearest;  ///< the family that it extends
};

/// Every family, in the order in which a tie of nearest names is decided.
std::span<const Family> families();
std::span<const RefusedFamily> refused_families();

}  // namespace latte
