#pragma once

#include <string>

#include "text/chat_template.h"

namespace latte {

/// Refuses messages that no prompt can hold: each has a role and, but for the assistant's, a content, which is a text
/// or a list of parts with a type. Errors: the messages' name, the message's index from 0, what arrived.
Status check_messages(const ChatInput& input);

/// The prompt of checked messages. A template that does not look into lists of parts gets their texts joined. Errors:
/// those of ChatTemplate::render; a part that is no text with a template that takes none.
Result<std::string> render_messages(const ChatTemplate& chat_template, const ChatInput& input);

}  // namespace latte
