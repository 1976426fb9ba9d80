#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "kv/latent_cache.h"
#include "latte/error.h"

namespace latte {

/// Fills a cache up to `length` rows with random rows of root mean square 1: what the attention reads of them costs
/// what rows of a text cost. Errors: no room; a type of cached rows that this cannot write.
Status fill_with_random_rows(Backend& backend, LatentCache& cache, int length, std::uint64_t seed);

}  // namespace latte
