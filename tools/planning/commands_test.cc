#include "tools/planning/commands.h"

#include <gtest/gtest.h>

#include <set>

#include "transforms/plan/plan_text.h"

namespace orrery::tools {
namespace commands_test_cc {
namespace {

search::ParallelPlan Plan(const std::string& text) { return transforms::ParsePlan(text).value(); }

AskedCommand Asked() {
  AskedCommand asked = {.program = "build/bin/grid_search"};
  asked.model.model = "mlp:layers=4,dim=64";
  asked.model.batch_size = 64;
  asked.model.cluster = "dgx-h100:1,used=4";
  asked.given = {{"model", "mlp:layers=4,dim=64"},
                 {"batch-size", "32,64"},
                 {"gpus", "4..8"},
                 {"memory-limit", "2 GB"},
                 {"no-fold", ""},
                 {"stack", "nemo"},
                 {"dtype", "bf16"},
                 {"top", "3"},
                 {"csv", "a.csv"}};
  return asked;
}

TEST(SimulateCommand, SaysAllThatChangesWhatIsPlayed) {
  EXPECT_EQ(SimulateCommand(Asked(), Plan("--dp 4 --micro-batches 2 --dtype bf16")),
            "build/bin/simulate --model mlp:layers=4,dim=64 --batch-size 64 --cluster "
            "dgx-h100:1,used=4 --memory-limit '2 GB' --no-fold --stack nemo --dp 4 --hp 1 --pp 1 "
            "--micro-batches 2 --schedule 1f1b --dtype bf16");
  AskedCommand installed = Asked();
  installed.program = "orrery-grid-search";
  EXPECT_EQ(SimulateCommand(installed, Plan("--dp 4")).substr(0, 16), "orrery-simulate ");
  EXPECT_EQ(CompareCommand(installed, Plan("--dp 4"), Plan("--hp 4")).substr(0, 19),
            "orrery-grid-search ");
}

TEST(CompareCommand, ListsWhatDiffers) {
  EXPECT_EQ(CompareCommand(Asked(), Plan("--dp 4 --micro-batches 2 --zero 3"),
                           Plan("--dp 2 --hp 2 --micro-batches 2 --zero 3")),
            "build/bin/grid_search --model mlp:layers=4,dim=64 --batch-size 64 --cluster "
            "dgx-h100:1,used=4 --memory-limit '2 GB' --no-fold --stack nemo --dp 4,2 --hp 1,2 "
            "--pp 1 --micro-batches 2 --schedule 1f1b --zero 3 --no-prune");
}

// What no list can say is played by itself.
TEST(CompareCommand, PlaysTheSecondWhereNoListSaysIt) {
  const auto second = Plan("--pp 2 --micro-batches 2 --layers-per-stage 1,3");
  EXPECT_EQ(CompareCommand(Asked(), Plan("--pp 2 --micro-batches 2"), second),
            SimulateCommand(Asked(), second));
}

}  // namespace
}  // namespace commands_test_cc
}  // namespace orrery::tools
