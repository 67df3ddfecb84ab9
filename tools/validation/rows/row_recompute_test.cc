#include "tools/validation/rows/row_recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace row_recompute_test_cc {
namespace {

std::string Said(const MeasuredStep& row) {
  transforms::ParallelPlan plan;
  const absl::Status status = SetRecompute(row, plan);
  if (!status.ok()) return std::string(status.message());
  return absl::StrCat(ToString(plan.recompute), " ", ToString(plan.offload));
}

std::string Said(const std::string& recompute) {
  MeasuredStep row;
  row.recompute = recompute;
  return Said(row);
}

TEST(RowRecompute, IsInWords) {
  for (const char* text : {"", "None", "off"}) EXPECT_EQ(Said(text), "none none");
  for (const char* text : {"selective per-op", "Per Op"}) {
    EXPECT_THAT(Said(text), testing::StartsWith("match:(ln_1|"));
  }
  EXPECT_EQ(Said("full (every layer)"), "full none");
  EXPECT_EQ(Said("selective (attention core)"), "selective none");
  EXPECT_EQ(Said("selective: core_attn"), "modules:core_attn none");
  EXPECT_EQ(Said("Selective: moe_act, layernorm"), "modules:layernorm,moe_act none");
  EXPECT_THAT(Said("selective: all"), testing::HasSubstr("'all' is no module; wanted core_attn"));
  EXPECT_EQ(Said("custom"), "recompute 'custom'");
  EXPECT_EQ(Said("some"), "recompute 'some'");
}

// What is kept of a layer of MaxText's, on the device or in the memory of the host.
TEST(RowRecompute, ListsWhatIsKept) {
  MeasuredStep row;
  row.recompute = "custom";
  row.kept = {{"decoder_layer_input", "device"},
              {"context", "device"},
              {"query_proj", "device"},
              {"key_proj", "device"},
              {"value_proj", "device"},
              {"out_proj", "device"},
              {"mlpwi_0", "device"},
              {"mlpwi_1", "device"}};
  EXPECT_EQ(Said(row),
            "match:^h\\.[0-9]+\\.((ln_1|ln_2|attn\\.q_rot|attn\\.k_rot|attn\\.proj|mlp\\.act|"
            "mlp\\.down)$|moe\\.) none");
  row.kept[1].second = row.kept[2].second = "offload";
  EXPECT_THAT(Said(row), testing::EndsWith(" activations:^h\\.[0-9]+\\.((attn\\.q|attn\\.core)$)"));
  EXPECT_THAT(Said("qkv_proj_offloaded"),
              testing::EndsWith(" activations:^h\\.[0-9]+\\.((attn\\.q|attn\\.k|attn\\.v)$)"));
}

// NVIDIA's recipes for MaxText have the policy, which their table leaves out; others do not say it.
TEST(RowRecompute, KnowsThePolicyOfARecipe) {
  MeasuredStep row;
  row.recompute = "MaxText remat (policy not in table)";
  row.id = "dgxc-maxtext70b-bf16-128";
  EXPECT_EQ(Said(row),
            "match:^h\\.[0-9]+\\.((ln_1|ln_2|attn\\.q_rot|attn\\.k_rot|attn\\.core|attn\\.proj|"
            "attn\\.residual|mlp\\.gate|mlp\\.up|mlp\\.act|mlp\\.down)$|moe\\.) none");
  row.id = "someone-elses";
  EXPECT_EQ(Said(row), "recompute 'MaxText remat (policy not in table)'");
}

}  // namespace
}  // namespace row_recompute_test_cc
}  // namespace orrery::tools
