#include "tools/team/shared_search.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tools {
namespace shared_search_cc {
namespace {

// A share of what is left, so that nobody gets much at the end; more than one where there are many,
// since asking takes longer than some candidates do.
constexpr size_t kMostAtOnce = 64;
constexpr size_t kRounds = 16;
constexpr int32_t kWait_ms = 100;
constexpr auto kPatience = std::chrono::seconds(2);

// What rank 0 knows while it serves.
class Server {
 public:
  Server(Team& team, SharedWork& work) : team_(team), work_(work) {}

  absl::Status Serve() {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> stopped;
    for (int32_t members = team_.size() - 1; members > ended_;) {
      if (work_.stop != nullptr && *work_.stop) {
        work_.left.clear();
        if (!stopped.has_value()) stopped = Clock::now();
        if (Clock::now() - *stopped > kPatience) break;
      }
      const Team::Message message = team_.Receive(kWait_ms);
      if (!message.text.empty()) Answer(message);
    }
    return status_;
  }

 private:
  void Fail(const absl::Status& status) {
    if (status_.ok()) status_ = status;
    work_.left.clear();
  }

  void Answer(const Team::Message& message) {
    const std::string text = message.text.substr(1);
    switch (message.text[0]) {
      case 'Q':
        if (text == work_.question) return;
        return Fail(absl::InvalidArgumentError(
            absl::StrCat("rank ", message.from, " has ", Differ(text),
                         "; wanted one program, one command line and the same files everywhere")));
      case 'N':
        return HandOut(message.from);
      case 'R':
        if (const absl::Status taken = work_.record(text); !taken.ok()) Fail(taken);
        return;
      case 'E':
        Fail(absl::InvalidArgumentError(text));
        [[fallthrough]];
      default:
        ++ended_;
    }
  }

  std::string Differ(const std::string& text) const {
    const auto there = search::ParseHeader(text), here = search::ParseHeader(work_.question);
    const std::string differ =
        there.ok() && here.ok() ? search::Differences(there->question, here->question) : "";
    return differ.empty() ? "another question" : absl::StrCat("another question: ", differ);
  }

  void HandOut(int32_t to) {
    const auto members = static_cast<size_t>(team_.size() - 1);
    const size_t count = std::min({std::max<size_t>(1, work_.left.size() / (kRounds * members)),
                                   kMostAtOnce, work_.left.size()});
    std::string text = "C";
    for (size_t i = 0; i < count; ++i) {
      absl::StrAppend(&text, " ", work_.left.front());
      work_.left.pop_front();
    }
    team_.Send(to, text);
  }

  Team& team_;
  SharedWork& work_;
  int32_t ended_ = 0;
  absl::Status status_;
};

}  // namespace
}  // namespace shared_search_cc

absl::Status ServeTeam(Team& team, SharedWork work) {
  return shared_search_cc::Server(team, work).Serve();
}

std::optional<size_t> TeamMember::Next() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (own_.empty() && !ended_) {
    team_.Send(0, "N");
    Team::Message answer;
    while (answer.text.empty()) answer = team_.Receive(shared_search_cc::kWait_ms);
    const absl::string_view list = absl::string_view(answer.text).substr(1);
    for (const absl::string_view number : absl::StrSplit(list, ' ', absl::SkipEmpty())) {
      if (size_t i = 0; absl::SimpleAtoi(number, &i)) own_.push_back(i);
    }
    ended_ = own_.empty();
  }
  if (own_.empty()) return std::nullopt;
  const size_t next = own_.front();
  own_.pop_front();
  return next;
}

void TeamMember::Send(const std::string& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  team_.Send(0, "R" + record);
}

void TeamMember::End(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  team_.Send(0, status.ok() ? "F" : absl::StrCat("E", status.message()));
}

}  // namespace orrery::tools
