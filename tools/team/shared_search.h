#ifndef ORRERY_TOOLS_TEAM_SHARED_SEARCH_H_
#define ORRERY_TOOLS_TEAM_SHARED_SEARCH_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "search/journal/question.h"
#include "tools/team/team.h"

// One search by a team: rank 0 hands out candidates to whoever has none, the others find results
// and send them as records (search/journal/result_record.h), each as soon as it is done.
//
//   to rank 0    Q question   R record   N (wants candidates)   F (ends)   E why (ends)
//   from it      C 3 4 5 (candidates; none: there are no more)

namespace orrery::tools {

/// What rank 0 hands out, and what becomes of what comes back.
struct SharedWork {
  std::string question;                     // all ranks must ask the same: HeaderText
  std::deque<size_t> left;                  // candidates, in the order in which they are handed out
  const std::atomic<bool>* stop = nullptr;  // once true, no more are
  /// Called with each record that comes; after an error no more candidates are handed out.
  std::function<absl::Status(const std::string& record)> record = {};
};

/// Hands out all that is left, and returns once all others have ended: or, when they are to stop,
/// after two seconds more at the latest. An error of a rank, a record or a question that differs is
/// the result.
absl::Status ServeTeam(Team& team, SharedWork work);

/// What another rank does. From any thread, one at a time.
class TeamMember {
 public:
  TeamMember(Team& team, const std::string& question) : team_(team) {
    team_.Send(0, "Q" + question);
  }

  /// The next candidate; nothing: there are no more.
  std::optional<size_t> Next();
  /// A candidate is done.
  void Send(const std::string& record);
  /// There is no more to come.
  void End(const absl::Status& status);

 private:
  std::mutex mutex_;
  Team& team_;
  std::deque<size_t> own_;
  bool ended_ = false;
};

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_TEAM_SHARED_SEARCH_H_
