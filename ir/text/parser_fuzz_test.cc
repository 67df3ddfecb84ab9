#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/models/mlp.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "support/status.h"
#include "tests/ir_text/golden.h"
#include "tests/ir_text/random_function.h"

// Whatever the parser reads, it returns: a function that verifies and prints, or an error that says
// where. Run it in a build with sanitizers (CMake preset `debug`), which see what goes wrong
// silently.

namespace orrery::ir {
namespace parser_fuzz_test_cc {
namespace {

// "12:7: found …; wanted …".
bool IsPlaced(absl::string_view message) {
  const auto take_number = [&] {
    const size_t before = message.size();
    while (!message.empty() && absl::ascii_isdigit(static_cast<unsigned char>(message[0]))) {
      message.remove_prefix(1);
    }
    return message.size() < before && absl::StartsWith(message, ":");
  };
  if (!take_number()) return false;
  message.remove_prefix(1);
  return take_number() && absl::StartsWith(message, ": found ") &&
         absl::StrContains(message, "; wanted ");
}

// "f: %y …", or "f: Send: …": of the verifier.
bool IsOfVerifier(const absl::Status& status) {
  return absl::StrContains(status.message(), ": ") &&
         (status.code() == absl::StatusCode::kInvalidArgument || AsInfeasible(status).has_value());
}

// Flops of each op on what a rank holds: what every cost model asks for.
void ExpectFlops(const Function& function) {
  for (const OpId op : function.order()) {
    if (function.info(op).flops == nullptr) continue;
    std::vector<TensorType> local;
    std::vector<const TensorType*> operands;
    for (const ValueId operand : function.operands(op)) {
      local.push_back(LocalType(function.type(operand), function.mesh()));
    }
    for (const TensorType& type : local) operands.push_back(&type);
    TypeList results;
    for (int32_t i = 0; i < function.result_count(op); ++i) {
      results.push_back(LocalType(function.type(function.result(op, i)), function.mesh()));
    }
    const double flops = function.info(op).flops(
        {.attributes = function.attributes(op), .operands = operands, .mesh = function.mesh()},
        results);
    EXPECT_TRUE(flops >= 0 && std::isfinite(flops)) << function.info(op).name << " " << flops;
  }
}

void Try(const std::string& text) {
  const auto functions = ParseFunctions(text);
  if (!functions.ok()) {
    EXPECT_TRUE(IsPlaced(functions.status().message()) || IsOfVerifier(functions.status()))
        << functions.status() << "\n"
        << text;
    return;
  }
  const std::string printed = Print(*functions);
  const auto again = ParseFunctions(printed);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text << "\n" << printed;
  EXPECT_EQ(Print(*again), printed) << text;
  for (const Function& function : *functions) ExpectFlops(function);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = golden::Texts();
  seeds.push_back(Print(Mlp({.layers = 2, .dim = 16, .batch = 64}).value()));
  RandomFunctions random(3);
  for (int i = 0; i < 30; ++i) seeds.push_back(Print(random.Next()));
  return seeds;
}

// Replaces one number, at or after a random position, by one that is likely to hurt.
std::string WithOtherNumber(std::string text, RandomFunctions& random) {
  const std::vector<std::string> numbers = {"0",
                                            "-1",
                                            "1",
                                            "2",
                                            "3",
                                            "7",
                                            "31",
                                            "255",
                                            "65536",
                                            "16777216",
                                            "1073741824",
                                            "2147483648",
                                            "4294967296",
                                            "1099511627776",
                                            "1152921504606846976",
                                            "4611686018427387904",
                                            "9223372036854775807",
                                            "-9223372036854775808",
                                            "9223372036854775808",
                                            "1e400",
                                            "nan",
                                            "-inf",
                                            "0.5",
                                            "99999999999999999999999999999999999999"};
  size_t begin = text.find_first_of(
      "0123456789", static_cast<size_t>(random.Below(static_cast<int64_t>(text.size()))));
  if (begin == std::string::npos) return text;
  const size_t end = text.find_first_not_of("0123456789", begin);
  const std::string& number =
      numbers[static_cast<size_t>(random.Below(static_cast<int64_t>(numbers.size())))];
  return text.replace(begin, end == std::string::npos ? end : end - begin, number);
}

// Puts one token in, or instead of a few bytes.
std::string WithOtherToken(std::string text, RandomFunctions& random) {
  const std::vector<std::string> tokens = {"(",          ")",
                                           "{",          "}",
                                           "[",          "]",
                                           ",",          ":",
                                           "=",          "@",
                                           "+",          "%",
                                           "\"",         "\\",
                                           "//",         "\n",
                                           " ",          ".",
                                           "%x",         "%0",
                                           "%\"\"",      "func @g",
                                           "return",     "partial(dp)",
                                           "@dp",        "@dp.hp",
                                           "mesh(dp=2)", "mesh(a=16777216, b=16777216, c=65536)",
                                           "data",       "gradient(%w)",
                                           "f32[2]",     "Relu",
                                           "Adam",       "MatMulGrad",
                                           "AllGather",  "{axes=[0]}",
                                           "[f]",        std::string(1, '\0'),
                                           "\xff",       "\xc3\xa9"};
  const auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(text.size()) + 1));
  const std::string& token =
      tokens[static_cast<size_t>(random.Below(static_cast<int64_t>(tokens.size())))];
  return text.replace(at, static_cast<size_t>(random.Below(4)), token);
}

// Copies a stretch of `other` over a stretch of `text`; lines, mostly.
std::string WithStretchOf(const std::string& other, std::string text, RandomFunctions& random) {
  const auto line = [&](const std::string& in) {
    const size_t at =
        in.find('\n', static_cast<size_t>(random.Below(static_cast<int64_t>(in.size()))));
    return at == std::string::npos ? in.size() : at;
  };
  const size_t from = line(other), to = line(text);
  const auto length = static_cast<size_t>(random.Below(120));
  return text.replace(to, random.Below(2) == 0 ? 0 : length, other.substr(from, length));
}

std::string Mutate(const std::vector<std::string>& seeds, RandomFunctions& random) {
  const auto seed = [&] {
    return seeds[static_cast<size_t>(random.Below(static_cast<int64_t>(seeds.size())))];
  };
  std::string text = seed();
  for (int64_t i = random.Below(3); i >= 0 && !text.empty(); --i) {
    const auto at = static_cast<size_t>(random.Below(static_cast<int64_t>(text.size())));
    switch (random.Below(8)) {
      case 0:
        text[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        text.erase(at, static_cast<size_t>(1 + random.Below(8)));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text = WithStretchOf(seed(), text, random);
        break;
      case 4:
        text = WithOtherToken(text, random);
        break;
      default:
        text = WithOtherNumber(text, random);
    }
  }
  return text;
}

TEST(ParserFuzz, MutatedTextsParseOrSayWhere) {
  const std::vector<std::string> seeds = Seeds();
  RandomFunctions random(1);
  for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) Try(Mutate(seeds, random));
}

TEST(ParserFuzz, EachBeginningOfAText) {
  for (const std::string& text : golden::Texts()) {
    for (size_t length = 0; length < text.size(); ++length) Try(text.substr(0, length));
  }
}

TEST(ParserFuzz, LongTexts) {
  constexpr size_t kLong = 1 << 20;
  for (const char c : std::string("([{%\"@/.,=7-+ \n\\\0x", 19)) Try(std::string(kLong, c));
  Try("func @f (%x: f32[" + std::string(kLong, '1') + "] data) { return }");
  Try("func @f (%x: f32[" + std::string(kLong, '[') + "] data) { return }");
  Try("func @" + std::string(kLong, 'f') + " () { return }");
  std::string ones;
  for (size_t d = 0; d < kLong / 2; ++d) ones += "1,";
  Try("func @f (%x: f32[" + ones + "] data) { return }");
  Try("func @f () { %c: i64[2] = Constant() {values=[" + ones + "]} return %c: result }");
  std::string functions;
  for (int i = 0; i < 20000; ++i) absl::StrAppend(&functions, "func @f", i, " () { return }\n");
  Try(functions);
}

// A chain as deep as a large model unrolled.
TEST(ParserFuzz, DeepFunctions) {
  std::string text = "func @f (%v0: f32[2] data) {\n";
  constexpr int kDepth = 50000;
  for (int i = 0; i < kDepth; ++i)
    absl::StrAppend(&text, "%v", i + 1, ": f32[2] = Relu(%v", i, ")\n");
  absl::StrAppend(&text, "return %v", kDepth, ": result }");
  Try(text);
}

}  // namespace
}  // namespace parser_fuzz_test_cc
}  // namespace orrery::ir
