#ifndef ORRERY_IR_SHARDING_RULE_H_
#define ORRERY_IR_SHARDING_RULE_H_

#include "ir/function.h"
#include "ir/op_info.h"

namespace orrery::ir {

/// How an op of a function may be split, by the types that it has there; without operands and
/// results where it may not.
ShardingRule RuleOf(const Function& function, OpId op);

}  // namespace orrery::ir

#endif  // ORRERY_IR_SHARDING_RULE_H_
