#ifndef ORRERY_TOOLS_TERMINAL_INTERRUPT_H_
#define ORRERY_TOOLS_TERMINAL_INTERRUPT_H_

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

/// The signal that has come since there was the last StopOnSignals; 0: none.
int CaughtSignal();

/// Where one has come, CancelledError: "stopped before the end: the records that were done are
/// above". Else OK.
absl::Status StoppedBefore(absl::string_view things);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TERMINAL_INTERRUPT_H_
