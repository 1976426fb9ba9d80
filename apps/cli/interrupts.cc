#include "interrupts.h"

#include <unistd.h>

#include <csignal>

#include "outcome.h"

namespace latte::cli {
namespace {

// Signal handlers can reach nothing but objects of static storage.
volatile std::sig_atomic_t graceful = 0;  // 1: the first SIGINT is a flag, 2: every one is
volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int) {
  if (graceful == 0 || (graceful == 1 && interrupted != 0)) _exit(kInterrupted);
  interrupted = 1;
}

void on_broken_pipe(int) { _exit(0); }

}  // namespace

void install_signal_handlers() {
  std::signal(SIGPIPE, on_broken_pipe);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGXFSZ, SIG_IGN);
}

GracefulInterrupt::GracefulInterrupt(Second second) {
  interrupted = 0;
  graceful = second == Second::kEnds ? 1 : 2;
}
GracefulInterrupt::~GracefulInterrupt() { graceful = 0; }
bool GracefulInterrupt::requested() const { return interrupted != 0; }

}  // namespace latte::cli
