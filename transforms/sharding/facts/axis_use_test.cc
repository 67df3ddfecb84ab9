#include "transforms/sharding/facts/axis_use.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::transforms {
namespace axis_use_test_cc {
namespace {

std::string UsesOf(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  const ir::Function* functions[] = {&*function};
  return ToString(UsesOfAxis(functions, "hp"));
}

// A layer as Megatron splits it, behind a table that is split by rows.
constexpr char kLayer[] = R"(func @f mesh(hp=2) (
  %ids: i64[4,3] data,
  %table: f32[8@hp,6] parameter,
  %qkv: f32[6,6@hp] parameter,
  %out: f32[6@hp,6] parameter,
  %up: f32[6,8@hp] parameter,
  %down: f32[8@hp,6] parameter
) {
  %e: f32[4,3,6] partial(hp) = Gather(%table, %ids) {axis=0}
  %x: f32[4,3,6] = AllReduce(%e) {axes="hp"}
  %q: f32[4,3,6@hp] = MatMul(%x, %qkv)
  %a: f32[4,3,6@hp], %p: f32[4,2@hp,3,3] = Attention(%q, %q, %q) {heads=2, kv_heads=2, scale=1.0}
  %o: f32[4,3,6] partial(hp) = MatMul(%a, %out)
  %s: f32[4,3,6] = AllReduce(%o) {axes="hp"}
  %u: f32[4,3,8@hp] = MatMul(%s, %up)
  %g: f32[4,3,8@hp] = Gelu(%u)
  %d: f32[4,3,6] partial(hp) = MatMul(%g, %down)
  %y: f32[4,3,6] = AllReduce(%d) {axes="hp"}
  return %y: result
}
)";

TEST(AxisUse, SaysWhatTensorParallelismSplits) {
  EXPECT_EQ(UsesOf(kLayer),
            "embedding: vocabulary, 1 all-reduce; attention: columns, heads, rows, 1 all-reduce; "
            "mlp: columns, rows, 1 all-reduce");
}

TEST(AxisUse, SaysNothingOfAxesThatAreNotThere) {
  const auto function = ir::ParseFunction(kLayer);
  const ir::Function* functions[] = {&*function};
  EXPECT_EQ(ToString(UsesOfAxis(functions, "dp")), "");
}

}  // namespace
}  // namespace axis_use_test_cc
}  // namespace orrery::transforms
