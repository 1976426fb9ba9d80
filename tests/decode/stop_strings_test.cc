#include "decode/stop_strings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace latte {
namespace {

/// Streams `text` in pieces of `size` bytes; what is shown, with "|" where a stop string ended it.
std::string shown(const std::string& text, std::vector<std::string> stops, std::size_t size) {
  StopStrings watch(std::move(stops));
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) {
    const StopStrings::Piece piece = watch.push(std::string_view(text).substr(at, size));
    out += piece.text;
    if (piece.stopped) return out + "|";
  }
  return out + watch.flush();
}

TEST(StopStrings, CutAtTheStopWhereverThePiecesEnd) {
  for (std::size_t size = 1; size <= 20; ++size) {
    EXPECT_EQ(shown("one two ENDING three", {"END"}, size), "one two |");
    EXPECT_EQ(shown("aaab", {"aab"}, size), "a|");
    EXPECT_EQ(shown("abcabd", {"abd"}, size), "abc|");
    EXPECT_EQ(shown("no stop here EN", {"END"}, size), "no stop here EN");
    EXPECT_EQ(shown("text", {}, size), "text");
    EXPECT_EQ(shown("text", {""}, size), "text");
    EXPECT_EQ(shown("END", {"END"}, size), "|");
  }
}

TEST(StopStrings, NoPartOfAStopIsShownEarly) {
  StopStrings watch({"\n\nUser:"});
  EXPECT_EQ(watch.push("Hello\n").text, "Hello");
  EXPECT_EQ(watch.push("\nUs").text, "");
  EXPECT_EQ(watch.push("ual").text, "\n\nUsual");
  EXPECT_EQ(watch.push("\n\nUser: hi").text, "");
  EXPECT_TRUE(watch.push("more").stopped);
  EXPECT_EQ(watch.push("more").text, "");
}

TEST(StopStrings, TheEarliestOfSeveralStopsCounts) { EXPECT_EQ(shown("abcdef", {"ef", "cd"}, 6), "ab|"); }

}  // namespace
}  // namespace latte
