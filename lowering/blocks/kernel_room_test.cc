#include "lowering/blocks/kernel_room.h"

#include <gtest/gtest.h>

#include <vector>

#include "cluster/device.h"
#include "ir/text/text.h"
#include "lowering/blocks/kernel_costs.h"
#include "lowering/blocks/pointwise_groups.h"

// What kernels hold of rows, and what devices have room for, by hand; kernel_listing_test.cc has
// random functions.

namespace orrery::lowering {
namespace kernel_room_test_cc {
namespace {

// exp(x - max x) reads x before and behind the maximum: a row of 8,192 bf16 is held.
TEST(KernelRoom, HoldsRowsAcrossReductions) {
  const auto parsed = ir::ParseFunction(R"(func @f (%x: bf16[64,8192] data) {
  %s: bf16[64,1] = ReduceMax(%x) {axes=[1], keepdims=1}
  %d: bf16[64,8192] = Sub(%x, %s)
  %e: bf16[64,8192] = Exp(%d)
  %t: bf16[64,1] = ReduceSum(%e) {axes=[1], keepdims=1}
  %y: bf16[64,8192] = Div(%e, %t)
  return %y: result
})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const ir::Function& function = *parsed;
  const LocalTypes local(function);
  const std::vector<ir::OpId> all(function.order().begin(), function.order().end());
  EXPECT_EQ(KernelNeedsOf(all, function, local).held, Bytes(2 * 8192));
  const auto kernels = [&](Bytes room) {
    return FindPointwiseGroups(function, local, FusedOps::kAll, {.live_values = 99, .held = room})
        .members.size();
  };
  EXPECT_EQ(kernels(Bytes(2 * 8192)), 1u);
  EXPECT_EQ(FindPointwiseGroups(function, local, FusedOps::kAll,
                                {.live_values = 99, .held = Bytes(2 * 8192 - 1)})
                .members[0]
                .size(),
            3u);  // the maximum, by itself, writes; so does the sum
}

// 255 registers less 32, 4 elements a thread; 163 KiB.
TEST(KernelRoom, IsThatOfTheDevice) {
  const KernelRoom a100 = KernelRoomOf(*cluster::FindDevice("a100-80gb"));
  EXPECT_EQ(a100.live_values, 55);
  EXPECT_EQ(a100.held, Bytes(163 * 1024));
  EXPECT_FALSE(KernelRoomOf(*cluster::FindDevice("tpu-v4")).bounded());
}

}  // namespace
}  // namespace kernel_room_test_cc
}  // namespace orrery::lowering
