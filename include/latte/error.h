#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace latte {

/// What kind of thing went wrong in the world outside the program.
enum class ErrorKind {
  kInvalidInput,  ///< a file, tensor, option or request that does not hold together
  kNotFound,      ///< a name or path that leads nowhere
  kIo,            ///< the operating system refused
  kOutOfMemory,
  kUnsupported,  ///< well-formed, but not something latte can do
  kNumeric,      ///< NaN or infinity where a number was expected
  kCancelled,
};

/// An error is a value: what arrived, what was expected, what to do, in one line.
struct Error {
  ErrorKind kind = ErrorKind::kInvalidInput;
  std::string message;
};

/// A value or an Error. `ok()` must be asked before `value()`; the wrong access ends the process, it never reads
/// garbage.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *checked(); }
  const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }

  const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }

 private:
  T* checked() {
    T* value = std::get_if<0>(&state_);
    if (value == nullptr) std::abort();
    return value;
  }

  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit by design

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) std::abort();
    return *error;
  }

 private:
  std::variant<std::monostate, Error> state_;
};

using Status = Result<void>;

}  // namespace latte
