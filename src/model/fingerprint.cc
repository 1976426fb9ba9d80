#include "model/fingerprint.h"

#include <algorithm>
#include <string_view>

namespace latte {
namespace {

constexpr std::size_t kSampleBytes = 4096;
constexpr std::size_t kLeastShare = 256;  // of a tensor

constexpr std::string_view kKeysWithoutEffect[] = {"_name_or_path",        "architectures",      "auto_map",
                                                   "bos_token_id",         "eos_token_id",       "pad_token_id",
                                                   "transformers_version", "quantization_config"};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class Number>
void add_number(Checksum& sum, const Number& number) {
  sum.add(std::as_bytes(std::span(&number, 1)));
}

/// `share` bytes of `data` as samples of kSampleBytes, the middle of each in the middle of its part.
void add_samples(Checksum& sum, std::span<const std::byte> data, std::size_t share) {
  if (data.size() <= share) return sum.add(data);
  const std::size_t samples = std::max<std::size_t>(1, share / kSampleBytes);
  const std::size_t length = share / samples;
  const std::size_t part = data.size() / samples;
  for (std::size_t i = 0; i < samples; ++i) sum.add(data.subspan(i * part + (part - length) / 2, length));
}

}  // namespace

Digest config_digest(const Json& config) {
  Json facts = config;
  if (facts.is_object()) {
    for (const std::string_view key : kKeysWithoutEffect) facts.erase(std::string(key));
  }
  Checksum sum;
  sum.add(bytes_of(facts.dump(-1, ' ', false, Json::error_handler_t::replace)));
  return sum.digest();
}

Digest weights_digest(const Checkpoint& checkpoint) { return weights_digest(checkpoint, kWholeBytes, kSampledBytes); }

std::string model_weights_digest(const Checkpoint& checkpoint, const std::optional<StoredQuantisation>& quantised) {
  const std::string own = weights_digest(checkpoint).hex();
  return quantised.has_value() && quantised->weights == own ? quantised->source_weights : own;
}

Digest weights_digest(const Checkpoint& checkpoint, std::size_t whole_bytes, std::size_t sampled_bytes) {
  std::size_t total = 0;
  for (const TensorView& tensor : checkpoint.tensors()) total += tensor.bytes;
  const std::size_t tensors = std::max<std::size_t>(1, checkpoint.tensors().size());
  const std::size_t share = total <= whole_bytes ? total : std::max(kLeastShare, sampled_bytes / tensors);
  Digest all;  // a sum, so that the order of tensors, which follows the files, does not count
  Checksum sum;
  for (const TensorView& tensor : checkpoint.tensors()) {
    sum.restart();
    add_number(sum, tensor.name.size());
    sum.add(bytes_of(tensor.name));
    add_number(sum, tensor.dtype);
    for (const std::int64_t extent : tensor.shape) add_number(sum, extent);
    add_samples(sum, {static_cast<const std::byte*>(tensor.data), tensor.bytes}, share);
    const Digest one = sum.digest();
    all.low += one.low;
    all.high += one.high;
  }
  return all;
}

}  // namespace latte
