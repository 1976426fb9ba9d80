#pragma once

#include "plan/choose_isa.h"

namespace latte {

/// This machine's processor as CPUID names it; empty on other processors than x86.
ProcessorModel processor_model();

}  // namespace latte
