#ifndef ORRERY_SIMULATOR_JITTER_DISTURBED_PROGRAM_H_
#define ORRERY_SIMULATOR_JITTER_DISTURBED_PROGRAM_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/jitter/disturbances.h"
#include "simulator/jitter/draws.h"
#include "simulator/program/program.h"
#include "simulator/program/trace.h"
#include "support/id_table.h"
#include "support/units.h"

// A program whose kernels take other times in each step. Ranks that are simulated as one are at the
// pace of the slowest of them in that step: each draws by itself, by its global rank, so that a
// class of ranks has the very maximum of what they draw where each is simulated.

namespace orrery::simulator {

/// The member of a class that sets its pace in a step, and by how much longer its kernels take.
struct Pace {
  int32_t member = 0;  // position in RankClass::members
  double factor = 1;   // without what is drawn for each kernel
};

/// What is disturbed of a program, and how. It does not change: any number of threads may ask.
class DisturbedProgram {
 public:
  /// Instead of a position: the pace of a class is that of its slowest member.
  static constexpr int32_t kSlowest = -1;

  /// `undisturbed` is a run of `program`; both live longer.
  DisturbedProgram(const Program& program, const Trace& undisturbed,
                   const Disturbances& disturbances);

  const Program& program() const { return program_; }
  const Trace& undisturbed() const { return undisturbed_; }
  const Disturbances& disturbances() const { return disturbances_; }

  /// Sets the durations of the kernels of `copy`, a copy of the program, to those of step `step`.
  /// `position`: not the slowest member of each class, but the one there, where it has so many.
  void SetTimes(int32_t step, int32_t position, Program& copy) const;

  /// Who sets the pace of each class in a step.
  IdTable<RankClassId, Pace> PacesOf(int32_t step) const;
  /// By how much longer the kernels of a member take in a step; without what each of them draws.
  double FactorOf(RankClassId rank, int32_t member, int32_t step) const;
  /// The sum of the times of the kernels of a class, undisturbed.
  Duration KernelTime(RankClassId rank) const { return kernel_times_[rank]; }

  /// Whether a step takes exactly as long where each rank is simulated by itself: each class has
  /// one rank; or all of it take the same; or times are fixed, and in each step there is a position
  /// at which every class has its slowest member. Then a longest path of what is folded goes
  /// through the ranks of that position, and none is longer.
  bool exact() const { return exact_; }

 private:
  struct Kernel {
    TaskId task;
    Duration duration;
    Time start;  // undisturbed
    double spread_left = 1;
  };
  // Added to the kernel of that number.
  using Added = std::pair<size_t, Duration>;

  bool IsExact() const;
  double CommonFactor(int32_t step) const;
  double OwnFactor(RankClassId rank, int32_t member, int32_t step) const;
  std::vector<Added> PausesOf(RankClassId rank, int32_t member, int32_t step) const;
  std::vector<Added> PausesOfAll(RankClassId rank, int32_t step) const;

  const Program& program_;
  const Trace& undisturbed_;
  const Disturbances disturbances_;
  IdTable<RankClassId, std::vector<Kernel>> kernels_;  // in the order of their ids
  IdTable<RankClassId, Duration> kernel_times_;
  IdTable<RankClassId, std::vector<double>> lasting_;  // factors of members in all steps
  bool exact_ = false;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_DISTURBED_PROGRAM_H_
