#include "tools/traces/trace_flags.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "support/enum_names.h"
#include "support/printable.h"
#include "support/status.h"
#include "tools/traces/number_list.h"

namespace orrery::tools {
namespace trace_flags_cc {
namespace {

using simulator::TraceLevel;

constexpr EnumNames<TraceLevel, 3> kLevels({{"stage", TraceLevel::kStage},
                                            {"op", TraceLevel::kOp},
                                            {"flow", TraceLevel::kFlow}});

absl::Status ReadRanks(const std::string& text, int64_t ranks, TraceRequest& request) {
  if (text.empty()) return absl::OkStatus();
  request.all_ranks = text == "all";
  if (request.all_ranks) return absl::OkStatus();
  ORRERY_ASSIGN_OR_RETURN(request.ranks, ParseNumberList(text));
  const int32_t largest = *std::ranges::max_element(request.ranks);
  if (largest < ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("got rank ", largest, "; wanted ranks from 0 to ", ranks - 1, ", or all"));
}

// Flags that say something about what is not asked for.
absl::Status CheckUses(const TraceFlags& flags) {
  if (!flags.path.empty()) return absl::OkStatus();
  const bool about_trace = flags.level != TraceFlags().level || !flags.microbatches.empty();
  if (about_trace || (!flags.ranks.empty() && flags.snapshot.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat(about_trace && flags.microbatches.empty() ? "--trace-level"
                     : about_trace                             ? "--trace-microbatches"
                                                               : "--trace-ranks",
                     ": there is nothing to show it in; wanted --trace FILE beside it"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace trace_flags_cc

void AddTraceFlags(boost::program_options::options_description& options, TraceFlags& flags,
                   const std::string& what) {
  namespace po = boost::program_options;
  options.add_options()(
      "trace", po::value(&flags.path),
      absl::StrCat("write ", what,
                   " Chrome trace to this file (.json or .json.gz); a name with {rank} in it: a "
                   "file a rank")
          .c_str())(
      "trace-level", po::value(&flags.level),
      "how closely the trace looks: stage (runs of one microbatch), op, or flow (what is on each "
      "link, too) [op]")(
      "trace-ranks", po::value(&flags.ranks),
      "the ranks in the trace, as in 0,8-15, or all [of those that do the same, the first]")(
      "trace-microbatches", po::value(&flags.microbatches),
      "the microbatches in the trace, as in 0,4-7 [all]")(
      "memory-snapshot", po::value(&flags.snapshot),
      "write what a rank holds when to this file (.pickle), for pytorch.org/memory_viz: the first "
      "that --trace-ranks names [the one that needs most]");
}

absl::StatusOr<TraceRequest> ReadTraceFlags(const TraceFlags& flags, int64_t ranks) {
  ORRERY_RETURN_IF_ERROR(trace_flags_cc::CheckUses(flags));
  if (flags.snapshot.find("{rank}") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("--memory-snapshot ", flags.snapshot,
                                                   ": is of one rank; wanted a name without "
                                                   "{rank}, and the rank first in --trace-ranks"));
  }
  TraceRequest request = {.path = flags.path, .snapshot = flags.snapshot};
  const auto level = trace_flags_cc::kLevels.Find(flags.level);
  if (!level.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace-level ", Show(flags.level), ": wanted stage, op or flow"));
  }
  request.level = *level;
  ORRERY_RETURN_IF_ERROR(
      Annotate(trace_flags_cc::ReadRanks(flags.ranks, ranks, request), "--trace-ranks"));
  if (!flags.microbatches.empty()) {
    ORRERY_ASSIGN_OR_RETURN(request.microbatches,
                            Annotated(ParseNumberList(flags.microbatches), "--trace-microbatches"));
  }
  return request;
}

}  // namespace orrery::tools
