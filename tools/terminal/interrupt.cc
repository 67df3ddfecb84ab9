#include "tools/terminal/interrupt.h"

#include <csignal>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace interrupt_cc {
namespace {

using Handler = void (*)(int);

// What a handler may touch.
std::atomic<bool> stop = false;
std::atomic<int> caught = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

Handler before_interrupt = SIG_DFL, before_terminate = SIG_DFL;

void Restore() {
  std::signal(SIGINT, before_interrupt);
  std::signal(SIGTERM, before_terminate);
}

void Catch(int signal) {
  caught = signal;
  stop = true;
  Restore();
}

}  // namespace
}  // namespace interrupt_cc

StopOnSignals::StopOnSignals() {
  interrupt_cc::stop = false;
  interrupt_cc::caught = 0;
  interrupt_cc::before_interrupt = std::signal(SIGINT, interrupt_cc::Catch);
  interrupt_cc::before_terminate = std::signal(SIGTERM, interrupt_cc::Catch);
  // Of a job in the background, which a shell has told to ignore it.
  if (interrupt_cc::before_interrupt == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

StopOnSignals::~StopOnSignals() { interrupt_cc::Restore(); }

const std::atomic<bool>& StopOnSignals::stop() const { return interrupt_cc::stop; }

int CaughtSignal() { return interrupt_cc::caught; }

absl::Status StoppedBefore(absl::string_view things) {
  if (CaughtSignal() == 0) return absl::OkStatus();
  return absl::CancelledError(
      absl::StrCat("stopped before the end: the ", things, " that were done are above"));
}

}  // namespace orrery::tools
