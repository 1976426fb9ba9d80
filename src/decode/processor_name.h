#pragma once

#include <string>

namespace latte {

/// The name of this machine's processor, as Linux tells it; empty elsewhere.
std::string processor_name();

}  // namespace latte
