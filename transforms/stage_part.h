#ifndef ORRERY_TRANSFORMS_STAGE_PART_H_
#define ORRERY_TRANSFORMS_STAGE_PART_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/builder.h"
#include "ir/function.h"
#include "transforms/pipeline.h"

namespace orrery::transforms {

/// One function of a stage while it is being built from ops and values of the step ("origins").
class StagePart {
 public:
  /// `step` must outlive this.
  StagePart(const std::string& name, const ir::Mesh& mesh, const ir::Function& step);

  ir::Builder& builder() { return builder_; }
  bool ok() const { return builder_.status().ok(); }
  void Reserve(int32_t ops, int32_t values) { builder_.function().Reserve(ops, values); }

  /// What stands for the origin here; invalid: nothing yet.
  ir::ValueId local(ir::ValueId origin) const { return local_[origin]; }
  void Bind(ir::ValueId origin, ir::ValueId here);

  /// An input that is called what the value is called in the step.
  ir::ValueId AddInput(ir::ValueId origin, ir::InputRole role);
  /// An input: the value, added up over the microbatches.
  ir::ValueId AddSum(ir::ValueId origin);
  ir::ValueId AddReceive(ir::ValueId origin, int32_t from);
  void AddSend(ir::ValueId origin, int32_t to);
  /// The same, after the last op.
  void SendAtEnd(ir::ValueId origin, int32_t to) { sends_.emplace_back(origin, to); }
  /// Returns the value, once, for a later phase.
  void Save(ir::ValueId origin);
  /// A copy of the op. Types are those of the step: nothing changes them here, so nothing is
  /// inferred again.
  void Append(ir::OpId op, std::span<const ir::ValueId> operands);

  /// What is to be added up, or put together, over `microbatches` when AddUp is called.
  void Sum(ir::ValueId origin) { summed_.push_back(origin); }
  void Collect(ir::ValueId origin) { collected_.push_back(origin); }
  void AddUp(int64_t microbatches);

  absl::StatusOr<StageFunction> Finish(int64_t microbatches) &&;

 private:
  std::string NameOf(ir::ValueId origin) const;
  ir::TypeId TypeIn(ir::TypeId type);
  void AddUp(ir::ValueId origin, ir::OpKind kind, int64_t parts);

  const ir::Function& step_;
  ir::Builder builder_;
  IdTable<ir::ValueId, ir::ValueId> local_;                 // origin to value here
  IdTable<ir::ValueId, char> saved_;                        // origins that are returned
  std::vector<std::pair<ir::ValueId, ir::ValueId>> pairs_;  // (origin, here)
  std::vector<std::pair<ir::ValueId, int32_t>> sends_;      // origin, to which stage
  IdTable<ir::TypeId, ir::TypeId> types_of_step_;           // of the step to those here
  std::vector<ir::ValueId> collected_, summed_;             // origins
  std::vector<ir::TypeId> types_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGE_PART_H_
