#pragma once

#include <cstddef>

namespace latte {

/// Gives the whole pages inside a range of a mapped file back to the system, which reads them anew should somebody ask
/// for them again. Never for other memory: it would be zeros.
void give_back_pages(const void* data, std::size_t bytes);

}  // namespace latte
