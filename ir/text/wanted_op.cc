#include "ir/text/wanted_op.h"

#include "support/names/near_names.h"

namespace orrery::ir {
namespace wanted_op_cc {
namespace {

constexpr absl::string_view kNames[] = {
#define ORRERY_OP(name, file) #name,
#include "ir/ops.def"
#undef ORRERY_OP
};

}  // namespace
}  // namespace wanted_op_cc

std::string WantedOp(absl::string_view found) {
  return WantedNames(found, wanted_op_cc::kNames, /*lister=*/"", "the name of an op");
}

}  // namespace orrery::ir
