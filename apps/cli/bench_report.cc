#include "bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "svg.h"

namespace latte::cli {
namespace {

using Object = nlohmann::ordered_json;

std::string backend_of(const BenchReport& report) { return fmt::format("{} ({})", report.device, report.isa); }

/// Cached rows of another type than the weights' are named.
std::string model_of(const BenchReport& report) {
  const bool named = report.cache_type != report.type && report.cache_type != "bf16";
  return fmt::format("{} {}{}", report.model, report.type, named ? ", rows " + report.cache_type : "");
}

/// JSON has no NaN, and no number here is one.
Object or_null(const std::optional<double>& value) { return value.has_value() ? Object(*value) : Object(nullptr); }

Object row_json(const BenchReport& report, const BenchRow& row) {
  return {{"model", report.model},
          {"type", report.type},
          {"cache_type", report.cache_type},
          {"layers", report.layers},
          {"size", report.weight_bytes},
          {"params", report.parameters},
          {"backend", report.device},
          {"isa", report.isa},
          {"threads", report.threads},
          {"test", row.test},
          {"rows", row.rows},
          {"depth", row.depth},
          {"arm", row.arm},
          {"tokens_per_second", row.tokens_per_second},
          {"tokens_per_second_sd", row.tokens_per_second_sd},
          {"median_seconds", row.median_seconds},
          {"min_seconds", row.min_seconds},
          {"samples", row.samples},
          {"paths",
           {{"absorbed", row.paths.absorbed_steps},
            {"materialised", row.paths.materialised_steps},
            {"gqa", row.paths.gqa_steps}}},
          {"bytes_moved", row.bytes_moved},
          {"gbytes_per_second", row.gbytes_per_second},
          {"roof_share", row.roof_share},
          {"read_gbytes_per_second", report.read_gbytes_per_second},
          {"operations", row.operations},
          {"floor_seconds", row.floor_seconds},
          {"peak_gops", report.peak_gops},
          {"cache", row.cache},
          {"second_row_cost", or_null(row.second_row_cost)},
          {"acceptance", or_null(row.acceptance)},
          {"emitted_per_round", or_null(row.emitted_per_round)},
          {"kv_bytes_per_token", row.kv_bytes_per_token}};
}

std::string dump(const Object& object, int indent = -1) {
  return object.dump(indent, ' ', false, Object::error_handler_t::replace);
}

std::string json_text(const BenchReport& report) {
  Object rows = Object::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(report, row));
  return dump(rows, 2) + "\n";
}

std::string jsonl_text(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) text += dump(row_json(report, row)) + "\n";
  return text;
}

/// A row without nesting: paths becomes paths_absorbed and so on.
std::vector<std::pair<std::string, Object>> flat_row(const BenchReport& report, const BenchRow& row) {
  std::vector<std::pair<std::string, Object>> fields;
  const Object nested = row_json(report, row);
  for (const auto& [name, value] : nested.items()) {
    if (!value.is_object()) {
      fields.emplace_back(name, value);
      continue;
    }
    for (const auto& [inner, part] : value.items()) fields.emplace_back(name + "_" + inner, part);
  }
  return fields;
}

/// `text` between quotes of one kind, those within it doubled.
std::string between_quotes(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

std::string csv_text(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    std::string names, values;
    for (const auto& [name, value] : flat_row(report, row)) {
      names += (names.empty() ? "" : ",") + name;
      if (!values.empty()) values += ',';
      values += value.is_string() ? between_quotes(value.get<std::string>(), '"') : value.is_null() ? "" : dump(value);
    }
    if (text.empty()) text = names + "\n";
    text += values + "\n";
  }
  return text;
}

std::string sql_text(const BenchReport& report) {
  std::string text;
  for (const BenchRow& row : report.rows) {
    std::string columns, values;
    for (const auto& [name, value] : flat_row(report, row)) {
      const bool nullable =
          value.is_null() || name == "second_row_cost" || name == "acceptance" || name == "emitted_per_round";
      const char* type = value.is_string() ? "TEXT" : value.is_number_float() || nullable ? "REAL" : "INTEGER";
      columns += fmt::format("{}\n  {} {}", columns.empty() ? "" : ",", name, type);
      values += fmt::format("{}{}", values.empty() ? "" : ", ",
                            value.is_string() ? between_quotes(value.get<std::string>(), '\'')
                            : value.is_null() ? "NULL"
                                              : dump(value));
    }
    if (text.empty()) text = fmt::format("CREATE TABLE IF NOT EXISTS latte_bench ({}\n);\n", columns);
    text += fmt::format("INSERT INTO latte_bench VALUES ({});\n", values);
  }
  return text;
}

/// Steps by form, what filled the cache where no text did, and acceptance.
std::string paths_cell(const BenchRow& row) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (row.paths.absorbed_steps > 0) add(fmt::format("absorbed {}", row.paths.absorbed_steps));
  if (row.paths.materialised_steps > 0) add(fmt::format("materialised {}", row.paths.materialised_steps));
  if (row.paths.gqa_steps > 0) add(fmt::format("gqa {}", row.paths.gqa_steps));
  if (row.cache == "synthetic") add("cache: synthetic");
  if (row.acceptance.has_value())
    add(fmt::format("accepted {:.0f}%, {:.2f} tokens a step", *row.acceptance * 100,
                    row.emitted_per_round.value_or(0)));
  return text;
}

bool is_attention(const BenchRow& row) { return row.test.starts_with("attn"); }

/// Rows that share a test are told apart by their arm.
std::string test_cell(const BenchReport& report, const BenchRow& row) {
  const auto same = std::count_if(report.rows.begin(), report.rows.end(),
                                  [&](const BenchRow& other) { return other.test == row.test; });
  return same > 1 ? fmt::format("{} ({})", row.test, row.arm) : row.test;
}

/// Of an attention call: what it takes beside the absorbed form.
std::string ratio_cell(const BenchReport& report, const BenchRow& row) {
  for (const BenchRow& other : report.rows) {
    if (other.test == row.test && other.arm == "absorbed")
      return fmt::format("{:.2f}x", row.median_seconds / other.median_seconds);
  }
  return "";
}

std::string size_cell(std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  return bytes < 1 << 30 ? fmt::format("{:.2f} MiB", size / (1 << 20)) : fmt::format("{:.2f} GiB", size / (1 << 30));
}

std::string count_cell(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count < 1e9 ? fmt::format("{:.2f} M", count * 1e-6) : fmt::format("{:.2f} B", count * 1e-9);
}

std::string steps_table(const BenchReport& report) {
  std::string text =
      "| model | size | params | backend | threads | test | t/s | paths | GB/s | roof |\n"
      "| --- | ---: | ---: | --- | ---: | ---: | ---: | --- | ---: | ---: |\n";
  for (const BenchRow& row : report.rows) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} ± {:.2f} | {} | {:.2f} | {:.0f}% |\n", model_of(report),
                        size_cell(report.weight_bytes), count_cell(report.parameters), backend_of(report),
                        report.threads, test_cell(report, row), row.tokens_per_second, row.tokens_per_second_sd,
                        paths_cell(row), row.gbytes_per_second, row.roof_share * 100);
  }
  return text;
}

/// A second row takes nothing away: what seems so is how far two measurements of the same differ.
std::string second_row_cost(double cost) {
  if (cost < 0) return fmt::format("nothing beyond the noise, which is {:.0f}% of the first or more", -cost * 100);
  return fmt::format("{:+.0f}% of the first", cost * 100);
}

/// Seconds of one and of two rows follow from the rows' medians where they are shown, and from the share where not.
std::string second_rows(const BenchReport& report) {
  std::string text;
  int last = -1;
  for (const BenchRow& row : report.rows) {
    if (!row.second_row_cost.has_value() || row.depth == last) continue;
    last = row.depth;
    text +=
        fmt::format("second row of a verify step at depth {}: {}\n", row.depth, second_row_cost(*row.second_row_cost));
  }
  return text;
}

std::string attention_table(const BenchReport& report) {
  std::string text =
      "| model | backend | threads | test | arm | ms | least ms | over absorbed | GB/s | GFLOP/s | floor ms | share |\n"
      "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const BenchRow& row : report.rows) {
    text += fmt::format("| {} | {} | {} | {} | {} | {:.3f} | {:.3f} | {} | {:.2f} | {:.1f} | {:.3f} | {:.0f}% |\n",
                        report.model, backend_of(report), report.threads, row.test, row.arm, row.median_seconds * 1e3,
                        row.min_seconds * 1e3, ratio_cell(report, row), row.gbytes_per_second,
                        static_cast<double>(row.operations) * 1e-9 / row.median_seconds, row.floor_seconds * 1e3,
                        row.floor_seconds / row.median_seconds * 100);
  }
  text += fmt::format("\n| cache of {} layers, {} | bytes a token | GiB at 32K tokens |\n| --- | ---: | ---: |\n",
                      report.layers, report.type);
  std::vector<std::string> seen;
  for (const BenchRow& row : report.rows) {
    if (std::find(seen.begin(), seen.end(), row.arm) != seen.end()) continue;
    seen.push_back(row.arm);
    text += fmt::format("| {} | {} | {:.2f} |\n", row.arm, row.kv_bytes_per_token,
                        static_cast<double>(row.kv_bytes_per_token) * 32768 / (1 << 30));
  }
  return text;
}

/// What the floors of an attention call are made of.
std::string floor_line(const BenchReport& report) {
  if (report.peak_gops <= 0) return "floor: the bytes; no rate of this device is known\n";
  return fmt::format(
      "floor: the bytes, or the operations at {:.0f} GFLOP/s ({} over registers), whichever take longer, of the core "
      "and of the products with W_UK and W_UV\n",
      report.peak_gops, report.peak_instruction);
}

std::string md_text(const BenchReport& report) {
  const bool attention = !report.rows.empty() && is_attention(report.rows.front());
  std::string text = attention ? attention_table(report) : steps_table(report) + "\n" + second_rows(report);
  if (attention) text += '\n';
  text +=
      fmt::format("{}; memory read at {:.2f} GB/s over {:.0f} MB{}\n", report.processor, report.read_gbytes_per_second,
                  static_cast<double>(report.read_buffer_bytes) * 1e-6, attention ? "" : ", which roof is a share of");
  if (attention) text += floor_line(report);
  for (const std::string& note : report.notes) text += note + "\n";
  return text;
}

/// Bars of tokens per second, whiskers of one standard deviation.
std::string svg_text(const BenchReport& report) {
  constexpr int kLabel = 260, kBar = 480, kLine = 24, kTop = 56;
  double most = 1e-9;
  for (const BenchRow& row : report.rows) most = std::max(most, row.tokens_per_second + row.tokens_per_second_sd);
  const int height = kTop + kLine * static_cast<int>(report.rows.size()) + 16;
  std::string text = svg_begin(kLabel + kBar + 140, height, model_of(report) + ": tokens per second",
                               fmt::format("{}, {} threads, {}", backend_of(report), report.threads, report.processor));
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const BenchRow& row = report.rows[i];
    const int y = kTop + kLine * static_cast<int>(i);
    const double width = kBar * row.tokens_per_second / most, spread = kBar * row.tokens_per_second_sd / most;
    text += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"16\" fill=\"#4878a8\"/>"
        "<path d=\"M{:.1f} {} h{:.1f}\" stroke=\"#222\"/>"
        "<text x=\"{:.1f}\" y=\"{}\">{:.2f} ± {:.2f}</text>\n",
        kLabel - 8, y + 13, xml(test_cell(report, row)), kLabel, y, width, kLabel + std::max(0.0, width - spread),
        y + 8, spread + std::min(width, spread), kLabel + width + spread + 8, y + 13, row.tokens_per_second,
        row.tokens_per_second_sd);
  }
  return text + svg_end();
}

}  // namespace

std::string bench_text(const BenchReport& report, std::string_view form) {
  if (form == "json") return json_text(report);
  if (form == "jsonl") return jsonl_text(report);
  if (form == "csv") return csv_text(report);
  if (form == "sql") return sql_text(report);
  if (form == "svg") return svg_text(report);
  return md_text(report);
}

}  // namespace latte::cli
