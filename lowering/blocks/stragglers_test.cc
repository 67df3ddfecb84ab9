#include "lowering/blocks/stragglers.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::lowering {
namespace stragglers_test_cc {
namespace {

std::vector<TemplateTask> Tasks() {
  std::vector<TemplateTask> tasks(2);
  tasks[0].duration = Duration(1'000'000);
  tasks[1].duration = Duration(1'000'000);
  tasks[1].stream = simulator::StreamKind::kHost;
  return tasks;
}

double Longer(const ir::Mesh& mesh, double straggling) {
  std::vector<TemplateTask> tasks = Tasks();
  WaitForTheSlowest(mesh, straggling, tasks);
  EXPECT_EQ(tasks[1].duration, Tasks()[1].duration) << "copies are not kernels";
  return static_cast<double>(tasks[0].duration.picoseconds()) / 1e6;
}

TEST(WaitForTheSlowest, GrowsWithTheRanksThatWait) {
  EXPECT_NEAR(Longer(ir::Mesh({{.name = "pp", .size = 8}, {.name = "dp", .size = 8}}), 0.01), 1.03,
              1e-6);
  EXPECT_NEAR(Longer(ir::Mesh({{.name = "dp", .size = 8}, {.name = "cp", .size = 2}}), 0.01), 1.04,
              1e-6);
  EXPECT_EQ(Longer(ir::Mesh({{.name = "hp", .size = 8}, {.name = "dp", .size = 1}}), 0.01), 1);
  EXPECT_EQ(Longer(ir::Mesh({{.name = "dp", .size = 8}}), 0), 1);
}

}  // namespace
}  // namespace stragglers_test_cc
}  // namespace orrery::lowering
