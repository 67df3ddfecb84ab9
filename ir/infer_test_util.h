#ifndef ORRERY_IR_INFER_TEST_UTIL_H_
#define ORRERY_IR_INFER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/op_info.h"
#include "ir/text/text.h"

// What InferTypes makes of operands that are sharded over mesh(dp=2, hp=4), as tables of text.

namespace orrery::ir {

/// One application of an op.
struct InferRow {
  std::string op;        // with its attributes: "Transpose {perm=[1, 0]}"
  std::string operands;  // types, "; " between; a dimension of 99 stands for 0
  std::string results;   // the same, or the message
};

/// "%x0: f32[4] data, %x1: .." of types with "; " between.
inline std::string InferInputs(const std::string& types) {
  std::string text;
  int i = 0;
  for (const auto& type : absl::StrSplit(types, "; ")) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "%x", i, ": ", std::string(type), " data");
    ++i;
  }
  return text;
}

/// The types of the results of an op over operand types, or the message.
inline std::string Infer(const std::string& op, const std::string& types) {
  const std::vector<std::string> words = absl::StrSplit(op, absl::MaxSplits(' ', 1));
  // A constant carries the attributes, so that the parser reads them.
  const auto function = ParseFunction(
      absl::StrCat("func @f mesh(dp=2, hp=4) (", InferInputs(types), ") { %c: f32[] = Constant() ",
                   words.size() > 1 ? words[1] : "", " return %c: result }"));
  if (!function.ok()) return std::string(function.status().message());
  std::vector<TensorType> types_of_inputs;
  for (const Input& input : function->inputs()) {
    types_of_inputs.push_back(function->type(input.value));
    // Inputs of a function are never empty: 99 stands for 0.
    auto& dims = types_of_inputs.back().dims;
    std::replace(dims.begin(), dims.end(), int64_t{99}, int64_t{0});
  }
  std::vector<const TensorType*> operands;
  for (const TensorType& type : types_of_inputs) operands.push_back(&type);
  TypeList results;
  const absl::Status status = InferTypes(FindOp(words[0]).value(),
                                         {.attributes = function->attributes(function->order()[0]),
                                          .operands = operands,
                                          .mesh = function->mesh()},
                                         results);
  if (!status.ok()) return std::string(status.message());
  std::string text;
  for (const TensorType& type : results) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", ToString(type, function->mesh()));
  }
  return text;
}

/// Each row as it says.
inline void Expect(const std::vector<InferRow>& rows) {
  for (const InferRow& row : rows) {
    EXPECT_EQ(Infer(row.op, row.operands), row.results) << row.op << " " << row.operands;
  }
}

}  // namespace orrery::ir

#endif  // ORRERY_IR_INFER_TEST_UTIL_H_
