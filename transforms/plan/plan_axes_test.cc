#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "transforms/plan/axis.h"
#include "transforms/plan/parallel_plan.h"

namespace orrery::transforms {
namespace plan_axes_test_cc {
namespace {

struct Line {
  absl::string_view name;
  absl::string_view field;
  absl::string_view file;
};

// plan_axes.def, line by line.
const std::vector<Line>& Lines() {
  static const auto& kLines = *new std::vector<Line>{
#define ORRERY_PLAN_AXIS(Name, field, type, value, file) {#Name, #field, #file},
#include "transforms/plan/plan_axes.def"
#undef ORRERY_PLAN_AXIS
  };
  return kLines;
}

TEST(PlanAxes, HaveARecordEach) {
  ASSERT_EQ(Lines().size(), AllAxes().size());
  std::set<absl::string_view> fields, flags;
  for (size_t i = 0; i < Lines().size(); ++i) {
    const AxisInfo& axis = *AllAxes()[i];
    EXPECT_TRUE(fields.insert(Lines()[i].field).second) << Lines()[i].field;
    EXPECT_TRUE(flags.insert(axis.flag).second) << axis.flag;
    EXPECT_EQ(FindAxis(axis.flag), &axis);
    EXPECT_TRUE(axis.alias.empty() || FindAxis(axis.alias) == &axis) << axis.alias;
    EXPECT_FALSE(axis.summary.empty()) << axis.flag;
    EXPECT_NE(axis.summary.back(), '.') << axis.flag;
    EXPECT_NE(axis.parse, nullptr) << axis.flag;
    EXPECT_NE(axis.print, nullptr) << axis.flag;
    EXPECT_NE(axis.copy, nullptr) << axis.flag;
  }
  EXPECT_EQ(FindAxis(""), nullptr);
  EXPECT_EQ(FindAxis("--dp"), nullptr);
  EXPECT_EQ(FindAxis("nothing"), nullptr);
}

// The lines begin with the degrees, so that what depends on them comes behind them.
TEST(PlanAxes, BeginWithTheDegrees) {
  int64_t degrees = 0;
  for (size_t i = 0; i < AllAxes().size(); ++i) {
    const AxisInfo& axis = *AllAxes()[i];
    if (axis.degree == nullptr) continue;
    EXPECT_EQ(static_cast<int64_t>(i), degrees++)
        << axis.flag << ": a search decides on the mesh first; its line belongs before all others";
    EXPECT_EQ(axis.flag, Lines()[i].field);
    EXPECT_EQ(axis.degree(ParallelPlan()), 1);
  }
  EXPECT_EQ(degrees, 5);
  const ParallelPlan plan = {.dp = 2, .hp = 3, .pp = 5, .cp = 7, .ep = 11};
  std::vector<int64_t> sizes;
  for (const AxisInfo* axis : AllAxes()) {
    if (axis->degree != nullptr) sizes.push_back(axis->degree(plan));
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 3, 5, 7, 11));
}

// The default of a line is a value that its record reads again.
TEST(PlanAxes, ReadTheirDefaultsAgain) {
  for (const AxisInfo* axis : AllAxes()) {
    const std::string text = axis->print(ParallelPlan());
    if (text.empty()) continue;  // none of a list
    ParallelPlan read;
    EXPECT_TRUE(axis->parse(text, read).ok()) << axis->flag << " " << text;
    EXPECT_EQ(read, ParallelPlan()) << axis->flag << " " << text;
  }
}

}  // namespace
}  // namespace plan_axes_test_cc
}  // namespace orrery::transforms
