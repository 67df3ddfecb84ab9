#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_PART_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_PART_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "ir/builder.h"
#include "ir/function.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

/// What stands for each value of a step ("origin") in those of its parts that have it: few have any
/// one, and a table a part would be mostly empty.
class LocalValues {
 public:
  explicit LocalValues(int32_t origins) : locals_(origins) {}

  /// Invalid: the part has nothing for the origin.
  ir::ValueId Find(ir::ValueId origin, int32_t part) const {
    for (const Local& local : locals_[origin]) {
      if (local.part == part) return local.value;
    }
    return {};
  }
  void Bind(ir::ValueId origin, int32_t part, ir::ValueId value) {
    if (Local* const local = At(origin, part); local != nullptr) {
      local->value = value;
    } else {
      locals_[origin].push_back({.part = part, .value = value});
    }
  }
  /// That the part returns what it has for the origin; whether that is new.
  bool Save(ir::ValueId origin, int32_t part) {
    Local* const local = At(origin, part);
    return local != nullptr && !std::exchange(local->saved, true);
  }

 private:
  struct Local {
    int32_t part = 0;
    ir::ValueId value;
    bool saved = false;
  };

  Local* At(ir::ValueId origin, int32_t part) {
    for (Local& local : locals_[origin]) {
      if (local.part == part) return &local;
    }
    return nullptr;
  }

  IdTable<ir::ValueId, absl::InlinedVector<Local, 2>> locals_;
};

/// One function of a stage while it is being built from ops and values of the step ("origins").
/// So many parameters: made at one place, a loop over stages and phases.
class StagePart {
 public:
  /// `number`: that no other part with these `locals` has. They and `step` must outlive this.
  StagePart(const std::string& name, const ir::Mesh& mesh, const ir::Function& step, int32_t number,
            LocalValues& locals);

  ir::Builder& builder() { return builder_; }
  bool ok() const { return builder_.status().ok(); }
  void Reserve(int32_t ops, int32_t values) { builder_.function().Reserve(ops, values); }

  /// What stands for the origin here; invalid: nothing yet.
  ir::ValueId local(ir::ValueId origin) const { return locals_.Find(origin, number_); }
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

  /// An op of its own kind that makes some of the results of one of the step.
  struct PartOfOp {
    ir::OpKind kind;
    std::span<const ir::ValueId> operands;
    std::span<const ir::ValueId> results;  // of the step
  };
  void Append(const PartOfOp& op, const ir::AttributeSet& attributes);

  /// What is to be added up, or put together, over `microbatches` when AddUp is called.
  void Sum(ir::ValueId origin) { summed_.push_back(origin); }
  /// Put together along dimension `dim`.
  void Collect(ir::ValueId origin, int32_t dim) {
    collected_.push_back(origin);
    collect_dim_ = dim;
  }
  void AddUp(int64_t microbatches);

  absl::StatusOr<StageFunction> Finish(int64_t microbatches) &&;

 private:
  std::string NameOf(ir::ValueId origin) const;
  ir::TypeId TypeIn(ir::TypeId type);
  void AddUp(ir::ValueId origin, ir::OpKind kind, int64_t parts);

  const ir::Function& step_;
  ir::Builder builder_;
  const int32_t number_;
  LocalValues& locals_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> pairs_;  // (origin, here)
  std::vector<std::pair<ir::ValueId, int32_t>> sends_;      // origin, to which stage
  IdTable<ir::TypeId, ir::TypeId> types_of_step_;           // of the step to those here
  std::vector<ir::ValueId> collected_, summed_;             // origins
  int32_t collect_dim_ = 0;
  std::vector<ir::TypeId> types_;
  std::vector<ir::ValueId> results_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_PART_H_
