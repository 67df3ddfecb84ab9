#include "tools/validation/rows/row_stages.h"

#include <gtest/gtest.h>

#include <vector>

#include "tools/validation/rows/measured_row_test_util.h"
#include "tools/validation/rows/step_setup.h"

namespace orrery::tools {
namespace row_stages_test_cc {
namespace {

using transforms::StagesBy;

transforms::ParallelPlan PlanOf(int64_t layers, int64_t stages, const char* stack) {
  MeasuredStep row = MeasuredRow();
  row.model.layers = layers;
  transforms::ParallelPlan plan;
  SetStages(row, stack, stages, plan);
  return plan;
}

TEST(RowStages, AreEvenOrLackALayerAtBothEnds) {
  EXPECT_EQ(PlanOf(24, 8, "megatron").stages_by, StagesBy::kLayers);
  EXPECT_EQ(PlanOf(22, 8, "megatron").layers_per_stage,
            (std::vector<int64_t>{2, 3, 3, 3, 3, 3, 3, 2}));
  EXPECT_EQ(PlanOf(23, 8, "megatron").layers_per_stage, std::vector<int64_t>());
  EXPECT_FALSE(PlanOf(6, 8, "megatron").split_at.empty());
}

TEST(RowStages, OfDeepSpeedAreFilledOneAfterTheOther) {
  std::vector<int64_t> filled(12, 7);
  filled.back() = 1;
  EXPECT_EQ(PlanOf(78, 12, "deepspeed").layers_per_stage, filled);
  EXPECT_EQ(PlanOf(70, 12, "deepspeed").layers_per_stage.front(), 5);
  EXPECT_EQ(PlanOf(72, 12, "deepspeed").layers_per_stage, std::vector<int64_t>());
  // Nothing would be left for the last.
  EXPECT_EQ(PlanOf(25, 10, "deepspeed").layers_per_stage, std::vector<int64_t>());
}

// Heads that a source leaves out are those that ranks can share.
TEST(RowStages, HeadsAreThoseThatRanksShare) {
  MeasuredStep row = MeasuredRow();
  row.model.heads = 0;
  row.model.hidden = 13824;
  row.tp = 8;
  const auto model = [&] { return SetupOf(row).value().flags.model; };
  EXPECT_NE(model().find("heads=96,"), std::string::npos) << model();
  row.tp = 4;
  EXPECT_NE(model().find("heads=108,"), std::string::npos) << model();
}

TEST(RowStages, HasAsManyChunksAsLayersAllow) {
  MeasuredStep row = MeasuredRow();
  row.model.layers = 96;
  EXPECT_EQ(MostChunks(row, 8), 12);
  row.model.layers = 22;
  EXPECT_EQ(MostChunks(row, 8), 3);
}

}  // namespace
}  // namespace row_stages_test_cc
}  // namespace orrery::tools
