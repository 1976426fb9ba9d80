#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace latte {

/// 128 bits of XXH3. It tells accidents, not attackers.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  bool operator==(const Digest&) const = default;
  /// 32 hexadecimal digits, the high half first.
  std::string hex() const;
};

/// XXH3-128 over bytes that come in parts. Move-only.
class Checksum {
 public:
  Checksum();

  void restart();
  void add(std::span<const std::byte> bytes);
  Digest digest() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace latte
