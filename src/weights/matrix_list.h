#pragma once

#include <string>
#include <vector>

#include "tensor/mat_ref.h"
#include "weights/model_weights.h"
#include "weights/quantise_plan.h"

namespace latte {

/// A matrix that quantising replaces.
struct QuantisedMatrix {
  std::string name;                ///< of its tensor; of experts that are stored fused, the name of one apart
  ConstMatRef from;                ///< as stored: a view of any float type, perhaps misaligned
  DType type = DType::kQ8;         ///< what it becomes
  std::vector<ConstMatRef*> uses;  ///< where the model reads it
};

/// The matrices of a model that `plan` replaces, main model first, then the MTP layers. One that is met twice (a head
/// that the MTP layer shares) is one entry with two uses. Matrices that are grouped already are left out. The uses
/// point into `weights`.
std::vector<QuantisedMatrix> matrices_to_quantise(ModelWeights& weights, const QuantisePlan& plan);

/// A matrix that lies in panels (tensor/grouped.h).
struct GroupedMatrix {
  std::string name;  ///< of its tensor, as above
  ConstMatRef matrix;
};

/// Those of a model, each once, in the same order.
std::vector<GroupedMatrix> grouped_matrices(const ModelWeights& weights);

}  // namespace latte
