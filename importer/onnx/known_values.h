#ifndef ORRERY_IMPORTER_ONNX_KNOWN_VALUES_H_
#define ORRERY_IMPORTER_ONNX_KNOWN_VALUES_H_

#include <onnx/onnx_pb.h>

#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/function.h"
#include "ir/tensor.h"

namespace orrery::importer {

/// What values of a function hold, as far as that is known while a model is imported. Shapes are
/// computed in ONNX graphs by dozens of nodes; with this each of them is folded as it comes.
class KnownValues {
 public:
  /// `folder`: where the files of external data lie.
  /// `rare_batch`: a batch that no other dimension is a multiple of; 0 when it may be any.
  explicit KnownValues(std::string folder = "", int64_t rare_batch = 0)
      : folder_(std::move(folder)), rare_batch_(rare_batch) {}

  /// Whether a dimension of `size` has the batch, for certain.
  bool GrowsWithBatch(int64_t size) const {
    return rare_batch_ > 0 && size > 0 && size % rare_batch_ == 0;
  }

  /// Says that `value`, an input or a constant that has not kept its elements, is `tensor`, which
  /// must outlive this. Its data is looked at when somebody asks.
  void AddSource(ir::ValueId value, const onnx::TensorProto& tensor) {
    sources_.emplace(value.index(), &tensor);
  }

  /// The tensor that a Constant holds; null for any other value, and for one that is not known.
  /// Good as long as this.
  const ir::Tensor* Find(const ir::Function& function, ir::ValueId value);
  /// The same, also for initializers that may be trained and for what ops make of them: for a node
  /// that must know an input, such as the scales of a Resize. Computes at most some thousand
  /// elements a value.
  const ir::Tensor* Compute(const ir::Function& function, ir::ValueId value) {
    return Compute(function, value, 0);
  }
  /// Why the tensor of `value` could not be read, when somebody asked for it in vain; else fine.
  absl::Status Trouble(ir::ValueId value) const {
    const auto found = troubles_.find(value.index());
    return found == troubles_.end() ? absl::OkStatus() : found->second;
  }

 private:
  const ir::Tensor* Compute(const ir::Function& function, ir::ValueId value, int depth);
  const ir::Tensor* FromSource(const ir::Function& function, ir::ValueId value);
  const ir::Tensor* FromOperands(const ir::Function& function, ir::ValueId value, int depth);
  const ir::Tensor* Keep(ir::ValueId value, ir::Tensor tensor);

  std::string folder_;
  int64_t rare_batch_;
  absl::flat_hash_map<int32_t, const onnx::TensorProto*> sources_;  // by value
  // By value; null: looked at in vain.
  absl::flat_hash_map<int32_t, const ir::Tensor*> found_, computed_;
  absl::flat_hash_map<int32_t, absl::Status> troubles_;  // by value: exports travel without weights
  std::deque<ir::Tensor> tensors_;
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_KNOWN_VALUES_H_
