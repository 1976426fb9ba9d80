#include "support/chat_model.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace latte::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kMarks = {"<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"};
constexpr int kStopId = 1;

/// The character that stands for a byte in byte-level vocabularies: itself where it prints, else one past 255.
std::string byte_character(int byte, int& next) {
  const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const int code = prints ? byte : 256 + next++;
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

void write(const std::filesystem::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

Json tokenizer() {
  Json vocabulary = Json::object(), added = Json::array(), merges = Json::array();
  int id = 0, next = 0;
  for (const char* mark : kMarks) {
    added.push_back({{"id", id++},
                     {"content", mark},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  for (int byte = 0; byte < 256; ++byte) vocabulary[byte_character(byte, next)] = id++;
  for (const char* pair : {"h e", "t h", "a n", "i n", "e r", "o n", "r e", "l l", "s t", "o r", "i s"}) {
    merges.push_back(pair);
    vocabulary[std::string{pair[0], pair[2]}] = id++;
  }
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
}

}  // namespace

void write_chat_model(const std::string& folder, const std::string& weights_folder, std::string_view chat_template) {
  const std::filesystem::path to(folder), from(weights_folder);
  std::ifstream stored(from / "config.json");
  Json config = Json::parse(stored);
  config["eos_token_id"] = kStopId;
  write(to / "config.json", config.dump());
  if (!std::filesystem::exists(to / "model.safetensors"))
    std::filesystem::copy_file(from / "model.safetensors", to / "model.safetensors");
  write(to / "tokenizer.json", tokenizer().dump());
  write(to / "tokenizer_config.json", R"({"add_bos_token": true, "bos_token": "<|begin|>", "eos_token": "<|end|>"})");
  if (!chat_template.empty()) write(to / "chat_template.jinja", chat_template);
}

}  // namespace latte::test
