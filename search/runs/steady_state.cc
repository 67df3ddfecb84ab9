#include "search/runs/steady_state.h"

#include <algorithm>
#include <numeric>

#include "support/check.h"
#include "transforms/stages/dealt_rounds.h"

namespace orrery::search {
namespace steady_state_cc {
namespace {

void Divide(int32_t batches, simulator::Report& step) {
  const auto part = [&](Duration of) { return Duration(of.picoseconds() / batches); };
  step.step_time = part(step.step_time + Duration(batches - 1));
  step.bytes_sent = Bytes(step.bytes_sent.count() / batches);
  step.bytes_reduced = Bytes(step.bytes_reduced.count() / batches);
  step.flops = Flops(step.flops.count() / batches);
  for (simulator::RankReport& rank : step.ranks.rows()) {
    for (const auto time : simulator::kRankTimes) rank.*time = part(rank.*time);
  }
  step.shares.Divide(batches);
}

int32_t Up(int32_t number, int32_t to) { return (number + to - 1) / to; }

// Those under way on all stages.
int32_t UnderWay(const transforms::PipelineShape& shape, const std::vector<int64_t>& replicas) {
  if (replicas.empty()) return shape.ranks;
  return static_cast<int32_t>(std::accumulate(replicas.begin(), replicas.end(), int64_t{0}));
}

// Microbatches between updates of all stages.
int32_t UpdateEvery(const transforms::PipelineSchedule& schedule,
                    const transforms::PipelineShape& shape, const std::vector<int64_t>& replicas) {
  if (schedule.microbatches_an_update == nullptr) return 1;
  if (replicas.empty()) return schedule.microbatches_an_update(shape);
  return static_cast<int32_t>(transforms::DealtUpdateEvery(schedule, replicas, shape.microbatches));
}

}  // namespace
}  // namespace steady_state_cc

int32_t RoundsFor(const transforms::PipelineSchedule& schedule,
                  const transforms::PipelineShape& shape, const std::vector<int64_t>& replicas) {
  if (!schedule.asynchronous) return 1;
  const int32_t rounds =
      1 + steady_state_cc::Up(2 * steady_state_cc::UnderWay(shape, replicas), shape.microbatches);
  const auto round = static_cast<int32_t>(transforms::MicrobatchesInRounds(replicas));
  const int32_t whole = round / std::gcd(round, shape.microbatches);
  return steady_state_cc::Up(rounds, whole) * whole;
}

int32_t RoundsOfAPeriod(const transforms::PipelineSchedule& schedule,
                        const transforms::PipelineShape& shape,
                        const std::vector<int64_t>& replicas) {
  const int32_t all = steady_state_cc::UnderWay(shape, replicas);
  const int32_t every = steady_state_cc::UpdateEvery(schedule, shape, replicas);
  const auto round = static_cast<int32_t>(transforms::MicrobatchesInRounds(replicas));
  const int32_t period = std::lcm(every, steady_state_cc::Up(all, round) * round);
  return period / std::gcd(period, shape.microbatches);
}

simulator::Report Difference(const simulator::Program& program, simulator::Report step,
                             const simulator::Report& shorter, int32_t batches) {
  ORRERY_CHECK(step.ranks.size() == shorter.ranks.size()) << "folded, or not, both";
  step.step_time -= shorter.step_time;
  Duration busiest = step.step_time;
  step.bytes_sent -= shorter.bytes_sent;
  step.bytes_reduced -= shorter.bytes_reduced;
  step.flops = Flops(step.flops.count() - shorter.flops.count());
  for (size_t r = 0; r < step.ranks.rows().size(); ++r) {
    simulator::RankReport& rank = step.ranks.rows()[r];
    const simulator::RankReport& before = shorter.ranks.rows()[r];
    for (const auto time : simulator::kRankTimes) rank.*time -= before.*time;
    busiest = std::max(busiest, step.step_time - rank.idle);
  }
  // Where the pipeline has not quite settled, no rank goes on before it is done all the same.
  for (simulator::RankReport& rank : step.ranks.rows()) {
    rank.idle += busiest - step.step_time;
    rank.finish = std::min(rank.finish, busiest);
  }
  step.step_time = busiest;
  step.shares.Subtract(shorter.shares);
  steady_state_cc::Divide(batches, step);
  simulator::SetRatios(program, step);
  return step;
}

}  // namespace orrery::search
