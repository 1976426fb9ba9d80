#pragma once

namespace latte {

/// The widths of one MLA layer. Names are those of the papers: r latent rank, p rope, n nope, v value width.
struct MlaGeometry {
  int heads = 0;
  int r = 0;
  int p = 0;
  int n = 0;
  int v = 0;

  constexpr int key_width() const { return n + p; }       ///< materialised key, per head
  constexpr int latent_width() const { return r + p; }    ///< cached row, shared by all heads
  constexpr int expanded_width() const { return n + v; }  ///< d: what one latent row expands to, per head
  friend constexpr bool operator==(const MlaGeometry&, const MlaGeometry&) = default;
};

/// The widths of one layer of grouped-query attention: `heads` query heads in `kv_heads` groups that share a key and a
/// value. heads == 0 where a model has latent attention instead.
struct GqaGeometry {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;

  constexpr int query_width() const { return heads * head_dim; }
  constexpr int kv_width() const { return kv_heads * head_dim; }  ///< keys of one row, and its values
  constexpr int cache_width() const { return 2 * kv_width(); }    ///< cached row: keys of all groups, then values
  constexpr int group_heads() const { return heads / kv_heads; }  ///< packed rows of one query in a lane
  friend constexpr bool operator==(const GqaGeometry&, const GqaGeometry&) = default;
};

inline constexpr MlaGeometry kDeepSeekV3{.heads = 128, .r = 512, .p = 64, .n = 128, .v = 128};
inline constexpr MlaGeometry kDeepSeekV2Lite{.heads = 16, .r = 512, .p = 64, .n = 128, .v = 128};
inline constexpr MlaGeometry kGlm47Flash{.heads = 20, .r = 512, .p = 64, .n = 192, .v = 256};
inline constexpr MlaGeometry kGlm53Flash{.heads = 64, .r = 512, .p = 0, .n = 256, .v = 256};
inline constexpr MlaGeometry kMiniCpm3{.heads = 40, .r = 256, .p = 32, .n = 64, .v = 64};

}  // namespace latte
