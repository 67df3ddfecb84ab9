#ifndef ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_
#define ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::importer {

/// What a Loop that PyTorch writes for an EmbeddingBag does, by the names of values: turn i reduces
/// the rows of `table` that elements `starts[i]` to `ends[i]` of `ids` name, each times its element
/// of `weights`.
struct BagLoop {
  std::string table, ids;
  std::string weights;  // empty: none
  std::string starts, ends;
  std::string reduction;  // ReduceSum, ReduceMean or ReduceMax
  bool axes_are_input = false;
};

/// Nothing for another node, of that graph.
std::optional<BagLoop> MatchBagLoop(const onnx::NodeProto& loop, const onnx::GraphProto& graph);

/// Nodes that make the result of the Loop where it has `count` bags of `size` ids each, one behind
/// another.
onnx::GraphProto BagsAtOnce(const onnx::NodeProto& loop, BagLoop bags, int64_t count, int64_t size);

/// Puts a Gather and a reduction in the place of each Loop over bags that are the rows of ids
/// [bags,size], however many: the rows of all bags at once, instead of bag by bag, as the kernel
/// reads them. Sums, also weighted, means and maxima. Other Loops stay.
void CollapseEmbeddingBags(onnx::GraphProto& graph);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_EMBEDDING_BAG_H_
