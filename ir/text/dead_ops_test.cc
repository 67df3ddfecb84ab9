#include "ir/text/dead_ops.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/text/text.h"

// Texts that have dead ops, and what is left of them.

namespace orrery::ir {
namespace dead_ops_test_cc {
namespace {

TEST(DeadOps, AreDroppedFromAText) {
  constexpr char kText[] = R"(func @f (
  %x: f32[8,4] data
) {
  %a: f32[8,4] = Relu(%x)
  %b: f32[8,4] = Exp(%a)
  %y: f32[8,4] = Neg(%a)
  %c: f32[8,4] = Add(%b, %y)
  return %y: result
})";
  EXPECT_FALSE(ParseFunction(kText).ok());
  const auto function = ParseFunctionDroppingDeadOps(kText);
  ASSERT_TRUE(function.ok()) << function.status();
  EXPECT_EQ(Print(*function), R"(func @f (
  %x: f32[8,4] data
) {
  %a: f32[8,4] = Relu(%x)
  %y: f32[8,4] = Neg(%a)
  return %y: result
}
)");
}

// What is left has to verify, and there is one function.
TEST(DeadOps, DoNotExcuseOtherMistakes) {
  const auto message = [](const char* text) -> std::string {
    return std::string(ParseFunctionDroppingDeadOps(text).status().message());
  };
  EXPECT_EQ(message("func @f (%x: f32[8] data) { %d: f32[8] = Relu(%x) %y: f32[4] = Relu(%x) "
                    "return %y: result }"),
            ParseFunction("func @f (%x: f32[8] data) { %y: f32[4] = Relu(%x) return %y: result }")
                .status()
                .message());
  EXPECT_EQ(message("// nothing"), "found 0 functions; wanted one");
}

}  // namespace
}  // namespace dead_ops_test_cc
}  // namespace orrery::ir
