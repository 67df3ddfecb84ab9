#include "tools/validation/fit_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tools/validation/rows/measured_row_test_util.h"

namespace orrery::tools {
namespace fit_parameters_test_cc {
namespace {

using testing::Contains;
using testing::Not;

MeasuredStep Row() { return MeasuredRow("nemo"); }

std::vector<std::string> NamesFor(const MeasuredStep& row) {
  const std::vector<RowUse> uses = {RowUseOf(row, {}).value()};
  const FittedFigures all = WithOwners(uses, {}).value();
  std::vector<std::string> names;
  for (const FitParameter& parameter : ParametersOf(uses, all))
    names.push_back(ToString(parameter));
  return names;
}

TEST(FitParameters, AreThoseThatARowTellsAbout) {
  EXPECT_THAT(NamesFor(Row()),
              testing::ElementsAre(
                  "device h100-80gb sustained", "device h100-80gb straggling",
                  "device h100-80gb half.memory", "device h100-80gb attention.cudnn.efficiency",
                  "collectives nccl-hopper rate_between_nodes",
                  "collectives nccl-hopper step_between_nodes", "stack nemo launch_us",
                  "stack nemo prepare_us", "stack nemo collective_us", "stack nemo slowdown"));
  MeasuredStep row = Row();
  row.devices = 8;
  EXPECT_THAT(NamesFor(row), Not(Contains(testing::HasSubstr("collectives"))));
  row.precision = "fp8";
  EXPECT_THAT(NamesFor(row), Contains("device h100-80gb sustained_quarter"));
  row.device = "A100";
  EXPECT_THAT(NamesFor(row), Not(Contains(testing::HasSubstr("attention"))))
      << "Megatron of those years had none that is fused";
  row.device = "H100";
  row.source = "foundry";
  EXPECT_THAT(NamesFor(row), Contains("device h100-80gb attention.triton.efficiency"));
}

TEST(FitParameters, MoveByFactorsOrBySteps) {
  const FitParameter share = {.start = 0.8, .least = 0.001, .most = 1, .scale = 0.25};
  EXPECT_EQ(share.After(0), 0.8);
  EXPECT_DOUBLE_EQ(share.After(-1), 0.8 / 1.25);
  EXPECT_EQ(share.After(2), 1);
  EXPECT_NEAR(share.range().most, 1, 1e-12);
  EXPECT_EQ(share.range().least, -4);
  const FitParameter adds = {.start = 0, .least = 0, .most = 1000, .scale = 15, .adds = true};
  EXPECT_EQ(adds.After(0.5), 7.5);
  EXPECT_EQ(adds.After(-1), 0);
  EXPECT_EQ(adds.range().least, 0);
  EXPECT_NEAR(share.MoveTo(share.After(-0.7)), -0.7, 1e-12);
  EXPECT_NEAR(adds.MoveTo(adds.After(0.7)), 0.7, 1e-12);
}

TEST(FitParameters, GoIntoTheFigures) {
  const std::vector<RowUse> uses = {RowUseOf(Row(), {}).value()};
  const FittedFigures all = WithOwners(uses, {}).value();
  const std::vector<FitParameter> parameters = ParametersOf(uses, all);
  std::vector<double> moves(parameters.size(), 0);
  EXPECT_EQ(After(all, parameters, moves).devices, all.devices);
  moves = {-1, 1, 0, -0.5, -1, 1, 1, 0.25, 2, 0.5};
  const FittedFigures after = After(all, parameters, moves);
  const cluster::KernelRates &was = all.devices[0].rates, &is = after.devices[0].rates;
  EXPECT_DOUBLE_EQ(is.sustained, was.sustained / 1.25);
  EXPECT_DOUBLE_EQ(is.straggling, was.straggling + 0.005);
  EXPECT_EQ(is.half.memory, was.half.memory);
  EXPECT_LT(is.attention.cudnn.efficiency, was.attention.cudnn.efficiency);
  EXPECT_EQ(is.attention.flash2, was.attention.flash2);
  for (size_t i = 0; i < after.collectives[0].protocols.size(); ++i) {
    const cluster::CollectiveProtocol &before = all.collectives[0].protocols[i],
                                      &now = after.collectives[0].protocols[i];
    EXPECT_NEAR(now.rate_between_nodes, before.rate_between_nodes / 1.25, 1e-9);
    EXPECT_NEAR(now.step_between_nodes.seconds(), before.step_between_nodes.seconds() * 1.25,
                1e-11);
    EXPECT_EQ(now.rate, before.rate);
  }
  EXPECT_DOUBLE_EQ(after.stacks[0].second.launch_us, 15);
  EXPECT_DOUBLE_EQ(after.stacks[0].second.prepare_us, 250);
  EXPECT_DOUBLE_EQ(after.stacks[0].second.collective_us, 40);
  EXPECT_DOUBLE_EQ(after.stacks[0].second.slowdown, 0.1);
}

TEST(RowUse, SaysWhyARowIsNone) {
  MeasuredStep row = Row();
  row.device = "abacus";
  EXPECT_EQ(RowUseOf(row, {}).status().message(), "no cluster for device 'abacus'");
}

}  // namespace
}  // namespace fit_parameters_test_cc
}  // namespace orrery::tools
