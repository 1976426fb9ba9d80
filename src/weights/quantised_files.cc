#include "weights/quantised_files.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "io/json_file.h"
#include "io/replace_file.h"
#include "io/safetensors.h"
#include "tensor/grouped.h"
#include "weights/matrix_list.h"
#include "weights/panel_quantiser.h"

namespace latte {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPartBytes = std::size_t{8} << 20;  // of a tensor that is copied

/// A tensor to be written: a matrix that is quantised, or one as it is stored.
struct Entry {
  TensorSource target;                      ///< data: of one as it is stored
  const QuantisedMatrix* matrix = nullptr;  ///< of one that is quantised
};

std::string_view type_of(const Entry& entry) {
  return dtype_name(entry.matrix != nullptr ? entry.matrix->type : entry.target.dtype);
}

/// The tensors in use of which no matrix is made: all but those that lie where a matrix comes from. Of the embedding
/// table that is also the head both are kept.
std::vector<Entry> stored_entries(const ModelWeights& weights, const std::vector<QuantisedMatrix>& matrices) {
  std::set<std::string_view> dropped;
  for (const DroppedTensor& tensor : weights.report.dropped) dropped.insert(tensor.name);
  std::vector<std::pair<const std::byte*, const std::byte*>> replaced;  // ranges of the map
  for (const QuantisedMatrix& matrix : matrices) {
    if (matrix.from.data == weights.embed.data) continue;
    const auto* begin = static_cast<const std::byte*>(matrix.from.data);
    replaced.emplace_back(begin, begin + matrix_bytes(matrix.from.dtype, matrix.from.rows, matrix.from.cols));
  }
  std::sort(replaced.begin(), replaced.end());
  const auto is_replaced = [&](const TensorView& tensor) {
    const auto* data = static_cast<const std::byte*>(tensor.data);
    const auto after = std::upper_bound(replaced.begin(), replaced.end(), data,
                                        [](const std::byte* at, const auto& range) { return at < range.second; });
    return after != replaced.end() && after->first <= data;
  };
  std::vector<Entry> entries;
  for (const TensorView& tensor : weights.checkpoint.tensors()) {
    if (dropped.contains(tensor.name) || is_replaced(tensor)) continue;
    entries.push_back({{tensor.name, tensor.dtype, tensor.shape, tensor.data}, nullptr});
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return dtype_bytes(a.target.dtype) > dtype_bytes(b.target.dtype);
  });
  return entries;
}

std::vector<Entry> all_entries(const ModelWeights& weights, const std::vector<QuantisedMatrix>& matrices) {
  std::vector<Entry> entries;
  for (const QuantisedMatrix& matrix : matrices) {
    const std::vector<std::int64_t> shape = {panel_count(matrix.from.rows), panel_bytes(matrix.type, matrix.from.cols)};
    entries.push_back({{matrix.name, DType::kU8, shape, nullptr}, &matrix});
  }
  std::vector<Entry> stored = stored_entries(weights, matrices);
  std::move(stored.begin(), stored.end(), std::back_inserter(entries));
  return entries;
}

/// Runs of entries, one for each file.
std::vector<std::span<const Entry>> shards_of(std::span<const Entry> entries, std::int64_t most_bytes) {
  std::vector<std::span<const Entry>> shards;
  std::int64_t bytes = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto more = static_cast<std::int64_t>(entries[i].target.bytes());
    if (i > first && bytes + more > most_bytes) {
      shards.push_back(entries.subspan(first, i - first));
      first = i;
      bytes = 0;
    }
    bytes += more;
  }
  shards.push_back(entries.subspan(first));
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

/// Writes shards, and counts what is written.
class ShardWriter {
 public:
  ShardWriter(ThreadPool& pool, const ModelWeights& weights, const QuantisedFilesOptions& options, std::int64_t all)
      : quantiser_(pool), weights_(weights), options_(options), all_(all) {}

  Status write(std::span<const Entry> entries, const std::string& path);

 private:
  Status write_matrix(const QuantisedMatrix& matrix, FileReplacement& file);
  Status write_stored(const TensorSource& tensor, FileReplacement& file);
  Status write_part(std::span<const std::byte> part, FileReplacement& file);

  PanelQuantiser quantiser_;
  const ModelWeights& weights_;
  const QuantisedFilesOptions& options_;
  std::int64_t all_ = 0;
  std::int64_t done_ = 0;
  std::vector<std::byte> panels_;
};

Status ShardWriter::write(std::span<const Entry> entries, const std::string& path) {
  std::vector<TensorSource> tensors;
  for (const Entry& entry : entries) tensors.push_back(entry.target);
  const std::string head = safetensors_head(tensors, kPage);
  Result<FileReplacement> file = FileReplacement::begin(path);
  if (!file.ok()) return file.error();
  Status written = file->write(std::as_bytes(std::span(head)));
  for (const Entry& entry : entries) {
    if (!written.ok()) return written;
    written = entry.matrix != nullptr ? write_matrix(*entry.matrix, *file) : write_stored(entry.target, *file);
  }
  return written.ok() ? file->commit() : written;
}

Status ShardWriter::write_matrix(const QuantisedMatrix& matrix, FileReplacement& file) {
  for (const PanelRun& run : quantiser_.runs_of(matrix)) {
    panels_.resize(PanelQuantiser::bytes_of(matrix, run));
    quantiser_.make(matrix, run, panels_.data());
    if (weights_.checkpoint.is_mapped(matrix.from.data)) PanelQuantiser::give_back(matrix, run);
    if (Status written = write_part(panels_, file); !written.ok()) return written;
  }
  return {};
}

Status ShardWriter::write_stored(const TensorSource& tensor, FileReplacement& file) {
  std::span<const std::byte> left(static_cast<const std::byte*>(tensor.data), tensor.bytes());
  while (!left.empty()) {
    const std::size_t part = std::min(kPartBytes, left.size());
    if (Status written = write_part(left.first(part), file); !written.ok()) return written;
    left = left.subspan(part);
  }
  return {};
}

Status ShardWriter::write_part(std::span<const std::byte> part, FileReplacement& file) {
  if (Status written = file.write(part); !written.ok()) return written;
  done_ += static_cast<std::int64_t>(part.size());
  if (!options_.on_progress || options_.on_progress(done_, all_)) return {};
  return fail(ErrorKind::kCancelled, "[quantize] stopped by the caller; nothing was written");
}

Status write_index(const std::vector<std::span<const Entry>>& shards, std::int64_t bytes, const NewFolder& folder) {
  Json weight_map = Json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const Entry& entry : shards[i]) weight_map[entry.target.name] = shard_name(i, shards.size());
  }
  const std::string text = Json{{"metadata", {{"total_size", bytes}}}, {"weight_map", weight_map}}.dump(2) + "\n";
  Result<FileReplacement> file = FileReplacement::begin(folder.file("model.safetensors.index.json"));
  if (!file.ok()) return file.error();
  if (Status written = file->write(std::as_bytes(std::span(text))); !written.ok()) return written;
  return file->commit();
}

std::map<std::string, TypeBytes> count_types(std::span<const Entry> entries, const ModelWeights& weights) {
  std::map<std::string, TypeBytes> types;
  for (const Entry& entry : entries) {
    TypeBytes& type = types[std::string(type_of(entry))];
    const auto bytes = static_cast<std::int64_t>(entry.target.bytes());
    ++type.tensors;
    type.bytes += bytes;
    if (entry.matrix == nullptr) {
      type.bytes_before += bytes;
    } else if (const ConstMatRef& from = entry.matrix->from; from.data != weights.embed.data) {
      type.bytes_before += matrix_bytes(from.dtype, from.rows, from.cols);
    }
  }
  return types;
}

}  // namespace

Result<QuantisedFiles> write_quantised_files(ModelWeights& weights, const QuantisePlan& plan, const NewFolder& folder,
                                             const QuantisedFilesOptions& options) {
  const std::vector<QuantisedMatrix> matrices = matrices_to_quantise(weights, plan);
  const std::vector<Entry> entries = all_entries(weights, matrices);
  std::int64_t bytes = 0;
  for (const Entry& entry : entries) bytes += static_cast<std::int64_t>(entry.target.bytes());
  if (Status room = folder.check_room(static_cast<std::uint64_t>(bytes)); !room.ok()) return room.error();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(options.threads);
  if (!pool.ok()) return pool.error();
  const std::vector<std::span<const Entry>> shards = shards_of(entries, options.most_shard_bytes);
  ShardWriter writer(**pool, weights, options, bytes);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (Status written = writer.write(shards[i], folder.file(shard_name(i, shards.size()))); !written.ok())
      return written.error();
  }
  if (shards.size() > 1) {
    if (Status written = write_index(shards, bytes, folder); !written.ok()) return written.error();
  }
  return QuantisedFiles{.by_type = count_types(entries, weights), .files = static_cast<int>(shards.size())};
}

}  // namespace latte
