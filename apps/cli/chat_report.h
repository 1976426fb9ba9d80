#pragma once

#include <string>

#include "latte/chat.h"

namespace latte::cli {

/// A turn as the one JSON object of `chat --json`: the result of `generate --json` and what the cache kept.
std::string turn_json(const Chat& chat, const ChatReply& reply);

/// What -v tells of a turn's prompt: what was reused, and why not the rest.
std::string reuse_line(const ChatReply& reply);

/// The table of /stats: a line per turn, and the conversation as a whole.
std::string stats_text(Chat& chat);

}  // namespace latte::cli
