#include "weights/matrix_list.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "weights/tensor_names.h"

namespace latte {
namespace {

namespace names = tensor_names;

/// What QuantisePlan tells apart.
enum class Part : std::uint8_t { kAttention, kFfn, kHead };

DType type_of(const QuantisePlan& plan, Part part) {
  return part == Part::kAttention ? plan.attention : part == Part::kFfn ? plan.ffn : plan.head;
}

/// Calls visit(matrix, part, name) for every matrix that latte may hold grouped, empty ones too: main model first, then
/// the MTP layers. `Weights` is ModelWeights, const or not.
template <class Weights, class Visit>
class MatrixWalk {
 public:
  explicit MatrixWalk(Visit visit) : visit_(std::move(visit)) {}

  void walk(Weights& weights) {
    visit_(weights.head, Part::kHead, weights.name_root + std::string(names::kHead));
    int layer = 0;
    for (auto& each : weights.layers) walk_layer(each, weights.name_root + names::layer_prefix(layer++));
    for (auto& mtp : weights.mtp) {
      const std::string prefix = weights.name_root + names::layer_prefix(layer++);
      visit_(mtp.head, Part::kHead, prefix + std::string(names::kMtpHead));
      visit_(mtp.eh_proj, Part::kFfn, prefix + std::string(names::kMtpProjection));
      walk_layer(mtp.layer, prefix);
    }
  }

 private:
  template <class Layer>
  void walk_layer(Layer& layer, const std::string& prefix) {
    const auto projection = [&](auto& matrix, std::string_view name) {
      visit_(matrix, Part::kAttention, prefix + std::string(name));
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
    walk_block(layer.ffn.dense, prefix + std::string(names::kDense));
    for (std::size_t e = 0; e < layer.ffn.experts.size(); ++e)
      walk_block(layer.ffn.experts[e], prefix + names::expert(static_cast<int>(e)));
    walk_block(layer.ffn.shared, prefix + std::string(names::kShared));
  }
  template <class Block>
  void walk_block(Block& block, const std::string& prefix) {
    visit_(block.gate, Part::kFfn, prefix + std::string(names::kGate));
    visit_(block.up, Part::kFfn, prefix + std::string(names::kUp));
    visit_(block.down, Part::kFfn, prefix + std::string(names::kDown));
  }

  Visit visit_;
};

template <class Weights, class Visit>
void walk_matrices(Weights& weights, Visit visit) {
  MatrixWalk<Weights, Visit>(std::move(visit)).walk(weights);
}

}  // namespace

std::vector<QuantisedMatrix> matrices_to_quantise(ModelWeights& weights, const QuantisePlan& plan) {
  std::vector<QuantisedMatrix> matrices;
  std::map<std::pair<const void*, DType>, std::size_t> index;
  walk_matrices(weights, [&](ConstMatRef& matrix, Part part, std::string name) {
    if (matrix.empty() || is_grouped(matrix.dtype)) return;
    const DType type = type_of(plan, part);
    const auto [known, fresh] = index.try_emplace({matrix.data, type}, matrices.size());
    if (fresh) matrices.push_back({.name = std::move(name), .from = matrix, .type = type, .uses = {}});
    matrices[known->second].uses.push_back(&matrix);
  });
  return matrices;
}

std::vector<GroupedMatrix> grouped_matrices(const ModelWeights& weights) {
  std::vector<GroupedMatrix> matrices;
  std::set<const void*> met;
  walk_matrices(weights, [&](const ConstMatRef& matrix, Part, std::string name) {
    if (matrix.empty() || !is_grouped(matrix.dtype) || !met.insert(matrix.data).second) return;
    matrices.push_back({std::move(name), matrix});
  });
  return matrices;
}

}  // namespace latte
