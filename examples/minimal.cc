// Writes a few words after a prompt: minimal MODEL PROMPT
#include <cstdio>
#include <string>

#include "latte/engine.h"
#include "latte/session.h"

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s MODEL PROMPT\n", words[0]);
    return 2;
  }
  const auto report = [](const latte::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message.c_str());
    return 1;
  };

  // A model is opened once; any number of sessions may share it.
  latte::EngineOptions options;
  options.model = words[1];
  const latte::Result<latte::Engine> engine = latte::Engine::open(options);
  if (!engine.ok()) return report(engine.error());
  latte::Result<latte::Session> session = latte::Session::open(*engine);
  if (!session.ok()) return report(session.error());

  latte::RunOptions run;
  run.max_tokens = 48;
  const auto result = session->generate(std::string_view(words[2]), run, [](const latte::TokenEvent& event) {
    std::fwrite(event.text.data(), 1, event.text.size(), stdout);
    return true;
  });
  if (!result.ok()) return report(result.error());
  std::printf("\n[%d tokens, %.2f per round with %s]\n", result->generated_tokens, result->emitted_per_round,
              result->spec_type.c_str());
  return 0;
}
