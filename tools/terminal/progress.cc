#include "tools/terminal/progress.h"

#include <iostream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/terminal/terminal.h"

namespace orrery::tools {
namespace progress_cc {
namespace {

// A search of days is not told in seconds.
std::string LeftText(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < kMinute) return absl::StrFormat("%.0f s left", seconds);
  if (seconds < kHour) return absl::StrFormat("%.0f min left", seconds / kMinute);
  return absl::StrFormat("%.1f h left", seconds / kHour);
}

}  // namespace
}  // namespace progress_cc

std::string ToString(const ProgressState& state) {
  std::string text =
      absl::StrCat(state.done, state.to_the_end ? "/" : " of ", state.total, " ", state.things);
  if (state.total == 0) return text;
  if (state.to_the_end) absl::StrAppend(&text, " (", 100 * state.done / state.total, "%)");
  const size_t found = state.done - state.known;
  if (found == 0 || state.elapsed_s <= 0) return text;
  const double rate = static_cast<double>(found) / state.elapsed_s;
  absl::StrAppendFormat(&text, ", %.1f/s", rate);
  const size_t left = state.total - state.done;
  if (left == 0 || !state.to_the_end) return text;
  return absl::StrCat(text, ", ", progress_cc::LeftText(static_cast<double>(left) / rate));
}

ProgressLine::ProgressLine(bool wanted)
    : wanted_(wanted),
      wipes_(ErrorTerminal().is_terminal),
      columns_(wipes_ ? ErrorTerminal().columns - 1 : std::numeric_limits<size_t>::max()),
      next_(Clock::now() + std::chrono::milliseconds(wipes_ ? 500 : 100)) {}

bool ProgressLine::IsTime() const { return wanted_ && Clock::now() >= next_; }

void ProgressLine::Write(const std::string& text) {
  if (!wanted_) return;
  next_ = Clock::now() + std::chrono::milliseconds(100);
  const std::string line = CutText(text, columns_, ErrorTerminal());
  const size_t width = TextWidth(line);
  const std::string rest(width_ > width ? width_ - width : 0, ' ');
  width_ = width;
  std::cerr << "\r" << line << rest << std::flush;
}

void ProgressLine::End() {
  if (width_ == 0) return;
  if (wipes_) {
    std::cerr << "\r" << std::string(width_, ' ') << "\r" << std::flush;
  } else {
    std::cerr << "\n";
  }
  width_ = 0;
}

Progress::Progress(std::string things, size_t total)
    : begin_(std::chrono::steady_clock::now()), line_(ShowsProgress()) {
  state_.things = std::move(things);
  state_.total = total;
}

void Progress::Done(size_t more) {
  const std::lock_guard lock(mutex_);
  state_.done += more;
  const bool last = state_.done == state_.total;
  // What stays in a file tells the end.
  const bool stays = last && ShowsProgress() && !ErrorTerminal().is_terminal;
  if (!line_.IsTime() && !stays) return;
  state_.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  line_.Write(ToString(state_));
}

Waiting::Waiting(std::string what) : what_(std::move(what)) {
  if (ShowsProgress()) thread_ = std::thread([this] { Tell(); });
}

Waiting::~Waiting() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Waiting::Tell() {
  ProgressLine line(true);
  std::unique_lock lock(mutex_);
  for (int seconds = 1; !ended_.wait_for(lock, std::chrono::seconds(1), [&] { return end_; });
       ++seconds) {
    line.Write(absl::StrCat(what_, ", ", seconds, " s"));
  }
}

}  // namespace orrery::tools
