#pragma once

#include "backend/backend.h"

namespace latte::reference {

// The operations of backend.h in double, one file for each kind. They are the manual of the faster backends: a loop
// here is the definition of what a kernel there computes.

// rows.cc
void embed(const EmbedArgs& args);
void rms_norm(const RmsNormArgs& args);
void rope(const RopeArgs& args);
void store_rows(const StoreRowsArgs& args);

// matmul.cc
void matmul(const MatmulArgs& args);
void head_matmul(const HeadMatmulArgs& args);
void expand_latent(const ExpandArgs& args);
/// y [L, N] = x [L, K] w [N, K]^T, or y += ... when `accumulate`.
void multiply(ConstMatRef x, ConstMatRef w, MatRef y, bool accumulate);

// attention.cc
void attend_partial(const AttendArgs& args);
void merge_partials(const MergeArgs& args);

// route.cc
void route(const RouteArgs& args);

// experts.cc
void experts(const ExpertsArgs& args);
void ffn(const FfnArgs& args);

}  // namespace latte::reference
