#include "io/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace latte {

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Checksum::Checksum() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  restart();
}

void Checksum::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Checksum::restart() { XXH3_128bits_reset(state_.get()); }

void Checksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

Digest Checksum::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace latte
