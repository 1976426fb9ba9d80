#pragma once

#include <string>
#include <string_view>

namespace latte::test {

/// Marks each turn with its role and writes what was said as it is.
inline constexpr std::string_view kPlainTemplate =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.role == 'assistant' %}<|end|>{% "
    "endif "
    "%}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// The same, but only the last four characters of what the assistant said before are written: such as templates that
/// leave the reasoning of earlier turns out.
inline constexpr std::string_view kForgetfulTemplate =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{{ m.content[-4:] }}<|end|>{% "
    "else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

/// Makes `folder` a model to chat with: the weights of `weights_folder` (tests/data/families/deepseek_v3: 272 tokens,
/// random), a tokenizer of single bytes and eleven pairs, marks <|begin|>, <|end|> (stop), <|user|>, <|assistant|>,
/// <|system|>, and a template (empty: none).
void write_chat_model(const std::string& folder, const std::string& weights_folder, std::string_view chat_template);

}  // namespace latte::test
