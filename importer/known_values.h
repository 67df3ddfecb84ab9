#ifndef ORRERY_IMPORTER_KNOWN_VALUES_H_
#define ORRERY_IMPORTER_KNOWN_VALUES_H_

#include <deque>

#include "absl/container/flat_hash_map.h"
#include "ir/function.h"
#include "ir/tensor.h"

namespace orrery::importer {

/// What the constants of a function hold, looked up by value. Shapes are computed in ONNX graphs by
/// dozens of nodes; with this each of them is folded as it comes.
class KnownValues {
 public:
  /// The tensor that a Constant holds; null for any other value, and for a constant that has not
  /// kept its elements. Good as long as this.
  const ir::Tensor* Find(const ir::Function& function, ir::ValueId value);

 private:
  absl::flat_hash_map<int32_t, const ir::Tensor*> found_;  // by value; null: looked at in vain
  std::deque<ir::Tensor> tensors_;
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_KNOWN_VALUES_H_
