#include "device/open_backend.h"

#include "base/fail.h"
#include "device/cpu/cpu_backend.h"
#include "device/reference/reference_backend.h"

namespace latte {

Result<std::unique_ptr<Backend>> open_backend(const BackendOptions& options) {
  if (options.device == "reference") return make_reference_backend();
  if (options.device == "auto" || options.device == "cpu") {
    return CpuBackend::open({.isa = options.isa, .threads = options.threads, .compute = options.compute});
  }
  return fail(ErrorKind::kInvalidInput, "unknown device \"{}\", expected auto, cpu or reference; pass one of those",
              options.device);
}

}  // namespace latte
