#include "latte/engine.h"

#include <utility>

#include "api/model_lookup.h"
#include "api/out_of_memory.h"
#include "decode/open_model.h"

namespace latte {

Result<Engine> Engine::open(const EngineOptions& options, const LoadProgress& progress) {
  return reporting_no_memory([&]() -> Result<Engine> {
    EngineOptions resolved = options;
    Result<std::string> directory = find_model(options.model);
    if (!directory.ok()) return directory.error();
    resolved.model = std::move(*directory);
    if (!options.draft_model.empty()) {
      Result<std::string> draft = find_model(options.draft_model);
      if (!draft.ok()) return draft.error();
      resolved.draft_model = std::move(*draft);
    }
    Result<std::shared_ptr<OpenModel>> model = open_model(resolved, progress);
    if (!model.ok()) return model.error();
    if ((*model)->text_state != nullptr) (*model)->text = TextCodec((*model)->text_state);
    return Engine(std::move(*model));
  });
}

const EngineInfo& Engine::info() const { return model_->info; }
const TextCodec* Engine::text() const { return model_->text.has_value() ? &*model_->text : nullptr; }

}  // namespace latte
