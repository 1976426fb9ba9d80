#pragma once

#include "latte/doctor.h"

namespace latte {

/// Loads oneDNN (libdnnl) where it is installed and times its products of 512 x 512 matrices on `threads` threads,
/// each operand type for about `seconds`. Types that the library or the processor lacks are left out.
OneDnnReport measure_onednn(int threads, double seconds);

}  // namespace latte
