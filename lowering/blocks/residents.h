#ifndef ORRERY_LOWERING_BLOCKS_RESIDENTS_H_
#define ORRERY_LOWERING_BLOCKS_RESIDENTS_H_

#include <cstdint>
#include <vector>

#include "cluster/memory_overhead.h"
#include "ir/mesh.h"
#include "lowering/blocks/stack_memory.h"
#include "simulator/program/program.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// A rank of one stage, and how many versions of its weights it keeps.
struct ResidentsOf {
  const transforms::PipelinedStep& step;
  int32_t stage = 0;
  int32_t weight_versions = 1;
  int64_t microbatches_under_way = 1;  // the most between their forward and backward here
  int64_t microbatches = 1;            // whose data it has
  int64_t microbatch_size = 0;         // samples of one, of all data-parallel ranks
  simulator::RankClassId rank;
  StackMemory stack_memory = {};
};

/// Adds to `program` what the rank holds during the whole step, in bytes of its own shards:
/// parameters, optimizer state, its share of the whole batch, and the software's buffers of what it
/// sends. `seen`, by origin, is of all
/// stages of the rank: what they share is there once.
void AddResidents(const ResidentsOf& of, std::vector<char>& seen, simulator::Program& program);

/// Adds what a rank of a mesh holds beside the step: a communicator for each axis along which it
/// has neighbours, as `buffers`; the rest of the overhead, but fragmentation, as `other`.
void AddOverhead(const cluster::MemoryOverhead& overhead, const ir::Mesh& mesh,
                 simulator::RankClassId rank, simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_RESIDENTS_H_
