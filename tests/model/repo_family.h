#pragma once

namespace latte::test {

inline constexpr const char* kFamily = LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3";

}  // namespace latte::test
