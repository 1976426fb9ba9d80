#include "decode/stop_strings.h"

#include <algorithm>
#include <utility>

namespace latte {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopStrings::Piece StopStrings::push(std::string_view text) {
  if (stopped_) return {.text = "", .stopped = true};
  held_ += text;
  std::size_t found = std::string::npos;
  for (const std::string& stop : stops_) found = std::min(found, held_.find(stop));
  if (found != std::string::npos) {
    stopped_ = true;
    held_.resize(found);
    return {.text = std::exchange(held_, {}), .stopped = true};
  }
  std::size_t hold = 0;  // bytes at the end that start some stop string
  for (const std::string& stop : stops_) {
    for (std::size_t length = std::min(stop.size() - 1, held_.size()); length > hold; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) hold = length;
    }
  }
  Piece piece{.text = held_.substr(0, held_.size() - hold), .stopped = false};
  held_.erase(0, held_.size() - hold);
  return piece;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

}  // namespace latte
