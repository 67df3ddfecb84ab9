#ifndef ORRERY_SEARCH_JOURNAL_JOURNAL_TEST_UTIL_H_
#define ORRERY_SEARCH_JOURNAL_JOURNAL_TEST_UTIL_H_

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "search/journal/result_record.h"
#include "transforms/plan/axis.h"

// Results that nobody played, for tests of what becomes of them.

namespace orrery::search {

inline std::vector<ParallelPlan> FewPlans(int64_t count) {
  std::vector<ParallelPlan> plans(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) plans[static_cast<size_t>(i)].dp = i + 1;
  return plans;
}

inline Result RandomResult(std::mt19937& random, const ParallelPlan& plan) {
  const auto bits = [&] { return (uint64_t{random()} << 32) | random(); };
  const auto number = [&] { return std::bit_cast<double>(bits() & ~(uint64_t{1} << 62)); };
  Result result;
  result.plan = plan;
  if (random() % 3 == 0) {
    result.infeasible = {.reason = static_cast<InfeasibleReason>(random() % 4),
                         .detail = std::string(random() % 9, static_cast<char>(random()))};
    return result;
  }
  result.ran = true;
  result.step_time = Duration(static_cast<int64_t>(bits() >> 1));
  result.figures = {number(), number(), number(), number(), number()};
  result.communication_overhead = number();
  result.exposed_communication_s = number();
  result.bubble_fraction = number();
  result.peak_memory = Bytes(static_cast<int64_t>(bits() >> 1));
  result.simulated_tasks = static_cast<int64_t>(random());
  result.fits = random() % 2 == 0;
  return result;
}

/// Of one of the plans, and sometimes of others that were tried in its place.
inline CandidateResults RandomResults(uint32_t seed, const std::vector<ParallelPlan>& plans) {
  std::mt19937 random(seed);
  CandidateResults done;
  done.candidate = random() % plans.size();
  const ParallelPlan& plan = plans[done.candidate];
  done.results.push_back(RandomResult(random, plan));
  for (auto more = random() % 3; more > 0; --more) {
    ParallelPlan other = plan;
    other.zero = static_cast<int>(more);
    done.results.push_back(RandomResult(random, other));
  }
  return done;
}

inline bool AreSame(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || (a != a && b != b);
}

inline bool AreSame(const Result& a, const Result& b) {
  if (a.infeasible.has_value() != b.infeasible.has_value()) return false;
  if (a.infeasible.has_value() && (a.infeasible->reason != b.infeasible->reason ||
                                   a.infeasible->detail != b.infeasible->detail)) {
    return false;
  }
  return a.plan == b.plan && a.ran == b.ran && a.step_time == b.step_time &&
         AreSame(a.figures.throughput_samples_per_s, b.figures.throughput_samples_per_s) &&
         AreSame(a.figures.tokens_per_s, b.figures.tokens_per_s) &&
         AreSame(a.figures.mfu, b.figures.mfu) && AreSame(a.figures.hfu, b.figures.hfu) &&
         AreSame(a.figures.wall_time_s, b.figures.wall_time_s) &&
         AreSame(a.communication_overhead, b.communication_overhead) &&
         AreSame(a.exposed_communication_s, b.exposed_communication_s) &&
         AreSame(a.bubble_fraction, b.bubble_fraction) && a.peak_memory == b.peak_memory &&
         a.simulated_tasks == b.simulated_tasks && a.fits == b.fits && a.gathered == b.gathered &&
         a.left == b.left && a.pruned == b.pruned;
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_JOURNAL_JOURNAL_TEST_UTIL_H_
