#include "latte/session.h"

#include <utility>

#include "api/engine_access.h"
#include "base/contract.h"
#include "base/fail.h"
#include "decode/session.h"

namespace latte {

int Snapshot::length() const { return state_->cache.length; }

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const Engine& engine, const SessionOptions& options) {
  Result<std::unique_ptr<SessionState>> state = SessionState::open(EngineAccess::model(engine), options);
  if (!state.ok()) return state.error();
  return Session(std::move(*state));
}

Result<GenerateResult> Session::generate(std::span<const std::int32_t> prompt_ids, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  return state_->run(prompt_ids, options, on_token, on_prompt);
}

Result<GenerateResult> Session::generate(std::string_view prompt, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  const Tokenizer* tokenizer = state_->model->tokenizer();
  if (tokenizer == nullptr) {
    return fail(ErrorKind::kNotFound, "{}: no tokenizer.json, expected one for a text prompt: give ids",
                state_->model->info.model_directory);
  }
  const auto ids = tokenizer->encode(prompt, {.match_special = false, .add_bos = tokenizer->adds_bos()});
  if (!ids.ok()) return ids.error();
  return state_->run(*ids, options, on_token, on_prompt);
}

Status Session::logits(std::span<const std::int32_t> ids, const LogitsOptions& options, const LogitsSink& main,
                       const LogitsSink& mtp) {
  return state_->logits(ids, options, main, mtp);
}

std::span<const std::int32_t> Session::tokens() const {
  return {state_->tokens.data(), static_cast<std::size_t>(state_->sequence.length())};
}

int Session::length() const { return state_->sequence.length(); }
Status Session::rewind_to(int length) { return state_->rewind_to(length); }

void Session::reset() {
  const Status emptied = state_->rewind_to(0);
  expects(emptied.ok(), "any cache can be rewound to nothing");
}

Snapshot Session::snapshot() const { return Snapshot(state_->snapshot()); }
Status Session::restore(const Snapshot& snapshot) { return state_->restore(*snapshot.state_); }
PathCounts Session::paths() const { return state_->paths(); }

}  // namespace latte
