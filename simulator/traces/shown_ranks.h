#ifndef ORRERY_SIMULATOR_TRACES_SHOWN_RANKS_H_
#define ORRERY_SIMULATOR_TRACES_SHOWN_RANKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/program/program.h"
#include "simulator/traces/trace_options.h"
#include "support/id_table.h"

namespace orrery::simulator {

/// A rank as a process of the trace.
struct ShownRank {
  int32_t rank = 0;   // global: the number of the process
  RankClassId of;     // the class that it is a member of
  size_t member = 0;  // its place among the members
};

/// The threads of a process that are no streams.
inline constexpr int32_t kStepThread = 1;
inline constexpr int32_t kBubbleThread = 2;

/// Which ranks a trace shows, and the threads that they have: one a stream, by the number of a CUDA
/// stream, compute on 7.
class ShownRanks {
 public:
  /// `ranks`, which must be members of classes; empty: the first of each class.
  ShownRanks(const Program& program, const std::vector<int32_t>& ranks);

  /// All, ascending.
  std::span<const ShownRank> ranks() const { return ranks_; }
  /// Those of a class.
  std::span<const ShownRank> of(RankClassId id) const { return by_class_[id]; }
  /// The thread of a stream, in each process of its rank.
  int32_t thread(StreamId stream) const { return threads_[stream]; }
  /// "stream 7 · compute".
  std::string ThreadName(StreamId stream) const;
  /// The streams of a class that run anything, in their order.
  std::span<const StreamId> streams(RankClassId id) const { return streams_[id]; }

 private:
  void NumberThreads();

  const Program& program_;
  std::vector<ShownRank> ranks_;
  IdTable<RankClassId, std::vector<ShownRank>> by_class_;
  IdTable<RankClassId, std::vector<StreamId>> streams_;
  IdTable<StreamId, int32_t> threads_;
};

/// "rank 3 · dp0 hp1 pp1 · node0/gpu3", and of the first of a class that is shown for all of it how
/// many these are.
std::string ProcessName(const Program& program, const ShownRank& shown,
                        const TraceOptions& options);

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_SHOWN_RANKS_H_
