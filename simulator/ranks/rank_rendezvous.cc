#include "simulator/ranks/rank_rendezvous.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::simulator {
namespace rank_rendezvous_cc {
namespace {

// Messages that can meet each other: from, to, tag.
using Lane = std::tuple<int32_t, int32_t, int32_t>;

struct LaneSteps {
  std::vector<int32_t> sends;     // steps of the sender
  std::vector<int32_t> receives;  // steps of the receiver
};

// For one communicator and each of its ranks, in their order: the steps that call it.
using CallRows = std::vector<std::vector<int32_t>>;

class Matcher {
 public:
  explicit Matcher(const RankPrograms& programs) : programs_(programs) {}

  absl::StatusOr<RendezvousTable> Match() {
    Collect();
    for (size_t c = 0; c < calls_.size(); ++c) ORRERY_RETURN_IF_ERROR(MatchCalls(c));
    for (const auto& [lane, steps] : lanes_) ORRERY_RETURN_IF_ERROR(MatchLane(lane, steps));
    return std::move(table_);
  }

 private:
  const RankStep& StepAt(int32_t rank, int32_t step) const {
    return programs_.ranks[static_cast<size_t>(rank)][static_cast<size_t>(step)];
  }
  std::string Where(int32_t rank, int32_t step) const { return WhereIs(programs_, rank, step); }
  std::string What(int32_t rank, int32_t step) const {
    return Describe(programs_, StepAt(rank, step));
  }

  // Sorts the steps by what they can meet; a compute is a rendezvous of its own.
  void Collect() {
    std::vector<absl::flat_hash_map<int32_t, size_t>> row_of;  // by communicator and rank
    for (const Communicator& communicator : programs_.communicators) {
      calls_.emplace_back(communicator.ranks.size());
      row_of.emplace_back();
      for (const int32_t rank : communicator.ranks) row_of.back()[rank] = row_of.back().size();
    }
    for (int32_t rank = 0; rank < static_cast<int32_t>(programs_.ranks.size()); ++rank) {
      const std::vector<RankStep>& steps = programs_.ranks[static_cast<size_t>(rank)];
      table_.of.emplace_back(steps.size(), -1);
      for (int32_t i = 0; i < static_cast<int32_t>(steps.size()); ++i) {
        const RankStep& step = StepAt(rank, i);
        const size_t c = static_cast<size_t>(step.communicator);
        if (step.kind == StepKind::kCompute) {
          Add({rank, i});
          Close();
        } else if (step.kind == StepKind::kCollective) {
          calls_[c][row_of[c][rank]].push_back(i);
        } else if (step.kind == StepKind::kSend) {
          lanes_[{rank, step.peer, step.tag}].sends.push_back(i);
        } else if (step.kind == StepKind::kReceive) {
          lanes_[{step.peer, rank, step.tag}].receives.push_back(i);
        }
      }
    }
  }

  void Add(const StepPosition& position) {
    table_.positions.push_back(position);
    table_.of[static_cast<size_t>(position.rank)][static_cast<size_t>(position.step)] =
        table_.size();
  }
  void Close() { table_.begin.push_back(static_cast<uint32_t>(table_.positions.size())); }

  absl::Status MatchCalls(size_t c) {
    const std::vector<int32_t>& ranks = programs_.communicators[c].ranks;
    const CallRows& rows = calls_[c];
    for (size_t r = 1; r < ranks.size(); ++r) {
      for (size_t k = 0; k < std::min(rows[0].size(), rows[r].size()); ++k) {
        ORRERY_RETURN_IF_ERROR(Compare(c, k, {ranks[0], rows[0][k]}, {ranks[r], rows[r][k]}));
      }
      if (rows[0].size() != rows[r].size()) return CallsLeft(c, r);
    }
    for (size_t k = 0; k < rows[0].size(); ++k) {
      for (size_t r = 0; r < ranks.size(); ++r) Add({ranks[r], rows[r][k]});
      Close();
    }
    return absl::OkStatus();
  }

  absl::Status Compare(size_t c, size_t call, const StepPosition& a, const StepPosition& b) const {
    const RankStep& first = StepAt(a.rank, a.step);
    const RankStep& other = StepAt(b.rank, b.step);
    if (first.collective == other.collective && first.size == other.size) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "communicator '", programs_.communicators[c].name, "', call ", call, ": ",
        Where(a.rank, a.step), " calls ", first.collective, " of ", first.size.count(), " bytes, ",
        Where(b.rank, b.step), " ", other.collective, " of ", other.size.count(),
        " bytes; wanted the same kinds and sizes in the same order on all its ranks"));
  }

  // Rank `r` of the communicator calls it more or less often than the first.
  absl::Status CallsLeft(size_t c, size_t r) const {
    const Communicator& communicator = programs_.communicators[c];
    const bool more = calls_[c][r].size() > calls_[c][0].size();
    const size_t caller = more ? r : 0;
    const size_t other = more ? 0 : r;
    const size_t matched = calls_[c][other].size();
    const int32_t step = calls_[c][caller][matched];
    const int32_t rank = communicator.ranks[other];
    const std::string last =
        matched == 0 ? absl::StrCat("rank ", rank)
                     : absl::StrCat(Where(rank, calls_[c][other].back()), ", the last time,");
    return absl::InvalidArgumentError(absl::StrCat(
        "communicator '", communicator.name, "': ", Where(communicator.ranks[caller], step),
        " calls ", What(communicator.ranks[caller], step), " as call ", matched, ", and ", last,
        " calls it only ", matched, " times; wanted as many calls on all its ranks"));
  }

  absl::Status MatchLane(const Lane& lane, const LaneSteps& steps) {
    const auto& [from, to, tag] = lane;
    const size_t both = std::min(steps.sends.size(), steps.receives.size());
    for (size_t k = 0; k < both; ++k) {
      const int32_t send = steps.sends[k], receive = steps.receives[k];
      if (StepAt(from, send).size != StepAt(to, receive).size) {
        return absl::InvalidArgumentError(absl::StrCat(
            Where(from, send), " sends ", StepAt(from, send).size.count(), " bytes to ",
            Where(to, receive), ", which receives ", StepAt(to, receive).size.count(),
            " bytes with tag ", tag, "; wanted the same size at both ends"));
      }
      Add({from, send});
      Add({to, receive});
      Close();
    }
    if (steps.sends.size() > both) return Unmatched(lane, {from, steps.sends[both]}, both);
    if (steps.receives.size() > both) return Unmatched(lane, {to, steps.receives[both]}, both);
    return absl::OkStatus();
  }

  // A send or receive whose other end is missing; what else the other end has tells why, mostly.
  absl::Status Unmatched(const Lane& lane, const StepPosition& position, size_t matched) const {
    const auto& [from, to, tag] = lane;
    const bool is_send = position.rank == from;
    const int32_t other = is_send ? to : from;
    const absl::string_view wanted = is_send ? "receive" : "send";
    std::string found = absl::StrCat("rank ", other, " has only ", matched, " such ", wanted, "s");
    for (auto near = lanes_.lower_bound({from, to, INT32_MIN});
         near != lanes_.end() && std::get<0>(near->first) == from && std::get<1>(near->first) == to;
         ++near) {
      const LaneSteps& steps = near->second;
      const std::vector<int32_t>& ends = is_send ? steps.receives : steps.sends;
      const size_t taken = std::min(steps.sends.size(), steps.receives.size());
      if (ends.size() <= taken) continue;
      absl::StrAppend(&found, ", and ", Where(other, ends[taken]), " has one with tag ",
                      std::get<2>(near->first));
      break;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(Where(position.rank, position.step), ": ", What(position.rank, position.step),
                     " has no other end: ", found, "; wanted a ", wanted, " on rank ", other));
  }

  const RankPrograms& programs_;
  std::vector<CallRows> calls_;  // by communicator
  std::map<Lane, LaneSteps> lanes_;
  RendezvousTable table_;
};

// A circle of waits, those of one rank in a row as one.
std::vector<RendezvousWait> FindCircle(std::span<const RendezvousWait> waits,
                                       const std::vector<bool>& ordered) {
  std::vector<const RendezvousWait*> wait_of(ordered.size(),
                                             nullptr);  // something that holds it up
  int32_t at = -1;
  for (const RendezvousWait& wait : waits) {
    if (ordered[static_cast<size_t>(wait.before)] || ordered[static_cast<size_t>(wait.after)]) {
      continue;
    }
    wait_of[static_cast<size_t>(wait.after)] = &wait;
    at = wait.after;
  }
  std::vector<bool> seen(ordered.size());
  while (!seen[static_cast<size_t>(at)]) {
    seen[static_cast<size_t>(at)] = true;
    at = wait_of[static_cast<size_t>(at)]->before;
  }
  std::vector<RendezvousWait> circle;
  const int32_t first = at;
  do {
    circle.push_back(*wait_of[static_cast<size_t>(at)]);
    at = circle.back().before;
  } while (at != first);
  // A rank cannot be all of a circle: its steps wait for earlier ones only.
  const auto turn = std::adjacent_find(circle.begin(), circle.end(),
                                       [](const RendezvousWait& a, const RendezvousWait& b) {
                                         return a.position.rank != b.position.rank;
                                       });
  std::rotate(circle.begin(), turn + 1, circle.end());
  std::vector<RendezvousWait> merged;
  for (const RendezvousWait& wait : circle) {
    if (!merged.empty() && merged.back().position.rank == wait.position.rank) {
      merged.back().before = wait.before;
      merged.back().before_step = wait.before_step;
    } else {
      merged.push_back(wait);
    }
  }
  return merged;
}

absl::Status CircleError(const RankPrograms& programs, std::span<const RendezvousWait> circle) {
  constexpr size_t kNamed = 4;
  std::string text = "ranks wait for each other in a circle: ";
  for (size_t i = 0; i < std::min(circle.size(), kNamed); ++i) {
    const auto& [rank, step] = circle[i].position;
    const std::vector<RankStep>& steps = programs.ranks[static_cast<size_t>(rank)];
    absl::StrAppend(&text, i == 0 ? "" : "; ", WhereIs(programs, rank, step), " comes to ",
                    Describe(programs, steps[static_cast<size_t>(step)]), " after ",
                    Describe(programs, steps[static_cast<size_t>(circle[i].before_step)]));
    const int32_t line = steps[static_cast<size_t>(circle[i].before_step)].line;
    if (line > 0) absl::StrAppend(&text, " (line ", line, ")");
  }
  if (circle.size() > kNamed) absl::StrAppend(&text, "; and ", circle.size() - kNamed, " more");
  return absl::InvalidArgumentError(absl::StrCat(
      text, "; wanted one order on all ranks; try streams of their own for what may overlap"));
}

}  // namespace
}  // namespace rank_rendezvous_cc

absl::StatusOr<RendezvousTable> FindRendezvous(const RankPrograms& programs) {
  return rank_rendezvous_cc::Matcher(programs).Match();
}

std::vector<RendezvousWait> WaitsOf(const RankPrograms& programs, const RendezvousTable& table) {
  // Of a stream: its last step, and what it waits for by name before its next one.
  struct Stream {
    int32_t last = -1;
    std::vector<int32_t> named = {};
  };
  std::vector<RendezvousWait> waits;
  for (int32_t rank = 0; rank < static_cast<int32_t>(programs.ranks.size()); ++rank) {
    const std::vector<RankStep>& steps = programs.ranks[static_cast<size_t>(rank)];
    const std::vector<int32_t>& rendezvous_of = table.of[static_cast<size_t>(rank)];
    absl::flat_hash_map<absl::string_view, Stream> streams;
    for (int32_t i = 0; i < static_cast<int32_t>(steps.size()); ++i) {
      Stream& stream = streams[steps[static_cast<size_t>(i)].stream];
      if (steps[static_cast<size_t>(i)].kind == StepKind::kWait) {
        stream.named.push_back(steps[static_cast<size_t>(i)].earlier);
        continue;
      }
      const auto add = [&](int32_t before, bool by_name) {
        waits.push_back({.before = rendezvous_of[static_cast<size_t>(before)],
                         .after = rendezvous_of[static_cast<size_t>(i)],
                         .position = {rank, i},
                         .before_step = before,
                         .by_name = by_name});
      };
      if (stream.last >= 0) add(stream.last, false);
      for (const int32_t before : stream.named) add(before, true);
      stream.named.clear();
      stream.last = i;
    }
  }
  return waits;
}

absl::StatusOr<std::vector<int32_t>> OrderRendezvous(const RankPrograms& programs,
                                                     const RendezvousTable& table,
                                                     std::span<const RendezvousWait> waits) {
  const size_t count = static_cast<size_t>(table.size());
  std::vector<uint32_t> begin(count + 2);  // two places on, as in Successors of task_order.cc
  std::vector<int32_t> waits_for(count);
  for (const RendezvousWait& wait : waits) {
    ++begin[static_cast<size_t>(wait.before) + 2];
    ++waits_for[static_cast<size_t>(wait.after)];
  }
  for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<int32_t> after(waits.size());
  for (const RendezvousWait& wait : waits) {
    after[begin[static_cast<size_t>(wait.before) + 1]++] = wait.after;
  }
  std::vector<int32_t> order;  // also the queue
  order.reserve(count);
  for (int32_t m = 0; m < table.size(); ++m) {
    if (waits_for[static_cast<size_t>(m)] == 0) order.push_back(m);
  }
  std::vector<bool> ordered(count);
  for (size_t next = 0; next < order.size(); ++next) {
    const size_t m = static_cast<size_t>(order[next]);
    ordered[m] = true;
    for (uint32_t i = begin[m]; i < begin[m + 1]; ++i) {
      if (--waits_for[static_cast<size_t>(after[i])] == 0) order.push_back(after[i]);
    }
  }
  if (order.size() == count) return order;
  return rank_rendezvous_cc::CircleError(programs, rank_rendezvous_cc::FindCircle(waits, ordered));
}

}  // namespace orrery::simulator
