#include "lowering/placement/least_span.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace orrery::lowering {
namespace least_span_test_cc {
namespace {

using simulator::StreamKind;

// A task of so many picoseconds, and those of its template that it waits for.
struct Row {
  StreamKind stream;
  int64_t time;
  std::vector<int32_t> after = {};
};

PricedTemplate Template(const std::vector<Row>& rows) {
  PricedTemplate priced;
  TaskTemplate& of = priced.task_template;
  for (const Row& row : rows) {
    TemplateTask& task = of.tasks.emplace_back();
    task.stream = row.stream;
    task.duration = Duration(row.time);
    task.dependency_begin = static_cast<uint32_t>(of.dependencies.size());
    for (const int32_t on : row.after) of.dependencies.push_back({.index = on});
    of.dependencies.push_back({.external = true, .index = 0});
    task.dependency_end = static_cast<uint32_t>(of.dependencies.size());
  }
  priced.flows.resize(rows.size());
  return priced;
}

int64_t Span(const std::vector<Row>& rows) {
  return LeastSpan(Template(rows), simulator::Program()).picoseconds();
}

TEST(LeastSpan, IsTheLongestWayFromTheFirstKernelToTheLast) {
  EXPECT_EQ(Span({}), 0);
  EXPECT_EQ(Span({{StreamKind::kHorizontal, 5}}), 0);
  EXPECT_EQ(Span({{StreamKind::kCompute, 10}, {StreamKind::kCompute, 7}}), 17);
  // A collective that a kernel waits for, one beside kernels, and one behind them.
  EXPECT_EQ(Span({{StreamKind::kCompute, 10},
                  {StreamKind::kHorizontal, 5, {0}},
                  {StreamKind::kCompute, 7, {1}}}),
            22);
  EXPECT_EQ(Span({{StreamKind::kCompute, 10},
                  {StreamKind::kHorizontal, 5, {0}},
                  {StreamKind::kCompute, 8},
                  {StreamKind::kCompute, 7, {1}}}),
            25);
  EXPECT_EQ(Span({{StreamKind::kCompute, 10}, {StreamKind::kHorizontal, 50, {0}}}), 10);
  // Two collectives of one stream go one after the other.
  EXPECT_EQ(Span({{StreamKind::kCompute, 10},
                  {StreamKind::kHorizontal, 5, {0}},
                  {StreamKind::kHorizontal, 6},
                  {StreamKind::kCompute, 7, {2}}}),
            28);
}

// It may have gone while the rank ran something else.
TEST(LeastSpan, CountsNothingThatWaitsForNoKernel) {
  EXPECT_EQ(Span({{StreamKind::kData, 30},
                  {StreamKind::kCompute, 10},
                  {StreamKind::kData, 40},
                  {StreamKind::kCompute, 7, {0, 2}}}),
            17);
}

TEST(LeastSpan, OfAPhaseIsThatOfAllMicrobatches) {
  const simulator::Program program;
  PhaseTemplates phase{.first = Template({{StreamKind::kCompute, 10}}), .later = {}, .last = {}};
  EXPECT_EQ(LeastSpan(phase, 4, program), Duration(40));
  phase.later = Template({{StreamKind::kCompute, 12}});
  EXPECT_EQ(LeastSpan(phase, 1, program), Duration(10));
  EXPECT_EQ(LeastSpan(phase, 4, program), Duration(10 + 3 * 12));
  phase.last = Template({{StreamKind::kCompute, 11}});
  EXPECT_EQ(LeastSpan(phase, 4, program), Duration(10 + 3 * 11));
}

}  // namespace
}  // namespace least_span_test_cc
}  // namespace orrery::lowering
