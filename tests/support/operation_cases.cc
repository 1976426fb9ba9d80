#include "support/operation_cases.h"

#include <iterator>
#include <limits>
#include <numeric>

#include "support/tolerance.h"

namespace latte::test {

std::vector<OperationCase> operation_cases() {
  std::vector<OperationCase> all;
  for (auto* part : {&row_cases, &matrix_cases, &attention_cases, &expert_cases}) {
    std::vector<OperationCase> cases = part();
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  }
  return all;
}

RowValues run_rows(Backend& backend, const OperationCase& operation, std::span<const int> rows) {
  const PreparedOperation prepared = operation.prepare(backend, rows);
  prepared.run();
  expects(backend.synchronize().ok(), "the device has not failed");
  expects(prepared.poison_intact(), "an operation writes its outputs and nothing else");
  return prepared.result();
}

RowValues run_case(Backend& backend, const OperationCase& operation) {
  std::vector<int> rows(static_cast<std::size_t>(operation.rows));
  std::iota(rows.begin(), rows.end(), 0);
  return run_rows(backend, operation, rows);
}

double max_relative_difference(const RowValues& a, const RowValues& b) {
  std::vector<double> a_values, b_values;
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return std::numeric_limits<double>::infinity();
    a_values.insert(a_values.end(), a[i].begin(), a[i].end());
    b_values.insert(b_values.end(), b[i].begin(), b[i].end());
  }
  return max_relative_difference(std::span<const double>(a_values), std::span<const double>(b_values));
}

}  // namespace latte::test
