#pragma once

namespace latte {

/// What the processor and the system say of AMX tiles with products of bf16 and of bytes.
enum class AmxAccess {
  kNone,     ///< the processor has none
  kRefused,  ///< the system does not let this process use them (arch_prctl ARCH_REQ_XCOMP_PERM)
  kGranted,
};

/// Asks the system once per process; all threads, also those that run already, may then use tiles.
AmxAccess amx_access();

}  // namespace latte
