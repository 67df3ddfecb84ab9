#ifndef ORRERY_IR_INFER_TEST_UTIL_H_
#define ORRERY_IR_INFER_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
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

/// An op applied to operand types, read from text.
struct AppliedOp {
  OpKind kind;
  AttributeSet attributes;
  Mesh mesh;
  std::vector<TensorType> operands;
  TypeList results;
  absl::Status status;  // of the text, or of inference

  /// Calls f(its types) while its operands are in place.
  template <typename F>
  auto With(F f) const {
    std::vector<const TensorType*> pointers;
    for (const TensorType& type : operands) pointers.push_back(&type);
    return f(OpTypes{.attributes = attributes, .operands = pointers, .mesh = mesh});
  }
};

/// An op with its attributes, "Transpose {perm=[1, 0]}", applied to types with "; " between.
inline AppliedOp Apply(const std::string& op, const std::string& types) {
  const std::vector<std::string> words = absl::StrSplit(op, absl::MaxSplits(' ', 1));
  AppliedOp made{.kind = FindOp(words[0]).value(),
                 .attributes = {},
                 .mesh = {},
                 .operands = {},
                 .results = {},
                 .status = {}};
  // A constant carries the attributes, so that the parser reads them.
  const auto function = ParseFunction(
      absl::StrCat("func @f mesh(dp=2, hp=4) (", InferInputs(types), ") { %c: f32[] = Constant() ",
                   words.size() > 1 ? words[1] : "", " return %c: result }"));
  made.status = function.status();
  if (!function.ok()) return made;
  made.attributes = function->attributes(function->order()[0]);
  made.mesh = function->mesh();
  for (const Input& input : function->inputs()) {
    made.operands.push_back(function->type(input.value));
    // Inputs of a function are never empty: 99 stands for 0.
    auto& dims = made.operands.back().dims;
    std::replace(dims.begin(), dims.end(), int64_t{99}, int64_t{0});
  }
  TypeList results;
  made.status =
      made.With([&](const OpTypes& op_types) { return InferTypes(made.kind, op_types, results); });
  made.results = std::move(results);
  return made;
}

/// The types of the results of an op over operand types, or the message.
inline std::string Infer(const std::string& op, const std::string& types) {
  const AppliedOp made = Apply(op, types);
  if (!made.status.ok()) return std::string(made.status.message());
  std::string text;
  for (const TensorType& type : made.results) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", ToString(type, made.mesh));
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
