#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "interrupts.h"
#include "latte/quantize.h"
#include "outcome.h"
#include "progress_line.h"

namespace latte::cli {
namespace {

std::string quantize_json(const QuantizeReport& report) {
  using Object = nlohmann::ordered_json;
  Object types = Object::array();
  for (const QuantizedType& type : report.types) {
    types.push_back(
        {{"type", type.type}, {"tensors", type.tensors}, {"bytes_before", type.bytes_before}, {"bytes", type.bytes}});
  }
  Object left_out = Object::array();
  for (const DroppedName& tensor : report.left_out)
    left_out.push_back({{"name", tensor.name}, {"reason", tensor.reason}});
  const Object object = {{"model", report.model},
                         {"directory", report.directory},
                         {"quantize", report.quantize},
                         {"bytes_before", report.bytes_before},
                         {"bytes", report.bytes},
                         {"types", types},
                         {"weight_files", report.weight_files},
                         {"copied", report.copied},
                         {"left_out", left_out},
                         {"mtp", report.mtp},
                         {"seconds", report.seconds}};
  return object.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n";
}

double mega(std::int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::string quantize_text(const QuantizeReport& report) {
  std::string text = "type  tensors      MB before         MB\n";
  for (const QuantizedType& type : report.types) {
    text += fmt::format("{:<4}  {:>7}  {:>13.1f}  {:>9.1f}\n", type.type, type.tensors, mega(type.bytes_before),
                        mega(type.bytes));
  }
  text += fmt::format("{}: {} of {}, {:.1f} MB of {:.1f} MB, in {:.1f} s\n", report.directory, report.quantize,
                      report.model, mega(report.bytes), mega(report.bytes_before), report.seconds);
  return text;
}

void tell_of_files(const QuantizeReport& report) {
  note(report.copied.empty() ? "no tokenizer, template or licence was there to be copied"
                             : fmt::format("copied {}", fmt::join(report.copied, ", ")));
  if (report.left_out.empty()) return;
  note(fmt::format("left out {} tensors that no step reads, the first {}: {}", report.left_out.size(),
                   report.left_out.front().name, report.left_out.front().reason));
}

}  // namespace

int run_quantize(const Arguments& arguments) {
  if (!arguments.has("--model") || !arguments.has("--output") || !arguments.has("--quantize"))
    return misused("quantize expects -m MODEL, -o DIR and --quantize q8, q4 or q4:q8-attn");
  const Result<Quantize> choice = parse_quantize(*arguments.text("--quantize"));
  if (!choice.ok()) return misused(choice.error());
  ProgressLine progress(arguments);
  progress.show("reading weights");
  const GracefulInterrupt interrupt;
  const Result<QuantizeReport> report =
      quantize_model({.model = *arguments.text("--model"),
                      .directory = *arguments.text("--output"),
                      .quantize = *choice,
                      .threads = static_cast<int>(arguments.integer("--threads").value_or(0))},
                     [&](std::int64_t done, std::int64_t all) {
                       progress.show(fmt::format("{:.0f} of {:.0f} MB", mega(done), mega(all)));
                       return !interrupt.requested();
                     });
  progress.clear();
  if (!report.ok()) return interrupt.requested() ? kInterrupted : failed(report.error());
  tell_of_files(*report);
  return finish_with(arguments.flag("--json") ? quantize_json(*report) : quantize_text(*report));
}

}  // namespace latte::cli
