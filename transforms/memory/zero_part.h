#ifndef ORRERY_TRANSFORMS_MEMORY_ZERO_PART_H_
#define ORRERY_TRANSFORMS_MEMORY_ZERO_PART_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/builder.h"
#include "ir/function.h"
#include "transforms/memory/zero_plan.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// A function of a stage while it is copied op by op, by those that change something on the way.
class PartCopy {
 public:
  /// `from` must outlive this.
  explicit PartCopy(const StageFunction& from);

  const ir::Function& from() const { return from_.function; }
  ir::Builder& builder() { return builder_; }
  const absl::Status& status() const { return builder_.status(); }
  ir::ValueId OriginOf(ir::ValueId old) const { return transforms::OriginOf(from_, old); }
  /// What stands for a value of the old function.
  ir::ValueId& operator[](ir::ValueId old) { return values_[old]; }

  void AddInput(const ir::Input& input, const ir::TensorType& type);
  /// The same with the type that it has.
  void AddInput(const ir::Input& input);
  /// An op on what stands for its operands, with the types that it has.
  void CopyOp(ir::OpId op);
  void CopyOutputs();
  /// Has `here` stand for what `old` stands for in the step.
  void TakeOrigin(ir::ValueId old, ir::ValueId here) { Bind(here, OriginOf(old)); }
  /// Has the copy of `old` stand for nothing in the step.
  void DropOrigin(ir::ValueId old) { Bind(values_[old], ir::ValueId()); }

  /// `value`, which is whole or partial along the axes of `shard`, as that shard: each axis
  /// scatters or slices. These ops get `attributes`, and the result `name`.
  ir::ValueId Scatter(ir::ValueId value, const Shard& shard, const ir::AttributeSet& attributes,
                      const std::string& name);
  /// The whole of a shard, as part of `unit`.
  ir::ValueId Gather(ir::ValueId value, const Shard& shard, int32_t unit, const std::string& name);

  absl::StatusOr<StageFunction> Finish() &&;

 private:
  ir::TypeId TypeIn(ir::TypeId type);
  void Bind(ir::ValueId here, ir::ValueId origin);
  void TakeName(ir::ValueId old, ir::ValueId here);

  const StageFunction& from_;
  ir::Builder builder_;
  IdTable<ir::ValueId, ir::ValueId> values_;  // of the copy, by the old value
  IdTable<ir::TypeId, ir::TypeId> types_;     // of the copy, by the old type
  std::vector<ir::ValueId> origins_;          // of the copy
  std::vector<ir::ValueId> operands_;
  std::vector<ir::TypeId> result_types_;
};

/// A forward or backward function with what `plan` shards: see ApplyZero.
absl::StatusOr<StageFunction> ShardMicrobatchPart(const StageFunction& part, const ZeroPlan& plan);
/// An update likewise.
absl::StatusOr<StageFunction> ShardUpdatePart(const StageFunction& part, const ZeroPlan& plan);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MEMORY_ZERO_PART_H_
