#include "latte/session.h"

#include <utility>

#include "api/engine_access.h"
#include "api/out_of_memory.h"
#include "base/contract.h"
#include "base/fail.h"
#include "decode/session.h"

namespace latte {

namespace {

/// A call that was cut off anywhere may hold rows that no token speaks for: none are kept.
void empty_after_throw(SessionState& state) {
  const Status emptied = state.rewind_to(0);
  expects(emptied.ok(), "any cache can be rewound to nothing");
}

}  // namespace

int Snapshot::length() const { return state_->cache.length; }

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const Engine& engine, const SessionOptions& options) {
  return reporting_no_memory([&]() -> Result<Session> {
    Result<std::unique_ptr<SessionState>> state = SessionState::open(EngineAccess::model(engine), options);
    if (!state.ok()) return state.error();
    return Session(std::move(*state));
  });
}

Result<GenerateResult> Session::generate(std::span<const std::int32_t> prompt_ids, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  return reporting_no_memory([&] { return state_->run(prompt_ids, options, on_token, on_prompt); },
                             [&] { empty_after_throw(*state_); });
}

Result<GenerateResult> Session::generate(std::string_view prompt, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  const Tokenizer* tokenizer = state_->model->tokenizer();
  if (tokenizer == nullptr) {
    return fail(ErrorKind::kNotFound, "{}: no tokenizer, expected one for a text prompt: give ids",
                state_->model->info.model_directory);
  }
  const auto ids = reporting_no_memory(
      [&] { return tokenizer->encode(prompt, {.match_special = false, .add_bos = tokenizer->adds_bos()}); });
  if (!ids.ok()) return ids.error();
  return generate(std::span<const std::int32_t>(*ids), options, on_token, on_prompt);
}

Status Session::logits(std::span<const std::int32_t> ids, const LogitsOptions& options, const LogitsSink& main,
                       const LogitsSink& mtp) {
  return reporting_no_memory([&] { return state_->logits(ids, options, main, mtp); },
                             [&] { empty_after_throw(*state_); });
}

std::span<const std::int32_t> Session::tokens() const {
  return {state_->tokens.data(), static_cast<std::size_t>(state_->sequence.length())};
}

int Session::length() const { return state_->sequence.length(); }
Status Session::rewind_to(int length) {
  return reporting_no_memory([&] { return state_->rewind_to(length); }, [&] { empty_after_throw(*state_); });
}

void Session::reset() {
  const Status emptied = state_->rewind_to(0);
  expects(emptied.ok(), "any cache can be rewound to nothing");
}

Snapshot Session::snapshot() const { return Snapshot(state_->snapshot()); }
Status Session::restore(const Snapshot& snapshot) {
  return reporting_no_memory([&] { return state_->restore(*snapshot.state_); }, [&] { empty_after_throw(*state_); });
}

Status Session::save(const std::string& path, std::string_view note) const {
  return reporting_no_memory([&] { return state_->save(path, note); });
}

Status Session::check_save(const std::string& path) {
  return reporting_no_memory([&] { return SessionState::check_save(path); });
}

Result<std::string> Session::load(const std::string& path, CacheFileReport* report) {
  CacheFileReport found;
  return reporting_no_memory([&] { return state_->load(path, report != nullptr ? *report : found); },
                             [&] { empty_after_throw(*state_); });
}

PathCounts Session::paths() const { return state_->paths(); }
void Session::watch_steps(StepCallback on_step) { state_->watch_steps(std::move(on_step)); }

}  // namespace latte
