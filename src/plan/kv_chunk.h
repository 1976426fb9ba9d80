#pragma once

namespace latte {

/// Keys are taken in blocks of this many, aligned to absolute multiples; chunks and cache pages are multiples of it.
inline constexpr int kKeyBlock = 64;

/// A stretch of keys that one sequence's rows attend to as one leaf of the merge tree.
struct KvChunk {
  int sequence = 0;  ///< index into the step's list of sequences
  int begin = 0;     ///< first cache row
  int end = 0;       ///< one past the last cache row
  int slot = 0;      ///< partial that receives the result
  bool opens_slot =
      true;  ///< false: fold into what the slot holds already (chunks of a slot are listed in ascending order)

  friend constexpr bool operator==(const KvChunk&, const KvChunk&) = default;
};

/// Fan-in of the merge tree: leaf i belongs to group i / 8, group j to group j / 8 of the next level, and so on.
inline constexpr int kMergeFanIn = 8;

}  // namespace latte
