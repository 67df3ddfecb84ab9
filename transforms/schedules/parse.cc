#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/status.h"
#include "transforms/schedules/step_letters.h"
#include "transforms/schedules/text.h"

// Orders from text, and of what pipeline they are.

namespace orrery::transforms {
namespace parse_cc {
namespace {

// What `schedule` prints behind the orders begins with it.
constexpr absl::string_view kFigures = "makespan ";
constexpr absl::string_view kOverlap = "OVERLAP_F_B";

// Torch's actions that a rank does not compute in.
constexpr absl::string_view kOtherActions[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                               "UNSHARD", "RESHARD", "REDUCE_GRAD"};

// Takes the digits that `text` begins with.
absl::string_view TakeDigits(absl::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const absl::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

class OrdersReader {
 public:
  explicit OrdersReader(absl::string_view file) : file_(file) {}

  absl::StatusOr<RankOrders> Read(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_number_;
      line_begin_ = line.data();
      if (absl::StripAsciiWhitespace(line).empty()) continue;
      if (!orders_.empty() && absl::StartsWith(line, kFigures)) break;
      orders_.emplace_back();
      for (const absl::string_view cell : absl::StrSplit(line, ',')) {
        ORRERY_RETURN_IF_ERROR(ReadCell(absl::StripAsciiWhitespace(cell)));
      }
    }
    return std::move(orders_);
  }

 private:
  absl::Status ReadCell(absl::string_view cell) {
    if (!absl::StartsWith(cell, "(")) return ReadStep(cell);
    const size_t close = cell.find(')');
    if (close == absl::string_view::npos) return Error(cell, "a ')' after the steps");
    const absl::string_view after = absl::StripAsciiWhitespace(cell.substr(close + 1));
    if (after != kOverlap) return Error(cell, "OVERLAP_F_B after the ')'");
    auto& order = orders_.back();
    const size_t begin = order.size();
    for (const absl::string_view part : absl::StrSplit(cell.substr(1, close - 1), ';')) {
      ORRERY_RETURN_IF_ERROR(ReadStep(absl::StripAsciiWhitespace(part)));
    }
    if (order.size() != begin + 2) return Error(cell, "two steps that run at once");
    order[begin].with_next = true;
    return absl::OkStatus();
  }

  // A step, something that is none to compute, or nothing.
  absl::Status ReadStep(absl::string_view cell) {
    if (cell.empty()) return absl::OkStatus();
    absl::string_view rest = cell;
    const absl::string_view stage = TakeDigits(rest);
    for (const absl::string_view action : kOtherActions) {
      absl::string_view after = rest;
      if (!absl::ConsumePrefix(&after, action) || stage.empty()) continue;
      TakeDigits(after);
      if (after.empty()) return absl::OkStatus();
    }
    const std::optional<StepKind> kind = kStepLetters.Find(rest.substr(0, 1));
    rest.remove_prefix(std::min<size_t>(1, rest.size()));
    const absl::string_view microbatch = TakeDigits(rest);
    ScheduleStep step;
    const bool is_step = kind.has_value() && rest.empty() && absl::SimpleAtoi(stage, &step.stage) &&
                         absl::SimpleAtoi(microbatch, &step.microbatch);
    if (!is_step) {
      return Error(cell, "a stage, F, B, I or W, and a microbatch, as in 0F3");
    }
    step.kind = *kind;
    orders_.back().push_back(step);
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view cell, absl::string_view wanted) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ":", line_number_, ":", cell.data() - line_begin_ + 1, ": found '",
                     absl::CHexEscape(cell.substr(0, 40)), "'; wanted ", wanted));
  }

  absl::string_view file_;
  RankOrders orders_;
  int line_number_ = 0;
  const char* line_begin_ = nullptr;
};

// Which pipeline orders are of, found from who runs which stage.
class ShapeFinder {
 public:
  explicit ShapeFinder(const RankOrders& orders) : orders_(orders) {}

  absl::StatusOr<ParsedOrders> Find() && {
    ORRERY_RETURN_IF_ERROR(Measure());
    ORRERY_RETURN_IF_ERROR(FindRanks());
    ORRERY_RETURN_IF_ERROR(FindChunks());
    ParsedOrders parsed = {.orders = orders_, .placement = StagePlacement::kLoop, .shape = shape_};
    const bool is_v = shape_.chunks == 2 && IsPlaced(StagePlacement::kV);
    if (IsPlaced(StagePlacement::kLoop)) return parsed;
    if (!is_v) return NoPlacement();
    parsed.placement = IsTwoWay() ? StagePlacement::kTwoWay : StagePlacement::kV;
    return parsed;
  }

 private:
  absl::Status Measure() {
    int64_t steps = 0;
    int64_t stages = 0;
    int64_t microbatches = 0;
    for (const auto& order : orders_) {
      steps += std::ssize(order);
      for (const ScheduleStep& step : order) {
        stages = std::max<int64_t>(stages, int64_t{step.stage} + 1);
        microbatches = std::max<int64_t>(microbatches, int64_t{step.microbatch} + 1);
      }
    }
    if (steps == 0) return absl::InvalidArgumentError("found no steps; wanted a rank a line");
    // Every stage runs at least two steps of each microbatch, or of each second one if there are
    // two directions. Tables of what is not even half there could be too large for any memory.
    if (stages > steps / microbatches) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", steps, " steps, too few for ", stages, " stages and ",
                       microbatches, " microbatches, as the largest numbers say there are"));
    }
    stages_ = static_cast<int32_t>(stages);
    shape_.ranks = static_cast<int32_t>(orders_.size());
    shape_.microbatches = static_cast<int32_t>(microbatches);
    return absl::OkStatus();
  }

  absl::Status FindChunks() {
    if (stages_ % shape_.ranks != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", shape_.ranks, " ranks and ", stages_,
                       " stages; wanted as many stages on each rank"));
    }
    shape_.chunks = stages_ / shape_.ranks;
    return absl::OkStatus();
  }

  absl::Status FindRanks() {
    constexpr int32_t kNobody = -1;
    ranks_.assign(static_cast<size_t>(stages_), kNobody);
    for (int32_t rank = 0; rank < shape_.ranks; ++rank) {
      for (const ScheduleStep& step : orders_[static_cast<size_t>(rank)]) {
        int32_t& holder = ranks_[static_cast<size_t>(step.stage)];
        if (holder == kNobody) holder = rank;
        if (holder == rank) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "rank ", rank, ": ", StepName(step), " is of a stage that rank ", holder, " holds"));
      }
    }
    const auto missing = std::find(ranks_.begin(), ranks_.end(), kNobody);
    if (missing == ranks_.end()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", missing - ranks_.begin(),
                     " has no steps; wanted some of each stage up to ", stages_ - 1));
  }

  bool IsPlaced(StagePlacement placement) const {
    for (int32_t stage = 0; stage < shape_.stages(); ++stage) {
      if (ranks_[static_cast<size_t>(stage)] != RankOf(placement, shape_, stage)) return false;
    }
    return true;
  }

  // Whether no microbatch goes through stages of both halves.
  bool IsTwoWay() const {
    for (const auto& order : orders_) {
      for (const ScheduleStep& step : order) {
        const int32_t half = step.stage < shape_.ranks ? 0 : 1;
        if (PipelineOf(StagePlacement::kTwoWay, shape_, step.microbatch) != half) return false;
      }
    }
    return true;
  }

  absl::Status NoPlacement() const {
    std::string found;
    for (const int32_t rank : ranks_) absl::StrAppend(&found, found.empty() ? "" : ", ", rank);
    return absl::InvalidArgumentError(absl::StrCat("found stages 0, 1, 2 and so on on ranks ",
                                                   found, "; wanted stage s on rank s mod p, ",
                                                   "or two stages a rank, r and 2p-1-r"));
  }

  const RankOrders& orders_;
  int32_t stages_ = 0;
  PipelineShape shape_;
  std::vector<int32_t> ranks_;  // of each stage
};

}  // namespace
}  // namespace parse_cc

absl::StatusOr<ParsedOrders> ParseOrders(absl::string_view text, absl::string_view file) {
  ORRERY_ASSIGN_OR_RETURN(const RankOrders orders, parse_cc::OrdersReader(file).Read(text));
  ORRERY_ASSIGN_OR_RETURN(ParsedOrders parsed,
                          Annotated(parse_cc::ShapeFinder(orders).Find(), file));
  ORRERY_RETURN_IF_ERROR(
      Annotate(CheckOrders(parsed.orders, parsed.placement, parsed.shape), file));
  AssignSlots(parsed.orders, parsed.placement, parsed.shape);
  return parsed;
}

}  // namespace orrery::transforms
