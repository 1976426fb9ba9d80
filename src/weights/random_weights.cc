#include "weights/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/contract.h"
#include "base/fail.h"
#include "base/thread_pool.h"
#include "tensor/grouped.h"
#include "tensor/half.h"
#include "weights/fold.h"
#include "weights/weight_arena.h"
#include "weights/weight_elements.h"

namespace latte {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kBlock = 1 << 16;  // elements that one task fills

/// Bytes of a grouped tensor that one task fills: whole blocks.
constexpr std::int64_t grouped_task_bytes(DType dtype) { return 64 * block_bytes(dtype); }

/// A tensor that is still to be filled.
struct Tensor {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t count = 0;  ///< elements; of grouped types bytes
  float scale = 0;         ///< values are uniform in +-scale; 0: all are `value`
  float value = 0;
};

/// Lays a model's tensors out one after the other. Over a null base it only counts the bytes; the same calls then cut
/// real memory.
class Layout {
 public:
  /// `formats`: what the matrices become; `dtype`: the embedding table and what is kept per head.
  Layout(const WeightSpec& spec, DType dtype, const QuantisePlan& formats, std::byte* base)
      : spec_(spec), dtype_(dtype), formats_(formats), base_(base) {}

  ModelWeights run();
  std::size_t used() const { return used_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  LayerWeights layer(FfnKind kind);
  MlaWeights mla();
  GqaWeights gqa();
  FfnWeights ffn(FfnKind kind);
  MtpWeights mtp(const ModelWeights& main);
  ExpertWeights block(std::int64_t width);

  ConstMatRef stored(std::int64_t rows, std::int64_t cols) { return random(rows, cols, dtype_); }
  ConstMatRef projection(std::int64_t rows, std::int64_t cols) { return random(rows, cols, formats_.attention); }
  ConstMatRef inner(std::int64_t rows, std::int64_t cols) { return random(rows, cols, formats_.ffn); }
  ConstMatRef random(std::int64_t rows, std::int64_t cols, DType dtype) {
    return place(rows, cols, {.dtype = dtype, .scale = std::sqrt(3.0f / static_cast<float>(cols))});
  }
  ConstMatRef vector(std::int64_t size, double value) {
    return place(1, size, {.dtype = DType::kF32, .value = static_cast<float>(value)});
  }
  ConstMatRef place(std::int64_t rows, std::int64_t cols, Tensor tensor);

  const WeightSpec& spec_;
  DType dtype_;
  QuantisePlan formats_;
  std::byte* base_;
  std::size_t used_ = 0;
  std::vector<Tensor> tensors_;
};

ConstMatRef Layout::place(std::int64_t rows, std::int64_t cols, Tensor tensor) {
  const auto bytes = static_cast<std::size_t>(matrix_bytes(tensor.dtype, rows, cols));
  tensor.count = is_grouped(tensor.dtype) ? static_cast<std::int64_t>(bytes) : rows * cols;
  tensor.data = base_ == nullptr ? nullptr : base_ + used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (base_ != nullptr) tensors_.push_back(tensor);
  return {tensor.data, tensor.dtype, rows, cols, cols};
}

ModelWeights Layout::run() {
  ModelWeights weights;
  // As large as what a layer adds: rows stay as different as their tokens, and choose experts of their own.
  weights.embed = place(spec_.vocab, spec_.hidden, {.dtype = dtype_, .scale = std::sqrt(3.0f)});
  weights.norm = vector(spec_.hidden, spec_.final_norm_scale);
  const bool tied = spec_.tie_word_embeddings && !is_grouped(formats_.head);
  weights.head = tied ? weights.embed : random(spec_.vocab, spec_.hidden, formats_.head);
  for (const FfnKind kind : spec_.layers) weights.layers.push_back(layer(kind));
  for (int i = 0; i < spec_.nextn_layers; ++i) weights.mtp.push_back(mtp(weights));
  return weights;
}

LayerWeights Layout::layer(FfnKind kind) {
  const bool latent = spec_.attention == AttentionKind::kMla;
  return {.input_norm = vector(spec_.hidden, 1),
          .post_attention_norm = vector(spec_.hidden, 1),
          .attention = latent ? mla() : MlaWeights{},
          .gqa = latent ? GqaWeights{} : gqa(),
          .ffn = ffn(kind)};
}

MlaWeights Layout::mla() {
  const MlaGeometry& g = spec_.geometry;
  const std::int64_t query_rows = std::int64_t{g.heads} * g.key_width();
  MlaWeights mla;
  if (spec_.q_lora_rank == 0) {
    mla.q_proj = projection(query_rows, spec_.hidden);
  } else {
    mla.q_a = projection(spec_.q_lora_rank, spec_.hidden);
    mla.q_a_norm = vector(spec_.q_lora_rank, 1);
    mla.q_b = projection(query_rows, spec_.q_lora_rank);
  }
  mla.kv_a = projection(g.latent_width(), spec_.hidden);
  mla.kv_a_norm = vector(g.r, 1);
  mla.o_proj = projection(spec_.hidden, std::int64_t{g.heads} * g.v);
  if (spec_.bias.inputs) {
    if (spec_.q_lora_rank > 0) mla.q_a_bias = vector(spec_.q_lora_rank, 0);
    mla.kv_a_bias = vector(g.latent_width(), 0);
  }
  if (spec_.bias.output) mla.o_bias = vector(spec_.hidden, 0);
  const ConstMatRef kv_b = stored(std::int64_t{g.heads} * g.expanded_width(), g.r);
  if (kv_b.empty()) return mla;  // only counting
  const Result<FoldedKvB> folded = fold_kv_b(kv_b, g, "kv_b_proj", "random weights");
  expects(folded.ok(), "a kv_b_proj made for a geometry folds by it");
  mla.w_uk = folded->w_uk;
  mla.w_uv = folded->w_uv;
  return mla;
}

GqaWeights Layout::gqa() {
  const GqaGeometry& g = spec_.gqa;
  GqaWeights gqa;
  gqa.q_proj = projection(g.query_width(), spec_.hidden);
  gqa.k_proj = projection(g.kv_width(), spec_.hidden);
  gqa.v_proj = projection(g.kv_width(), spec_.hidden);
  gqa.o_proj = projection(spec_.hidden, g.query_width());
  if (spec_.qk_norm) {
    gqa.q_norm = vector(g.head_dim, 1);
    gqa.k_norm = vector(g.head_dim, 1);
  }
  if (spec_.bias.inputs) {
    gqa.q_bias = vector(g.query_width(), 0);
    gqa.k_bias = vector(g.kv_width(), 0);
    gqa.v_bias = vector(g.kv_width(), 0);
  }
  if (spec_.bias.output) gqa.o_bias = vector(spec_.hidden, 0);
  return gqa;
}

ExpertWeights Layout::block(std::int64_t width) {
  return {.gate = inner(width, spec_.hidden), .up = inner(width, spec_.hidden), .down = inner(spec_.hidden, width)};
}

FfnWeights Layout::ffn(FfnKind kind) {
  FfnWeights ffn;
  if (kind == FfnKind::kDense) {
    ffn.dense = block(spec_.intermediate);
    return ffn;
  }
  ffn.is_moe = true;
  ffn.router = random(spec_.experts, spec_.hidden, DType::kF32);
  if (spec_.router_bias) ffn.router_bias = vector(spec_.experts, 0);
  for (int e = 0; e < spec_.experts; ++e) ffn.experts.push_back(block(spec_.moe_intermediate));
  if (spec_.shared_experts > 0) ffn.shared = block(std::int64_t{spec_.shared_experts} * spec_.moe_intermediate);
  return ffn;
}

MtpWeights Layout::mtp(const ModelWeights& main) {
  return {.enorm = vector(spec_.hidden, 1),
          .hnorm = vector(spec_.hidden, 1),
          .eh_proj = inner(spec_.hidden, std::int64_t{2} * spec_.hidden),
          .embed = main.embed,
          .norm = vector(spec_.hidden, 1),
          .head = main.head,
          .layer = layer(spec_.nextn_kind)};
}

constexpr std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

/// `count` values at `out`: two 16-bit numbers of each 32-bit word, a function of `key` and the place alone.
template <class Element, class Convert>
void fill_random(Element* out, std::int64_t count, std::uint32_t key, float scale, Convert convert) {
  const float unit = scale / 32768;
  for (std::int64_t i = 0; i < count; i += 2) {
    const std::uint32_t word = mixed(static_cast<std::uint32_t>(i) * 0x9E3779B9u + key);
    out[i] = convert((static_cast<float>(word & 0xFFFF) - 32767.5f) * unit);
    if (i + 1 < count) out[i + 1] = convert((static_cast<float>(word >> 16) - 32767.5f) * unit);
  }
}

/// Whole blocks of a grouped weight: codes of any value, one scale for all.
void fill_grouped(const Tensor& tensor, std::int64_t first, std::uint32_t key) {
  const std::int64_t step = block_bytes(tensor.dtype);
  // Codes are in -127..127 or -7..7, zero in the mean: a matrix whose elements share a mean turns all rows the same
  // way, layer by layer, until they choose the same experts. Values are in +-tensor.scale.
  const bf16 scale = to_bf16(tensor.scale / (tensor.dtype == DType::kQ4 ? 8 : 127));
  for (std::int64_t at = first; at < std::min(first + grouped_task_bytes(tensor.dtype), tensor.count); at += step) {
    std::byte* block = tensor.data + at;
    for (int i = 0; i < kBlockScaleBytes; i += 2) std::memcpy(block + i, &scale, sizeof(scale));
    for (std::int64_t i = kBlockScaleBytes; i < step; i += 4) {
      std::uint32_t word = mixed(static_cast<std::uint32_t>(at + i) * 0x9E3779B9u + key);
      if (tensor.dtype == DType::kQ4) {
        const std::uint32_t some = (word | word >> 1 | word >> 2 | word >> 3) & 0x11111111u;
        word |= (some ^ 0x11111111u) << 3;  // half bytes of 0, which is -8, become 8, which is 0
      }
      for (int byte = 0; byte < 4; ++byte, word >>= 8) {
        const std::uint32_t code = word & 0xFF;
        block[i + byte] = static_cast<std::byte>(tensor.dtype == DType::kQ8 && code == 0x80 ? 0 : code);
      }
    }
  }
}

void fill_block(const Tensor& tensor, std::int64_t first, std::uint32_t key) {
  if (is_grouped(tensor.dtype)) return fill_grouped(tensor, first, key);
  const std::int64_t count = std::min(kBlock, tensor.count - first);
  std::byte* at = tensor.data + static_cast<std::size_t>(first) * dtype_bytes(tensor.dtype);
  if (tensor.dtype == DType::kBf16) {
    fill_random(reinterpret_cast<bf16*>(at), count, key, tensor.scale, [](float value) { return to_bf16(value); });
  } else if (tensor.scale == 0) {
    std::fill_n(reinterpret_cast<float*>(at), count, tensor.value);
  } else {
    fill_random(reinterpret_cast<float*>(at), count, key, tensor.scale, [](float value) { return value; });
  }
}

/// The key of a block hangs on its number alone, so the division among threads shows nowhere.
void fill(const std::vector<Tensor>& tensors, std::uint64_t seed, ThreadPool& pool) {
  struct Block {
    const Tensor* tensor;
    std::int64_t first;
  };
  std::vector<Block> blocks;
  for (const Tensor& tensor : tensors) {
    const std::int64_t step = is_grouped(tensor.dtype) ? grouped_task_bytes(tensor.dtype) : kBlock;
    for (std::int64_t first = 0; first < tensor.count; first += step) blocks.push_back({&tensor, first});
  }
  const std::uint32_t start = mixed(static_cast<std::uint32_t>(seed) ^ mixed(static_cast<std::uint32_t>(seed >> 32)));
  pool.run(static_cast<int>(blocks.size()), [&](int task, int) {
    const Block& block = blocks[static_cast<std::size_t>(task)];
    fill_block(*block.tensor, block.first, mixed(start + static_cast<std::uint32_t>(task)));
  });
}

void report(const WeightSpec& spec, DType dtype, ModelWeights& weights) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  WeightSpec main = spec;
  main.nextn_layers = 0;
  LoadReport& out = weights.report;
  const std::int64_t all = weight_elements(spec, kMost).value_or(0);
  out.parameters = weight_elements(main, kMost).value_or(0);
  out.mtp_parameters = all - out.parameters;
  out.bytes = all * static_cast<std::int64_t>(dtype_bytes(dtype));
  out.stored_dtype = dtype;
  out.layers = static_cast<int>(weights.layers.size());
  out.folded_layers = spec.attention == AttentionKind::kMla ? out.layers : 0;
  out.mtp_present = !weights.mtp.empty();
  out.mtp_reason = out.mtp_present ? "random" : "none was made";
}

QuantisePlan formats_of(DType dtype, const std::optional<QuantisePlan>& plan) {
  return plan.value_or(QuantisePlan{.attention = dtype, .ffn = dtype, .head = dtype});
}

bool is_a_model(const WeightSpec& spec) {
  return weight_elements(spec, std::numeric_limits<std::int64_t>::max() / 16).has_value();
}

}  // namespace

std::int64_t random_weight_bytes(const WeightSpec& spec, DType dtype, const std::optional<QuantisePlan>& plan) {
  if (!is_a_model(spec)) return std::numeric_limits<std::int64_t>::max();
  Layout counted(spec, dtype, formats_of(dtype, plan), nullptr);
  counted.run();
  return static_cast<std::int64_t>(counted.used());
}

Result<ModelWeights> random_weights(const WeightSpec& spec, DType dtype, std::uint64_t seed, int threads,
                                    const std::optional<QuantisePlan>& plan) {
  expects(dtype == DType::kBf16 || dtype == DType::kF32, "random weights are bf16 or f32");
  if (!is_a_model(spec)) {
    return fail(ErrorKind::kInvalidInput,
                "[weights] the sizes multiply to more than 2^59 elements, expected those of a model: check the "
                "configuration");
  }
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(threads);
  if (!pool.ok()) return pool.error();
  const QuantisePlan formats = formats_of(dtype, plan);
  Layout counted(spec, dtype, formats, nullptr);
  counted.run();
  Result<WeightArena> memory = WeightArena::make(counted.used());
  if (!memory.ok()) return memory.error();
  Layout layout(spec, dtype, formats, memory->data());
  ModelWeights weights = layout.run();
  fill(layout.tensors(), seed, **pool);
  weights.made = std::move(*memory);
  report(spec, dtype, weights);
  if (plan.has_value())
    weights.report.bytes = weights.report.quantised_bytes = static_cast<std::int64_t>(counted.used());
  weights.report.used = static_cast<std::int64_t>(layout.tensors().size());
  return weights;
}

}  // namespace latte
