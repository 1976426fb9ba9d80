#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "support/tolerance.h"

namespace latte::test {

/// What each row of an operation came to. Elements that must stay untouched read as kUntouched.
using RowValues = std::vector<std::vector<double>>;
inline constexpr double kUntouched = -12345;

/// An operation with its inputs in device memory.
struct PreparedOperation {
  std::function<void()> run;            ///< repeatable; accumulating operations accumulate again
  std::function<RowValues()> result;    ///< after the first run
  std::function<bool()> poison_intact;  ///< nothing was written outside the outputs
};

/// One case: fixed weights and cache, and rows that are known by number. A row's inputs are a function of its number
/// alone, so any rows may be run together, in any neighbourhood.
struct OperationCase {
  std::string name;      ///< "matmul/bf16_M17_N33_K100"; letters, digits, '/' and '_'
  int rows = 0;          ///< rows 0 .. rows - 1 are the case itself
  bool any_rows = true;  ///< false: rows belong together and are run all at once
  std::function<PreparedOperation(Backend& backend, std::span<const int> rows)> prepare;
  /// Of max_relative_difference against the reference.
  std::function<double(const Rounding& rounding)> tolerance;
};

/// "bf16", for the name of a case.
inline std::string type_word(DType dtype) {
  return dtype == DType::kBf16  ? "bf16"
         : dtype == DType::kF16 ? "f16"
         : dtype == DType::kQ8  ? "q8"
         : dtype == DType::kQ4  ? "q4"
                                : "f32";
}

/// Every case of every operation: tests and benchmarks of all devices run this one list.
std::vector<OperationCase> operation_cases();

/// The parts of the list.
std::vector<OperationCase> matrix_cases();
std::vector<OperationCase> row_cases();
std::vector<OperationCase> attention_cases();
std::vector<OperationCase> expert_cases();

/// Prepares, runs and reads rows 0 .. rows - 1 of a case; stops when something outside the outputs was written.
RowValues run_case(Backend& backend, const OperationCase& operation);
/// The same for the rows named.
RowValues run_rows(Backend& backend, const OperationCase& operation, std::span<const int> rows);

/// max|a-b| / max|b| over all rows; infinite when shapes differ or a value is NaN.
double max_relative_difference(const RowValues& a, const RowValues& b);

}  // namespace latte::test
