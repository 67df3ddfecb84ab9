#include "lowering/blocks/compressed_reductions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cost_models/cost_model.h"
#include "ir/text/text.h"
#include "lowering/blocks/buckets.h"
#include "lowering/blocks/template_test_util.h"

namespace orrery::lowering {
namespace compressed_reductions_test_cc {
namespace {

using simulator::StreamKind;
using testing::ElementsAre;

constexpr absl::string_view kUpdate = R"(func @update mesh(dp=4, hp=2) (
  %g: f32[64,32@hp] partial(dp) saved,
  %h: f32[16] partial(dp) saved,
  %n: f32[16] partial(hp) saved
) {
  %a: f32[64,32@hp] = AllReduce(%g) {axes="dp"}
  %b: f32[16] = AllReduce(%h) {axes="dp"}
  %c: f32[16] = AllReduce(%n) {axes="hp"}
  return %a: result, %b: result, %c: result
})";

cost_models::GradientCompression Of(absl::string_view text) {
  return cost_models::GradientCompression::Parse(text).value();
}

class Fixture {
 public:
  Fixture() : update(ir::ParseFunction(kUpdate).value()) {
    device.memory_bandwidth = Bandwidth(int64_t{1'000'000'000});
    Reduce(StreamKind::kData, "dp", 64 * 16 * 4, {kInput});
    Reduce(StreamKind::kData, "dp", 64, {kInput});
    Reduce(StreamKind::kHorizontal, "hp", 64, {kInput});
    AddTask({.label = {},
             .duration = Duration(7),
             .bytes = {},
             .group = {},
             .first_op = 2,
             .last_op = 2},
            {.name = "Adam"}, {0, 1, 2}, task_template, program);
    task_template.memory = {{.task = 0, .bytes = 8}, {.task = 0, .bytes = -8}};
  }

  void Compress(absl::string_view text) {
    const cost_models::GradientCompression compression = Of(text);
    std::vector<cost_models::GradientSize> sizes =
        GradientSizes(compression, update, task_template);
    FormBuckets({}, bucket_size, task_template, program, &sizes);
    CompressReductions({.compression = compression,
                        .mesh = update.mesh(),
                        .cost_model = *model,
                        .device = device,
                        .program = program},
                       sizes, task_template);
  }

  // "data: AllReduce a top-k 1234 ns after input".
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (const TemplateTask& task : task_template.tasks) {
      const simulator::TaskLabel label = program.label(task.label);
      std::string text = absl::StrCat(ToString(task.stream), ": ", label.name);
      if (task.group.empty()) {
        absl::StrAppend(&text, " ", task.duration.picoseconds() / 1000, " ns");
      } else {
        absl::StrAppend(&text, " ", label.communication, " ", task.bytes.count());
        EXPECT_EQ(label.bytes, task.bytes);
      }
      lines.push_back(absl::StrCat(text, After(task_template, task)));
    }
    return lines;
  }

  const ir::Function update;
  TaskTemplate task_template;
  simulator::Program program;
  Bytes bucket_size;
  cluster::Device device;
  const std::unique_ptr<const cost_models::CostModel> model =
      cost_models::MakeCostModel("distir").value();

 private:
  void Reduce(StreamKind stream, const std::string& axis, int64_t bytes,
              const std::vector<int32_t>& after) {
    const auto op = static_cast<int32_t>(task_template.tasks.size());
    const std::string kind = absl::StrCat("all-reduce ", axis);
    ir::AxisList group;
    group.push_back(*update.mesh().Find(axis));
    AddTask({.stream = stream,
             .label = {},
             .duration = {},
             .bytes = Bytes(bytes),
             .dtype = ir::DType::kF32,
             .group = group,
             .first_op = op,
             .last_op = op},
            {.name = absl::StrCat("g", op),
             .kind = simulator::TaskKind::kCollective,
             .bytes = Bytes(bytes),
             .communication = kind},
            after, task_template, program);
    task_template.inputs.resize(1);
  }
};

// What hp adds up, activations that a rank needs whole, stays as it is.
TEST(GradientSizes, AreOfWhatDataParallelRanksAddUp) {
  const Fixture fixture;
  const auto sizes = GradientSizes(Of("power-sgd:4"), fixture.update, fixture.task_template);
  ASSERT_EQ(sizes.size(), 4u);
  EXPECT_EQ(sizes[0].elements, 64 * 16);
  EXPECT_EQ(sizes[0].of_matrices, 64 * 16);
  EXPECT_EQ(sizes[1].elements, 16);
  EXPECT_EQ(sizes[1].of_matrices, 0);
  EXPECT_EQ(sizes[2].elements + sizes[3].elements, 0);
}

// Kernels stand on the stream of the reduction, and what waited for it waits for the last of them.
TEST(CompressReductions, PutsKernelsAroundAGather) {
  Fixture fixture;
  fixture.Compress("top-k:0.125");
  EXPECT_THAT(fixture.Lines(),
              ElementsAre(absl::StrCat("data: g0 top-k ", 5 * 4096 + 128 * 12, " ns after input"),
                          absl::StrCat("data: g0 all-gather dp ", 4 * 128 * 8),
                          absl::StrCat("data: g0 top-k sum ", 4096 + 4 * 128 * 16, " ns"),
                          absl::StrCat("data: g1 top-k ", 5 * 64 + 2 * 12, " ns after input"),
                          absl::StrCat("data: g1 all-gather dp ", 4 * 2 * 8),
                          absl::StrCat("data: g1 top-k sum ", 64 + 4 * 2 * 16, " ns"),
                          "horizontal: g2 all-reduce hp 64 after input",
                          "compute: Adam 0 ns after 2 after 5 after 6"));
  ASSERT_EQ(fixture.task_template.memory.size(), 2u);
  EXPECT_EQ(fixture.task_template.memory[0].task, 0);
  EXPECT_EQ(fixture.task_template.memory[1].task, 2);
}

// A bucket is compressed as one: its matrices by factors, the rest as it is.
TEST(CompressReductions, CompressesBuckets) {
  Fixture fixture;
  fixture.bucket_size = Bytes(1 << 20);
  fixture.Compress("power-sgd:2");
  std::vector<std::string> collectives;
  for (const std::string& line : fixture.Lines()) {
    if (line.find("all-reduce dp") != std::string::npos) {
      collectives.push_back(line.substr(line.find("all-reduce")));
    }
  }
  EXPECT_THAT(collectives, ElementsAre("all-reduce dp 64 after input",
                                       absl::StrCat("all-reduce dp ", 64 * 2 * 4),
                                       absl::StrCat("all-reduce dp ", 16 * 2 * 4)));
}

TEST(KeptByCompression, IsWhatWasLeftOut) {
  const Fixture fixture;
  EXPECT_EQ(KeptByCompression(Of("none"), fixture.update), Bytes(0));
  EXPECT_EQ(KeptByCompression(Of("top-k:0.5"), fixture.update), Bytes(4096 + 64));
  EXPECT_EQ(KeptByCompression(Of("8-bit"), fixture.update), Bytes((4096 + 64) * 5 / 4));
  EXPECT_EQ(KeptByCompression(Of("power-sgd:2"), fixture.update), Bytes(4096 + 16 * 2 * 4));
}

}  // namespace
}  // namespace compressed_reductions_test_cc
}  // namespace orrery::lowering
