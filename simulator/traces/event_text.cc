#include "simulator/traces/event_text.h"

#include <algorithm>

#include "support/json_text.h"

namespace orrery::simulator {

std::string Microseconds(Duration duration) {
  const int64_t picoseconds = duration.picoseconds();
  return absl::StrCat(picoseconds / 1'000'000, ".",
                      absl::Dec(picoseconds % 1'000'000, absl::kZeroPad6));
}

std::string SpanText(Time start, Time finish) {
  // Eight units in the last place of a double that holds the finish in microseconds, rounded up to
  // a power of ten; in thousandths of a picosecond.
  constexpr int64_t kSecond = 1'000'000'000'000;
  absl::string_view rest = "999";  // of the picosecond that is begun
  if (finish > Time(kSecond)) rest = "99";
  if (finish > Time(10 * kSecond)) rest = "9";
  Duration whole = finish - start - Duration(1);
  if (finish > Time(100 * kSecond)) {
    rest = "";
    const int64_t places =
        finish.picoseconds() / (int64_t{1} << 49);  // of eight, a picosecond each
    whole = std::max(Duration(0), whole - Duration(places));
  }
  return absl::StrCat("\"ts\":", Microseconds(start), ",\"dur\":", Microseconds(whole), rest);
}

std::string PositionText(int32_t pid, int32_t tid) {
  return absl::StrCat("\"pid\":", pid, ",\"tid\":", tid);
}

void EventText::Arrow(absl::string_view name, absl::string_view from, Time from_time,
                      absl::string_view to, Time to_time) {
  const std::string head =
      absl::StrCat("{\"name\":\"", name, "\",\"cat\":\"", name, "\",\"id\":", next_arrow_++);
  Event(head, ",\"ph\":\"s\",", from, ",\"ts\":", Microseconds(from_time), "}");
  Event(head, ",\"ph\":\"f\",\"bp\":\"e\",", to, ",\"ts\":", Microseconds(to_time), "}");
}

void EventText::Process(int32_t pid, absl::string_view name) {
  Event("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":", pid,
        ",\"args\":{\"name\":", JsonString(std::string(name)), "}}");
  Event("{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":", pid,
        ",\"args\":{\"sort_index\":", pid, "}}");
}

void EventText::Thread(absl::string_view position, absl::string_view name, int32_t order) {
  Event("{\"name\":\"thread_name\",\"ph\":\"M\",", position,
        ",\"args\":{\"name\":", JsonString(std::string(name)), "}}");
  Event("{\"name\":\"thread_sort_index\",\"ph\":\"M\",", position,
        ",\"args\":{\"sort_index\":", order, "}}");
}

void EventText::Flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace orrery::simulator
