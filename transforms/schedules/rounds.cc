#include "transforms/schedules/rounds.h"

#include <algorithm>

namespace orrery::transforms {
namespace rounds_cc {
namespace {

int32_t Rounds(const PipelineShape& shape) { return std::max(1, shape.microbatches / shape.ranks); }

// Microbatches of the first round: no other one has more.
int32_t FirstRound(const PipelineShape& shape) {
  return (shape.microbatches + Rounds(shape) - 1) / Rounds(shape);
}

template <typename ChunkOf>
std::vector<ChunkStep> InRounds(const PipelineShape& shape, ChunkOf chunk_of) {
  std::vector<ChunkStep> steps;
  steps.reserve(static_cast<size_t>(shape.microbatches) * static_cast<size_t>(shape.chunks));
  const int32_t rounds = Rounds(shape);
  const int32_t larger = shape.microbatches % rounds;
  int32_t begin = 0;
  for (int32_t round = 0; round < rounds; ++round) {
    const int32_t end = begin + shape.microbatches / rounds + (round < larger ? 1 : 0);
    for (int32_t turn = 0; turn < shape.chunks; ++turn) {
      for (int32_t microbatch = begin; microbatch < end; ++microbatch) {
        steps.push_back({.chunk = chunk_of(turn), .microbatch = microbatch});
      }
    }
    begin = end;
  }
  return steps;
}

}  // namespace
}  // namespace rounds_cc

std::vector<ChunkStep> ForwardsInRounds(const PipelineShape& shape) {
  return rounds_cc::InRounds(shape, [](int32_t turn) { return turn; });
}

std::vector<ChunkStep> BackwardsInRounds(const PipelineShape& shape) {
  return rounds_cc::InRounds(shape, [&](int32_t turn) { return shape.chunks - 1 - turn; });
}

int32_t WarmUpInRounds(const PipelineShape& shape, int32_t rank, int32_t steps_a_rank) {
  const int32_t of_last = (shape.chunks - 1) * rounds_cc::FirstRound(shape);
  return std::min(of_last + steps_a_rank * (shape.ranks - 1 - rank),
                  shape.chunks * shape.microbatches);
}

}  // namespace orrery::transforms
