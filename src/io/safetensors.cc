#include "io/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "io/json_file.h"

namespace latte {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

constexpr std::array kDTypes = {DType::kF64,    DType::kF32, DType::kF16, DType::kBf16, DType::kF8E4M3, DType::kF8E5M2,
                                DType::kF8E8M0, DType::kI64, DType::kI32, DType::kI16,  DType::kI8,     DType::kU64,
                                DType::kU32,    DType::kU16, DType::kU8,  DType::kBool};

std::string dtype_words() {
  std::string words;
  for (const DType dtype : kDTypes) words.append(words.empty() ? "" : ", ").append(dtype_name(dtype));
  return words;
}

Error tensor_error(std::string_view source, std::string_view name, std::string_view what) {
  return fail(ErrorKind::kInvalidInput, "{}: tensor {}: {}", source, quote_name(name), what);
}

/// What arrived under a key, for an error.
std::string arrived(const Json& entry, const char* key) {
  const auto value = entry.find(key);
  return value == entry.end() ? "nothing" : cut_json(*value);
}

/// Reads [begin, end) of "data_offsets" or a shape: unsigned integers that fit in int64.
bool read_counts(const Json& entry, const char* key, std::vector<std::int64_t>& counts) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array()) return false;
  counts.reserve(list->size());
  for (const Json& item : *list) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > INT64_MAX) return false;
    counts.push_back(item.get<std::int64_t>());
  }
  return true;
}

Result<TensorInfo> read_entry(const std::string& name, const Json& entry, std::size_t data_begin,
                              std::size_t data_bytes, std::string_view source) {
  if (!entry.is_object()) {
    return tensor_error(source, name,
                        fmt::format("entry {}, expected an object with dtype, shape, data_offsets", brief_json(entry)));
  }
  TensorInfo tensor;
  tensor.name = name;
  const auto word = entry.find("dtype");
  if (word == entry.end() || !word->is_string()) {
    return tensor_error(source, name,
                        fmt::format("dtype: arrived {}, expected one of {}", arrived(entry, "dtype"), dtype_words()));
  }
  const Result<DType> dtype = parse_dtype(word->get_ref<const std::string&>());
  if (!dtype) return tensor_error(source, name, dtype.error().message);
  tensor.dtype = *dtype;

  if (!read_counts(entry, "shape", tensor.shape)) {
    return tensor_error(
        source, name,
        fmt::format("shape: arrived {}, expected a list of integers from 0 to 2^63-1", arrived(entry, "shape")));
  }
  std::vector<std::int64_t> range;
  if (!read_counts(entry, "data_offsets", range) || range.size() != 2) {
    return tensor_error(
        source, name,
        fmt::format("data_offsets: arrived {}, expected two integers [begin, end]", arrived(entry, "data_offsets")));
  }
  std::uint64_t expected_bytes = dtype_bytes(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(expected_bytes, static_cast<std::uint64_t>(extent), &expected_bytes)) {
      return tensor_error(source, name,
                          fmt::format("shape {} holds more bytes than 64 bits count", shape_text(tensor.shape)));
    }
  }
  if (range[0] > range[1]) {
    return tensor_error(source, name,
                        fmt::format("data_offsets [{}, {}], expected a begin that is not after the end: its header is "
                                    "wrong; download it again",
                                    range[0], range[1]));
  }
  if (static_cast<std::uint64_t>(range[1]) > data_bytes) {
    return tensor_error(
        source, name,
        fmt::format("data_offsets [{}, {}] leave the {} bytes of data in the file: it is truncated or its "
                    "header is wrong; download it again",
                    range[0], range[1], data_bytes));
  }
  const std::uint64_t arrived_bytes = static_cast<std::uint64_t>(range[1] - range[0]);
  if (arrived_bytes != expected_bytes) {
    return tensor_error(source, name,
                        fmt::format("data_offsets span {} bytes, expected {} for shape {} of {}", arrived_bytes,
                                    expected_bytes, shape_text(tensor.shape), dtype_name(tensor.dtype)));
  }
  tensor.offset = data_begin + static_cast<std::size_t>(range[0]);
  tensor.bytes = static_cast<std::size_t>(arrived_bytes);
  return tensor;
}

/// The format wants every data byte to belong to exactly one tensor.
Status check_cover(const std::vector<TensorInfo>& tensors, std::size_t data_begin, std::size_t file_bytes,
                   std::string_view source) {
  std::size_t covered = data_begin;
  const TensorInfo* previous = nullptr;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset < covered) {
      return tensor_error(source, tensor.name,
                          fmt::format("its data overlap those of tensor {}, expected each apart; download it again",
                                      quote_name(previous->name)));
    }
    if (tensor.offset > covered) {
      return tensor_error(
          source, tensor.name,
          fmt::format("{} bytes between its data and those of {} belong to no tensor, expected none: the "
                      "header leaves a tensor out; download it again",
                      tensor.offset - covered, previous != nullptr ? quote_name(previous->name) : "the header"));
    }
    covered = tensor.offset + tensor.bytes;
    previous = &tensor;
  }
  if (covered != file_bytes) {
    return fail(ErrorKind::kInvalidInput,
                "{}: {} bytes after the last tensor {} belong to no tensor, expected none; download it again", source,
                file_bytes - covered, previous != nullptr ? quote_name(previous->name) : "(none)");
  }
  return {};
}

}  // namespace

Result<DType> parse_dtype(std::string_view word) {
  for (const DType dtype : kDTypes) {
    if (dtype_name(dtype) == word) return dtype;
  }
  return fail(ErrorKind::kUnsupported, "dtype {}, expected one of {}", quote_name(word), dtype_words());
}

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<SafetensorsTable> parse_safetensors(std::span<const std::byte> file, std::string_view source) {
  if (file.size() < kLengthBytes) {
    return fail(ErrorKind::kInvalidInput,
                "{}: {} bytes, expected at least the {} of a safetensors header length; download it again", source,
                file.size(), kLengthBytes);
  }
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) header_bytes |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.size() - kLengthBytes) {
    return fail(ErrorKind::kInvalidInput,
                "{}: header length {}, expected at most {}: not a safetensors file, or truncated; download it again",
                source, header_bytes, std::min<std::uint64_t>(kMaxHeaderBytes, file.size() - kLengthBytes));
  }
  if (header_bytes == 0) {
    return fail(ErrorKind::kInvalidInput,
                "{}: header length 0, expected a header of JSON: not a safetensors file, or its content was lost; "
                "download it again",
                source);
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              static_cast<std::size_t>(header_bytes));
  const Result<Json> header = parse_json(text, source);
  if (!header) return header.error();
  if (!header->is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: header {}, expected an object of tensors", source, brief_json(*header));
  }

  SafetensorsTable table;
  const std::size_t data_begin = kLengthBytes + text.size();
  table.tensors.reserve(header->size());
  for (const auto& [name, entry] : header->get_ref<const Json::object_t&>()) {
    if (name == "__metadata__") {
      if (!entry.is_object())
        return fail(ErrorKind::kInvalidInput, "{}: __metadata__ {}, expected an object", source, brief_json(entry));
      for (const auto& [key, value] : entry.get_ref<const Json::object_t&>()) {
        if (!value.is_string()) {
          return fail(ErrorKind::kInvalidInput, "{}: __metadata__ key {}: {}, expected a string", source,
                      quote_name(key), brief_json(value));
        }
        table.metadata.emplace(key, value.get_ref<const std::string&>());
      }
      continue;
    }
    Result<TensorInfo> tensor = read_entry(name, entry, data_begin, file.size() - data_begin, source);
    if (!tensor) return tensor.error();
    table.tensors.push_back(*std::move(tensor));
  }
  // Empty tensors come before the one that starts at the same byte.
  std::sort(table.tensors.begin(), table.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  if (Status cover = check_cover(table.tensors, data_begin, file.size(), source); !cover) return cover.error();
  return table;
}

}  // namespace latte
