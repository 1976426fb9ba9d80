#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace latte {

/// Watches streamed text for strings that end it. Text that may turn out to be the start of one is held back, so that
/// no part of a stop string is ever shown.
class StopStrings {
 public:
  /// Empty strings are ignored.
  explicit StopStrings(std::vector<std::string> stops);

  struct Piece {
    std::string text;      ///< safe to show
    bool stopped = false;  ///< a stop string was found; it and what follows are dropped
  };

  /// Takes the next text. After a piece that stopped, nothing more comes.
  Piece push(std::string_view text);
  /// The text ended otherwise: what was held back.
  std::string flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace latte
