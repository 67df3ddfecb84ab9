#ifndef ORRERY_IR_MODELS_FAMILIES_TEST_UTIL_H_
#define ORRERY_IR_MODELS_FAMILIES_TEST_UTIL_H_

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ir/function.h"
#include "ir/models/model_test_util.h"
#include "ir/op_info.h"

// What tests of model families ask of a function.

namespace orrery::ir {

inline int64_t ParametersOf(const Function& function) {
  int64_t count = 0;
  for (const Input& input : function.inputs()) {
    if (input.role == InputRole::kParameter) count += ElementCount(function.type(input.value).dims);
  }
  return count;
}

// "name: Kind f32[2,3] {attributes}" of each op whose name begins with `prefix`.
inline std::string Ops(const Function& function, absl::string_view prefix) {
  std::string text;
  for (const OpId op : function.order()) {
    const ValueId result = function.result(op);
    const std::string name(function.value_name(result));
    if (!absl::StartsWith(name, prefix)) continue;
    const std::string attributes = ToString(function.attributes(op));
    absl::StrAppend(&text, name, ": ", function.info(op).name, " ",
                    ToString(function.type(result), function.mesh()), attributes.empty() ? "" : " ",
                    attributes, "\n");
  }
  return text;
}

inline std::string Refusal(absl::string_view family, absl::string_view keys) {
  return std::string(TryBuildModel(family, keys, 2).status().message());
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_MODELS_FAMILIES_TEST_UTIL_H_
