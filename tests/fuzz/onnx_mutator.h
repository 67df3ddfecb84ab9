#ifndef ORRERY_TESTS_FUZZ_ONNX_MUTATOR_H_
#define ORRERY_TESTS_FUZZ_ONNX_MUTATOR_H_

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace orrery::fuzz {

/// Damages ONNX models, each seed in its own way: bytes of the file, or what they say (nodes,
/// names, attributes, sizes, element types, versions, small constants).
class OnnxMutator {
 public:
  explicit OnnxMutator(uint64_t seed) : random_(seed) {}

  /// One to four changes of the model, or of its bytes.
  std::string Mutate(const std::string& bytes);

 private:
  size_t Below(size_t limit) { return static_cast<size_t>(random_() % limit); }
  bool OneIn(size_t n) { return Below(n) == 0; }
  /// Small, negative, at the ends of ranges, or so large that nothing of that size can be made.
  int64_t AnyNumber();
  /// A name that the graph has, or one that it has not.
  std::string AnyName(const onnx::GraphProto& graph);

  void MutateBytes(std::string& bytes);
  void MutateModel(onnx::ModelProto& model);
  void MutateNodes(onnx::GraphProto& graph);
  void MutateNode(onnx::NodeProto& node, const onnx::GraphProto& graph);
  void MutateAttribute(onnx::NodeProto& node);
  void MutateValue(onnx::AttributeProto& attribute);
  void MutateType(onnx::ValueInfoProto& value);
  void MutateTensor(onnx::TensorProto& tensor);

  std::mt19937_64 random_;
};

}  // namespace orrery::fuzz

#endif  // ORRERY_TESTS_FUZZ_ONNX_MUTATOR_H_
