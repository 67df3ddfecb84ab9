#ifndef ORRERY_LOWERING_BLOCKS_KERNEL_COSTS_H_
#define ORRERY_LOWERING_BLOCKS_KERNEL_COSTS_H_

#include <vector>

#include "cost_models/cost_model.h"
#include "ir/function.h"
#include "ir/last_of_kind.h"
#include "lowering/blocks/task_template.h"
#include "support/id_table.h"

// What the ops of a function are to one rank: the types of their values there, and what they cost.

namespace orrery::lowering {

/// The types of a function's values as one rank has them. The function lives longer.
class LocalTypes {
 public:
  explicit LocalTypes(const ir::Function& function);

  const IdTable<ir::TypeId, ir::TensorType>& types() const { return types_; }
  const IdTable<ir::TypeId, int64_t>& bytes() const { return bytes_; }
  const ir::TensorType& Of(ir::ValueId value) const { return types_[function_.type_id(value)]; }
  int64_t BytesOf(ir::ValueId value) const { return bytes_[function_.type_id(value)]; }

 private:
  const ir::Function& function_;
  IdTable<ir::TypeId, ir::TensorType> types_;
  IdTable<ir::TypeId, int64_t> bytes_;
};

/// Of a task of that kind that the op becomes: the kind of its kernels, if it has any.
simulator::KernelShares KernelsOf(const ir::Function& function, ir::OpId op,
                                  simulator::TaskKind kind);

/// What kernels cost on the device of a template; ops that are alike are priced once.
class KernelCosts {
 public:
  struct Cost {
    Duration duration;
    Flops flops;
    Bytes bytes;          // moved to and from memory
    double launches = 1;  // of kernels; of one that is several ops, a part
    SourceShares sources = {};
  };

  /// All three live longer.
  KernelCosts(const ir::Function& function, const LocalTypes& local, const TemplateContext& context)
      : function_(function), local_(local), context_(context) {}

  Cost Of(ir::OpId op);

  /// The op as cost models see it; holds until the next call of this or of Of.
  cost_models::OpView View(ir::OpId op);

 private:
  const ir::Function& function_;
  const LocalTypes& local_;
  const TemplateContext& context_;
  ir::LastOfKind<Cost> known_;
  std::vector<const ir::TensorType*> operands_, results_;
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_KERNEL_COSTS_H_
