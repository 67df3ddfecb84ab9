#include "tools/stage_flags.h"

#include <re2/re2.h>

#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace orrery::tools {

namespace po = boost::program_options;
using transforms::StageChoice;
using transforms::StagesBy;

void AddStageFlags(po::options_description& options, StageFlags& flags) {
  options.add_options()(
      "stages-by", po::value(&flags.by),
      "how layers are divided into pipeline stages: cost, the slowest stage as fast as it can be, "
      "of whole layers; ops, which may cut layers; layers, equally many; flops, about equally "
      "many, "
      "where little crosses [cost]")("split-at", po::value(&flags.split_at),
                                     "regular expression: a pipeline stage begins at each op that "
                                     "makes a value whose name matches, "
                                     "as in 'h\\.(8|16)\\.'")(
      "layers-per-stage", po::value(&flags.layers_per_stage),
      "whole layers of each pipeline stage, as in 23,24,24,25");
}

namespace {

absl::StatusOr<std::vector<int64_t>> ParseCounts(absl::string_view text) {
  std::vector<int64_t> counts;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t count = 0;
    if (!absl::SimpleAtoi(item, &count) || count < 1 || count > (int64_t{1} << 31)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--layers-per-stage '", text,
                       "': wanted a number of at least 1 for each stage, as in 23,24,24,25"));
    }
    counts.push_back(count);
  }
  return counts;
}

}  // namespace

absl::StatusOr<StageChoice> MakeStageChoice(const StageFlags& flags, StagesBy by_default) {
  static const auto& kBy = *new std::map<std::string, StagesBy>{{"flops", StagesBy::kFlops},
                                                                {"layers", StagesBy::kLayers},
                                                                {"cost", StagesBy::kCost},
                                                                {"ops", StagesBy::kOps}};
  StageChoice choice{.by = by_default, .split_at = flags.split_at};
  const int given = (flags.by.empty() ? 0 : 1) + (flags.split_at.empty() ? 0 : 1) +
                    (flags.layers_per_stage.empty() ? 0 : 1);
  if (given > 1) {
    return absl::InvalidArgumentError(
        "--stages-by, --split-at and --layers-per-stage each say where stages begin; wanted one");
  }
  if (!flags.by.empty()) {
    const auto found = kBy.find(flags.by);
    if (found == kBy.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stages-by '", flags.by, "': wanted cost, ops, layers or flops"));
    }
    choice.by = found->second;
  }
  if (const RE2 pattern(flags.split_at, RE2::Quiet); !pattern.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--split-at '", flags.split_at, "': ", pattern.error(), "; wanted a regular expression"));
  }
  if (flags.layers_per_stage.empty()) return choice;
  absl::StatusOr<std::vector<int64_t>> counts = ParseCounts(flags.layers_per_stage);
  if (!counts.ok()) return counts.status();
  choice.layers_per_stage = *std::move(counts);
  return choice;
}

}  // namespace orrery::tools
