#include "decode/isa_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "calibrate/build_id.h"
#include "decode/processor_name.h"
#include "decode/profile_store.h"
#include "device/open_backend.h"
#include "plan/choose_isa.h"

namespace latte {
namespace {

constexpr double kSecondsOfARate = 0.03;  // of some eight

/// Everything that the choice depends on; a process that may not use tiles has a choice of its own.
std::string key_text(const IsaMachine& machine, int threads) {
  return fmt::format("cpu {}, {} threads; {}; build {}", processor_name(), threads == 0 ? available_cores() : threads,
                     fmt::join(machine.usable, " "), build_id());
}

Result<std::string> read_choice(const std::string& path, const std::string& key, const IsaMachine& machine) {
  const Result<Json> json = read_stored(path, key);
  if (!json.ok()) return json.error();
  const Json stored = json->value("isa", Json());
  if (stored.is_string()) {
    const std::string isa = stored.get<std::string>();
    if (std::find(machine.usable.begin(), machine.usable.end(), isa) != machine.usable.end()) return isa;
  }
  return broken_profile(path, "isa");
}

std::string choice_text(const std::string& key, std::string_view isa, const std::vector<DotRate>& rates) {
  nlohmann::ordered_json json = begin_stored(key);
  json["isa"] = isa;
  json["rates"] = nlohmann::ordered_json::array();
  for (const DotRate& rate : rates) {
    json["rates"].push_back({{"isa", rate.isa},
                             {"type", dot_type_name(rate.type)},
                             {"instruction", rate.instruction},
                             {"gops", rate.gops}});
  }
  return stored_text(json);
}

}  // namespace

IsaMachine this_machine() {
  return {usable_instruction_sets(),
          [](int threads) { return measure_dot_rates(threads, kSecondsOfARate, DotRates::kOfChoice); }};
}

FoundIsa find_isa(const IsaMachine& machine, const IsaRequest& request, IsaSource source,
                  const LoadProgress& progress) {
  FoundIsa found;
  if (request.isa != "auto") {
    found.isa = request.isa;
    found.source = "asked";
    return found;
  }
  const bool cpu = request.device == "auto" || request.device == "cpu";
  if (!cpu || source == IsaSource::kTable || !isa_is_a_choice(machine.usable)) return found;
  const bool may_measure = source != IsaSource::kStored;
  const auto table = [&](const Error& error) {
    if (may_measure || error.kind != ErrorKind::kNotFound)
      found.warnings.push_back(fmt::format("{}; a table of processors chooses the instruction set", error.message));
    return found;
  };

  const std::string key = key_text(machine, request.threads);
  const Result<std::string> path = stored_path("machine", key);
  if (!path.ok()) return table(path.error());
  const auto take_stored = [&]() -> Status {
    const Result<std::string> isa = read_choice(*path, key, machine);
    if (!isa.ok()) return isa.error();
    found.isa = *isa;
    found.source = "stored";
    found.file = *path;
    return {};
  };
  if (source != IsaSource::kAnew) {
    const Status stored = take_stored();
    if (stored.ok()) return found;
    if (!may_measure) return table(stored.error());
    if (stored.error().kind != ErrorKind::kNotFound)
      found.warnings.push_back(fmt::format("{}; it is measured again", stored.error().message));
  }
  if (Status possible = can_write_stored(*path); !possible.ok()) return table(possible.error());

  if (progress) progress("measuring the instruction sets, once for this machine");
  const Stopwatch clock;
  const Result<std::vector<DotRate>> rates = machine.measure(request.threads);
  found.seconds = clock.seconds();
  if (!rates.ok()) return table(rates.error());
  // Another process may have been faster: all runs choose alike.
  if (source == IsaSource::kMeasure && take_stored().ok()) return found;
  const std::string_view isa = choose_isa(machine.usable, *rates);
  if (Status written = write_stored(*path, choice_text(key, isa, *rates)); !written.ok()) return table(written.error());
  found.isa = isa;
  found.source = "measured";
  found.file = *path;
  return found;
}

}  // namespace latte
