#ifndef ORRERY_SIMULATOR_PARAMETER_SERVER_SPAN_LOG_H_
#define ORRERY_SIMULATOR_PARAMETER_SERVER_SPAN_LOG_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/parameter_server/outcome.h"
#include "simulator/parameter_server/training.h"
#include "simulator/parameter_server/worker_state.h"
#include "support/units.h"

namespace orrery::simulator::parameter_server {

/// The spans of the steps that are traced.
class SpanLog {
 public:
  /// Of `traced` steps, from the first on; `parts` must outlive this.
  SpanLog(const std::vector<Part>& parts, int32_t traced) : parts_(parts), traced_(traced) {}

  /// Adds what was done from one moment to another in the step of a reader.
  void Add(Span::Kind kind, const Reader& of, int32_t what, std::pair<Time, Time> when) {
    if (of.step >= traced_) return;
    const bool computes = kind == Span::Kind::kCompute;
    spans_.push_back({.kind = kind,
                      .worker = of.worker,
                      .server = computes ? -1 : parts_[static_cast<size_t>(what)].server,
                      .what = what,
                      .step = of.step,
                      .start = when.first,
                      .end = when.second});
  }

  std::vector<Span> Take() && { return std::move(spans_); }

 private:
  const std::vector<Part>& parts_;
  const int32_t traced_;
  std::vector<Span> spans_;
};

}  // namespace orrery::simulator::parameter_server

#endif  // ORRERY_SIMULATOR_PARAMETER_SERVER_SPAN_LOG_H_
