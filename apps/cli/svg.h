#pragma once

#include <string>
#include <string_view>

namespace latte::cli {

/// Text as it stands between tags: the three characters with a meaning of their own are spelt out.
std::string xml(std::string_view text);

/// A white page of so many pixels with a title and a grey line below it, without the closing tag. Both are plain text.
std::string svg_begin(int width, int height, std::string_view title, std::string_view subtitle);

/// What closes the page.
std::string svg_end();

}  // namespace latte::cli
