#include "lowering/blocks/kernel_costs.h"

#include <gtest/gtest.h>

#include "cluster/cluster.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"

namespace orrery::lowering {
namespace kernel_costs_test_cc {
namespace {

// A rank with a half of the queries and all keys: what causality hides depends on the whole.
TEST(KernelCosts, ShowWhatAllRanksHoldOfTheFirstOperand) {
  const auto function = ir::ParseFunction(R"(func @f mesh(cp=2) (
  %q: bf16[1,1024@cp,256] data,
  %k: bf16[1,1024,256] data
) {
  %y: bf16[1,1024@cp,256], %s: f32[1,2,1024@cp] = Attention(%q, %k, %k) {causal=1, flash=1, heads=2}
  return %y: result
}
)");
  ASSERT_TRUE(function.ok()) << function.status();
  const LocalTypes local(*function);
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  const auto cluster = cluster::ParseCluster("dgx-a100:1").value();
  const TemplateContext context = {.cost_model = *cost_model, .device = &cluster.device};
  KernelCosts costs(*function, local, context);
  const cost_models::OpView view = costs.View(function->order()[0]);
  EXPECT_EQ(view.operands[0]->dims[1], 512);
  ASSERT_NE(view.first_operand, nullptr);
  EXPECT_EQ(view.first_operand->dims[1], 1024);
}

}  // namespace
}  // namespace kernel_costs_test_cc
}  // namespace orrery::lowering
