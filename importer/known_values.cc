#include "importer/known_values.h"

#include <optional>
#include <utility>

namespace orrery::importer {

const ir::Tensor* KnownValues::Find(const ir::Function& function, ir::ValueId value) {
  const ir::OpId op = function.producer(value);
  if (!op.valid() || function.kind(op) != ir::OpKind::kConstant) return nullptr;
  const auto [row, is_new] = found_.try_emplace(value.index(), nullptr);
  if (!is_new) return row->second;
  constexpr int64_t kMaxFilled = int64_t{1} << 16;
  if (ir::ElementCount(function.type(value).dims) > kMaxFilled) return nullptr;
  std::optional<ir::Tensor> tensor =
      ir::ConstantTensor(function.attributes(op), function.type(value));
  if (!tensor.has_value()) return nullptr;
  tensors_.push_back(*std::move(tensor));
  row->second = &tensors_.back();
  return row->second;
}

}  // namespace orrery::importer
