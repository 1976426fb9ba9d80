#pragma once

#include <new>
#include <stdexcept>

#include "base/fail.h"

namespace latte {

/// Runs `work` and gives what it gives. Memory that the standard library was refused, or was asked for beyond any
/// container, becomes an Error here, at the public border, after `undo` has put things right.
template <class Work, class Undo>
auto reporting_no_memory(Work work, Undo undo) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  undo();
  return fail(ErrorKind::kOutOfMemory,
              "the system has no memory left for this request, expected room for it: use a smaller context, prompt or "
              "model");
}

template <class Work>
auto reporting_no_memory(Work work) -> decltype(work()) {
  return reporting_no_memory(work, [] {});
}

}  // namespace latte
