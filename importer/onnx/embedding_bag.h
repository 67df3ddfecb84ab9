#ifndef ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_
#define ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_

#include <onnx/onnx_pb.h>

namespace orrery::importer {

/// Puts a Gather and a reduction in the place of each Loop that PyTorch writes for an EmbeddingBag
/// of bags of one size, ids [bags,size]: the rows of all bags at once, instead of bag by bag, as
/// the kernel reads them. Sums, means and maxima. Other Loops
/// stay.
void CollapseEmbeddingBags(onnx::GraphProto& graph);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_
