#ifndef ORRERY_SIMULATOR_JITTER_REPLICA_TEST_UTIL_H_
#define ORRERY_SIMULATOR_JITTER_REPLICA_TEST_UTIL_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "simulator/program/program.h"

// For tests only.

namespace orrery::simulator {

/// What replicas of a pipeline do: on each of `stages` ranks of a replica kernels, sends in
/// between, and after the last one an all-reduce of all replicas of the stage and one more kernel.
struct Replicas {
  int32_t replicas = 1, stages = 1, kernels = 4;
  bool folded = false;  // replicas of a stage are one class
};

inline Program ReplicaProgram(const Replicas& of) {
  Program program;
  const int32_t copies = of.folded ? 1 : of.replicas;
  std::vector<std::vector<StreamId>> compute(static_cast<size_t>(of.stages)),
      reduce = compute, next = compute, previous = compute;
  for (int32_t stage = 0; stage < of.stages; ++stage) {
    for (int32_t copy = 0; copy < copies; ++copy) {
      std::vector<int32_t> members(static_cast<size_t>(of.folded ? of.replicas : 1));
      std::iota(members.begin(), members.end(), stage * of.replicas + copy);
      const RankClassId rank = program.AddRank({.members = members, .stage = stage});
      const auto s = static_cast<size_t>(stage);
      compute[s].push_back(program.AddStream(rank, StreamKind::kCompute));
      reduce[s].push_back(program.AddStream(rank, StreamKind::kData));
      next[s].push_back(program.AddStream(rank, StreamKind::kSendNext));
      previous[s].push_back(program.AddStream(rank, StreamKind::kReceivePrevious));
    }
  }
  const LabelId kernel = program.AddLabel({.name = "MatMul"});
  const LabelId send = program.AddLabel({.name = "Send", .kind = TaskKind::kSend});
  const LabelId all = program.AddLabel({.name = "AllReduce", .kind = TaskKind::kCollective});
  for (int32_t round = 0; round < 3; ++round) {
    std::vector<TaskId> received(static_cast<size_t>(copies));
    for (size_t s = 0; s < compute.size(); ++s) {
      std::vector<TaskId> done;
      for (size_t c = 0; c < compute[s].size(); ++c) {
        TaskId task = received[c];
        for (int32_t k = 0; k < of.kernels; ++k) {
          const std::vector<TaskId> after =
              task.valid() ? std::vector{task} : std::vector<TaskId>{};
          task = program.AddTask(
              compute[s][c], {.duration = Duration(1'000'000 + 1000 * k), .label = kernel}, after);
        }
        done.push_back(task);
        if (s + 1 == compute.size()) continue;
        const std::vector<StreamId> ends = {next[s][c], previous[s + 1][c]};
        received[c] = program.AddRendezvous(ends, {.duration = Duration(50'000), .label = send},
                                            std::vector{task});
      }
      if (round < 2) continue;
      const TaskId reduced =
          program.AddRendezvous(reduce[s], {.duration = Duration(70'000), .label = all}, done);
      for (const StreamId stream : compute[s]) {
        program.AddTask(stream, {.duration = Duration(400'000), .label = kernel},
                        std::vector{reduced});
      }
    }
  }
  return program;
}

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_JITTER_REPLICA_TEST_UTIL_H_
