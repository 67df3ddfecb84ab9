#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/cli/run.h"

// A device that computes more slowly while communication runs on it.

namespace orrery::cli {
namespace slow_down_test_cc {
namespace {

using nlohmann::json;

// The report of a step on 8 devices that lose `slowdown` of their compute rate.
json Report(double slowdown, const std::string& flags) {
  Write("c.textproto",
        absl::StrCat("device_kinds { name: \"slowed\" like: \"a100-80gb\" communication_slowdown: ",
                     slowdown,
                     " }\ndevices { kind: \"slowed\" count: 8 }\ntopology { kind: "
                     "\"switch\" port { rate: \"5GB/s\" latency: \"1us\" } }\n"));
  const Finished finished = Execute(
      "simulate --model mlp:layers=8,dim=1024 --batch-size 4096 --cluster c.textproto --dp 4 --pp "
      "2 --micro-batches 4 --json r.json " +
      flags);
  EXPECT_EQ(finished.code, 0) << finished.err;
  return finished.code == 0 ? json::parse(Contents("r.json")) : json();
}

TEST(SlowDown, ComputeThatOverlapsTakesLonger) {
  Clear();
  const double without = Report(0, "")["step_time_s"];
  const double some = Report(0.2, "")["step_time_s"];
  const double more = Report(0.5, "")["step_time_s"];
  EXPECT_GT(some, without);
  EXPECT_GT(more, some);
  EXPECT_LT(more, 2 * without) << "half the speed, and not all of the time";
}

TEST(SlowDown, FoldingChangesNothing) {
  Clear();
  json folded = Report(0.3, ""), unfolded = Report(0.3, "--no-fold");
  EXPECT_LT(folded["simulated_tasks"], unfolded["simulated_tasks"]);
  for (const char* key : {"wall_time_s", "simulated_tasks"}) {
    folded.erase(key);
    unfolded.erase(key);
  }
  EXPECT_EQ(folded, unfolded);
}

TEST(SlowDown, WhatDoesNotOverlapIsAsItWas) {
  Clear();
  EXPECT_EQ(Report(0.5, "--blocking")["step_time_s"], Report(0, "--blocking")["step_time_s"]);
}

}  // namespace
}  // namespace slow_down_test_cc
}  // namespace orrery::cli
