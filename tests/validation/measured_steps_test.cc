#include "tools/validation/rows/measured_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths_test_util.h"

namespace orrery::tools {
namespace measured_steps_test_cc {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(MeasuredSteps, AreReadFieldByField) {
  const auto steps = ParseMeasuredSteps(R"({
    "source": "A paper", "how_measured": "max reserved memory", "unknown": {"rows": 3},
    "rows": [{
      "id": "a", "split": "calibration", "schedule": "1F1B", "recompute": "full",
      "precision": "BF16", "color": "red",
      "model": {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 256, "vocab": 100,
                "seq": 16, "mlp": "SwiGLU", "experts": 8, "topk": 2, "moe_ffn": 32},
      "hw": {"gpu": "H100", "gpus": 16},
      "par": {"tp": 2, "pp": 4, "dp": 2, "cp": 1, "ep": 1, "vp": 3, "zero": 1,
              "sequence_parallel": true},
      "batch": {"global_batch": 32, "micro_batch": 2, "num_microbatches": 8},
      "measured": {"iter_time_s": null, "memory_gib": 2}, "derived": {"iter_time_s": 1.5}}]})",
                                        "folder/03_paper.json");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_THAT(*steps, SizeIs(1));
  const MeasuredStep& step = steps->front();
  EXPECT_EQ(step.id, "a");
  EXPECT_EQ(step.source, "03_paper");
  EXPECT_EQ(step.split, "calibration");
  EXPECT_EQ(step.model.layers, 2);
  EXPECT_EQ(step.model.kv_heads, 2);
  EXPECT_EQ(step.model.expert_ffn, 32);
  EXPECT_TRUE(step.model.swiglu);
  EXPECT_EQ(step.devices, 16);
  EXPECT_EQ(step.chunks, 3);
  EXPECT_TRUE(step.sequence_parallel);
  EXPECT_EQ(step.microbatches, 8);
  EXPECT_EQ(step.precision, "bf16");
  EXPECT_EQ(step.seconds, 1.5);
  EXPECT_EQ(step.bytes, 2.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(step.measure, MemoryMeasure::kReserved);
}

// "null means the source does not say: never read it as zero." Nor as a measurement.
TEST(MeasuredSteps, NothingSaidIsNothing) {
  const auto steps = ParseMeasuredSteps(
      R"({"rows": [{"id": "a", "model": {"layers": null}, "par": {"tp": "two"},
                    "measured": {"iter_time_s": null, "memory_gb": null}}, {"name": "no id"}]})",
      "x.json");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_THAT(*steps, SizeIs(1));
  EXPECT_EQ(steps->front().model.layers, 0);
  EXPECT_EQ(steps->front().tp, 0);
  EXPECT_EQ(steps->front().seconds, 0);
  EXPECT_EQ(steps->front().bytes, 0);
}

// Nor what is no count.
TEST(MeasuredSteps, NumbersThatAreNoCountsAreNothing) {
  for (const char* number : {"1e308", "-1e308", "1e19", "-4", "0.5"}) {
    const auto steps = ParseMeasuredSteps(
        absl::StrCat(R"({"rows": [{"id": "a", "batch": {"num_microbatches": )", number, "}}]}"),
        "x.json");
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_EQ(steps->front().microbatches, 0) << number;
  }
}

TEST(MeasuredSteps, UnitsAreThoseOfTheNames) {
  const auto steps = ParseMeasuredSteps(
      R"({"rows": [{"id": "a", "measured": {"memory_gb_max": 3}},
                   {"id": "b", "measured": {"memory_gb": 3}},
                   {"id": "c", "measured": {"mem_max_allocated_gb": 3}}]})",
      "x.json");
  ASSERT_TRUE(steps.ok()) << steps.status();
  for (const MeasuredStep& step : *steps) EXPECT_EQ(step.bytes, 3e9) << step.id;
  EXPECT_EQ((*steps)[0].measure, MemoryMeasure::kDevice);
  EXPECT_EQ((*steps)[1].measure, MemoryMeasure::kAllocated);
  EXPECT_EQ((*steps)[2].measure, MemoryMeasure::kAllocated);
}

TEST(MeasuredSteps, ErrorsNameTheFile) {
  EXPECT_THAT(std::string(ParseMeasuredSteps("{", "x.json").status().message()),
              HasSubstr("x.json: is not JSON"));
  EXPECT_THAT(std::string(ParseMeasuredSteps("[1]", "x.json").status().message()),
              HasSubstr("x.json: has no list \"rows\""));
  EXPECT_FALSE(ReadMeasuredSteps("/no/such/file.json").ok());
  EXPECT_FALSE(ReadMeasuredSteps(SourceDir() + "/docs/adr").ok());
}

TEST(MeasuredSteps, OfAFolderComeByName) {
  const auto steps = ReadMeasuredSteps(SourceDir() + "/tests/data/validation");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_GT(steps->size(), 50);
  EXPECT_EQ(steps->front().source, "05_torchtitan");
  EXPECT_EQ(steps->back().source, "06c_bloom_topology_sweep_a100");
  for (const MeasuredStep& step : *steps) EXPECT_NE(step.split, "holdout") << step.id;
}

}  // namespace
}  // namespace measured_steps_test_cc
}  // namespace orrery::tools
