#include "transforms/sharding/sharding_pin.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "support/status.h"

namespace orrery::transforms {
namespace sharding_pin_cc {
namespace {

// The axes along which shardings are chosen by cost.
constexpr absl::string_view kPinnedAxes[] = {"ep", "cp", "hp"};

}  // namespace
}  // namespace sharding_pin_cc

absl::StatusOr<ShardingPin> ParseShardingPin(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text,
                     "': wanted REGEX=AXIS@DIMENSION with one of the axes hp, cp and ep, as in "
                     "'mlp.up.weight$=hp@1', or @whole; or batch=hp"));
  };
  if (text == "batch=hp" || text == "batch=tp") {
    return ShardingPin{.pattern = "batch", .dim = ShardingPin::kBatch};
  }
  const size_t equals = text.rfind('='), at = text.rfind('@');
  if (equals == absl::string_view::npos || at == absl::string_view::npos || at < equals) {
    return error();
  }
  ShardingPin pin{.pattern = std::string(text.substr(0, equals)),
                  .dim = ShardingPin::kWhole,
                  .axis = std::string(text.substr(equals + 1, at - equals - 1))};
  if (pin.axis == "tp") pin.axis = "hp";
  const absl::string_view dim = text.substr(at + 1);
  if (pin.pattern.empty()) return error();
  if (std::ranges::find(sharding_pin_cc::kPinnedAxes, pin.axis) ==
      std::end(sharding_pin_cc::kPinnedAxes))
    return error();
  if (dim != "whole" && (!absl::SimpleAtoi(dim, &pin.dim) || pin.dim < 0)) return error();
  return pin;
}

std::string ToString(const ShardingPin& pin) {
  if (pin.dim == ShardingPin::kBatch) return absl::StrCat(pin.pattern, "=", pin.axis);
  const std::string dim = pin.dim == ShardingPin::kWhole ? "whole" : absl::StrCat(pin.dim);
  return absl::StrCat(pin.pattern, "=", pin.axis, "@", dim);
}

absl::Status CheckPins(const ir::Function& step, const ir::Mesh& mesh,
                       std::span<const ShardingPin> pins) {
  for (const ShardingPin& pin : pins) {
    if (pin.dim == ShardingPin::kBatch) continue;  // a leave: without hp nobody takes it
    if (std::ranges::find(sharding_pin_cc::kPinnedAxes, pin.axis) ==
        std::end(sharding_pin_cc::kPinnedAxes)) {
      return absl::InvalidArgumentError(absl::StrCat(step.name(), ": values are pinned to ",
                                                     pin.axis, "; wanted one of hp, cp and ep"));
    }
    const auto axis = mesh.Find(pin.axis);
    if (axis.has_value() && mesh.size(*axis) > 1) continue;
    return InfeasibleStatus(
        {.reason = InfeasibleReason::kUnsupported,
         .detail = absl::StrCat("values are pinned to ", pin.axis, ", and ", ir::ToString(mesh),
                                " has no such axis of several ranks; wanted ", pin.axis,
                                " of at least 2")});
  }
  return absl::OkStatus();
}

}  // namespace orrery::transforms
