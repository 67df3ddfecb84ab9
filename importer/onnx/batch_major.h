#ifndef ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_
#define ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_

#include <onnx/onnx_pb.h>

namespace orrery::importer {

/// Gives each graph input the batch as dimension 0 that has it, by the name of that dynamic
/// dimension, in another one: as recurrent nets and nn.Transformer have it behind time. The graph
/// then begins by moving it back.
void PutBatchFirst(onnx::GraphProto& graph);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_BATCH_MAJOR_H_
