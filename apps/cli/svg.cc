#include "svg.h"

#include <fmt/format.h>

namespace latte::cli {

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string svg_begin(int width, int height, std::string_view title, std::string_view subtitle) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"12\" y=\"22\" font-size=\"15\">{2}</text>\n"
      "<text x=\"12\" y=\"42\" fill=\"#666\">{3}</text>\n",
      width, height, xml(title), xml(subtitle));
}

std::string svg_end() { return "</svg>\n"; }

}  // namespace latte::cli
