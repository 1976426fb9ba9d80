#include "weights/matrix_list.h"

#include <map>
#include <string_view>
#include <utility>

#include "weights/tensor_names.h"

namespace latte {
namespace {

namespace names = tensor_names;

class MatrixList {
 public:
  explicit MatrixList(const QuantisePlan& plan) : plan_(plan) {}

  void add(ConstMatRef& matrix, DType type, std::string name) {
    if (matrix.empty() || is_grouped(matrix.dtype)) return;
    const auto [known, fresh] = index_.try_emplace({matrix.data, type}, matrices_.size());
    if (fresh) matrices_.push_back({.name = std::move(name), .from = matrix, .type = type, .uses = {}});
    matrices_[known->second].uses.push_back(&matrix);
  }
  void add(LayerWeights& layer, const std::string& prefix) {
    const auto projection = [&](ConstMatRef& matrix, std::string_view name) {
      add(matrix, plan_.attention, prefix + std::string(name));
    };
    projection(layer.attention.q_proj, names::kQ);
    projection(layer.attention.q_a, names::kQA);
    projection(layer.attention.q_b, names::kQB);
    projection(layer.attention.kv_a, names::kKvA);
    projection(layer.attention.o_proj, names::kO);
    projection(layer.gqa.q_proj, names::kQ);
    projection(layer.gqa.k_proj, names::kK);
    projection(layer.gqa.v_proj, names::kV);
    projection(layer.gqa.o_proj, names::kO);
    add(layer.ffn.dense, prefix + std::string(names::kDense));
    for (std::size_t e = 0; e < layer.ffn.experts.size(); ++e)
      add(layer.ffn.experts[e], prefix + names::expert(static_cast<int>(e)));
    add(layer.ffn.shared, prefix + std::string(names::kShared));
  }
  std::vector<QuantisedMatrix> take() { return std::move(matrices_); }

 private:
  void add(ExpertWeights& block, const std::string& prefix) {
    add(block.gate, plan_.ffn, prefix + std::string(names::kGate));
    add(block.up, plan_.ffn, prefix + std::string(names::kUp));
    add(block.down, plan_.ffn, prefix + std::string(names::kDown));
  }

  const QuantisePlan& plan_;
  std::vector<QuantisedMatrix> matrices_;
  std::map<std::pair<const void*, DType>, std::size_t> index_;
};

}  // namespace

std::vector<QuantisedMatrix> matrices_to_quantise(ModelWeights& weights, const QuantisePlan& plan) {
  MatrixList list(plan);
  list.add(weights.head, plan.head, weights.name_root + std::string(names::kHead));
  int layer = 0;
  for (LayerWeights& each : weights.layers) list.add(each, weights.name_root + names::layer_prefix(layer++));
  for (MtpWeights& mtp : weights.mtp) {
    const std::string prefix = weights.name_root + names::layer_prefix(layer++);
    list.add(mtp.head, plan.head, prefix + std::string(names::kMtpHead));
    list.add(mtp.eh_proj, plan.ffn, prefix + std::string(names::kMtpProjection));
    list.add(mtp.layer, prefix);
  }
  return list.take();
}

}  // namespace latte
