#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "latte/doctor.h"
#include "outcome.h"

namespace latte::cli {
namespace {

std::string doctor_json(const DoctorReport& report) {
  using Object = nlohmann::ordered_json;
  Object detected = Object::array(), sets = Object::array(), gflops = Object::object(), compute = Object::object();
  for (const IsaState& isa : report.isas) {
    if (isa.in_processor) detected.push_back(isa.name);
    sets.push_back({{"name", isa.name},
                    {"in_processor", isa.in_processor},
                    {"in_build", isa.in_build},
                    {"used", isa.used},
                    {"reason", isa.reason}});
  }
  for (const MatmulRate& rate : report.matmul) {
    gflops[rate.type] = rate.gflops;
    compute[rate.type] = rate.compute;
  }
  Object rates = Object::array(), gemm = Object::array();
  for (const InstructionRate& rate : report.rates) {
    rates.push_back({{"isa", rate.isa},
                     {"type", rate.type},
                     {"instruction", rate.instruction},
                     {"gops", rate.gops},
                     {"gops_per_core", rate.gops_per_core}});
  }
  for (const OneDnnRate& rate : report.onednn.gemm)
    gemm.push_back({{"type", rate.type}, {"call", rate.call}, {"gops", rate.gops}});
  Object gpus = Object::array(), missing = Object::array();
  for (const GpuState& gpu : report.gpus)
    gpus.push_back({{"name", gpu.name}, {"driver", gpu.driver}, {"used", gpu.used}, {"reason", gpu.reason}});
  for (const MissingThing& thing : report.missing) missing.push_back({{"what", thing.what}, {"remedy", thing.remedy}});
  const Object object = {
      {"cpu",
       {{"name", report.processor},
        {"isa_detected", detected},
        {"isa_used", report.isa_used},
        {"isa_chosen_by", report.isa_chosen_by},
        {"instruction_sets", sets},
        {"threads", report.threads},
        {"logical_cores", report.logical_cores},
        {"load_average", report.load_average},
        {"busy", report.busy}}},
      {"memory", {{"bytes", report.memory_bytes}, {"read_gbytes_per_second", report.read_gbytes_per_second}}},
      {"matmul", {{"gflops", gflops}, {"compute", compute}}},
      {"rates", rates},
      {"onednn", {{"installed", report.onednn.installed}, {"version", report.onednn.version}, {"gemm", gemm}}},
      {"gpu", gpus},
      {"models", report.models},
      {"missing", missing}};
  return object.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n";
}

/// 10^9 operations a second: what instructions reach over registers, and what oneDNN makes of them.
std::string rates_text(const DoctorReport& report) {
  std::string text =
      fmt::format("rates      {:<12} {:<5} {:>11} {:>9}   G(FL)OP/s of\n", "", "type", "all threads", "a core");
  const auto add = [&](std::string_view set, std::string_view type, double gops, std::string_view what) {
    text +=
        fmt::format("           {:<12} {:<5} {:>11.1f} {:>9.1f}   {}\n", set, type, gops, gops / report.threads, what);
  };
  for (const InstructionRate& rate : report.rates) add(rate.isa, rate.type, rate.gops, rate.instruction);
  for (const OneDnnRate& rate : report.onednn.gemm)
    add("oneDNN", rate.type, rate.gops, fmt::format("{} {}", rate.call, report.onednn.version));
  return text + (report.onednn.installed ? "" : "           oneDNN       not installed\n");
}

std::string doctor_text(const DoctorReport& report) {
  std::string text = fmt::format("processor  {}; {} threads of {} logical cores\n", report.processor, report.threads,
                                 report.logical_cores);
  const std::string used = report.isa_chosen_by == "stored"  ? "used, by rates measured on this machine"
                           : report.isa_chosen_by == "table" ? "used, by a table of processors"
                                                             : "used";
  for (const IsaState& isa : report.isas) {
    text += fmt::format("           {:<12} {}\n", isa.name, isa.used ? used : "not used: " + isa.reason);
  }
  text += fmt::format("memory     {:.1f} GiB, reads {:.1f} GB/s\n",
                      static_cast<double>(report.memory_bytes) / (1 << 30), report.read_gbytes_per_second);
  for (const MatmulRate& rate : report.matmul)
    text +=
        fmt::format("products   {:<5} weights {:.1f} GFLOP/s, computed in {}\n", rate.type, rate.gflops, rate.compute);
  text += rates_text(report);
  if (report.gpus.empty()) text += "gpu        none found\n";
  for (const GpuState& gpu : report.gpus) {
    text += fmt::format("gpu        {}, driver {}; not used: {}\n", gpu.name, gpu.driver.empty() ? "none" : gpu.driver,
                        gpu.reason);
  }
  text += fmt::format("models     {}\n",
                      report.models.empty() ? "none found" : fmt::format("{}", fmt::join(report.models, ", ")));
  for (const MissingThing& thing : report.missing) text += fmt::format("missing    {}: {}\n", thing.what, thing.remedy);
  return text;
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  const Result<DoctorReport> report =
      examine_machine({.isa = arguments.text_or("--isa", "auto"),
                       .threads = static_cast<int>(arguments.integer("--threads").value_or(0))});
  if (!report.ok()) return failed(report.error());
  if (report->busy)
    warn_busy(report->load_average, report->threads, "the speeds of memory and products below are too low");
  return finish_with(arguments.flag("--json") ? doctor_json(*report) : doctor_text(*report));
}

}  // namespace latte::cli
