#pragma once

#include <cstdint>
#include <vector>

#include "support/operation_cases.h"

namespace latte::test {

/// One sequence of an attention case. Its keys and queries are a function of its identity and their positions alone.
struct SequenceSpec {
  int identity = 0;
  int first_query_pos = 0;
  int queries = 1;
  int cached_rows = -1;   ///< cache length; -1: up to the last query
  int first_key_pos = 0;  ///< cache index of the first key in memory

  int length() const { return cached_rows >= 0 ? cached_rows : first_query_pos + queries; }
};

enum class QueryLayout {
  kLaneMajor,  ///< q [lanes, W, K]
  kRowMajor,   ///< q [W, lanes, K]
};

/// An attend_partial with its merge_partials.
struct AttendSpec {
  int lanes = 1;
  int rows_per_query = 1;
  int key_width = 0;
  int value_width = 0;
  bool values_in_keys = true;       ///< values are the keys' first columns
  bool values_behind_keys = false;  ///< else: in the same rows, behind the keys of all lanes (of equal width)
  DType keys = DType::kF32;
  bool expanded = false;  ///< keys and values are a step's workspace
  int exact = -1;         ///< of Q8 keys: columns behind the coded ones; -1: those past the values, or none
  QueryLayout layout = QueryLayout::kLaneMajor;
  int page_rows = 64;
  std::uint64_t placement = 1;  ///< of the pages in memory
  int leaf = 128;               ///< keys of a chunk; chunks start at its multiples
  int leaves_per_slot = 1;      ///< chunks folded into one slot
  bool shared_slots = true;     ///< every sequence uses slots 0, 1, ...; else each has its own
  std::vector<SequenceSpec> sequences = {};
};

/// Rows of the result: one per query, sequence after sequence; each holds o [rows_per_query, lanes, V].
PreparedOperation prepare_attend(Backend& backend, const AttendSpec& spec);

/// Runs prepare_attend's operation.
RowValues attend(Backend& backend, const AttendSpec& spec);

/// The case's name says widths, layout and lengths.
OperationCase attend_case(const std::string& name, const AttendSpec& spec);

}  // namespace latte::test
