#include <latte/session.h>
#include <latte/version.h>

#include <iostream>
#include <vector>

// Writes four tokens with the model of the first argument.
int main(int count, char** words) {
  if (count != 2) return 2;
  latte::EngineOptions options;
  options.model = words[1];
  options.threads = 1;
  const latte::Result<latte::Engine> engine = latte::Engine::open(options);
  if (!engine.ok()) {
    std::cerr << engine.error().message << '\n';
    return 1;
  }
  latte::Result<latte::Session> session = latte::Session::open(*engine);
  if (!session.ok()) return 1;
  latte::RunOptions four;
  four.max_tokens = 4;
  four.ignore_eos = true;
  const auto result = session->generate(std::vector<std::int32_t>{2, 9, 18}, four);
  if (!result.ok() || result->ids.size() != 4) return 1;
  std::cout << "latte " << latte::kVersion << " wrote " << result->ids.size() << " tokens\n";
}
