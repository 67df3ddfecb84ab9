#ifndef ORRERY_LOWERING_BLOCKS_COMPRESSED_REDUCTIONS_H_
#define ORRERY_LOWERING_BLOCKS_COMPRESSED_REDUCTIONS_H_

#include <vector>

#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "cost_models/gradient_compression.h"
#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"

// Gradients that data-parallel ranks compress before they add them up
// (cost_models/gradient_compression.h). The kernels that do it stand on the stream of the
// communicator, around its collectives, as hooks of PyTorch's reducer run beside backward: what
// they take of the device's time kernels of backward do not miss.

namespace orrery::lowering {

/// By task of an update: what it adds up of gradients, none where it is no all-reduce along axes of
/// data alone (dp, ep, cp) of numbers with fractions. Before tasks are merged.
std::vector<cost_models::GradientSize> GradientSizes(
    const cost_models::GradientCompression& compression, const ir::Function& update,
    const TaskTemplate& task_template);

/// What prices kernels of compression, and where their labels go.
struct CompressionContext {
  const cost_models::GradientCompression& compression;
  const ir::Mesh& mesh;
  const cost_models::CostModel& cost_model;
  const cluster::Device& device;
  simulator::Program& program;
};

/// Puts the stages of compression in the place of each task with a size. `sizes` is by task, after
/// they have been merged.
void CompressReductions(const CompressionContext& context,
                        const std::vector<cost_models::GradientSize>& sizes,
                        TaskTemplate& task_template);

/// What a rank keeps of that from step to step.
Bytes KeptByCompression(const cost_models::GradientCompression& compression,
                        const ir::Function& update);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_COMPRESSED_REDUCTIONS_H_
