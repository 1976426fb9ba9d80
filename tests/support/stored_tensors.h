#pragma once

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint.h"
#include "io/safetensors.h"

namespace latte::test {

struct StoredTensor {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::vector<char> bytes;
};

/// The tensors of a checkpoint in memory, to be changed and written again.
using StoredTensors = std::map<std::string, StoredTensor>;

inline StoredTensors read_tensors(const Checkpoint& checkpoint) {
  StoredTensors tensors;
  for (const TensorView& view : checkpoint.tensors()) {
    StoredTensor& stored = tensors[view.name];
    stored = {view.dtype, view.shape, std::vector<char>(view.bytes)};
    std::memcpy(stored.bytes.data(), view.data, view.bytes);
  }
  return tensors;
}

inline StoredTensor float_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  StoredTensor tensor{DType::kF32, std::move(shape), std::vector<char>(values.size() * sizeof(float))};
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

inline Status write_tensors(const std::string& path, const StoredTensors& tensors) {
  std::vector<TensorSource> sources;
  for (const auto& [name, tensor] : tensors) sources.push_back({name, tensor.dtype, tensor.shape, tensor.bytes.data()});
  return write_safetensors(path, sources);
}

}  // namespace latte::test
