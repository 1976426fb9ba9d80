#include <algorithm>
#include <vector>

#include "api/engine_access.h"
#include "api/out_of_memory.h"
#include "base/fail.h"
#include "decode/cache_type.h"
#include "decode/open_model.h"
#include "latte/report.h"
#include "latte/session.h"
#include "model/fingerprint.h"
#include "model/rope.h"
#include "weights/finite_scan.h"

namespace latte {
namespace {

// A few kinds of text; only the share of agreements is of interest.
constexpr std::string_view kSample =
    "The river rises in the hills to the north and runs for two hundred miles before it reaches the sea. In the spring "
    "of "
    "that year the water stood higher than anyone in the village could remember, and the bridge at the mill was "
    "closed.\n\n"
    "To open a file, call the function with a path and a mode. It returns an object that can be read line by line; if "
    "the "
    "file does not exist, an error is raised. See the section on errors for details.\n\n"
    "def read_lines(path):\n    with open(path) as file:\n        return [line.strip() for line in file]\n\n"
    "for (int i = 0; i < n; i++) {\n    if (values[i] > limit) {\n        return -1;\n    }\n}\n";

int most_likely(std::span<const float> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

InspectReport report_of(const OpenModel& open) {
  const LoadReport& load = open.model.weights.report;
  InspectReport report;
  report.family = open.info.family;
  report.tensors_used = load.used;
  for (const DroppedTensor& tensor : load.dropped) report.tensors_dropped.push_back({tensor.name, tensor.reason});
  report.layers = load.layers;
  report.folded_layers = load.folded_layers;
  report.mtp_present = load.mtp_present;
  report.mtp_reason = load.mtp_reason;
  report.attention = open.model.config.attention == AttentionKind::kGqa ? "gqa" : "mla";
  report.rope = describe_rope(open.model.config.rope, open.info.context);
  report.quantisation = open.info.quantize;
  report.stored_type = dtype_name(load.stored_dtype);
  report.parameters = load.parameters;
  report.mtp_parameters = load.mtp_parameters;
  report.weight_bytes = load.bytes;
  const ModelConfig& config = open.model.config;
  const DType cached = open.sequence.cache_dtype;
  const std::int64_t row_bytes = config.cache_row(cached).bytes();
  report.cache = open.info.cache;
  report.latent_bytes_per_token = row_bytes * load.layers;
  report.mtp_latent_bytes_per_token = row_bytes * static_cast<std::int64_t>(open.model.weights.mtp.size());
  report.expanded_bytes_per_token = static_cast<std::int64_t>(expanded_row_bytes(config, cached)) * load.layers;
  report.context_length = open.info.model_context;
  report.assumed = open.model.config.assumed;
  return report;
}

/// Share of positions where the MTP layer, given the text so far, names the token that the model itself names.
Result<double> measure_acceptance(const Engine& engine) {
  const TextCodec& text = *engine.text();
  const auto ids = text.encode(kSample, {.match_special = false, .add_bos = text.adds_bos()});
  if (!ids.ok()) return ids.error();
  const std::size_t count = std::min(ids->size(), static_cast<std::size_t>(engine.info().context));
  Result<Session> session = Session::open(engine, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt});
  if (!session.ok()) return session.error();
  const auto vocab = static_cast<std::size_t>(engine.info().vocab);
  const auto collect = [vocab](std::vector<int>& into) {
    return [&into, vocab](int, std::span<const float> logits) -> Status {
      for (; !logits.empty(); logits = logits.subspan(vocab)) into.push_back(most_likely(logits.first(vocab)));
      return {};
    };
  };
  std::vector<int> main, mtp;
  if (Status done = session->logits({ids->data(), count}, {}, collect(main), collect(mtp)); !done.ok())
    return done.error();
  if (mtp.empty()) return 0.0;
  int agreed = 0;
  for (std::size_t i = 0; i < mtp.size(); ++i) agreed += mtp[i] == main[i + 1] ? 1 : 0;
  return static_cast<double>(agreed) / static_cast<double>(mtp.size());
}

/// A quantised folder's tensors are those that were written with its config.json, as far as its digest reads them.
Status check_digest(const OpenModel& open) {
  const std::string& written = open.model.config.quantised->weights;
  const std::string now = weights_digest(open.model.weights.checkpoint).hex();
  if (now == written) return {};
  return fail(
      ErrorKind::kInvalidInput,
      "[inspect] the tensors of {} are not those that were written with its config.json: digest {}, expected {}; "
      "write the folder again with latte quantize",
      open.info.model_directory, now, written);
}

}  // namespace

Result<InspectReport> inspect(const Engine& engine) {
  return reporting_no_memory([&]() -> Result<InspectReport> {
    const OpenModel& open = *EngineAccess::model(engine);
    if (open.model.config.quantised.has_value()) {
      const Status finite = check_stored_panels(open.model.weights, engine.info().threads);
      if (!finite.ok()) return finite.error();
      if (Status whole = check_digest(open); !whole.ok()) return whole.error();
    }
    InspectReport report = report_of(open);
    if (report.mtp_present && engine.text() != nullptr) {
      const Result<double> acceptance = measure_acceptance(engine);
      if (!acceptance.ok()) return acceptance.error();
      report.mtp_acceptance = *acceptance;
    }
    return report;
  });
}

}  // namespace latte
