#include "io/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "base/fail.h"
#include "io/file_map.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace latte {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// A shard is a file of the folder itself: an index from elsewhere must not open others.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored))
    return fail(ErrorKind::kNotFound, "{}: no such folder, expected a model folder", directory);
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  const std::string single = (fs::path(directory) / kSingleFile).string();
  const std::string index = (fs::path(directory) / kIndexFile).string();
  Status status;
  if (name_exists(single)) {
    status = checkpoint.add_file(single);
  } else if (name_exists(index)) {
    status = checkpoint.open_shards(index);
  } else {
    status = fail(ErrorKind::kNotFound,
                  "{}: no {} nor {} in it, expected the weights of a model beside its config.json: download them",
                  directory, kSingleFile, kIndexFile);
  }
  if (!status) return status.error();
  return checkpoint;
}

Status Checkpoint::add_file(const std::string& path) {
  Result<FileMap> file = FileMap::open(path);
  if (!file) return file.error();
  Result<SafetensorsTable> table = parse_safetensors(file->bytes(), path);
  if (!table) return table.error();
  for (TensorInfo& info : table->tensors) {
    const auto [known, inserted] = by_name_.emplace(info.name, tensors_.size());
    if (!inserted) {
      return fail(ErrorKind::kInvalidInput, "{}: tensor {} is also in {}, expected it in one file", path,
                  quote_name(info.name), tensors_[known->second].file);
    }
    const std::byte* data = file->bytes().data() + info.offset;
    const bool aligned = reinterpret_cast<std::uintptr_t>(data) % dtype_bytes(info.dtype) == 0;
    tensors_.push_back({std::move(info.name), info.dtype, std::move(info.shape), data, info.bytes, aligned, path});
  }
  file->ask_for_huge_pages();
  files_.push_back(*std::move(file));
  return {};
}

Status Checkpoint::open_shards(const std::string& index_path) {
  const Result<Json> index = read_json_file(index_path);
  if (!index) return index.error();
  const auto weight_map = index->is_object() ? index->find("weight_map") : index->end();
  if (!index->is_object() || weight_map == index->end() || !weight_map->is_object()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: weight_map: arrived {}, expected an object of tensor names and file names", index_path,
                !index->is_object() || weight_map == index->end() ? "nothing" : brief_json(*weight_map));
  }
  std::map<std::string, std::string> first_tensor_of;  // shard name to a tensor that needs it
  for (const auto& [tensor, shard] : weight_map->get_ref<const Json::object_t&>()) {
    if (!shard.is_string() || !is_plain_file_name(shard.get_ref<const std::string&>())) {
      return fail(ErrorKind::kInvalidInput, "{}: tensor {} maps to {}, expected the name of a file in the same folder",
                  index_path, quote_name(tensor), brief_json(shard));
    }
    first_tensor_of.emplace(shard.get_ref<const std::string&>(), tensor);
  }
  const std::filesystem::path folder(directory_);
  for (const auto& [shard, tensor] : first_tensor_of) {
    const std::string path = (folder / shard).string();
    const Status added = add_file(path);
    if (!added && added.error().kind == ErrorKind::kNotFound) {
      return fail(ErrorKind::kNotFound, "{}: no such file, but {} names it for tensor {}: download the missing shard",
                  path, kIndexFile, quote_name(tensor));
    }
    if (!added) return added;
  }
  for (const auto& [tensor, shard] : weight_map->get_ref<const Json::object_t&>()) {
    const std::string path = (folder / shard.get_ref<const std::string&>()).string();
    const TensorView* found = find(tensor);
    if (found == nullptr || found->file != path) {
      return fail(ErrorKind::kInvalidInput, "{}: does not hold tensor {}, but {} says so", path, quote_name(tensor),
                  kIndexFile);
    }
  }
  return {};
}

bool Checkpoint::is_mapped(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return std::any_of(files_.begin(), files_.end(), [&](const FileMap& file) {
    const std::span<const std::byte> bytes = file.bytes();
    return std::less_equal<>()(bytes.data(), byte) && std::less<>()(byte, bytes.data() + bytes.size());
  });
}

const TensorView* Checkpoint::find(std::string_view name) const {
  const auto known = by_name_.find(std::string(name));
  return known == by_name_.end() ? nullptr : &tensors_[known->second];
}

}  // namespace latte
