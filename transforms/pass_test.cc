#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ir/models/mlp.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "transforms/pass_registry.h"
#include "transforms/training/training_step.h"

// What every pass of passes.def promises, and how passes are named. What each does is text, in
// tests/cli/opt/.

namespace orrery::transforms {
namespace pass_test_cc {
namespace {

constexpr char kForward[] = R"(func @forward (
  %x: f32[8,4] data,
  %w0: f32[4,4] parameter,
  %b0: f32[4] parameter,
  %w1: f32[4,4] parameter
) {
  %y0: f32[8,4] = MatMul(%x, %w0)
  %s0: f32[8,4] = Add(%y0, %b0)
  %a0: f32[8,4] = Relu(%s0)
  %y1: f32[8,4] = MatMul(%a0, %w1)
  return %y1: result
}
)";

// A function at each station from forward to training step, also with adapters, and one that has
// all from the start.
std::vector<ir::Function> Samples() {
  std::vector<ir::Function> samples;
  for (const absl::string_view adapters : {"", "lora{rank=1}", "lora{rank=2}"}) {
    ir::Function next = ir::ParseFunction(kForward).value();
    if (!adapters.empty()) {
      EXPECT_TRUE(RunPass(ParsePasses(adapters).value()[0], next).value());
    }
    samples.push_back(next);
    for (const char* passes :
         {"attach-loss", "build-backward", "append-optimizer{optimizer=adam}"}) {
      EXPECT_TRUE(RunPass(ParsePasses(passes).value()[0], next).value());
      samples.push_back(next);
    }
  }
  samples.push_back(ir::Mlp({.layers = 2, .dim = 4, .batch = 8}).value());
  return samples;
}

PassCall CallOf(const PassInfo& pass) { return ParsePasses(pass.name).value()[0]; }

TEST(Passes, LeaveAFunctionThatVerifies) {
  for (const PassInfo* pass : AllPasses()) {
    int ran = 0;
    for (ir::Function function : Samples()) {
      const std::string before = ir::Print(function);
      const auto changed = RunPass(CallOf(*pass), function);
      if (!changed.ok()) continue;
      ++ran;
      EXPECT_TRUE(ir::Verify(function).ok()) << pass->name << ir::Verify(function);
      EXPECT_TRUE(*changed || ir::Print(function) == before) << pass->name << " hides a change";
    }
    EXPECT_GE(ran, 3) << pass->name;
  }
}

TEST(Passes, ChangeNothingTheSecondTimeWhereTheySaySo) {
  for (const PassInfo* pass : AllPasses()) {
    if (!pass->idempotent) continue;
    for (ir::Function function : Samples()) {
      if (!RunPass(CallOf(*pass), function).ok()) continue;
      const std::string once = ir::Print(function);
      EXPECT_FALSE(RunPass(CallOf(*pass), function).value()) << pass->name;
      EXPECT_EQ(ir::Print(function), once) << pass->name;
    }
  }
}

TEST(Passes, HaveNamesOfTheirOwnAndSayWhatTheyDo) {
  std::set<std::string> names;
  for (const PassInfo* pass : AllPasses()) {
    EXPECT_TRUE(names.insert(std::string(pass->name)).second) << pass->name;
    EXPECT_FALSE(pass->summary.empty()) << pass->name;
    EXPECT_TRUE(ParsePasses(absl::StrCat(pass->name, "{", pass->options, "}")).ok()) << pass->name;
  }
}

// A list of passes as text, read back with all their options.
std::string Read(absl::string_view text) {
  const auto calls = ParsePasses(text);
  if (!calls.ok()) return std::string(calls.status().message());
  std::string out;
  for (const PassCall& call : *calls) {
    absl::StrAppend(&out, out.empty() ? "" : " ", call.pass->name);
    for (const auto& [name, value] : call.options) absl::StrAppend(&out, " ", name, "=", value);
  }
  return out;
}

TEST(ParsePasses, FillsInWhatIsLeftOut) {
  EXPECT_EQ(Read(""), "");
  EXPECT_EQ(Read("attach-loss"), "attach-loss loss=auto output=");
  EXPECT_EQ(Read(" dead-code , shard { dp = 2 } "), "dead-code shard dp=2 hp=1");
  EXPECT_EQ(Read("shard{dp=2,hp=4},microbatch"), "shard dp=2 hp=4 microbatch count=1");
}

TEST(ParsePasses, SaysWhatIsWrong) {
  EXPECT_EQ(Read("attach-los"),
            "there is no pass 'attach-los'; did you mean attach-loss? `list-passes` names all");
  const std::string list = Read("unroll");
  EXPECT_EQ(list.find("there is no pass 'unroll'; wanted one of dead-code, "), 0);
  EXPECT_EQ(list.substr(list.size() - 51), ", microbatch, pad-dimensions, slice-sequence, shard");
  EXPECT_EQ(Read("shard{tp=2}"), "pass 'shard' has no option 'tp'; it has {dp=1,hp=1}");
  EXPECT_EQ(Read("shard{dp=2"), "pass 'shard{dp=2' has no closing '}'");
  EXPECT_EQ(Read("shard{dp}"), "option 'dp' has no value");
  EXPECT_EQ(Read("dead-code{x=1}"), "pass 'dead-code' has no option 'x'; it has {}");
}

TEST(PositiveOption, WantsAWholeNumberOfAtLeastOne) {
  EXPECT_EQ(PositiveOption({{"n", "9223372036854775807"}}, "n").value(), INT64_MAX);
  for (const char* bad : {"0", "-1", "", "two", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(PositiveOption({{"n", bad}}, "n").status().message(),
              absl::StrCat("option n is '", bad, "'; wanted a whole number of at least 1"));
  }
}

}  // namespace
}  // namespace pass_test_cc
}  // namespace orrery::transforms
