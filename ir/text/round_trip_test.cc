#include <set>
#include <string>

#include "gtest/gtest.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "tests/ir_text/random_function.h"

namespace orrery::ir {
namespace round_trip_test_cc {
namespace {

// That `a` and `b` say the same. Bytes that agree do not show it: print could leave something out.
// Values are matched by their position; ops that the order leaves out count for nothing.
class Comparison {
 public:
  Comparison(const Function& a, const Function& b)
      : a_(a), b_(b), match_(a.value_limit(), ValueId()) {}

  void Run() {
    EXPECT_EQ(a_.name(), b_.name());
    EXPECT_EQ(a_.mesh(), b_.mesh());
    ASSERT_EQ(a_.inputs().size(), b_.inputs().size());
    for (size_t i = 0; i < a_.inputs().size(); ++i) {
      EXPECT_EQ(a_.inputs()[i].role, b_.inputs()[i].role);
      Match(a_.inputs()[i].value, b_.inputs()[i].value);
    }
    ASSERT_EQ(a_.order().size(), b_.order().size());
    for (size_t i = 0; i < a_.order().size(); ++i) MatchOp(a_.order()[i], b_.order()[i]);
    ASSERT_EQ(a_.outputs().size(), b_.outputs().size());
    for (size_t i = 0; i < a_.outputs().size(); ++i) {
      const Output &out = a_.outputs()[i], &other = b_.outputs()[i];
      EXPECT_EQ(out.role, other.role);
      EXPECT_EQ(match_[out.value], other.value);
      EXPECT_EQ(out.of.valid() ? match_[out.of] : ValueId(), other.of);
    }
  }

 private:
  void Match(ValueId a, ValueId b) {
    match_[a] = b;
    EXPECT_EQ(a_.value_name(a), b_.value_name(b));
    EXPECT_EQ(a_.type(a), b_.type(b));
  }

  void MatchOp(OpId a, OpId b) {
    ASSERT_EQ(a_.kind(a), b_.kind(b));
    ASSERT_EQ(a_.operands(a).size(), b_.operands(b).size());
    for (size_t i = 0; i < a_.operands(a).size(); ++i) {
      EXPECT_EQ(match_[a_.operands(a)[i]], b_.operands(b)[i]);
    }
    const std::string attributes = ToString(a_.attributes(a));
    EXPECT_EQ(attributes, ToString(b_.attributes(b)));
    const bool has_nan = attributes.find("nan") != std::string::npos;  // which equals nothing
    EXPECT_TRUE(has_nan || a_.attributes(a) == b_.attributes(b)) << attributes;
    ASSERT_EQ(a_.result_count(a), b_.result_count(b));
    for (int32_t i = 0; i < a_.result_count(a); ++i) Match(a_.result(a, i), b_.result(b, i));
  }

  const Function& a_;
  const Function& b_;
  IdTable<ValueId, ValueId> match_;
};

TEST(RoundTrip, OfRandomFunctions) {
  RandomFunctions random(20261121);
  std::set<OpKind> kinds;
  for (int i = 0; i < 4000 && !testing::Test::HasFailure(); ++i) {
    const Function function = random.Next();
    ASSERT_TRUE(Verify(function).ok()) << i << ": " << Verify(function) << "\n" << Print(function);
    const std::string text = Print(function);
    const auto parsed = ParseFunction(text);
    ASSERT_TRUE(parsed.ok()) << i << ": " << parsed.status() << "\n" << text;
    EXPECT_EQ(Print(*parsed), text);
    EXPECT_EQ(Print(Function(*parsed)), text) << "a copy";
    Comparison(function, *parsed).Run();
    for (const OpId op : function.order()) kinds.insert(function.kind(op));
  }
  EXPECT_GE(kinds.size(), 22u) << "the random functions have lost some op kinds";
}

TEST(RoundTrip, OfManyFunctionsInOneText) {
  RandomFunctions random(7);
  std::vector<Function> functions;
  for (int i = 0; i < 200; ++i) functions.push_back(random.Next());
  const std::string text = Print(functions);
  const auto parsed = ParseFunctions(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->size(), functions.size());
  EXPECT_EQ(Print(*parsed), text);
}

}  // namespace
}  // namespace round_trip_test_cc
}  // namespace orrery::ir
