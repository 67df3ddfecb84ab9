#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cluster/quantity.h"
#include "simulator/program/line_reader.h"
#include "simulator/ranks/rank_programs.h"
#include "support/status.h"

namespace orrery::simulator {
namespace rank_programs_parser_cc {
namespace {

// A slip of the pen must fill neither memory nor the day.
constexpr int64_t kMostRanks = int64_t{1} << 20;  // as many as a cluster has devices
constexpr int64_t kMostNamed = int64_t{1} << 22;  // ranks that all lines together name
constexpr int64_t kMostSteps = int64_t{1} << 20;  // of all ranks together

// Appends the numbers of "0-3" or "8". Which of them come twice is for `Verify` to say.
bool AppendRange(absl::string_view range, std::vector<int32_t>& ranks) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(range, absl::MaxSplits('-', 1));
  int32_t first = 0;
  if (!absl::SimpleAtoi(ends.first, &first) || first < 0) return false;
  int32_t last = first;
  if (absl::StrContains(range, "-") && !absl::SimpleAtoi(ends.second, &last)) return false;
  if (last < first || last >= kMostRanks) return false;
  for (int32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
  return true;
}

// One method a kind of line, as in program_parser.cc.
class Parser {
 public:
  explicit Parser(std::span<const absl::string_view> collectives) : collectives_(collectives) {}

  absl::Status ParseLine(LineReader& line) {
    if (line.Take("communicator")) return ParseCommunicator(line);
    if (line.Take("rank")) return ParseSection(line);
    if (section_.empty()) return line.Wanted("'communicator' or 'rank' and their ranks");
    return ParseStep(line);
  }

  RankPrograms Take() { return std::move(programs_); }

 private:
  absl::StatusOr<std::vector<int32_t>> Ranks(LineReader& line) {
    std::vector<int32_t> ranks;
    for (const absl::string_view range : absl::StrSplit(line.word(), ',')) {
      const size_t before = ranks.size();
      if (!AppendRange(range, ranks)) {
        return line.Wanted(absl::StrCat("ranks below ", kMostRanks, " such as 0-3,8"));
      }
      named_ += static_cast<int64_t>(ranks.size() - before);
      if (named_ > kMostNamed) return line.Wanted("fewer ranks in all lines together");
    }
    line.Next();
    for (const int32_t rank : ranks) {
      const size_t count = std::max(programs_.ranks.size(), static_cast<size_t>(rank) + 1);
      programs_.ranks.resize(count);
    }
    return ranks;
  }

  absl::Status ParseCommunicator(LineReader& line) {
    Communicator communicator{.line = line.number()};
    if (line.AtEnd() || communicators_.contains(line.word())) {
      return line.Wanted("a name that no communicator has yet");
    }
    communicator.name = std::string(line.word());
    line.Next();
    ORRERY_ASSIGN_OR_RETURN(communicator.ranks, Ranks(line));
    communicators_[communicator.name] = static_cast<int32_t>(programs_.communicators.size());
    programs_.communicators.push_back(std::move(communicator));
    return line.End();
  }

  absl::Status ParseSection(LineReader& line) {
    ORRERY_ASSIGN_OR_RETURN(section_, Ranks(line));
    names_.resize(programs_.ranks.size());
    return line.End();
  }

  absl::Status ParseStep(LineReader& line) {
    RankStep step{.line = line.number()};
    const LineReader named = line;
    if (absl::EndsWith(line.word(), ":")) {
      step.name = std::string(line.word().substr(0, line.word().size() - 1));
      line.Next();
    }
    if (line.Take("wait")) {
      if (!step.name.empty()) return named.Wanted("no name, as nobody waits for a wait");
      step.kind = StepKind::kWait;
      return ParseWait(line, std::move(step));
    }
    ORRERY_RETURN_IF_ERROR(ParseWhat(line, step));
    ORRERY_RETURN_IF_ERROR(ParseStream(line, step));
    ORRERY_RETURN_IF_ERROR(CountSteps(line));
    for (const int32_t rank : section_) {
      std::vector<RankStep>& steps = programs_.ranks[static_cast<size_t>(rank)];
      if (!step.name.empty()) {
        auto& names = names_[static_cast<size_t>(rank)];
        if (!names.emplace(step.name, static_cast<int32_t>(steps.size())).second) {
          return named.Wanted(absl::StrCat("a name that no step of rank ", rank, " has yet"));
        }
      }
      steps.push_back(step);
    }
    return absl::OkStatus();
  }

  // Everything between the name and the stream.
  absl::Status ParseWhat(LineReader& line, RankStep& step) {
    if (line.Take("compute")) {
      const absl::StatusOr<Duration> duration = cluster::ParseDuration(line.word());
      if (!duration.ok() || *duration > kLongestCompute) {
        return line.Wanted("a duration of at most 3600s such as 1.5ms");
      }
      step.duration = *duration;
      line.Next();
      return absl::OkStatus();
    }
    if (line.word() == "send" || line.word() == "receive") return ParseMessage(line, step);
    if (std::find(collectives_.begin(), collectives_.end(), line.word()) == collectives_.end()) {
      return line.Wanted(absl::StrCat("compute, send, receive, wait, or one of ",
                                      absl::StrJoin(collectives_, ", ")));
    }
    step.kind = StepKind::kCollective;
    step.collective = std::string(line.word());
    line.Next();
    const auto found = communicators_.find(line.word());
    if (found == communicators_.end()) return line.Wanted(Communicators());
    step.communicator = found->second;
    line.Next();
    // A barrier moves nothing, and may leave out how much.
    if (step.collective == "barrier" && (line.AtEnd() || line.word() == "on")) {
      return absl::OkStatus();
    }
    return ParseSize(line, step);
  }

  std::string Communicators() const {
    std::string text = "a communicator that a line above declares";
    for (size_t i = 0; i < std::min<size_t>(programs_.communicators.size(), 8); ++i) {
      absl::StrAppend(&text, i == 0 ? ": " : ", ", programs_.communicators[i].name);
    }
    return text;
  }

  absl::Status ParseMessage(LineReader& line, RankStep& step) {
    step.kind = line.word() == "send" ? StepKind::kSend : StepKind::kReceive;
    line.Next();
    ORRERY_RETURN_IF_ERROR(line.Expect(step.kind == StepKind::kSend ? "to" : "from"));
    ORRERY_ASSIGN_OR_RETURN(step.peer, line.Int32());
    ORRERY_RETURN_IF_ERROR(ParseSize(line, step));
    if (line.Take("tag")) {
      ORRERY_ASSIGN_OR_RETURN(step.tag, line.Int32());
    }
    return absl::OkStatus();
  }

  static absl::Status ParseSize(LineReader& line, RankStep& step) {
    const absl::StatusOr<Bytes> size = ParseBytes(line.word());
    if (!size.ok() || *size > kLargestMessage) {
      return line.Wanted("a size of at most 1024TiB such as 64MiB");
    }
    step.size = *size;
    line.Next();
    return absl::OkStatus();
  }

  absl::Status ParseWait(LineReader& line, RankStep step) {
    const LineReader here = line;
    const std::string name(line.word());
    line.Next();
    ORRERY_RETURN_IF_ERROR(ParseStream(line, step));
    ORRERY_RETURN_IF_ERROR(CountSteps(line));
    for (const int32_t rank : section_) {
      const auto& names = names_[static_cast<size_t>(rank)];
      const auto found = names.find(name);
      if (found == names.end()) {
        return here.Wanted(absl::StrCat("the name of an earlier step of rank ", rank));
      }
      step.earlier = found->second;
      programs_.ranks[static_cast<size_t>(rank)].push_back(step);
    }
    return absl::OkStatus();
  }

  // The rest of a step's line.
  static absl::Status ParseStream(LineReader& line, RankStep& step) {
    if (line.Take("on")) {
      if (line.AtEnd()) return line.Wanted("the name of a stream");
      step.stream = std::string(line.word());
      line.Next();
    }
    return line.End();
  }

  absl::Status CountSteps(const LineReader& line) {
    steps_ += static_cast<int64_t>(section_.size());
    return steps_ > kMostSteps ? line.Wanted("fewer steps of all ranks together")
                               : absl::OkStatus();
  }

  std::span<const absl::string_view> collectives_;
  RankPrograms programs_;
  absl::flat_hash_map<std::string, int32_t> communicators_;
  std::vector<int32_t> section_;                                  // ranks whose steps are read
  std::vector<absl::flat_hash_map<std::string, int32_t>> names_;  // by rank: steps
  int64_t named_ = 0;
  int64_t steps_ = 0;
};

}  // namespace
}  // namespace rank_programs_parser_cc

absl::StatusOr<RankPrograms> ParseRankPrograms(absl::string_view text,
                                               std::span<const absl::string_view> collectives) {
  rank_programs_parser_cc::Parser parser(collectives);
  int number = 0;
  bool opened = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    LineReader reader(line.substr(0, line.find('#')), ++number);
    if (reader.AtEnd()) continue;
    if (opened) {
      ORRERY_RETURN_IF_ERROR(parser.ParseLine(reader));
      continue;
    }
    ORRERY_RETURN_IF_ERROR(reader.Expect("rank-programs"));
    ORRERY_RETURN_IF_ERROR(reader.End());
    opened = true;
  }
  if (!opened) return absl::InvalidArgumentError("line 1: found nothing, wanted 'rank-programs'");
  return parser.Take();
}

}  // namespace orrery::simulator
