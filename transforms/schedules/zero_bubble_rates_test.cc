#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/paths_test_util.h"
#include "transforms/schedules/orders.h"
#include "transforms/schedules/schedule.h"

// Bubble rates that Qi et al. (Zero Bubble Pipeline Parallelism, ICLR 2024) computed from measured
// durations (table 6): table 5. Only the rows of 1F1B that are marked for calibration are here.

namespace orrery::transforms {
namespace zero_bubble_rates_test_cc {
namespace {

struct Row {
  std::string id;
  PipelineShape shape;
  double bubble_rate = 0;  // as printed, with four digits
};

std::vector<Row> Rows() {
  std::ifstream file(SourceDir() + "/tests/data/validation/06a_zero_bubble.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<Row> rows;
  for (const auto& row : json["rows"]) {
    const auto& profile = row["profile_ms"];
    const auto microseconds = [&](const char* key) {
      return std::llround(profile[key].get<double>() * 1e3);
    };
    rows.push_back({.id = row["id"],
                    .shape = {.ranks = row["par"]["pp"],
                              .microbatches = row["batch"]["num_microbatches"],
                              .durations = {.forward = microseconds("T_F"),
                                            .input_gradient = microseconds("T_B"),
                                            .weight_gradient = microseconds("T_W"),
                                            .send = microseconds("T_comm")}},
                    .bubble_rate = row["paper_bubble_rate"]});
  }
  return rows;
}

// The longest that a stage takes from its first step to its last is the cost; the rate is what of
// it is not work.
double BubbleRate(const std::string& schedule_name, const PipelineShape& shape) {
  const PipelineSchedule& schedule = *FindSchedule(schedule_name).value();
  const Timing timing =
      TimeOrders(schedule.OrdersOf(shape), schedule.placement, shape, shape.durations);
  const StepDurations& d = shape.durations;
  const auto work =
      static_cast<double>(shape.microbatches * (d.forward + d.input_gradient + d.weight_gradient));
  const auto idle = static_cast<double>(*std::ranges::max_element(timing.idle_inside));
  return idle / (idle + work);
}

TEST(ZeroBubbleRates, Of1f1bAreThoseOfTable5) {
  const std::vector<Row> rows = Rows();
  ASSERT_EQ(rows.size(), 4);
  for (const Row& row : rows) {
    EXPECT_NEAR(BubbleRate("1f1b", row.shape), row.bubble_rate, 0.5e-4) << row.id;
  }
}

// Table 5 has them in this order for every model: H1 takes the memory of 1F1B, H2 twice that.
TEST(ZeroBubbleRates, FallFrom1f1bToH1ToH2) {
  const std::vector<Row> rows = Rows();
  ASSERT_FALSE(rows.empty());
  for (const Row& row : rows) {
    const double one_f_one_b = BubbleRate("1f1b", row.shape), h1 = BubbleRate("zb-h1", row.shape),
                 h2 = BubbleRate("zb-h2", row.shape), automatic = BubbleRate("zb-1p", row.shape);
    EXPECT_LT(h1, 0.75 * one_f_one_b) << row.id;
    EXPECT_LE(automatic, h1) << row.id;
    EXPECT_LT(h2, 0.45 * one_f_one_b) << row.id;
  }
}

}  // namespace
}  // namespace zero_bubble_rates_test_cc
}  // namespace orrery::transforms
