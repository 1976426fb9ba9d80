#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "latte/report.h"
#include "open_engine.h"
#include "outcome.h"

namespace latte::cli {
namespace {

std::string inspect_json(const InspectReport& report) {
  using Object = nlohmann::ordered_json;
  Object dropped = Object::array();
  for (const DroppedName& tensor : report.tensors_dropped)
    dropped.push_back({{"name", tensor.name}, {"reason", tensor.reason}});
  const Object object = {
      {"family", report.family},
      {"attention", report.attention},
      {"rope", report.rope},
      {"tensors", {{"used", report.tensors_used}, {"dropped", dropped}}},
      {"folded_layers", report.folded_layers},
      {"layers", report.layers},
      {"mtp",
       {{"present", report.mtp_present},
        {"reason", report.mtp_reason},
        {"acceptance", report.mtp_acceptance.has_value() ? Object(*report.mtp_acceptance) : Object(nullptr)}}},
      {"quantisation", report.quantisation},
      {"stored_type", report.stored_type},
      {"parameters", report.parameters},
      {"mtp_parameters", report.mtp_parameters},
      {"weights_bytes", report.weight_bytes},
      {"cache_type", report.cache},
      {"latent_bytes_per_token", report.latent_bytes_per_token},
      {"mtp_latent_bytes_per_token", report.mtp_latent_bytes_per_token},
      {"expanded_bytes_per_token", report.expanded_bytes_per_token},
      {"context_length", report.context_length},
      {"assumed", report.assumed},
  };
  return object.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n";
}

std::string inspect_text(const InspectReport& report) {
  const bool gqa = report.attention == "gqa";
  std::string text = fmt::format("family        {}, {} attention\nlayers        {}", report.family,
                                 gqa ? "grouped-query" : "latent", report.layers);
  if (!gqa) text += fmt::format(" ({} folded for the absorbed form)", report.folded_layers);
  text += fmt::format("\ncontext       {} tokens\nrope          {}\n", report.context_length, report.rope);
  const bool floats = report.quantisation == "none";
  text += fmt::format("parameters    {:.2f} M, MTP {:.2f} M\nweights       {:.1f} MiB, {}\n",
                      static_cast<double>(report.parameters) / 1e6, static_cast<double>(report.mtp_parameters) / 1e6,
                      static_cast<double>(report.weight_bytes) / (1 << 20),
                      floats ? fmt::format("mostly {}; not quantised", report.stored_type)
                             : fmt::format("quantised to {}; made from {}", report.quantisation, report.stored_type));
  text += gqa ? fmt::format("cache         {}, {} bytes a token\n", report.cache, report.latent_bytes_per_token)
              : fmt::format("cache         {}, {} bytes a token latent, {} expanded; MTP {}\n", report.cache,
                            report.latent_bytes_per_token, report.expanded_bytes_per_token,
                            report.mtp_latent_bytes_per_token);
  text += fmt::format("MTP           {} ({})", report.mtp_present ? "present" : "absent", report.mtp_reason);
  if (report.mtp_acceptance.has_value())
    text += fmt::format(", agrees with the model at {:.1f}% of a short text", 100 * *report.mtp_acceptance);
  text += fmt::format("\ntensors       {} used, {} dropped\n", report.tensors_used, report.tensors_dropped.size());
  if (!report.assumed.empty())
    text += fmt::format("assumed       {} (not in config.json)\n", fmt::join(report.assumed, ", "));
  for (const DroppedName& tensor : report.tensors_dropped)
    text += fmt::format("  dropped {}: {}\n", tensor.name, tensor.reason);
  return text;
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  if (!arguments.has("--model")) return misused("no model, expected latte inspect -m DIR");
  ProgressLine progress(arguments);
  const Result<Engine> engine = open_engine(arguments, progress, false);
  if (!engine.ok()) return failed(engine.error());
  progress.show("measuring the MTP layer");
  const Result<InspectReport> report = inspect(*engine);
  progress.clear();
  if (!report.ok()) return failed(report.error());
  return finish_with(arguments.flag("--json") ? inspect_json(*report) : inspect_text(*report));
}

}  // namespace latte::cli
