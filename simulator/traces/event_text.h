#ifndef ORRERY_SIMULATOR_TRACES_EVENT_TEXT_H_
#define ORRERY_SIMULATOR_TRACES_EVENT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "support/units.h"

namespace orrery::simulator {

/// Microseconds, exact: never by way of a double, which runs out of picoseconds after two hours.
std::string Microseconds(Duration duration);

/// `"ts":START,"dur":LENGTH`. Readers add the two in floating point, in one order or another: so
/// the length is a little less, by a thousandth of a picosecond up to a second, and later what
/// keeps what begins at `finish` from overlapping. Requires a finish behind the start.
std::string SpanText(Time start, Time finish);

/// Where a slice stands: `"pid":3,"tid":7`.
std::string PositionText(int32_t pid, int32_t tid);

/// The events of a trace as they are written, a line each, with a small buffer: however many there
/// are, they take no more memory.
class EventText {
 public:
  explicit EventText(std::ostream& out) : out_(out) {}

  /// `before` the first event, and what ends the last one.
  void Begin(absl::string_view before) { absl::StrAppend(&buffer_, before); }
  void End(absl::string_view after) {
    absl::StrAppend(&buffer_, after);
    Flush();
  }

  /// One event: all parts, without anything between them.
  template <typename... Parts>
  void Event(const Parts&... parts) {
    absl::StrAppend(&buffer_, first_ ? "\n" : ",\n", parts...);
    first_ = false;
    if (buffer_.size() >= kBufferBytes) Flush();
  }

  /// An arrow from `from` to `to`, two positions, at moments at which slices begin there: the one
  /// place of a slice that is inside of it whichever way a viewer rounds. `name` is its category,
  /// too.
  void Arrow(absl::string_view name, absl::string_view from, Time from_time, absl::string_view to,
             Time to_time);

  /// What a process is called; processes stand in the order of their numbers.
  void Process(int32_t pid, absl::string_view name);
  /// What a thread is called; `order` among those of its process.
  void Thread(absl::string_view position, absl::string_view name, int32_t order);

 private:
  static constexpr size_t kBufferBytes = 1 << 16;

  void Flush();

  std::ostream& out_;
  std::string buffer_;
  bool first_ = true;
  int64_t next_arrow_ = 1;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_EVENT_TEXT_H_
