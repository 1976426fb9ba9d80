#pragma once

namespace latte::cli {

/// SIGPIPE ends the program quietly with 0. A write past the limit on file sizes is an error, not a signal. SIGINT ends
/// it at once with 130, or, while a GracefulInterrupt lives, asks for an end; the second one then ends it at once.
void install_signal_handlers();

/// While it lives, the first SIGINT only sets a flag. One at a time.
class GracefulInterrupt {
 public:
  /// What the second SIGINT does.
  enum class Second { kEnds, kNothing };
  explicit GracefulInterrupt(Second second = Second::kEnds);
  ~GracefulInterrupt();
  GracefulInterrupt(const GracefulInterrupt&) = delete;
  GracefulInterrupt& operator=(const GracefulInterrupt&) = delete;

  bool requested() const;
};

}  // namespace latte::cli
