#include "search/spaces/enumeration.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "search/spaces/space.h"
#include "search/spaces/space_test_util.h"

namespace orrery::search {
namespace enumeration_test_cc {
namespace {

// Branches of several threads are put together in the order of one; and as many as are wanted.
TEST(Enumeration, DoesNotDependOnThreads) {
  Space space = SpaceOf({});
  space.TakeAll();
  const SpaceSize size = {.devices = 4, .batch_size = 8, .sequence = 64, .devices_a_node = 2};
  const PlanList one = Enumerate(space, size).value();
  const PlanList several = Enumerate(space, size, 4).value();
  ASSERT_EQ(several.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(several[i], one[i]) << i;
    ASSERT_EQ(several.ChangesOf(i), one.ChangesOf(i)) << i;
    if (i % 197 > 0) continue;
    ASSERT_EQ(several.Neighbours(i), one.Neighbours(i)) << i;
  }
  for (const size_t most : {size_t{20}, one.size() - 1}) {
    const Enumeration part(space, size, most);
    EXPECT_EQ(part.All(1).size(), most + 1);
    EXPECT_EQ(part.All(4).All(), part.All(1).All());
  }
}

}  // namespace
}  // namespace enumeration_test_cc
}  // namespace orrery::search
