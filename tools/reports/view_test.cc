#include "tools/reports/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::tools {
namespace view_test_cc {
namespace {

TEST(DropUnusedKinds, KeepsWhatSlicesAreOf) {
  TimelineView view{.title = "t",
                    .kinds = {"a", "b", "c", "d"},
                    .slices = {{.kind = 3}, {.kind = 1}, {.kind = 3}}};
  DropUnusedKinds(view);
  EXPECT_THAT(view.kinds, testing::ElementsAre("b", "d"));
  EXPECT_EQ(view.slices[0].kind, 1);
  EXPECT_EQ(view.slices[1].kind, 0);
  EXPECT_EQ(view.slices[2].kind, 1);
}

}  // namespace
}  // namespace view_test_cc
}  // namespace orrery::tools
