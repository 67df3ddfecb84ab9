#include "simulator/jitter/disturbed_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/engine/play.h"

namespace orrery::simulator {
namespace disturbed_program_cc {
namespace {

// Rounded once, up.
Duration Scaled(Duration duration, double factor) {
  if (factor == 1) return duration;
  const double longer = std::ceil(static_cast<double>(duration.picoseconds()) * factor);
  const auto longest = static_cast<double>(kLongestDuration.picoseconds());
  return longer < longest ? Duration(static_cast<int64_t>(longer)) : kLongestDuration;
}

bool IsKernel(const Program& program, TaskId task) {
  const std::span<const StreamId> streams = program.streams_of(task);
  return streams.size() == 1 && program.stream(streams[0]).kind == StreamKind::kCompute &&
         program.label(program.label_of(task)).kind == TaskKind::kCompute &&
         !program.flow_of(task).valid() && program.duration(task) > Duration(0);
}

}  // namespace
}  // namespace disturbed_program_cc

DisturbedProgram::DisturbedProgram(const Program& program, const Trace& undisturbed,
                                   const Disturbances& disturbances)
    : program_(program),
      undisturbed_(undisturbed),
      disturbances_(disturbances),
      kernels_(program.rank_count()),
      kernel_times_(program.rank_count()) {
  for (int32_t t = 0; t < program.task_count(); ++t) {
    const TaskId task(t);
    if (!disturbed_program_cc::IsKernel(program, task)) continue;
    const RankClassId rank = program.stream(program.streams_of(task)[0]).rank;
    kernels_[rank].push_back({task, program.duration(task), undisturbed.start_of(task),
                              program.label(program.label_of(task)).spread_left});
    kernel_times_[rank] = SaturatedSum(kernel_times_[rank], program.duration(task));
  }
  std::map<int32_t, double> slow;
  for (const SlowRank& each : disturbances_.slow) slow[each.rank] = each.factor;
  for (int32_t r = 0; r < program.rank_count(); ++r) {
    std::vector<double> factors;
    for (const int32_t member : program.rank(RankClassId(r)).members) {
      double factor = 1;
      if (const auto found = slow.find(member); found != slow.end()) factor = found->second;
      if (disturbances_.device.has_value()) {
        const Draws draws(disturbances_.seed, DrawFor::kDevice, -1, member);
        factor *= disturbances_.device->Factor(draws.Uniform());
      }
      factors.push_back(factor);
    }
    lasting_.push_back(std::move(factors));
  }
  exact_ = IsExact();
}

// Of each class the positions whose members are the slowest: what lasts is the same in all steps,
// and what is drawn anew in each falls on one position for sure only where there is one class.
bool DisturbedProgram::IsExact() const {
  bool alone = true, alike = true;
  for (int32_t r = 0; r < program_.rank_count(); ++r) {
    alone = alone && program_.rank(RankClassId(r)).members.size() == 1;
    alike = alike && program_.rank(RankClassId(r)).alike;
  }
  if (alone) return true;
  if (!alike) return false;
  const bool own_pauses = disturbances_.pauses.has_value() && !disturbances_.pauses->together;
  if (!disturbances_.of_ranks() && disturbances_.slow.empty() && !own_pauses) return true;
  if (NeedsEvents(program_) || disturbances_.kernel.has_value() || own_pauses) return false;
  if (program_.rank_count() == 1) return true;
  if (disturbances_.rank.has_value()) return false;
  const std::vector<double>& first = lasting_[RankClassId(0)];
  for (size_t position = 0; position < first.size(); ++position) {
    bool slowest = true;
    for (int32_t r = 0; r < program_.rank_count() && slowest; ++r) {
      const std::vector<double>& factors = lasting_[RankClassId(r)];
      slowest =
          factors.size() == first.size() && factors[position] == *std::ranges::max_element(factors);
    }
    if (slowest) return true;
  }
  return false;
}

double DisturbedProgram::CommonFactor(int32_t step) const {
  if (!disturbances_.step.has_value()) return 1;
  return disturbances_.step->Factor(Draws(disturbances_.seed, DrawFor::kStep, step, -1).Uniform());
}

double DisturbedProgram::OwnFactor(RankClassId rank, int32_t member, int32_t step) const {
  double factor = lasting_[rank][static_cast<size_t>(member)];
  if (disturbances_.rank.has_value()) {
    const int32_t global = program_.rank(rank).members[static_cast<size_t>(member)];
    factor *= disturbances_.rank->Factor(
        Draws(disturbances_.seed, DrawFor::kRank, step, global).Uniform());
  }
  return factor;
}

double DisturbedProgram::FactorOf(RankClassId rank, int32_t member, int32_t step) const {
  return OwnFactor(rank, member, step) * CommonFactor(step);
}

IdTable<RankClassId, Pace> DisturbedProgram::PacesOf(int32_t step) const {
  const double common = CommonFactor(step);
  IdTable<RankClassId, Pace> paces;
  for (int32_t r = 0; r < program_.rank_count(); ++r) {
    const RankClassId rank(r);
    Pace pace{.member = 0, .factor = OwnFactor(rank, 0, step)};
    const auto members = static_cast<int32_t>(program_.rank(rank).members.size());
    for (int32_t m = 1; m < members; ++m) {
      const double factor = OwnFactor(rank, m, step);
      if (factor > pace.factor) pace = {.member = m, .factor = factor};
    }
    pace.factor *= common;
    paces.push_back(pace);
  }
  return paces;
}

// Pauses come by the clock of steps as they should be, from the beginning of the first. One that
// is due while a kernel runs comes before the next.
std::vector<DisturbedProgram::Added> DisturbedProgram::PausesOf(RankClassId rank, int32_t member,
                                                                int32_t step) const {
  std::vector<Added> added;
  const std::vector<Kernel>& kernels = kernels_[rank];
  if (kernels.empty()) return added;
  const Pauses& pauses = *disturbances_.pauses;
  const auto every = static_cast<unsigned __int128>(pauses.every.picoseconds());
  const int32_t who =
      pauses.together ? -1 : program_.rank(rank).members[static_cast<size_t>(member)];
  const double draw = Draws(disturbances_.seed, DrawFor::kPause, -1, who).Uniform();
  const auto phase =
      static_cast<unsigned __int128>(draw * static_cast<double>(pauses.every.picoseconds()));
  const auto length = static_cast<unsigned __int128>(undisturbed_.makespan.picoseconds());
  const auto begun = static_cast<unsigned __int128>(step) * length % every;
  for (auto at = (phase + every - begun) % every; at < length; at += every) {
    const Time due(static_cast<int64_t>(at));
    auto kernel = std::ranges::lower_bound(kernels, due, {}, &Kernel::start);
    if (kernel == kernels.end()) --kernel;
    const auto number = static_cast<size_t>(kernel - kernels.begin());
    if (!added.empty() && added.back().first == number) {
      added.back().second = SaturatedSum(added.back().second, pauses.length);
    } else {
      added.push_back({number, pauses.length});
    }
  }
  return added;
}

// Of members that are simulated as one: those that pause before the same kernel do it at once, and
// all others wait for each.
std::vector<DisturbedProgram::Added> DisturbedProgram::PausesOfAll(RankClassId rank,
                                                                   int32_t step) const {
  const size_t members = disturbances_.pauses->together ? 1 : program_.rank(rank).members.size();
  std::map<size_t, Duration> longest;
  for (size_t m = 0; m < members; ++m) {
    for (const auto& [number, length] : PausesOf(rank, static_cast<int32_t>(m), step)) {
      longest[number] = std::max(longest[number], length);
    }
  }
  return {longest.begin(), longest.end()};
}

// What a run of kernels draws is the sum of what each of them does: with their mean, and as much
// less spread as labels say. Of normal draws that is its distribution, too.
void DisturbedProgram::SetTimes(int32_t step, int32_t position, Program& copy) const {
  const double mean = disturbances_.kernel.has_value()
                          ? disturbances_.kernel->of->mean(disturbances_.kernel->spread)
                          : 1;
  const IdTable<RankClassId, Pace> paces = PacesOf(step);
  for (int32_t r = 0; r < program_.rank_count(); ++r) {
    const RankClassId rank(r);
    const std::vector<int32_t>& members = program_.rank(rank).members;
    const bool of_all = position == kSlowest || members.size() == 1;
    const int32_t member = members.size() == 1 ? 0 : of_all ? paces[rank].member : position;
    const double factor = of_all ? paces[rank].factor : FactorOf(rank, member, step);
    const Draws draws(disturbances_.seed, DrawFor::kKernel, step,
                      members[of_all ? 0 : static_cast<size_t>(member)]);
    const int64_t drawing = of_all ? std::ssize(members) : 1;
    const std::vector<Kernel>& kernels = kernels_[rank];
    for (size_t k = 0; k < kernels.size(); ++k) {
      double longer = factor;
      if (disturbances_.kernel.has_value()) {
        const double uniform = draws.Uniform(static_cast<int64_t>(k));
        const double drawn = disturbances_.kernel->Factor(ExceededByLargest(uniform, drawing));
        longer *= mean + kernels[k].spread_left * (drawn - mean);
      }
      copy.SetDuration(kernels[k].task, disturbed_program_cc::Scaled(kernels[k].duration, longer));
    }
    if (!disturbances_.pauses.has_value()) continue;
    for (const auto& [number, length] :
         of_all ? PausesOfAll(rank, step) : PausesOf(rank, member, step)) {
      const TaskId task = kernels[number].task;
      copy.SetDuration(task, SaturatedSum(copy.duration(task), length));
    }
  }
}

}  // namespace orrery::simulator
