#include "lowering/blocks/pipelined_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lowering/blocks/template_test_util.h"

namespace orrery::lowering {
namespace pipelined_products_test_cc {
namespace {

using cost_models::CollectiveKind;
using simulator::StreamKind;
using testing::ElementsAre;

// A template of named tasks over four ranks of hp. Dependencies go to tasks before, by number, or
// to an input.
class TestTemplate {
 public:
  TestTemplate& Kernel(const std::string& name, const std::vector<int32_t>& after = {},
                       bool product = false) {
    TemplateTask task;
    task.duration = Duration(100);
    return Add(task, name, after, product);
  }
  TestTemplate& Product(const std::string& name, const std::vector<int32_t>& after = {}) {
    return Kernel(name, after, true);
  }
  TestTemplate& Collective(CollectiveKind kind, const std::string& name,
                           const std::vector<int32_t>& after,
                           StreamKind stream = StreamKind::kHorizontal) {
    TemplateTask task;
    task.stream = stream;
    task.collective = kind;
    task.bytes = Bytes(64);
    task.group = ir::AxisList(0);
    return Add(task, name, after, false);
  }
  TestTemplate& Gather(const std::string& name, const std::vector<int32_t>& after) {
    return Collective(CollectiveKind::kAllGather, name, after);
  }
  TestTemplate& Scatter(const std::string& name, const std::vector<int32_t>& after) {
    return Collective(CollectiveKind::kReduceScatter, name, after);
  }

  TaskTemplate& task_template() { return template_; }

  // Pipelined, one line a task: its name, duration and flops, and what it waits for.
  std::vector<std::string> Pipelined() {
    PipelineProducts(products_, ir::Mesh({{.name = "hp", .size = 4}}), template_, program_);
    std::vector<std::string> lines;
    for (const TemplateTask& task : template_.tasks) {
      const simulator::TaskLabel label = program_.label(task.label);
      std::string line(label.name);
      if (task.group.empty()) {
        absl::StrAppend(&line, " ", task.duration.picoseconds(), "ps ", label.flops.count(), "F ",
                        label.bytes.count(), "B");
      }
      lines.push_back(line + After(template_, task));
    }
    return lines;
  }

 private:
  TestTemplate& Add(TemplateTask task, const std::string& name, const std::vector<int32_t>& after,
                    bool product) {
    AddTask(task, {.name = name, .flops = Flops(8), .bytes = Bytes(10)}, after, template_,
            program_);
    products_.push_back(product);
    return *this;
  }

  TaskTemplate template_;
  simulator::Program program_;
  std::vector<char> products_;
};

// A rank begins with the part that it has.
TEST(PipelineProducts, BeginsBeforeWhatItReadsIsGathered) {
  TestTemplate t;
  t.Kernel("norm").Gather("gather", {0}).Product("up", {1}).Kernel("act");
  EXPECT_THAT(t.Pipelined(),
              ElementsAre("norm 100ps 8F 10B", "gather after 0", "up 75ps 6F 7B after 0",
                          "up 25ps 2F 3B after 1", "act 100ps 8F 10B"));
}

TEST(PipelineProducts, WaitsAsWhatItReadsDoes) {
  TestTemplate t;
  t.Gather("gather", {kInput}).Product("up", {0, kInput});
  EXPECT_THAT(t.Pipelined(),
              ElementsAre("gather after input", "up 75ps 6F 7B after input after input",
                          "up 25ps 2F 3B after 0"));
}

// What is kept is made last.
TEST(PipelineProducts, ScattersBeforeAllIsMade) {
  TestTemplate t;
  t.Product("down").Scatter("scatter", {0}).Kernel("residual", {1}).Kernel("norm", {0});
  EXPECT_THAT(t.Pipelined(),
              ElementsAre("down 25ps 2F 2B", "down 75ps 6F 8B", "scatter after 0",
                          "residual 100ps 8F 10B after 2", "norm 100ps 8F 10B after 1"));
}

// It may end before the product does, for which only kernels wait of themselves.
TEST(PipelineProducts, ScattersAfterAllWhereSomethingElseWaits) {
  TestTemplate sent;
  sent.Product("down").Scatter("scatter", {0}).Kernel("residual", {1});
  TemplateSend& send = sent.task_template().sends.emplace_back();
  send.made_by.index = 1;
  send.has_maker = true;
  EXPECT_THAT(sent.Pipelined(),
              ElementsAre("down 100ps 8F 10B", "scatter after 0", "residual 100ps 8F 10B after 1"));
  TestTemplate returned;
  returned.Product("down").Scatter("scatter", {0}).Kernel("residual", {1});
  returned.task_template().outputs.emplace_back().task = 1;
  EXPECT_THAT(returned.Pipelined(), testing::SizeIs(3));
}

TEST(PipelineProducts, LeavesOtherCollectives) {
  TestTemplate t;
  t.Product("up")
      .Collective(CollectiveKind::kAllReduce, "sum", {0})
      .Product("down", {1})
      .Collective(CollectiveKind::kReduceScatter, "gradient", {2}, StreamKind::kData)
      .Kernel("update", {3})
      .Gather("gather", {4})
      .Kernel("norm", {5});
  EXPECT_THAT(t.Pipelined(), testing::SizeIs(7));
}

// Memory is taken by the first part and given back by the last.
TEST(PipelineProducts, KeepsMemoryInOrder) {
  TestTemplate t;
  t.Product("down").Scatter("scatter", {0}).Kernel("residual", {1});
  TaskTemplate& made = t.task_template();
  made.memory = {{.task = 0, .bytes = 5},
                 {.task = 0, .bytes = -3},
                 {.task = 0, .bytes = 2},
                 {.task = 1, .bytes = -2}};
  made.releases = {0};
  t.Pipelined();
  std::vector<std::pair<int32_t, int64_t>> events;
  for (const TemplateMemory& memory : made.memory) events.push_back({memory.task, memory.bytes});
  EXPECT_THAT(events,
              ElementsAre(std::pair(0, 5), std::pair(0, 2), std::pair(1, -3), std::pair(2, -2)));
  EXPECT_THAT(made.releases, ElementsAre(1));
}

}  // namespace
}  // namespace pipelined_products_test_cc
}  // namespace orrery::lowering
