#ifndef ORRERY_TRANSFORMS_SIMPLIFY_PASS_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_PASS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/execution/execute.h"
#include "ir/tensor_parts.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/pass_registry.h"

// For tests only. A function is written as its inputs on one line and an op on each of the next:
//
//   %x: f32[4] data
//   %y: f32[4] = Exp(%x)
//   return %y: result

namespace orrery::transforms {

inline ir::Function ParseLines(const std::string& lines) {
  const size_t end = lines.find('\n');
  const auto function = ir::ParseFunction(
      absl::StrCat("func @f (", lines.substr(0, end), ") {", lines.substr(end), "\n}"));
  EXPECT_TRUE(function.ok()) << function.status() << "\n" << lines;
  return function.value_or(ir::Function());
}

/// The ops of a function, one a line.
inline std::string OpLines(const ir::Function& function) {
  const std::string text = ir::Print(function);
  const size_t begin = text.find(") {\n") + 4;
  return absl::StrReplaceAll(text.substr(begin, text.size() - begin - 2), {{"\n  ", "\n"}})
      .substr(2);
}

/// Numbers between -1 and 1, or 0 and 1 where they are whole, for each input.
inline ir::NamedTensors RandomTensors(const ir::Function& function) {
  std::mt19937 random(11);
  ir::NamedTensors tensors;
  for (const ir::Input& input : function.inputs()) {
    const ir::TensorType& type = function.type(input.value);
    ir::Tensor tensor(type.dtype, type.dims);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double number = static_cast<double>(random() % 2001) / 1000 - 1;
      tensor.SetNumber(i, tensor.is_float() ? number : static_cast<double>(random() % 2));
    }
    tensors[ir::ExecutionName(function, input.value)] = tensor;
  }
  return tensors;
}

inline void ExpectSameOutputs(const ir::Function& before, const ir::Function& after) {
  const ir::NamedTensors inputs = RandomTensors(before);
  const auto wanted = ir::Execute(before, inputs, {.round = false}),
             found = ir::Execute(after, inputs, {.round = false});
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(wanted->outputs.size(), found->outputs.size());
  for (size_t i = 0; i < found->outputs.size(); ++i) {
    EXPECT_LT(ir::Distance(wanted->outputs[i], found->outputs[i]), 2e-3)
        << "output " << i << " of\n"
        << ir::Print(after);
  }
}

/// The ops after `passes`, which say whether they changed the function, and leave one that verifies
/// and computes the same.
inline std::string After(absl::string_view passes, const std::string& lines) {
  const ir::Function before = ParseLines(lines);
  ir::Function after = before;
  const auto calls = ParsePasses(passes);
  for (const PassCall& call : *calls) {
    const std::string old = ir::Print(after);
    const auto changed = RunPass(call, after);
    EXPECT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed.value_or(false), ir::Print(after) != old) << ir::Print(after);
    EXPECT_TRUE(ir::Verify(after).ok()) << ir::Verify(after);
  }
  if (before.inputs().size() == after.inputs().size()) ExpectSameOutputs(before, after);
  return OpLines(after);
}

/// Runs one pass; whether that changed the function, which need not be one that can be executed.
inline bool Changes(const std::string& pass, ir::Function& function) {
  const auto calls = ParsePasses(pass);
  const auto changed = RunPass(calls->at(0), function);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return changed.value_or(false);
}

/// Whether the pass leaves the ops as they are.
inline bool Leaves(absl::string_view pass, const std::string& lines) {
  return After(pass, lines) == OpLines(ParseLines(lines));
}

/// Text, and what to write instead.
using LineChanges = std::vector<std::pair<std::string, std::string>>;

/// `lines` with other text in places, each of which must be there.
inline std::string With(std::string lines, const LineChanges& changes) {
  for (const auto& [from, to] : changes) {
    EXPECT_TRUE(absl::StrContains(lines, from)) << from;
    absl::StrReplaceAll({{from, to}}, &lines);
  }
  return lines;
}

/// That the pass leaves `lines` as they are with any of the changes.
inline void ExpectLeft(absl::string_view pass, const std::string& lines,
                       const std::vector<LineChanges>& variants) {
  for (const LineChanges& changes : variants) {
    EXPECT_TRUE(Leaves(pass, With(lines, changes))) << changes[0].second;
  }
}

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_PASS_TEST_UTIL_H_
