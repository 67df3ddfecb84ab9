#ifndef ORRERY_TOOLS_TERMINAL_PROGRESS_H_
#define ORRERY_TOOLS_TERMINAL_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

// How far something is that takes over a second, on standard error.

namespace orrery::tools {

/// How far something is at a moment.
struct ProgressState {
  std::string things = {};  // "rows"
  size_t done = 0;          // those that were known included
  size_t total = 0;         // of them
  size_t known = 0;         // before it began
  double elapsed_s = 0;     // since it began
  bool to_the_end = true;   // else something else ends it: how much is left does not say when
};

/// "112/224 rows (50%), 31.2/s, 3.6 s left": what is not known is left out. Where something else
/// ends it, "112 of 224 rows, 31.2/s".
std::string ToString(const ProgressState& state);

/// A line that is written over itself. On a terminal it is cut to its width, first written after
/// half a second, so that what is quick says nothing, and in the end wiped out. Elsewhere it is
/// written from the start, and its last text stays.
class ProgressLine {
 public:
  /// Nothing is written unless `wanted`.
  explicit ProgressLine(bool wanted);
  ~ProgressLine() { End(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Whether it is time to write it: ten times a second.
  bool IsTime() const;
  void Write(const std::string& text);
  /// Before something else is written to the terminal. It may be written again after that.
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  const bool wanted_, wipes_;
  const size_t columns_;
  size_t width_ = 0;  // of the line that is there
  Clock::time_point next_;
};

/// Counts things that are done, from any thread, and tells it where ShowsProgress().
class Progress {
 public:
  Progress(std::string things, size_t total);

  void Done(size_t more = 1);

 private:
  std::mutex mutex_;
  ProgressState state_;
  const std::chrono::steady_clock::time_point begin_;
  ProgressLine line_;
};

/// Tells, while it lives and after the first second, how long something takes of which nobody can
/// say how far it is, "simulating, 3 s": where ShowsProgress(), from a thread of its own.
class Waiting {
 public:
  explicit Waiting(std::string what);
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void Tell();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TERMINAL_PROGRESS_H_
