#include "weights/loader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "io/safetensors.h"
#include "tensor/grouped.h"
#include "tensor/half.h"
#include "weights/finite_scan.h"
#include "weights/fold.h"
#include "weights/tensor_names.h"

namespace latte {
namespace {

namespace names = tensor_names;

constexpr int kMostScanThreads = 16;

template <class Stored>
void widen(const TensorView& tensor, std::vector<float>& copy) {
  const std::byte* data = static_cast<const std::byte*>(tensor.data);
  for (std::size_t i = 0; i < copy.size(); ++i) {
    Stored element;
    std::memcpy(&element, data + i * sizeof(Stored), sizeof(Stored));  // the mapping may be misaligned
    if constexpr (std::is_same_v<Stored, double>) {
      copy[i] = static_cast<float>(element);
    } else {
      copy[i] = to_float(element);
    }
  }
}

std::vector<float> as_floats(const TensorView& tensor) {
  std::vector<float> copy(tensor.bytes / dtype_bytes(tensor.dtype));
  if (tensor.dtype == DType::kF64) widen<double>(tensor, copy);
  if (tensor.dtype == DType::kF32) widen<float>(tensor, copy);
  if (tensor.dtype == DType::kF16) widen<f16>(tensor, copy);
  if (tensor.dtype == DType::kBf16) widen<bf16>(tensor, copy);
  return copy;
}

/// Where the data of grouped matrices starts: a block never lies across one cache line more than it needs.
constexpr std::uintptr_t kCacheLine = 64;

constexpr std::string_view kUnknownName = "unknown name";
constexpr std::string_view kOutside = "not of the text model";

/// Takes tensors out of a checkpoint one by one. The first thing that does not hold stays as the error; later calls
/// then return empty views, so that loading reads as the list of what a model consists of.
class Loader {
 public:
  Loader(Checkpoint checkpoint, const WeightSpec& spec, LoadFor purpose);
  Result<ModelWeights> run();

 private:
  void load_main();
  void load_mtp();
  LayerWeights load_layer(const std::string& prefix, FfnKind kind);
  MlaWeights load_mla(const std::string& prefix);
  GqaWeights load_gqa(const std::string& prefix);
  FfnWeights load_ffn(const std::string& prefix, FfnKind kind);
  void blame_layer_kind(const std::string& prefix, FfnKind kind);
  void blame_expert_count(const std::string& prefix);
  ExpertWeights load_block(const std::string& prefix, std::int64_t width);
  std::vector<ExpertWeights> load_experts(const std::string& prefix);
  MtpWeights load_mtp_layer(int layer);
  void write_report();
  /// Whether a tensor is of a layer that the configuration has no place for.
  bool is_past(std::size_t tensor) const;
  std::string drop_reason(std::size_t tensor) const;

  const TensorView* find(const std::string& name, std::string_view expected);
  const TensorView* take(const std::string& name, std::span<const std::int64_t> shape, std::string_view axes);
  void mark_used(const TensorView& tensor, std::int64_t elements, bool scanned);
  /// A matrix that quantising replaces, or that is stored grouped already as `grouped`.
  ConstMatRef projection(const std::string& name, DType grouped, std::int64_t rows, std::int64_t cols,
                         std::string_view axes);
  ConstMatRef attention(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes) {
    return projection(name, plan_.attention, rows, cols, axes);
  }
  ConstMatRef ffn(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes) {
    return projection(name, plan_.ffn, rows, cols, axes);
  }
  ConstMatRef grouped_matrix(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols,
                             std::string_view axes);
  ConstMatRef matrix(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes);
  ConstMatRef float_matrix(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes);
  ConstMatRef vector(const std::string& name, std::int64_t size, std::string_view axes);
  ConstMatRef view(const TensorView& tensor, std::int64_t rows, std::int64_t cols);
  ConstMatRef replaced(const TensorView& tensor, std::int64_t rows, std::int64_t cols);
  ConstMatRef copy(const TensorView& tensor, std::int64_t rows, std::int64_t cols);
  ConstMatRef widened(const ConstMatRef& m);
  bool has(const std::string& name) const { return weights_.checkpoint.find(name) != nullptr; }
  bool has_layer(int layer) const { return std::find(layer_of_.begin(), layer_of_.end(), layer) != layer_of_.end(); }

  /// A tensor in use.
  struct Taken {
    const TensorView* tensor = nullptr;
    std::int64_t elements = 0;  ///< that count as parameters
    bool scanned = true;        ///< for NaN and infinity
  };

  const WeightSpec& spec_;
  const LoadFor purpose_;
  const QuantisePlan plan_;  // of a checkpoint that is stored grouped
  ModelWeights weights_;
  std::string root_;                           // before every name: a text model inside a larger one
  std::vector<int> layer_of_;                  // per tensor of the checkpoint, -1 outside layers
  std::vector<bool> used_;                     // per tensor of the checkpoint
  std::vector<Taken> taken_;                   // in the order of use
  std::size_t taken_main_ = 0;                 // how many of them belong to the main model
  std::map<int, std::string> dropped_layers_;  // MTP layers left out, with the reason
  std::optional<Error> error_;
  std::string missing_;  // the tensor that error_ is about, when it is simply absent
};

Loader::Loader(Checkpoint checkpoint, const WeightSpec& spec, LoadFor purpose)
    : spec_(spec), purpose_(purpose), plan_(spec.grouped.has_value() ? spec.grouped->plan : QuantisePlan{}) {
  weights_.checkpoint = std::move(checkpoint);
  const std::string inner = "language_model.";
  if (!has(std::string(names::kEmbed)) && has(inner + std::string(names::kEmbed))) root_ = inner;
  weights_.name_root = root_;
  const std::vector<TensorView>& tensors = weights_.checkpoint.tensors();
  used_.resize(tensors.size());
  const std::string layers = root_ + "model.layers.";
  for (const TensorView& tensor : tensors) {
    int layer = -1;
    if (tensor.name.starts_with(layers)) {
      const char* end = tensor.name.data() + tensor.name.size();
      const auto [stop, code] = std::from_chars(tensor.name.data() + layers.size(), end, layer);
      if (code != std::errc() || stop == end || *stop != '.') layer = -1;
    }
    layer_of_.push_back(layer);
  }
}

Result<ModelWeights> Loader::run() {
  load_main();
  taken_main_ = taken_.size();
  if (!error_) load_mtp();
  if (error_) return *std::move(error_);
  const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostScanThreads);
  std::vector<const TensorView*> scanned;
  for (const Taken& taken : taken_) {
    if (taken.scanned) scanned.push_back(taken.tensor);
  }
  const ScannedPages pages = purpose_ == LoadFor::kQuantising ? ScannedPages::kGivenBack : ScannedPages::kKept;
  if (const Status finite = check_finite_weights(scanned, threads, pages); !finite) return finite.error();
  write_report();
  if (error_) return *std::move(error_);
  return std::move(weights_);
}

void Loader::load_main() {
  weights_.embed = matrix(root_ + std::string(names::kEmbed), spec_.vocab, spec_.hidden, "vocab, D");
  weights_.norm = vector(root_ + std::string(names::kNorm), spec_.hidden, "D");
  if (!error_ && spec_.final_norm_scale != 1) {
    for (float& weight : weights_.copies.back()) weight = static_cast<float>(weight * spec_.final_norm_scale);
  }
  weights_.head =
      spec_.tie_word_embeddings && !spec_.grouped.has_value()
          ? weights_.embed
          : projection(root_ + std::string(names::kHead), plan_.head, spec_.vocab, spec_.hidden, "vocab, D");
  if (!error_ && spec_.tie_word_embeddings && spec_.grouped.has_value()) taken_.back().elements = 0;  // the table's
  for (std::size_t layer = 0; layer < spec_.layers.size() && !error_; ++layer) {
    weights_.layers.push_back(load_layer(root_ + names::layer_prefix(static_cast<int>(layer)), spec_.layers[layer]));
  }
}

LayerWeights Loader::load_layer(const std::string& prefix, FfnKind kind) {
  const bool gqa = spec_.attention == AttentionKind::kGqa;
  return {.input_norm = vector(prefix + std::string(names::kInputNorm), spec_.hidden, "D"),
          .post_attention_norm = vector(prefix + std::string(names::kPostAttentionNorm), spec_.hidden, "D"),
          .attention = gqa ? MlaWeights{} : load_mla(prefix),
          .gqa = gqa ? load_gqa(prefix) : GqaWeights{},
          .ffn = load_ffn(prefix, kind)};
}

GqaWeights Loader::load_gqa(const std::string& prefix) {
  const GqaGeometry& g = spec_.gqa;
  const auto name = [&](std::string_view part) { return prefix + std::string(part); };
  GqaWeights gqa;
  gqa.q_proj = attention(name(names::kQ), g.query_width(), spec_.hidden, "H*d, D");
  gqa.k_proj = attention(name(names::kK), g.kv_width(), spec_.hidden, "kv heads*d, D");
  gqa.v_proj = attention(name(names::kV), g.kv_width(), spec_.hidden, "kv heads*d, D");
  gqa.o_proj = attention(name(names::kO), spec_.hidden, g.query_width(), "D, H*d");
  if (spec_.qk_norm) {
    gqa.q_norm = vector(name(names::kQNorm), g.head_dim, "d");
    gqa.k_norm = vector(name(names::kKNorm), g.head_dim, "d");
  }
  if (spec_.bias.inputs) {
    gqa.q_bias = vector(name(names::kQBias), g.query_width(), "H*d");
    gqa.k_bias = vector(name(names::kKBias), g.kv_width(), "kv heads*d");
    gqa.v_bias = vector(name(names::kVBias), g.kv_width(), "kv heads*d");
  }
  if (spec_.bias.output) gqa.o_bias = vector(name(names::kOBias), spec_.hidden, "D");
  return gqa;
}

MlaWeights Loader::load_mla(const std::string& prefix) {
  const MlaGeometry& g = spec_.geometry;
  const auto name = [&](std::string_view part) { return prefix + std::string(part); };
  const std::int64_t query_rows = std::int64_t{g.heads} * g.key_width();
  MlaWeights mla;
  if (spec_.q_lora_rank == 0) {
    mla.q_proj = attention(name(names::kQ), query_rows, spec_.hidden, "H*(n+p), D");
  } else {
    mla.q_a = attention(name(names::kQA), spec_.q_lora_rank, spec_.hidden, "rq, D");
    mla.q_a_norm = vector(name(names::kQANorm), spec_.q_lora_rank, "rq");
    mla.q_b = attention(name(names::kQB), query_rows, spec_.q_lora_rank, "H*(n+p), rq");
  }
  mla.kv_a = attention(name(names::kKvA), g.latent_width(), spec_.hidden, "r+p, D");
  mla.kv_a_norm = vector(name(names::kKvANorm), g.r, "r");
  mla.o_proj = attention(name(names::kO), spec_.hidden, std::int64_t{g.heads} * g.v, "D, H*v");
  if (spec_.bias.inputs) {
    if (spec_.q_lora_rank > 0) mla.q_a_bias = vector(name(names::kQABias), spec_.q_lora_rank, "rq");
    mla.kv_a_bias = vector(name(names::kKvABias), g.latent_width(), "r+p");
  }
  if (spec_.bias.output) mla.o_bias = vector(name(names::kOBias), spec_.hidden, "D");

  const TensorView* bias = weights_.checkpoint.find(name(names::kKvBBias));
  if (bias != nullptr && !error_) {
    error_ = fail(ErrorKind::kUnsupported, "[load] tensor \"{}\": a bias arrived, expected none on kv_b_proj; file {}",
                  bias->name, bias->file);
  }
  const TensorView* kv_b = weights_.checkpoint.find(name(names::kKvB));
  if (error_ || kv_b == nullptr || kv_b->shape.size() != 2) {
    matrix(name(names::kKvB), g.heads * std::int64_t{g.expanded_width()}, g.r, "H*(n+v), r");  // for its error
    return mla;
  }
  const ConstMatRef kv_b_rows = matrix(kv_b->name, kv_b->shape[0], kv_b->shape[1], "H*(n+v), r");
  if (error_) return mla;
  const Result<FoldedKvB> folded = fold_kv_b(kv_b_rows, g, kv_b->name, kv_b->file);
  if (!folded) {
    error_ = folded.error();
    return mla;
  }
  mla.w_uk = folded->w_uk;
  mla.w_uv = folded->w_uv;
  return mla;
}

ExpertWeights Loader::load_block(const std::string& prefix, std::int64_t width) {
  ExpertWeights block{.gate = ffn(prefix + std::string(names::kGate), width, spec_.hidden, "I, D"),
                      .up = ffn(prefix + std::string(names::kUp), width, spec_.hidden, "I, D"),
                      .down = ffn(prefix + std::string(names::kDown), spec_.hidden, width, "D, I")};
  // One pass reads both, so they are of one type.
  if (!error_ && purpose_ == LoadFor::kCompute && block.gate.dtype != block.up.dtype) {
    if (block.gate.dtype == DType::kBf16) block.gate = widened(block.gate);
    if (block.up.dtype == DType::kBf16) block.up = widened(block.up);
  }
  return block;
}

/// A layer whose weights are of the other kind than the configuration says is the configuration's fault.
void Loader::blame_layer_kind(const std::string& prefix, FfnKind kind) {
  const std::string dense = prefix + std::string(names::kDense) + std::string(names::kGate);
  const std::string router = prefix + std::string(names::kRouter);
  const bool dense_said = kind == FfnKind::kDense;
  const std::string& there = dense_said ? router : dense;
  if (error_ || spec_.layer_kinds_key.empty() || has(dense_said ? dense : router) || !has(there)) return;
  error_ = fail(ErrorKind::kInvalidInput,
                "{}/config.json: key {}: by it the layer \"{}\" is {}, expected {} as the weights have \"{}\": mend "
                "the key, or fetch config.json again",
                weights_.checkpoint.directory(), spec_.layer_kinds_key, prefix.substr(0, prefix.size() - 1),
                dense_said ? "dense" : "one with experts", dense_said ? "one with experts" : "a dense one", there);
}

/// So is a number of experts that the router does not have.
void Loader::blame_expert_count(const std::string& prefix) {
  const TensorView* router = weights_.checkpoint.find(prefix + std::string(names::kRouter));
  if (error_ || router == nullptr || router->shape.size() != 2 || router->shape[1] != spec_.hidden ||
      router->shape[0] == spec_.experts)
    return;
  error_ = fail(ErrorKind::kInvalidInput,
                "{}/config.json: key \"{}\": arrived {}, expected {} as tensor \"{}\" {} has: mend the key, or fetch "
                "config.json again",
                weights_.checkpoint.directory(), spec_.experts_key, spec_.experts, router->shape[0], router->name,
                shape_text(router->shape));
}

FfnWeights Loader::load_ffn(const std::string& prefix, FfnKind kind) {
  FfnWeights ffn;
  blame_layer_kind(prefix, kind);
  if (kind == FfnKind::kDense) {
    ffn.dense = load_block(prefix + std::string(names::kDense), spec_.intermediate);
    return ffn;
  }
  ffn.is_moe = true;
  blame_expert_count(prefix);
  ffn.router = float_matrix(prefix + std::string(names::kRouter), spec_.experts, spec_.hidden, "E, D");
  if (spec_.router_bias) ffn.router_bias = vector(prefix + std::string(names::kRouterBias), spec_.experts, "E");
  ffn.experts = load_experts(prefix);
  if (spec_.shared_experts > 0) {
    ffn.shared =
        load_block(prefix + std::string(names::kShared), std::int64_t{spec_.shared_experts} * spec_.moe_intermediate);
  }
  return ffn;
}

std::vector<ExpertWeights> Loader::load_experts(const std::string& prefix) {
  const std::int64_t width = spec_.moe_intermediate;
  const std::string fused = prefix + std::string(names::kFusedGateUp);
  std::vector<ExpertWeights> experts;
  if (!has(fused)) {
    for (int e = 0; e < spec_.experts && !error_; ++e) experts.push_back(load_block(prefix + names::expert(e), width));
    return experts;
  }
  const std::int64_t gate_up_shape[] = {spec_.experts, 2 * width, spec_.hidden};
  const std::int64_t down_shape[] = {spec_.experts, spec_.hidden, width};
  const TensorView* gate_up = take(fused, gate_up_shape, "E, 2I, D");
  const TensorView* down = take(prefix + std::string(names::kFusedDown), down_shape, "E, D, I");
  if (gate_up == nullptr || down == nullptr) return experts;
  const ConstMatRef gate_up_rows = replaced(*gate_up, spec_.experts * 2 * width, spec_.hidden);
  const ConstMatRef down_rows = replaced(*down, std::int64_t{spec_.experts} * spec_.hidden, width);
  for (std::int64_t e = 0; e < spec_.experts; ++e) {
    experts.push_back({.gate = gate_up_rows.rows_from(e * 2 * width, width),
                       .up = gate_up_rows.rows_from(e * 2 * width + width, width),
                       .down = down_rows.rows_from(e * spec_.hidden, spec_.hidden)});
  }
  return experts;
}

void Loader::load_mtp() {
  const int layers = static_cast<int>(spec_.layers.size());
  std::string& reason = weights_.report.mtp_reason;
  if (spec_.nextn_layers == 0) reason = "num_nextn_predict_layers is 0";
  for (int k = 0; k < spec_.nextn_layers; ++k) {
    const int layer = layers + k;
    if (!reason.empty()) {  // a later layer is of no use without the earlier ones
      dropped_layers_[layer] = fmt::format("MTP layer {} is not loaded", layer - 1);
      continue;
    }
    if (!has_layer(layer)) {
      reason = fmt::format("no tensor of {}{}* in the checkpoint", root_, names::layer_prefix(layer));
      continue;
    }
    const std::size_t taken_before = taken_.size();
    const std::size_t copies_before = weights_.copies.size();
    MtpWeights mtp = load_mtp_layer(layer);
    if (!error_) {
      weights_.mtp.push_back(std::move(mtp));
      continue;
    }
    if (missing_.empty()) return;  // not absent but wrong: the whole load fails
    reason = fmt::format("incomplete: {} missing", missing_);
    weights_.report.mtp_incomplete = true;
    dropped_layers_[layer] = reason;
    for (std::size_t i = taken_before; i < taken_.size(); ++i) {
      used_[static_cast<std::size_t>(taken_[i].tensor - weights_.checkpoint.tensors().data())] = false;
    }
    taken_.resize(taken_before);
    weights_.copies.resize(copies_before);
    error_.reset();
    missing_.clear();
  }
}

MtpWeights Loader::load_mtp_layer(int layer) {
  const std::string prefix = root_ + names::layer_prefix(layer);
  const auto name = [&](std::string_view part) { return prefix + std::string(part); };
  return {.enorm = vector(name(names::kMtpEmbeddingNorm), spec_.hidden, "D"),
          .hnorm = vector(name(names::kMtpHiddenNorm), spec_.hidden, "D"),
          .eh_proj = ffn(name(names::kMtpProjection), spec_.hidden, std::int64_t{2} * spec_.hidden, "D, 2D"),
          .embed = has(name(names::kMtpEmbed)) ? matrix(name(names::kMtpEmbed), spec_.vocab, spec_.hidden, "vocab, D")
                                               : weights_.embed,
          .norm = has(name(names::kMtpNorm)) ? vector(name(names::kMtpNorm), spec_.hidden, "D") : weights_.norm,
          .head = has(name(names::kMtpHead))
                      ? projection(name(names::kMtpHead), plan_.head, spec_.vocab, spec_.hidden, "vocab, D")
                      : weights_.head,
          .layer = load_layer(prefix, spec_.nextn_kind)};
}

/// Nothing, with the error, where there is no such tensor.
const TensorView* Loader::find(const std::string& name, std::string_view expected) {
  if (error_) return nullptr;
  const TensorView* tensor = weights_.checkpoint.find(name);
  if (tensor != nullptr) return tensor;
  missing_ = name;
  error_ = fail(ErrorKind::kNotFound, "[load] tensor \"{}\": missing, expected {}; folder {}", name, expected,
                weights_.checkpoint.directory());
  return nullptr;
}

void Loader::mark_used(const TensorView& tensor, std::int64_t elements, bool scanned) {
  used_[static_cast<std::size_t>(&tensor - weights_.checkpoint.tensors().data())] = true;
  taken_.push_back({&tensor, elements, scanned});
}

const TensorView* Loader::take(const std::string& name, std::span<const std::int64_t> shape, std::string_view axes) {
  const TensorView* tensor = find(name, fmt::format("{} ({})", shape_text(shape), axes));
  if (tensor == nullptr) return nullptr;
  if (!is_float(tensor->dtype)) {
    error_ = fail(ErrorKind::kUnsupported, "[load] tensor \"{}\": dtype {}, expected F32, BF16, F16 or F64; file {}",
                  name, dtype_name(tensor->dtype), tensor->file);
    return nullptr;
  }
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    error_ = fail(
        ErrorKind::kInvalidInput,
        "[load] tensor \"{}\": shape {}, expected {} ({}): config.json and weights do not belong together; file {}",
        name, shape_text(tensor->shape), shape_text(shape), axes, tensor->file);
    return nullptr;
  }
  mark_used(*tensor, static_cast<std::int64_t>(tensor->bytes / dtype_bytes(tensor->dtype)), true);
  return tensor;
}

ConstMatRef Loader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes) {
  const std::int64_t shape[] = {rows, cols};
  const TensorView* tensor = take(name, shape, axes);
  if (tensor == nullptr) return {};
  taken_.back().scanned = !spec_.grouped.has_value();
  return view(*tensor, rows, cols);
}

ConstMatRef Loader::projection(const std::string& name, DType grouped, std::int64_t rows, std::int64_t cols,
                               std::string_view axes) {
  if (spec_.grouped.has_value()) return grouped_matrix(name, grouped, rows, cols, axes);
  const std::int64_t shape[] = {rows, cols};
  const TensorView* tensor = take(name, shape, axes);
  return tensor == nullptr ? ConstMatRef{} : replaced(*tensor, rows, cols);
}

/// Panels as latte quantize writes them.
ConstMatRef Loader::grouped_matrix(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols,
                                   std::string_view axes) {
  const std::int64_t shape[] = {panel_count(rows), panel_bytes(dtype, cols)};
  const std::string what = fmt::format("{} of [{}, {}] ({})", dtype_name(dtype), rows, cols, axes);
  const TensorView* tensor = find(name, what);
  if (tensor == nullptr) return {};
  if (tensor->dtype != DType::kU8) {
    error_ = fail(ErrorKind::kInvalidInput,
                  "[load] tensor \"{}\": dtype {}, expected U8, the panels of {} that config.json promises: run latte "
                  "quantize again; file {}",
                  name, dtype_name(tensor->dtype), what, tensor->file);
  } else if (!std::equal(std::begin(shape), std::end(shape), tensor->shape.begin(), tensor->shape.end())) {
    error_ =
        fail(ErrorKind::kInvalidInput,
             "[load] tensor \"{}\": {} bytes as {}, expected {} bytes as {} for {}: config.json and weights do not "
             "belong together, run latte quantize again; file {}",
             name, tensor->bytes, shape_text(tensor->shape), matrix_bytes(dtype, rows, cols), shape_text(shape), what,
             tensor->file);
  } else if (reinterpret_cast<std::uintptr_t>(tensor->data) % kCacheLine != 0) {
    error_ = fail(ErrorKind::kInvalidInput,
                  "[load] tensor \"{}\": its data starts {} bytes behind a cache line, expected none: another program "
                  "wrote the file, run latte quantize again; file {}",
                  name, reinterpret_cast<std::uintptr_t>(tensor->data) % kCacheLine, tensor->file);
  }
  if (error_) return {};
  mark_used(*tensor, rows * cols, false);
  return {tensor->data, dtype, rows, cols, cols};
}

ConstMatRef Loader::float_matrix(const std::string& name, std::int64_t rows, std::int64_t cols, std::string_view axes) {
  const std::int64_t shape[] = {rows, cols};
  const TensorView* tensor = take(name, shape, axes);
  return tensor == nullptr ? ConstMatRef{} : copy(*tensor, rows, cols);
}

ConstMatRef Loader::vector(const std::string& name, std::int64_t size, std::string_view axes) {
  const std::int64_t shape[] = {size};
  const TensorView* tensor = take(name, shape, axes);
  return tensor == nullptr ? ConstMatRef{} : copy(*tensor, 1, size);
}

ConstMatRef Loader::view(const TensorView& tensor, std::int64_t rows, std::int64_t cols) {
  const bool readable = tensor.dtype == DType::kF32 || tensor.dtype == DType::kBf16;
  if (!readable || !tensor.aligned) return copy(tensor, rows, cols);
  return {tensor.data, tensor.dtype, rows, cols, cols};
}

/// What quantising replaces, should that follow, needs no form that steps can read.
ConstMatRef Loader::replaced(const TensorView& tensor, std::int64_t rows, std::int64_t cols) {
  if (purpose_ == LoadFor::kCompute) return view(tensor, rows, cols);
  return {tensor.data, tensor.dtype, rows, cols, cols};
}

ConstMatRef Loader::copy(const TensorView& tensor, std::int64_t rows, std::int64_t cols) {
  weights_.copies.push_back(as_floats(tensor));
  return {weights_.copies.back().data(), DType::kF32, rows, cols, cols};
}

ConstMatRef Loader::widened(const ConstMatRef& m) {
  const MatView<const bf16> from = typed<const bf16>(m);
  std::vector<float> floats(static_cast<std::size_t>(m.rows * m.cols));
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < m.cols; ++j) floats[static_cast<std::size_t>(i * m.cols + j)] = to_float(from(i, j));
  }
  weights_.copies.push_back(std::move(floats));
  return {weights_.copies.back().data(), DType::kF32, m.rows, m.cols, m.cols};
}

bool Loader::is_past(std::size_t index) const {
  return layer_of_[index] >= static_cast<int>(spec_.layers.size()) + spec_.nextn_layers;
}

std::string Loader::drop_reason(std::size_t index) const {
  const std::string& name = weights_.checkpoint.tensors()[index].name;
  if (name.ends_with(names::kInvFreqSuffix)) return "computed from the configuration";
  if (spec_.tie_word_embeddings && name == root_ + std::string(names::kHead))
    return "tied to " + root_ + std::string(names::kEmbed);
  const int layer = layer_of_[index];
  if (const auto left_out = dropped_layers_.find(layer); left_out != dropped_layers_.end()) return left_out->second;
  if (is_past(index)) {
    return fmt::format("layer {} is past num_hidden_layers {} and num_nextn_predict_layers {}", layer,
                       spec_.layers.size(), spec_.nextn_layers);
  }
  return std::string(name.starts_with(root_ + "model.") ? kUnknownName : kOutside);
}

void Loader::write_report() {
  LoadReport& report = weights_.report;
  report.used = static_cast<std::int64_t>(taken_.size());
  const std::vector<TensorView>& tensors = weights_.checkpoint.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (used_[i]) continue;
    report.dropped.push_back({tensors[i].name, drop_reason(i)});
    if (is_past(i) && report.layers_past.empty()) report.layers_past = report.dropped.back().reason;
    report.tied_head_unused = report.tied_head_unused || tensors[i].name == root_ + std::string(names::kHead);
    if (report.dropped.back().reason != kUnknownName || error_) continue;
    error_ =
        fail(ErrorKind::kInvalidInput,
             "[load] tensor \"{}\": a name this architecture does not have, expected none beside its own: config.json "
             "leaves out what the weights hold, or they belong to another model; file {}",
             tensors[i].name, tensors[i].file);
  }
  report.layers = static_cast<int>(weights_.layers.size());
  report.folded_layers = spec_.attention == AttentionKind::kMla ? report.layers : 0;
  report.mtp_present = !weights_.mtp.empty();
  if (report.mtp_present) {
    const std::string count = fmt::format("{} layer{}", weights_.mtp.size(), weights_.mtp.size() == 1 ? "" : "s");
    report.mtp_reason = report.mtp_reason.empty() ? count : count + ", then " + report.mtp_reason;
  }
  std::map<DType, std::size_t> bytes_by_dtype;
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const TensorView& tensor = *taken_[i].tensor;
    bytes_by_dtype[tensor.dtype] += tensor.bytes;
    report.bytes += static_cast<std::int64_t>(tensor.bytes);
    if (tensor.dtype == DType::kU8) report.quantised_bytes += static_cast<std::int64_t>(tensor.bytes);
    (i < taken_main_ ? report.parameters : report.mtp_parameters) += taken_[i].elements;
  }
  for (const std::vector<float>& floats : weights_.copies)
    report.copied_bytes += static_cast<std::int64_t>(floats.size() * sizeof(float));
  const auto by_bytes = [](const auto& a, const auto& b) { return a.second < b.second; };
  report.stored_dtype = spec_.grouped.has_value()
                            ? spec_.grouped->source_dtype
                            : std::max_element(bytes_by_dtype.begin(), bytes_by_dtype.end(), by_bytes)->first;
}

}  // namespace

Result<ModelWeights> load_weights(Checkpoint checkpoint, const WeightSpec& spec, LoadFor purpose) {
  return Loader(std::move(checkpoint), spec, purpose).run();
}

}  // namespace latte
