#include "decode/run_report.h"

#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace latte {
namespace {

std::int64_t peak_resident_bytes() {
  // VmHWM of the kernel begins anew with a program; ru_maxrss keeps what the caller held before it started this one.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

void report_stats(const DecodeStats& stats, GenerateResult& result) {
  result.prompt_tokens = stats.prompt_tokens;
  result.cached_tokens = stats.cached_tokens;
  result.generated_tokens = stats.generated_tokens;
  result.prompt_seconds = stats.prompt_seconds;
  result.generate_seconds = stats.generate_seconds;
  result.draft_seconds = stats.draft_seconds;
  result.verify_seconds = stats.verify_seconds;
  result.unaccounted_seconds = stats.unaccounted_seconds();
  result.draft_depth = stats.depth;
  result.rounds = stats.rounds;
  const auto rounds = stats.rounds_per_depth.begin();
  result.rounds_per_depth.assign(rounds, rounds + stats.depth + 1);
  result.drafted = stats.drafted;
  result.accepted = stats.accepted;
  result.emitted_per_round = stats.emitted_per_round();
  const auto accepted = stats.accepted_per_position.begin();
  result.accepted_per_position.assign(accepted, accepted + stats.depth);
  const auto tested = stats.tested_per_position.begin();
  result.tested_per_position.assign(tested, tested + stats.depth);
}

void report_machine(const EngineInfo& info, GenerateResult& result) {
  result.peak_bytes = peak_resident_bytes();
  result.device = info.device;
  result.isa = info.isa;
  result.numerics = info.numerics;
}

}  // namespace latte
