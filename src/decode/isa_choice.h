#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/engine.h"
#include "latte/error.h"
#include "latte/options.h"
#include "plan/dot_rate.h"

namespace latte {

/// The machine as the choice of an instruction set sees it.
struct IsaMachine {
  std::vector<std::string_view> usable;  ///< narrowest first
  std::function<Result<std::vector<DotRate>>(int threads)> measure;
};
/// This one. Measuring takes less than 0.3 s.
IsaMachine this_machine();

/// What may choose beside the table of processors.
enum class IsaSource : std::uint8_t {
  kTable,    ///< nothing
  kStored,   ///< a stored measurement when there is one
  kMeasure,  ///< the same, or a new one, which is stored
  kAnew,     ///< a new one, which is stored
};

/// What a calibration lets choose; `large`: opening the model takes so long that a measurement is none of it.
constexpr IsaSource isa_source(Calibration calibration, bool large) {
  return calibration == Calibration::kOff                ? IsaSource::kTable
         : calibration == Calibration::kMeasure && large ? IsaSource::kMeasure
                                                         : IsaSource::kStored;
}

/// Models from this number of parameters on are worth measuring for unasked.
inline constexpr std::int64_t kParametersWorthMeasuring = 1'000'000'000;

/// As BackendOptions.
struct IsaRequest {
  std::string isa = "auto";
  std::string device = "auto";
  int threads = 0;
};

struct FoundIsa {
  std::string isa = "auto";      ///< to open a backend with
  std::string source = "table";  ///< "asked", "table", "stored", "measured"
  double seconds = 0;            ///< that measuring took
  std::string file;              ///< where the choice is kept; empty: nowhere
  std::vector<std::string> warnings;
};

/// The instruction set of a request: the one it names; for "auto" on the cpu device the one that measured rates choose
/// (plan/choose_isa.h), where `source` lets them and there is a choice at all; else "auto", which is the table of
/// processors. What cannot be stored is not measured, or the next run might choose differently: the table decides, and
/// a warning says so.
FoundIsa find_isa(const IsaMachine& machine, const IsaRequest& request, IsaSource source,
                  const LoadProgress& progress = {});

}  // namespace latte
