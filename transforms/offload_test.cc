#include "transforms/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ir/models/mlp.h"
#include "ir/text.h"
#include "transforms/parallel.h"
#include "transforms/training_step.h"

namespace orrery::transforms {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(OffloadPolicy, ReadsWhatItPrints) {
  for (const char* text : {"none", "activations", "optimizer", "optimizer+activations",
                           "activations:a[0-9]+", "optimizer+activations:x,y|z+"}) {
    const auto policy = ParseOffloadPolicy(text);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ(ToString(*policy), text);
  }
  EXPECT_EQ(ToString(*ParseOffloadPolicy("activations,optimizer")), "optimizer+activations");
  EXPECT_EQ(ToString(*ParseOffloadPolicy("optimizer,activations:a,b")),
            "optimizer+activations:a,b");
}

TEST(OffloadPolicy, SaysWhatIsWrong) {
  for (const char* text : {"", "all", "optimizer,optimizer", "activations:", "activations:(",
                           "optimizer+", "optimizer,none", "activations,activations:x"}) {
    const auto policy = ParseOffloadPolicy(text);
    ASSERT_FALSE(policy.ok()) << text;
    EXPECT_THAT(policy.status().message(),
                HasSubstr(absl::StrCat("'", text, "': wanted none, optimizer, activations")));
  }
}

TEST(OffloadPolicy, ListsKeepThePatternsCommas) {
  EXPECT_THAT(ParseOffloadList("none,activations+optimizer,activations:x{1,2},optimizer").value(),
              ElementsAre("none", "optimizer+activations", "activations:x{1,2}", "optimizer"));
  EXPECT_FALSE(ParseOffloadList("none,some").ok());
}

// The step of an MLP of that many layers, as text.
std::string Offloaded(int64_t layers, const char* policy, int64_t prefetch) {
  ir::Function step = ir::Mlp({.layers = layers, .dim = 4, .batch = 8}).value();
  EXPECT_TRUE(AppendOptimizer(step, "momentum").value());
  SpreadOptions options;
  options.offload = ParseOffloadPolicy(policy).value();
  options.offload.prefetch = prefetch;
  const auto spread = ParallelTransform3d(step, {}, options);
  EXPECT_TRUE(spread.ok()) << spread.status();
  return spread.ok() ? ir::Print(spread->Functions()) : "";
}

TEST(OffloadActivations, CopiesOutAfterTheLastUseAndBackALayerAhead) {
  const std::string text = Offloaded(4, "activations", 1);
  for (const char* copy : {"%y0.host: f32[8,4] = Identity(%y0) {layer=0, memory=\"host\"}",
                           "%y1.host: f32[8,4] = Identity(%y1) {layer=1, memory=\"host\"}"}) {
    EXPECT_THAT(text, HasSubstr(copy));
  }
  // Out after the product of the next layer, which reads what comes from it, and not before.
  EXPECT_LT(text.find("%a0: f32[8,4]"), text.find("%y0.host"));
}

TEST(OffloadOptimizer, RunsParameterByParameterAsGradientsCome) {
  EXPECT_THAT(Offloaded(2, "optimizer", 1), HasSubstr("memory=\"host\""));
  EXPECT_THAT(Offloaded(2, "none", 1), testing::Not(HasSubstr("memory=\"host\"")));
}

TEST(OffloadActivations, SaysWhenAPatternFindsNothing) {
  ir::Function step = ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value();
  SpreadOptions options;
  options.offload = ParseOffloadPolicy("activations:nothing").value();
  EXPECT_THAT(ParallelTransform3d(step, {}, options).status().message(),
              HasSubstr("'activations:nothing': finds no value that forward leaves for backward"));
}

}  // namespace
}  // namespace orrery::transforms
