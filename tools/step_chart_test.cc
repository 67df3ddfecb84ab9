#include "tools/step_chart.h"

#include <gtest/gtest.h>

#include "simulator/program/program_text.h"

namespace orrery::tools {
namespace step_chart_test_cc {
namespace {

TEST(StepChart, HasTheLongestFirst) {
  const simulator::Program program =
      simulator::ParseProgram("program\nrank0 \"a\" members 0 stage 0\nstream0 rank0 compute\n")
          .value();
  simulator::Report report;
  report.step_time = Duration(1'000'000'000'000);
  report.communication.push_back({.kind = "all-reduce dp", .level = "nic", .exposed_s = 0.25});
  report.communication.push_back({.kind = "send", .level = "", .exposed_s = 0});
  simulator::ReportDetails details;
  details.kernels[static_cast<size_t>(simulator::KernelKind::kProduct)] = 0.5;
  details.bubbles.push_back({.warm_up = Duration(150'000'000'000),
                             .steady = {},
                             .cool_down = Duration(100'000'000'000),
                             .imbalance = {}});
  EXPECT_EQ(StepChart(program, report, details, {.is_terminal = true, .columns = 57}),
            R"(where the time of a step goes:
  products           #################### 500 ms, 50.0 %
  all-reduce dp, nic ########## 250 ms, 25.0 %
  bubble, warm-up    ###### 150 ms, 15.0 %
  bubble, cool-down  #### 100 ms, 10.0 %
)");
}

TEST(StepChart, IsEmptyWhereNothingIsKnown) { EXPECT_EQ(StepChart({}, {}, {}, {}), ""); }

}  // namespace
}  // namespace step_chart_test_cc
}  // namespace orrery::tools
