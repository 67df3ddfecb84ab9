#ifndef ORRERY_TRANSFORMS_STAGES_STAGE_PARTS_TEST_UTIL_H_
#define ORRERY_TRANSFORMS_STAGES_STAGE_PARTS_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/stages/pipeline.h"

namespace orrery::transforms {

// Functions of one stage. Values of one name stand for one value.
class StageParts {
 public:
  explicit StageParts(const std::string& text) {
    std::vector<ir::Function> functions = ir::ParseFunctions(text).value();
    for (ir::Function& function : functions) {
      StageFunction part{.function = std::move(function), .origins = {}};
      for (int32_t v = 0; v < part.function.value_limit(); ++v) {
        const std::string name(part.function.value_name(ir::ValueId(v)));
        const auto next = static_cast<int32_t>(numbers_.size());
        part.origins.emplace_back(numbers_.try_emplace(name, next).first->second);
      }
      parts_.push_back(std::move(part));
    }
  }
  std::vector<StageFunction>& parts() { return parts_; }

  /// The ops of function `i`, and what it returns.
  std::string Text(size_t i) const {
    const ir::Function& function = parts_[i].function;
    EXPECT_TRUE(ir::Verify(function).ok()) << ir::Verify(function);
    EXPECT_EQ(parts_[i].origins.size(), static_cast<size_t>(function.value_limit()));
    std::string text;
    for (const absl::string_view line : absl::StrSplit(ir::Print(function), '\n')) {
      if (absl::StartsWith(line, "  ") &&
          (absl::StrContains(line, " = ") || absl::StrContains(line, "return") ||
           absl::StrContains(line, "Send(") || absl::StrContains(line, "Drop("))) {
        absl::StrAppend(&text, line, "\n");
      }
    }
    return text;
  }

 private:
  std::map<std::string, int32_t> numbers_;
  std::vector<StageFunction> parts_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_STAGES_STAGE_PARTS_TEST_UTIL_H_
