#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/file_map.h"
#include "latte/error.h"
#include "tensor/dtype.h"

namespace latte {

/// A named tensor inside a mapped file. `data` lives as long as the Checkpoint it came from.
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool aligned = true;  ///< data sits at a multiple of the element's size; otherwise read it through a copy
  std::string file;     ///< path, for messages
};

/// Every tensor of a model folder: model.safetensors, or the shards that model.safetensors.index.json lists. Move-only;
/// views and pointers survive moves. Opening maps files and reads their headers; it touches no weight.
class Checkpoint {
 public:
  /// Errors name the file and, where there is one, the tensor: a missing shard, a tensor absent from its shard or
  /// present in two, a shard name that leaves the folder, and all that parse_safetensors refuses.
  static Result<Checkpoint> open(const std::string& directory);

  /// Holds nothing.
  Checkpoint() = default;
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// nullptr when there is no such tensor.
  const TensorView* find(std::string_view name) const;
  /// All tensors: shards by file name, then in the order of their data.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const std::string& directory() const { return directory_; }
  /// Whether an address lies in one of the mapped files.
  bool is_mapped(const void* address) const;

 private:
  Status add_file(const std::string& path);
  Status open_shards(const std::string& index_path);

  std::string directory_;
  std::vector<FileMap> files_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace latte
