#include "simulator/ranks/rank_programs.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::simulator {
namespace rank_programs_cc {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 62;  // of all steps: sums of them must not overflow
constexpr size_t kMostSteps = size_t{1} << 30;

absl::Status Wrong(absl::string_view where, absl::string_view found, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", found, "; wanted ", wanted));
}

// Whether the text form can hold it: no blanks, and nothing that has a meaning there.
bool IsName(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != ':' && c != '#' && c != '"';
  });
}

absl::Status VerifyCommunicator(const Communicator& communicator, size_t ranks) {
  std::string where = absl::StrCat("communicator '", communicator.name, "'");
  if (communicator.line > 0) absl::StrAppend(&where, " (line ", communicator.line, ")");
  if (!IsName(communicator.name)) return Wrong(where, "its name", "a word without ':' and '#'");
  if (communicator.ranks.empty()) return Wrong(where, "has no ranks", "at least one");
  for (const int32_t rank : communicator.ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= ranks) {
      return Wrong(where, absl::StrCat("has rank ", rank),
                   absl::StrCat("one of the ", ranks, " ranks that have a program"));
    }
  }
  std::vector<int32_t> sorted = communicator.ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return Wrong(where, absl::StrCat("rank ", *twice, " twice"), "each rank once");
}

// The checks of one rank's steps.
class RankVerifier {
 public:
  RankVerifier(const RankPrograms& programs, int32_t rank,
               const std::vector<std::vector<int32_t>>& members)
      : programs_(programs),
        rank_(rank),
        members_(members),
        steps_(programs.ranks[static_cast<size_t>(rank)]) {}

  absl::Status VerifyAll() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      ORRERY_RETURN_IF_ERROR(Annotate(VerifyStep(steps_[i], static_cast<int32_t>(i)),
                                      WhereIs(programs_, rank_, static_cast<int32_t>(i))));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status VerifyStep(const RankStep& step, int32_t index) {
    if (!IsName(step.stream) || (!step.name.empty() && !IsName(step.name))) {
      return Wrong("names", absl::StrCat("got '", step.name, "' on '", step.stream, "'"),
                   "words without ':' and '#'");
    }
    if (!step.name.empty() && !names_.insert(step.name).second) {
      return Wrong("name", absl::StrCat("got '", step.name, "' again"), "each once in a rank");
    }
    if (step.size < Bytes(0) || step.size > kLargestMessage) {
      return Wrong("size", absl::StrCat("got ", step.size.count(), " bytes"), "0 to 1024TiB");
    }
    switch (step.kind) {
      case StepKind::kCompute:
        if (step.duration >= Duration(0) && step.duration <= kLongestCompute) break;
        return Wrong("compute", absl::StrCat("got ", step.duration.picoseconds(), " ps"),
                     "0 ps to an hour");
      case StepKind::kCollective:
        return VerifyCollective(step);
      case StepKind::kSend:
      case StepKind::kReceive:
        return VerifyPeer(step);
      case StepKind::kWait:
        return VerifyWait(step, index);
    }
    return absl::OkStatus();
  }

  absl::Status VerifyCollective(const RankStep& step) const {
    const size_t row = static_cast<size_t>(step.communicator);
    if (step.communicator < 0 || row >= members_.size()) {
      return Wrong(step.collective, absl::StrCat("got communicator ", step.communicator),
                   absl::StrCat("one of the ", members_.size(), " that there are"));
    }
    if (!IsName(step.collective)) {
      return Wrong("collective", absl::StrCat("got '", step.collective, "'"), "a kind");
    }
    if (std::binary_search(members_[row].begin(), members_[row].end(), rank_)) {
      return absl::OkStatus();
    }
    const Communicator& communicator = programs_.communicators[row];
    return Wrong(Describe(programs_, step),
                 absl::StrCat("rank ", rank_, " is no member of '", communicator.name,
                              "', which rank ", communicator.ranks.front(), " is"),
                 "a communicator that it belongs to");
  }

  absl::Status VerifyPeer(const RankStep& step) const {
    const bool is_send = step.kind == StepKind::kSend;
    if (step.peer == rank_) {
      return Wrong(Describe(programs_, step),
                   absl::StrCat("rank ", rank_, " is ",
                                is_send ? "sender and receiver" : "receiver and sender"),
                   "another rank as peer");
    }
    if (step.peer >= 0 && static_cast<size_t>(step.peer) < programs_.ranks.size()) {
      return absl::OkStatus();
    }
    return Wrong(Describe(programs_, step), absl::StrCat("there is no rank ", step.peer),
                 absl::StrCat("one of the ", programs_.ranks.size(), " ranks that have a program"));
  }

  absl::Status VerifyWait(const RankStep& step, int32_t index) const {
    if (step.earlier < 0 || step.earlier >= index) {
      return Wrong("wait", absl::StrCat("got step ", step.earlier),
                   absl::StrCat("a step before its own, ", index));
    }
    const RankStep& earlier = steps_[static_cast<size_t>(step.earlier)];
    if (earlier.kind != StepKind::kWait && !earlier.name.empty()) return absl::OkStatus();
    return Wrong("wait", absl::StrCat("got step ", step.earlier), "one that has a name");
  }

  const RankPrograms& programs_;
  const int32_t rank_;
  const std::vector<std::vector<int32_t>>& members_;  // by communicator, ascending
  const std::vector<RankStep>& steps_;
  absl::flat_hash_set<absl::string_view> names_;
};

absl::Status VerifySums(const RankPrograms& programs) {
  size_t steps = 0;
  __int128 bytes = 0;
  for (const std::vector<RankStep>& rank : programs.ranks) {
    steps += rank.size();
    for (const RankStep& step : rank) bytes += step.size.count();
  }
  if (steps > kMostSteps) {
    return Wrong("programs of ranks", absl::StrCat("got ", steps, " steps"), "at most 2^30");
  }
  if (bytes <= kMostBytes) return absl::OkStatus();
  return Wrong("programs of ranks", "all messages together have more than 4 EiB", "less");
}

}  // namespace
}  // namespace rank_programs_cc

absl::Status Verify(const RankPrograms& programs) {
  std::vector<std::vector<int32_t>> members;
  absl::flat_hash_set<absl::string_view> names;
  for (const Communicator& communicator : programs.communicators) {
    ORRERY_RETURN_IF_ERROR(
        rank_programs_cc::VerifyCommunicator(communicator, programs.ranks.size()));
    if (!names.insert(communicator.name).second) {
      return rank_programs_cc::Wrong(absl::StrCat("communicator '", communicator.name, "'"),
                                     "is there twice", "a name for each");
    }
    members.push_back(communicator.ranks);
    std::sort(members.back().begin(), members.back().end());
  }
  for (size_t rank = 0; rank < programs.ranks.size(); ++rank) {
    ORRERY_RETURN_IF_ERROR(
        rank_programs_cc::RankVerifier(programs, static_cast<int32_t>(rank), members).VerifyAll());
  }
  return rank_programs_cc::VerifySums(programs);
}

std::string WhereIs(const RankPrograms& programs, int32_t rank, int32_t step) {
  const int32_t line = programs.ranks[static_cast<size_t>(rank)][static_cast<size_t>(step)].line;
  if (line > 0) return absl::StrCat("rank ", rank, " (line ", line, ")");
  return absl::StrCat("rank ", rank, " (step ", step, ")");
}

std::string Describe(const RankPrograms& programs, const RankStep& step) {
  const auto message = [&step](absl::string_view verb) {
    return absl::StrCat(verb, " rank ", step.peer, " of ", ToString(step.size), " with tag ",
                        step.tag);
  };
  switch (step.kind) {
    case StepKind::kCompute:
      return step.name.empty() ? "compute" : absl::StrCat("compute '", step.name, "'");
    case StepKind::kCollective:
      return absl::StrCat(step.collective, " of ", ToString(step.size), " in '",
                          programs.communicators[static_cast<size_t>(step.communicator)].name, "'");
    case StepKind::kSend:
      return message("send to");
    case StepKind::kReceive:
      return message("receive from");
    case StepKind::kWait:
      return "wait";
  }
  return "";
}

}  // namespace orrery::simulator
