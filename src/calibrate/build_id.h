#pragma once

namespace latte {

/// Sixteen digits that change with the sources of what is timed and with the way they are compiled; made by
/// cmake/build_id.cmake.
const char* build_id();

}  // namespace latte
