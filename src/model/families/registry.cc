#include <array>

#include "model/families/family.h"

namespace latte {

// One line here and one in kFamilies for each file of this folder.
extern const Family kDeepseekV3Family;
extern const Family kDeepseekV2Family;
extern const Family kGlm4MoeLiteFamily;
extern const Family kYoutuFamily;
extern const Family kMiniCpm3Family;
extern const Family kLlamaFamily;
extern const Family kQwen2Family;
extern const Family kQwen3Family;
extern const Family kQwen3MoeFamily;
extern const Family kDots1Family;

std::span<const Family> families() {
  static const std::array kFamilies = {
      kDeepseekV3Family, kDeepseekV2Family, kGlm4MoeLiteFamily, kYoutuFamily,    kMiniCpm3Family,
      kLlamaFamily,      kQwen2Family,      kQwen3Family,       kQwen3MoeFamily, kDots1Family,
  };
  return kFamilies;
}

}  // namespace latte
