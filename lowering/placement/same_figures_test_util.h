#ifndef ORRERY_LOWERING_PLACEMENT_SAME_FIGURES_TEST_UTIL_H_
#define ORRERY_LOWERING_PLACEMENT_SAME_FIGURES_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <utility>

#include "cluster/cluster.h"
#include "cost_models/cost_model.h"
#include "lowering/lower.h"
#include "simulator/engine/play.h"
#include "simulator/program/trace.h"
#include "simulator/report/report.h"
#include "transforms/schedules/schedule.h"

// For tests only: of passes over templates that change no figure.

namespace orrery::lowering {

/// A program and what playing it says.
struct PlayedProgram {
  simulator::Program program;
  simulator::Report report;
  simulator::Trace trace = {};
};

/// The program of a step, of several rounds where the schedule never drains.
inline simulator::Program Lowered(const transforms::PipelinedStep& step,
                                  const transforms::PipelineSchedule& schedule,
                                  const cluster::Cluster& cluster, const LoweringOptions& options) {
  const auto cost_model = cost_models::MakeCostModel("roofline").value();
  auto program = Lower({.step = step,
                        .schedule = schedule,
                        .cluster = cluster,
                        .cost_model = *cost_model,
                        .options = options,
                        .rounds = schedule.asynchronous ? 3 : 1});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

/// Likewise, played.
inline PlayedProgram PlayLowered(const transforms::PipelinedStep& step,
                                 const transforms::PipelineSchedule& schedule,
                                 const cluster::Cluster& cluster, const LoweringOptions& options) {
  PlayedProgram played{.program = Lowered(step, schedule, cluster, options), .report = {}};
  auto trace = simulator::Play(played.program, nullptr);
  EXPECT_TRUE(trace.ok()) << trace.status();
  played.report = simulator::Summarize(played.program, *trace);
  played.trace = *std::move(trace);
  return played;
}

/// Expects the same to the picosecond and the byte; peaks of memory of `most_memory` times the
/// others at most, and no less.
inline void ExpectSameFigures(const simulator::Report& fused, const simulator::Report& whole,
                              double most_memory) {
  EXPECT_EQ(fused.step_time, whole.step_time);
  EXPECT_EQ(fused.bytes_sent, whole.bytes_sent);
  EXPECT_EQ(fused.bytes_reduced, whole.bytes_reduced);
  EXPECT_DOUBLE_EQ(fused.flops.count(), whole.flops.count());
  ASSERT_EQ(fused.ranks.size(), whole.ranks.size());
  for (size_t r = 0; r < whole.ranks.rows().size(); ++r) {
    const simulator::RankReport &a = fused.ranks.rows()[r], &b = whole.ranks.rows()[r];
    EXPECT_EQ(a.finish, b.finish);
    EXPECT_EQ(a.busy, b.busy);
    EXPECT_EQ(a.communication, b.communication);
    EXPECT_EQ(a.exposed_communication, b.exposed_communication);
    EXPECT_EQ(a.idle, b.idle);
    EXPECT_GE(a.memory.total, b.memory.total);
    EXPECT_LE(static_cast<double>(a.memory.total.count()),
              most_memory * static_cast<double>(b.memory.total.count()));
  }
}

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_PLACEMENT_SAME_FIGURES_TEST_UTIL_H_
