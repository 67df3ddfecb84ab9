#include "transforms/plan/mesh_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/check.h"

namespace orrery::transforms {

MeshOrder::MeshOrder(const char* text) {
  absl::StatusOr<MeshOrder> order = Parse(text);
  ORRERY_CHECK(order.ok()) << text;
  *this = *std::move(order);
}

absl::StatusOr<MeshOrder> MeshOrder::Parse(absl::string_view text) {
  MeshOrder order;
  order.axes_ = absl::StrSplit(text, ',');
  std::ranges::replace(order.axes_, "tp", "hp");
  const auto times = [&](absl::string_view name) { return std::ranges::count(order.axes_, name); };
  const bool known = std::ranges::all_of(order.axes_, [&](absl::string_view name) {
    constexpr absl::string_view kAxes[] = {"dp", "hp", "pp", "cp", "ep"};
    return times(name) == 1 && std::ranges::find(kAxes, name) != std::end(kAxes);
  });
  if (known && times("dp") == 1 && times("hp") == 1 && times("pp") == 1) return order;
  return absl::InvalidArgumentError(
      absl::StrCat("order '", text,
                   "'; wanted dp, hp and pp once each, and cp and ep at most once, as in "
                   "hp,dp,pp or hp,cp,ep,dp,pp (fastest first)"));
}

std::vector<std::string> MeshOrder::Full() const {
  std::vector<std::string> names = axes_;
  auto after = std::ranges::find(names, "hp") + 1;
  for (const char* name : {"cp", "ep"}) {
    const bool there = std::ranges::find(names, name) != names.end();
    if (!there) after = names.insert(after, name) + 1;
  }
  return names;
}

std::string MeshOrder::ToString() const { return absl::StrJoin(axes_, ","); }

}  // namespace orrery::transforms
