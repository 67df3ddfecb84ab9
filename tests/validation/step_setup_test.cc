#include "tools/validation/rows/step_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "transforms/plan/plan_text.h"

// What a row asks of the simulator, as text.

namespace orrery::tools {
namespace step_setup_test_cc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A row that says enough.
MeasuredStep Row() {
  MeasuredStep row;
  row.id = "row";
  row.source = "06a_zero_bubble";
  row.model = {.layers = 22, .hidden = 2304, .heads = 24, .seq = 1024};
  row.device = "A100-SXM4-80GB";
  row.devices = 8;
  row.pp = 8;
  row.global_batch = 144;
  row.micro_batch = 6;
  row.schedule = "1F1B";
  row.precision = "fp16 mixed";
  row.bytes = 30e9;
  return row;
}

std::string Show(const MeasuredStep& row) {
  const absl::StatusOr<StepSetup> setup = SetupOf(row);
  if (!setup.ok()) return absl::StrCat("skipped: ", setup.status().message());
  const ModelFlags& flags = setup->flags;
  return absl::StrCat(flags.model, " --batch-size ", flags.batch_size, " --cluster ", flags.cluster,
                      " ", ToString(setup->plan), " --stack ", setup->stack, " --memory-overhead ",
                      flags.memory_overhead);
}

TEST(StepSetup, OfAPipeline) {
  EXPECT_EQ(Show(Row()),
            "gpt:layers=22,hidden=2304,heads=24,seq=1024,vocab=50304,flash=0,dropout=0.1 "
            "--batch-size 144 --cluster dgx-a100:1,collectives=nccl-ampere-2023 "
            "--dp 1 --hp 1 --pp 8 --micro-batches 24 --schedule 1f1b "
            "--layers-per-stage 2,3,3,3,3,3,3,2 --dtype fp16 --stack megatron "
            "--memory-overhead none");
}

TEST(StepSetup, OfShards) {
  MeasuredStep row = Row();
  row.source = "05_torchtitan";
  row.model = {.layers = 32,
               .hidden = 4096,
               .heads = 32,
               .kv_heads = 8,
               .ffn = 14336,
               .vocab = 128256,
               .seq = 8192,
               .swiglu = true};
  row.device = "H100-SXM 96GB HBM2e 2.4 TB/s, 500 W limit (Grand Teton)";
  row.pp = 1;
  row.dp = 8;
  row.zero = 3;
  row.global_batch = 16;
  row.micro_batch = 2;
  row.schedule = "none";
  row.recompute = "full";
  row.precision = "fp8";
  row.measure = MemoryMeasure::kReserved;
  EXPECT_EQ(Show(row),
            "gpt:layers=32,hidden=4096,heads=32,seq=8192,vocab=128256,flash=1,kv_heads=8,ffn=14336,"
            "mlp=swiglu --batch-size 16 --cluster h100-torchtitan:1 "
            "--dp 8 --hp 1 --pp 1 --micro-batches 1 --schedule 1f1b --zero 3 --recompute full "
            "--dtype fp8-mixed --stack torchtitan --memory-overhead fragmentation=0.05");
}

TEST(StepSetup, SchedulesByTheirNames) {
  const struct {
    const char *said, *name;
    int64_t chunks;
  } kCases[] = {{"1F1B", "1f1b", 0},
                {"1F1B-I", "interleaved", 3},
                {"ZB-1p", "zb-1p", 0},
                {"ZB-2p", "zb-h2", 0},
                {"ZB-H1", "zb-h1", 0},
                {"Interleaved 1F1B", "interleaved", 3},
                {"1F1B (DeepSpeed pipeline)", "1f1b", 0}};
  for (const auto& c : kCases) {
    MeasuredStep row = Row();
    row.schedule = c.said;
    const auto setup = SetupOf(row);
    ASSERT_TRUE(setup.ok()) << c.said << ": " << setup.status();
    EXPECT_EQ(setup->plan.schedule.name(), c.name) << c.said;
    EXPECT_EQ(setup->plan.chunks, c.chunks) << c.said;
  }
}

// Each row lacks one thing, or asks for one that there is not.
TEST(StepSetup, SkipsWithAReason) {
  const auto reason = [](auto change) {
    MeasuredStep row = Row();
    change(row);
    return Show(row);
  };
  EXPECT_EQ(reason([](auto& r) { r.bytes = 0; }),
            "skipped: neither a time nor memory was measured");
  EXPECT_EQ(reason([](auto& r) { r.model.layers = 0; }), "skipped: the model's shape is not said");
  EXPECT_EQ(reason([](auto& r) { r.devices = 0; }), "skipped: the number of devices is not said");
  EXPECT_EQ(reason([](auto& r) { r.global_batch = 0; }), "skipped: the batch is not said");
  EXPECT_EQ(reason([](auto& r) { r.micro_batch = 0, r.pp = 1, r.dp = 8; }),
            "skipped: the microbatch is not said");
  // Of a pipeline it is one sample.
  EXPECT_THAT(reason([](auto& r) { r.micro_batch = 0; }), HasSubstr("--micro-batches 144 "));
  EXPECT_EQ(reason([](auto& r) { r.pp = 3; }),
            "skipped: degrees do not multiply up to the devices");
  EXPECT_EQ(reason([](auto& r) { r.device = "abacus"; }),
            "skipped: no cluster for device 'abacus'");
  EXPECT_EQ(reason([](auto& r) { r.schedule = "Hanayo"; }), "skipped: schedule 'Hanayo'");
  EXPECT_EQ(reason([](auto& r) { r.precision = "int4"; }), "skipped: precision 'int4'");
  EXPECT_EQ(reason([](auto& r) { r.recompute = "sometimes"; }), "skipped: recompute 'sometimes'");
}

// Vocabulary, heads and feed-forward are split; sequence parallelism splits the rest by tokens.
// What is not Megatron's own is pinned.
TEST(StepSetup, PinsTheSplitsOfOthers) {
  MeasuredStep row = Row();
  row.source = "torchtitan";
  row.tp = 8;
  row.pp = 1;
  for (const bool sequence : {false, true}) {
    row.sequence_parallel = sequence;
    const auto setup = SetupOf(row);
    ASSERT_TRUE(setup.ok()) << setup.status();
    ASSERT_FALSE(setup->plan.pins.empty());
    const std::string pins =
        absl::StrCat(ToString(setup->plan.pins.front()), ToString(setup->plan.pins.back()));
    EXPECT_THAT(
        pins, AllOf(HasSubstr("wte\\.weight$=hp@0"), HasSubstr(sequence ? "=hp@1" : "=hp@whole")));
  }
}

}  // namespace
}  // namespace step_setup_test_cc
}  // namespace orrery::tools
