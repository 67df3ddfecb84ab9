#include "transforms/slices/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/models/model_test_util.h"
#include "ir/text/text.h"
#include "simulator/report/memory.h"
#include "tests/lowering/memory_oracle.h"
#include "tests/lowering/played.h"
#include "transforms/training/training_step.h"

// Programs of slices of the sequence: how long each takes, and what a rank holds of them.

namespace orrery::lowering {
namespace slices_test_cc {
namespace {

using simulator::RankClassId;
using transforms::SliceRange;

ir::Function Gpt(const std::string& keys, int64_t batch, const std::string& optimizer = "adam") {
  ir::Function step = ir::BuildModel("gpt", keys, batch);
  EXPECT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = optimizer}).ok());
  return step;
}

transforms::RecomputePolicy PolicyOf(const std::string& text) {
  return transforms::ParseRecomputePolicy(text).value();
}

Played PlaySlices(const ir::Function& step, Configuration c) {
  c.plan.schedule = "terapipe";
  if (c.slices.empty()) {
    c.slices = transforms::EqualSlices(step, c.plan.microbatches).value();
  }
  return Play(step, c);
}

Bytes ResidentOf(const simulator::Program& program, RankClassId rank) {
  Bytes sum;
  for (int kind = 0; kind < simulator::kMemoryKindCount; ++kind) {
    sum += program.resident(rank, static_cast<simulator::MemoryKind>(kind));
  }
  return sum;
}

// What brute force finds that each rank holds at its peak; and in the end there is nothing but what
// is returned.
void ExpectMemory(const Played& played, int64_t returned) {
  transforms::RankOrders orders(played.step.stages.size());
  for (const LoweredStep& row : played.lowered) {
    orders[static_cast<size_t>(row.step.stage)].push_back(row.step);
  }
  const std::vector<int64_t> peaks = BruteForcePeaks(played.step, orders, 0);
  const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
  for (int32_t r = 0; r < played.program.rank_count(); ++r) {
    const RankClassId id(r);
    const Bytes peak = played.report.ranks[id].memory.total - ResidentOf(played.program, id);
    const int32_t stage = played.program.rank(id).stage;
    EXPECT_EQ(peak.count(), peaks[static_cast<size_t>(stage)]) << r;
    const bool last = stage + 1 == std::ssize(played.step.stages);
    const auto& end = timelines[id].back().by_kind;
    EXPECT_EQ(end[static_cast<size_t>(simulator::MemoryKind::kActivations)].count(),
              last ? returned : 0)
        << r;
    for (const auto& moment : timelines[id]) {
      for (const Bytes bytes : moment.by_kind) EXPECT_GE(bytes, Bytes(0));
    }
  }
}

// Bytes of what a forward returns, of which a replica has a part.
int64_t ReturnedOf(const ir::Function& forward, int64_t replicas) {
  int64_t bytes = 0;
  for (const ir::Output& output : forward.outputs()) {
    bytes += ir::SizeOf(forward.type(output.value)).count() / replicas;
  }
  return bytes;
}

TEST(SlicesMemory, IsWhatBruteForceFinds) {
  for (const std::string keys :
       {"layers=4,hidden=32,heads=4,seq=24,vocab=48,tied_embeddings=0",
        "layers=4,hidden=32,heads=4,kv_heads=2,seq=24,vocab=48,mlp=swiglu,ffn=32,flash=1"}) {
    const ir::Function step = Gpt(keys, 4);
    for (const int64_t pp : {1, 2, 4}) {
      for (const int64_t slices : {2, 3, 8}) {
        for (const std::string recompute : {"none", "selective", "full"}) {
          SCOPED_TRACE(absl::StrCat(keys, " pp=", pp, " m=", slices, " ", recompute));
          ExpectMemory(PlaySlices(step, {.plan = {.dp = 1 + pp % 2,
                                                  .hp = 2,
                                                  .pp = pp,
                                                  .microbatches = slices,
                                                  .recompute = PolicyOf(recompute),
                                                  .blocking = true}}),
                       4 / (1 + pp % 2) * 24 * 4);
        }
      }
    }
  }
}

TEST(SlicesMemory, OfUnequalSlicesIsWhatBruteForceFinds) {
  const ir::Function step =
      Gpt("layers=4,hidden=32,heads=4,seq=24,vocab=48,tied_embeddings=0,flash=1,dropout=0.1", 2);
  for (const int64_t pp : {1, 2}) {
    for (const std::string recompute : {"none", "full", "every:2", "match:mlp"}) {
      SCOPED_TRACE(absl::StrCat(recompute, " pp=", pp));
      ExpectMemory(PlaySlices(step, {.plan = {.pp = pp,
                                              .microbatches = 4,
                                              .recompute = PolicyOf(recompute),
                                              .blocking = true},
                                     .slices = {{0, 10}, {10, 7}, {17, 4}, {21, 3}}}),
                   2 * 24 * 4);
    }
  }
}

// What is there all the time does not depend on how the sequence is cut.
TEST(SlicesMemory, OfResidentsIsThatOfTheWhole) {
  const ir::Function step = Gpt("layers=4,hidden=32,heads=4,seq=24,vocab=48,flash=1", 2);
  for (const int64_t pp : {1, 2}) {
    const Played whole = Play(step, {.plan = {.pp = pp, .schedule = "terapipe"}});
    const Played slices = PlaySlices(step, {.plan = {.pp = pp, .microbatches = 4},
                                            .slices = {{0, 10}, {10, 7}, {17, 4}, {21, 3}}});
    for (int32_t r = 0; r < whole.program.rank_count(); ++r) {
      EXPECT_EQ(ResidentOf(slices.program, RankClassId(r)),
                ResidentOf(whole.program, RankClassId(r)));
    }
  }
}

// Without a backward that reads them, too, keys and values stay until the last slice has met them.
TEST(SlicesMemory, OfForwardAloneIsWhatBruteForceFinds) {
  for (const std::string keys :
       {"layers=4,hidden=32,heads=4,seq=24,vocab=48,tied_embeddings=0",
        "layers=4,hidden=32,heads=4,kv_heads=2,seq=24,vocab=48,qkv=separate,flash=1"}) {
    const ir::Function forward = ir::BuildModel("gpt", keys, 4);
    for (const int64_t pp : {1, 2, 4}) {
      for (const std::vector<SliceRange>& slices :
           {std::vector<SliceRange>{{0, 24}}, {{0, 12}, {12, 12}}, {{0, 10}, {10, 11}, {21, 3}}}) {
        SCOPED_TRACE(absl::StrCat(keys, " pp=", pp, " m=", slices.size()));
        ExpectMemory(PlaySlices(forward, {.plan = {.dp = 2,
                                                   .hp = 2,
                                                   .pp = pp,
                                                   .microbatches = std::ssize(slices),
                                                   .blocking = true},
                                          .slices = slices}),
                     ReturnedOf(forward, 2));
      }
    }
  }
}

// Keys that the layer reads once more after attention, that are their own values, and that go on
// to the next stage.
TEST(SlicesMemory, OfSharedKeysIsWhatBruteForceFinds) {
  for (const absl::string_view end :
       {"%r: f32[2,24,8] = Add(%y, %k)\n  %z: f32[2,24,8] = MatMul(%r, %u)",
        "%z: f32[2,24,8] = MatMul(%y, %u)",
        "%r: f32[2,24,8] = MatMul(%y, %u)\n  %z: f32[2,24,8] = Add(%r, %k)"}) {
    const ir::Function forward = ir::ParseFunction(absl::StrCat(R"(func @f (
  %x: f32[2,24,8] data,
  %w: f32[8,8] parameter,
  %u: f32[8,8] parameter
) {
  %k: f32[2,24,8] = MatMul(%x, %w)
  %y: f32[2,24,8], %s: f32[2,2,24] = Attention(%k, %k, %k) {causal=1, flash=1, heads=2}
  )",
                                                                end, "\n  return %z: result\n}\n"))
                                     .value();
    for (const int64_t pp : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(end, " pp=", pp));
      ExpectMemory(PlaySlices(forward, {.plan = {.pp = pp, .microbatches = 3, .blocking = true},
                                        .slices = {{0, 10}, {10, 11}, {21, 3}}}),
                   2 * 24 * 8 * 4);
    }
  }
}

// Weights that are frozen up to an attention: its gradient is not made.
TEST(SlicesMemory, OfFrozenWeightsIsWhatBruteForceFinds) {
  ir::Function step = ir::ParseFunction(R"(func @f (
  %x: f32[2,24,8] data,
  %labels: i64[2,24] data,
  %w: f32[8,8] buffer,
  %v: f32[8,8] parameter
) {
  %k: f32[2,24,8] = MatMul(%x, %w)
  %y: f32[2,24,8], %s: f32[2,2,24] = Attention(%k, %k, %k) {causal=1, flash=1, heads=2}
  %z: f32[2,24,8] = MatMul(%y, %v)
  %loss: f32[2,24] = CrossEntropy(%z, %labels) {batch=48}
  return %loss: loss
}
)")
                          .value();
  ASSERT_TRUE(transforms::MakeTrainingStep(step, {.optimizer = "adam"}).ok());
  for (const int64_t pp : {1, 2}) {
    for (const std::string recompute : {"none", "full"}) {
      SCOPED_TRACE(absl::StrCat(recompute, " pp=", pp));
      ExpectMemory(PlaySlices(step, {.plan = {.pp = pp,
                                              .microbatches = 3,
                                              .recompute = PolicyOf(recompute),
                                              .blocking = true},
                                     .slices = {{0, 10}, {10, 11}, {21, 3}}}),
                   2 * 24 * 4);
    }
  }
}

// Between keys and their attention, too, a stage sends each position once.
TEST(SlicesSends, OfCutAttentionDoNotGrow) {
  const ir::Function step =
      Gpt("layers=4,hidden=32,heads=4,seq=64,vocab=48,flash=1,tied_embeddings=0,qkv=separate", 2);
  Bytes whole;
  for (const int64_t m : {1, 2, 4, 8, 16}) {
    const Played played = PlaySlices(
        step,
        {.plan = {
             .pp = 2, .microbatches = m, .split_at = R"(h\.2\.attn\.core)", .blocking = true}});
    if (m == 1) whole = played.report.bytes_sent;
    EXPECT_EQ(played.report.bytes_sent, whole) << m;
    ExpectMemory(played, 2 * 64 * 4);
  }
}

// Where everything is copied, too: nothing is given back that was not taken, and all of it is.
TEST(SlicesMemory, OfCopiesIsNeverNegative) {
  const ir::Function step = Gpt("layers=4,hidden=32,heads=4,seq=24,vocab=48", 2);
  for (const int64_t pp : {1, 2, 4}) {
    const Played played = PlaySlices(step, {.plan = {.pp = pp, .microbatches = 4, .blocking = true},
                                            .cost_model = "distir",
                                            .slices = {{0, 10}, {10, 7}, {17, 4}, {21, 3}}});
    const auto timelines = simulator::MemoryTimeline(played.program, played.trace);
    for (const auto& timeline : timelines.rows()) {
      for (const auto& moment : timeline) {
        for (const Bytes bytes : moment.by_kind) EXPECT_GE(bytes, Bytes(0));
      }
      const auto& end = timeline.back().by_kind;
      EXPECT_LE(end[static_cast<size_t>(simulator::MemoryKind::kActivations)].count(), 2 * 24 * 4);
    }
  }
}

// A step in one slice is the step of the whole batch.
TEST(SlicesMemory, OfOneSliceIsThatOfTheWhole) {
  const ir::Function step = Gpt("layers=4,hidden=32,heads=4,seq=24,vocab=48,flash=1", 2);
  for (const int64_t pp : {1, 2}) {
    Configuration c = {.plan = {.pp = pp, .schedule = "terapipe"}};
    const Played whole = Play(step, c);
    c.slices = {{0, 24}};
    const Played slice = Play(step, c);
    for (int32_t r = 0; r < whole.program.rank_count(); ++r) {
      const auto &a = whole.report.ranks[RankClassId(r)], &b = slice.report.ranks[RankClassId(r)];
      // The summing up of keys' gradients is a copy, which is not left out of a single slice.
      EXPECT_LE(a.memory.total, b.memory.total);
      EXPECT_LE(b.memory.total.count(), a.memory.total.count() + 2 * 24 * 32 * 4);
      EXPECT_LE(a.finish, b.finish);
    }
  }
}

// Of what labels say, by slice: flops of all attention, forward or backward.
std::vector<double> AttentionFlops(const Played& played, simulator::Phase phase) {
  std::vector<double> flops(static_cast<size_t>(played.step.microbatches), 0);
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::TaskLabel label = played.program.label(played.program.label_of(task));
    const int32_t slice = played.program.microbatch_of(task);
    if (slice < 0 || label.phase != phase) continue;
    if (!absl::StartsWith(label.name, "Attention")) continue;
    flops[static_cast<size_t>(slice)] += label.flops.count();
  }
  return flops;
}

// Slice i meets the keys of i + 1 slices: all slices together do (m+1)/2m of the whole, forward and
// backward.
TEST(SlicesTime, AttentionMeetsTheKeysOfEarlierSlices) {
  const ir::Function step = Gpt("layers=4,hidden=32,heads=4,seq=64,vocab=48,flash=1", 2);
  for (const simulator::Phase phase : {simulator::Phase::kForward, simulator::Phase::kBackward}) {
    const Played whole = Play(step, {.plan = {.pp = 2, .schedule = "gpipe"}});
    const double all = AttentionFlops(whole, phase)[0];
    ASSERT_GT(all, 0);
    for (const int64_t m : {2, 4, 8, 16}) {
      const std::vector<double> flops =
          AttentionFlops(PlaySlices(step, {.plan = {.pp = 2, .microbatches = m}}), phase);
      double sum = 0;
      for (int64_t i = 0; i < m; ++i) {
        const double own = flops[static_cast<size_t>(i)];
        EXPECT_DOUBLE_EQ(own, all * static_cast<double>(i + 1) / static_cast<double>(m * m));
        sum += own;
      }
      EXPECT_DOUBLE_EQ(sum, all * static_cast<double>(m + 1) / static_cast<double>(2 * m));
    }
  }
}

// How long a stage computes for each slice.
std::vector<double> SecondsOf(const Played& played, int32_t stage, simulator::Phase phase) {
  std::vector<double> seconds(static_cast<size_t>(played.step.microbatches), 0);
  for (int32_t t = 0; t < played.program.task_count(); ++t) {
    const simulator::TaskId task(t);
    const simulator::TaskLabel label = played.program.label(played.program.label_of(task));
    const int32_t slice = played.program.microbatch_of(task);
    const bool counts = slice >= 0 && label.phase == phase && label.stage == stage &&
                        label.kind == simulator::TaskKind::kCompute;
    if (counts) seconds[static_cast<size_t>(slice)] += played.program.duration(task).seconds();
  }
  return seconds;
}

// Each slice of a long sequence takes as much longer than the one before.
TEST(SlicesTime, ForwardGrowsLinearly) {
  const ir::Function step =
      Gpt("layers=4,hidden=512,heads=8,seq=32768,vocab=48,flash=1,tied_embeddings=0", 1, "sgd");
  const Played played =
      PlaySlices(step, {.plan = {.pp = 4, .microbatches = 8}, .cluster = "dgx-a100:1"});
  const std::vector<double> seconds = SecondsOf(played, 1, simulator::Phase::kForward);
  const double growth = (seconds.back() - seconds.front()) / 7;
  EXPECT_GT(growth, 0.1 * seconds.front());
  for (size_t i = 1; i < seconds.size(); ++i) {
    EXPECT_NEAR(seconds[i] - seconds[i - 1], growth, 1e-3 * growth) << i;
  }
}

// Where attention takes next to nothing, a slice is a microbatch: the pipeline fills and drains as
// GPipe's does with as many samples of the slice's length.
TEST(SlicesTime, OfShortSequencesIsThatOfGpipe) {
  const std::string keys = "layers=8,hidden=2048,heads=16,vocab=64,flash=1,tied_embeddings=0";
  for (const int64_t pp : {2, 4, 8}) {
    for (const int64_t m : {2, 4, 8}) {
      SCOPED_TRACE(absl::StrCat("pp=", pp, " m=", m));
      const Configuration c = {.plan = {.pp = pp, .microbatches = m, .schedule = "gpipe"},
                               .cluster = "dgx-a100:1"};
      const Played slices = PlaySlices(Gpt(absl::StrCat(keys, ",seq=", 64 * m), 1, "sgd"), c);
      const Played samples = Play(Gpt(absl::StrCat(keys, ",seq=64"), m, "sgd"), c);
      EXPECT_NEAR(slices.report.step_time.seconds() / samples.report.step_time.seconds(), 1, 0.03);
      EXPECT_NEAR(slices.report.bubble_fraction, samples.report.bubble_fraction, 0.02);
    }
  }
}

// Where ranks are alike, one that stands for all takes the time of each.
TEST(SlicesTime, FoldingChangesNothing) {
  const ir::Function step = Gpt("layers=4,hidden=32,heads=4,seq=24,vocab=48,flash=1", 4);
  for (const int64_t zero : {0, 1, 3}) {
    Configuration c = {.plan = {.dp = 2, .hp = 2, .pp = 2, .microbatches = 4, .zero = zero},
                       .cluster = "dgx-a100:1"};
    const Played folded = PlaySlices(step, c);
    c.fold = false;
    const Played all = PlaySlices(step, c);
    EXPECT_EQ(folded.trace.makespan, all.trace.makespan);
    EXPECT_LT(folded.program.task_count(), all.program.task_count());
  }
}

}  // namespace
}  // namespace slices_test_cc
}  // namespace orrery::lowering
