#include "transforms/sharding/axis_frame.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "ir/text/text.h"
#include "support/sanitized_test_util.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

namespace orrery::transforms {
namespace axis_frame_test_cc {
namespace {

// All that a question is answered with.
struct Answer {
  std::string text;
  AutoShardReport report;
};

class Questions {
 public:
  Questions(const ir::Mesh& mesh, const std::string& keys)
      : mesh_(mesh), step_(ModelStep("gpt", keys, 4)), prices_(mesh, {.link = 1e10}) {}

  Answer Ask(AutoShardOptions options, AxisFrames* frames) const {
    Answer answer;
    options.frames = frames;
    const auto sharded =
        AutoShard(step_, mesh_, BatchedInputs(step_), prices_, options, &answer.report);
    EXPECT_TRUE(sharded.ok()) << sharded.status();
    if (sharded.ok()) answer.text = ir::Print(*sharded);
    return answer;
  }

 private:
  const ir::Mesh mesh_;
  const ir::Function step_;
  const PlainPrices prices_;
};

// One after another, so that each finds what those before it left.
std::vector<AutoShardOptions> AllQuestions() {
  std::vector<AutoShardOptions> all;
  for (const double link_price : CasesToWalk({1.0, 2.0})) {
    for (const auto pattern :
         {std::optional<SequenceParallel>(), std::optional(SequenceParallel::kOff),
          std::optional(SequenceParallel::kOn)}) {
      for (const double memory_price : {0.0, 1e-12, 1e-3}) {
        for (const bool gathers : {false, true}) {
          all.push_back({.pattern = pattern,
                         .in_flight = 2,
                         .gathers = gathers,
                         .memory_price = memory_price,
                         .link_price = link_price});
        }
      }
    }
  }
  for (const double memory_price : {1e-12, 1e-11, 1e-10}) {
    for (const int64_t in_flight : {int64_t{1}, int64_t{1000}}) {
      all.push_back({.in_flight = in_flight, .memory_price = memory_price});
      all.push_back({.in_flight = in_flight,
                     .held = {.parameters = 0, .gradients = 0, .states = 0},
                     .memory_price = memory_price});
    }
  }
  all.push_back({.microbatches = 1, .memory_limit = Bytes(1 << 16), .in_flight = 2});
  all.push_back({.in_flight = 2, .gathers = true, .memory_price = 1e-3});
  return all;
}

void ExpectSameAnswers(const ir::Mesh& mesh, ir::AxisIndex first_axis, const std::string& keys) {
  const Questions questions(mesh, keys);
  AxisFrames frames;
  int number = 0;
  std::set<uint64_t> choices;  // by what bytes count alone
  for (const AutoShardOptions& options : AllQuestions()) {
    SCOPED_TRACE(++number);
    const Answer alone = questions.Ask(options, nullptr), with = questions.Ask(options, &frames);
    EXPECT_EQ(with.text, alone.text);
    EXPECT_EQ(with.report.seconds, alone.report.seconds);
    EXPECT_EQ(with.report.memory, alone.report.memory);
    EXPECT_EQ(with.report.in_parts, alone.report.in_parts);
    EXPECT_EQ(with.report.choice, alone.report.choice);
    EXPECT_EQ(with.report.solved, alone.report.solved);
    EXPECT_EQ(with.report.labels, alone.report.labels);
    EXPECT_EQ(with.report.composed, alone.report.composed);
    EXPECT_EQ(with.report.optimal, alone.report.optimal);
    if (options.memory_price == 1e-11) choices.insert(alone.report.choice);
    // Of logits split over their classes, which is what is cheaper here.
    EXPECT_NE(
        frames.Find({.loss_in_parts = true, .axis = first_axis, .link_price = options.link_price}),
        nullptr)
        << "nothing is kept for the next question";
  }
  EXPECT_GT(choices.size(), 1u) << "what is in flight and what is held made no difference";
}

constexpr char kModel[] =
    "layers=10,hidden=32,heads=4,kv_heads=2,seq=8,vocab=64,ffn=64,mlp=swiglu,flash=1";

TEST(AxisFrames, DoNotChangeAnAnswer) {
  ExpectSameAnswers(ir::Mesh({{"dp", 2}, {"hp", 2}}), 1, kModel);
}

// The frame of the second axis follows from what was chosen for the first.
TEST(AxisFrames, AreOfTheFirstAxisAlone) {
  ExpectSameAnswers(ir::Mesh({{"dp", 1}, {"cp", 2}, {"hp", 2}}), 1, kModel);
}

TEST(AxisFrames, KeepTheLastTwo) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const ir::Function step = ModelStep("mlp", "layers=2,dim=64", 8);
  const PlainPrices prices(mesh, {});
  const auto make = [&] {
    return std::make_unique<AxisFrame>(std::pair(step, mesh), ir::AxisIndex{1}, prices,
                                       BatchedInputs(step), AutoShardOptions{});
  };
  AxisFrames frames;
  const AxisFrames::Key keys[] = {
      {.loss_in_parts = true}, {.link_price = 2}, {.attention = ContextAttention::kRing}};
  for (const AxisFrames::Key& key : keys) {
    EXPECT_EQ(frames.Find(key), nullptr);
    AxisFrame& added = frames.Add(key, make());
    EXPECT_EQ(frames.Find(key), &added);
  }
  EXPECT_EQ(frames.Find(keys[0]), nullptr);
  EXPECT_NE(frames.Find(keys[1]), nullptr);
}

// What is asked of the solver does not grow with layers, nor does the answer depend on that.
TEST(AxisFrames, SolveEqualLayersOnce) {
  const ir::Mesh mesh({{"dp", 1}, {"hp", 2}});
  const PlainPrices prices(mesh, {.link = 1e10});
  for (const double price : {0.0, 1e-12, 1e-6}) {
    SCOPED_TRACE(price);
    const ir::Function step = ModelStep("gpt", kModel, 4);
    AxisFrame frame(std::pair(step, mesh), 1, prices, BatchedInputs(step), {});
    PricedChoices& way = frame.WaysToUse({}).value()->front();
    const auto composed = way.Solve(price, KeptGathered::kWhole, {}).value();
    const auto alone =
        way.Solve(price, KeptGathered::kWhole, {.repeats = {{.blocks = {}}}}).value();
    const auto weighed = [&](const strategies::StrategyChoice& choice) {
      return choice.cost + price * CostOf(way.bytes(KeptGathered::kWhole), choice.assignment);
    };
    EXPECT_GT(composed.composed, 3);
    EXPECT_EQ(alone.composed, 0);
    EXPECT_NEAR(weighed(composed), weighed(alone), 1e-9 * weighed(alone));
  }
}

}  // namespace
}  // namespace axis_frame_test_cc
}  // namespace orrery::transforms
