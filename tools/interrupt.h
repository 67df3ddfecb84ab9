#ifndef ORRERY_TOOLS_INTERRUPT_H_
#define ORRERY_TOOLS_INTERRUPT_H_

#include <atomic>

// SIGINT and SIGTERM as a wish to end soon, with what there is.

namespace orrery::tools {

/// While it lives, the first SIGINT or SIGTERM sets `stop`; a second one ends the process as it
/// would without. One at a time.
class StopOnSignals {
 public:
  StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
  ~StopOnSignals();

  /// Set once a signal has come.
  const std::atomic<bool>& stop() const;
};

/// The signal that has come last; 0: none.
int CaughtSignal();

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_INTERRUPT_H_
