#include "transforms/simplify/heads.h"

#include <vector>

#include "ir/op_kind.h"

namespace orrery::transforms {

using ir::Dims;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

int64_t HeadsOfView(const Rewriter& r, OpId view) {
  const Dims &from = r.dims(r.operand(view, 0)), &to = r.dims(r.result(view));
  const Dims &parted = from.size() == 4 ? from : to, &whole = from.size() == 4 ? to : from;
  if (parted.size() != 4 || whole.size() != 3) return 0;
  return parted[2] == whole[1] && parted[3] == whole[2] ? parted[1] : 0;
}

ValueId WithHeads(const Rewriter& r, ValueId matrices) {
  if (r.rank(matrices) != 3) return ValueId();
  const OpId view = r.MadeBy(matrices, OpKind::kReshape);
  return view.valid() && HeadsOfView(r, view) > 0 ? r.operand(view, 0) : ValueId();
}

ValueId PartHeads(Rewriter& r, ValueId matrices, int64_t heads) {
  const ValueId parted = WithHeads(r, matrices);
  if (parted.valid() && r.dims(parted)[1] == heads) return parted;
  const Dims& dims = r.dims(matrices);
  return r.Op(OpKind::kReshape, {matrices},
              {{"shape", std::vector<int64_t>{-1, heads, dims[dims.size() - 2], dims.back()}}});
}

}  // namespace orrery::transforms
