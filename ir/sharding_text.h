#ifndef ORRERY_IR_SHARDING_TEXT_H_
#define ORRERY_IR_SHARDING_TEXT_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "ir/mesh.h"
#include "ir/type.h"

// How layouts stand in types: "[64@dp,512@hp.dp/100] partial(hp:max)". layout_text.h reads them.

namespace orrery::ir {

/// "sum", "avg", "product", "max" or "min".
absl::string_view ToString(Reduction reduction);
/// The inverse of ToString, and "average"; nothing for an unknown name.
std::optional<Reduction> ParseReduction(absl::string_view name);

/// The layout as text, without the element type in front.
std::string LayoutText(const Sharding& sharding, const Dims& dims, const Mesh& mesh);

/// The same with `names_of` for runs of axes that stand in a list.
std::string LayoutTextBy(const Sharding& sharding, const Dims& dims,
                         absl::FunctionRef<std::string(const AxisList& axes)> names_of);

}  // namespace orrery::ir

#endif  // ORRERY_IR_SHARDING_TEXT_H_
