#include "absl/strings/str_cat.h"
#include "cluster/quantity.h"
#include "simulator/ranks/rank_programs.h"

namespace orrery::simulator {
namespace rank_programs_printer_cc {
namespace {

// "2,0-1": in the order that there is, neighbours that ascend as a range.
std::string Ranges(const std::vector<int32_t>& ranks) {
  std::string out;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&out, out.empty() ? "" : ",", ranks[first]);
    if (last > first) absl::StrAppend(&out, "-", ranks[last]);
    first = last + 1;
  }
  return out;
}

// Long ones in whole picoseconds: as a number with a point they might not read back.
std::string DurationText(Duration duration) {
  if (duration.picoseconds() < 1'000'000'000'000) return cluster::Print(duration);
  return absl::StrCat(duration.picoseconds(), "ps");
}

std::string StepText(const RankPrograms& programs, const std::vector<RankStep>& steps,
                     const RankStep& step) {
  std::string text = step.name.empty() ? "" : absl::StrCat(step.name, ": ");
  switch (step.kind) {
    case StepKind::kCompute:
      absl::StrAppend(&text, "compute ", DurationText(step.duration));
      break;
    case StepKind::kCollective:
      absl::StrAppend(&text, step.collective, " ",
                      programs.communicators[static_cast<size_t>(step.communicator)].name, " ",
                      step.size.count());
      break;
    case StepKind::kSend:
    case StepKind::kReceive:
      absl::StrAppend(&text, step.kind == StepKind::kSend ? "send to " : "receive from ", step.peer,
                      " ", step.size.count());
      if (step.tag != 0) absl::StrAppend(&text, " tag ", step.tag);
      break;
    case StepKind::kWait:
      absl::StrAppend(&text, "wait ", steps[static_cast<size_t>(step.earlier)].name);
      break;
  }
  if (step.stream != "compute") absl::StrAppend(&text, " on ", step.stream);
  return text;
}

std::string Steps(const RankPrograms& programs, const std::vector<RankStep>& steps) {
  std::string text;
  for (const RankStep& step : steps) {
    absl::StrAppend(&text, "  ", StepText(programs, steps, step), "\n");
  }
  return text;
}

}  // namespace
}  // namespace rank_programs_printer_cc

std::string Print(const RankPrograms& programs) {
  std::string out = "rank-programs\n";
  for (const Communicator& communicator : programs.communicators) {
    absl::StrAppend(&out, "communicator ", communicator.name, " ",
                    rank_programs_printer_cc::Ranges(communicator.ranks), "\n");
  }
  for (size_t first = 0; first < programs.ranks.size();) {
    const std::string steps = rank_programs_printer_cc::Steps(programs, programs.ranks[first]);
    size_t last = first;
    while (last + 1 < programs.ranks.size() &&
           rank_programs_printer_cc::Steps(programs, programs.ranks[last + 1]) == steps) {
      ++last;
    }
    absl::StrAppend(&out, "rank ", first);
    if (last > first) absl::StrAppend(&out, "-", last);
    absl::StrAppend(&out, "\n", steps);
    first = last + 1;
  }
  return out;
}

}  // namespace orrery::simulator
