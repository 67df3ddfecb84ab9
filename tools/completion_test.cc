#include "tools/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::tools {
namespace completion_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const CompletedProgram kProgram = {
    .names = {"play", "orrery-play"},
    .flags = {{.name = "quiet", .help = "say [no] more"},
              {.name = "count", .help = "how many: 1", .takes_value = true},
              {.name = "on",
               .help = "what it's played on",
               .takes_value = true,
               .takes_file = true,
               .values = {"a", "b:"}}}};

TEST(ProgramNames, AreThoseItIsCalledBy) {
  EXPECT_THAT(ProgramNames("build/bin/grid_search"),
              ElementsAre("grid_search", "orrery-grid-search"));
  EXPECT_THAT(ProgramNames("opt"), ElementsAre("opt", "orrery-opt"));
  EXPECT_THAT(ProgramNames("/usr/bin/orrery-grid-search"), ElementsAre("orrery-grid-search"));
}

TEST(CompletionScript, OfBashHasAnArmForEachFlagWithAValue) {
  const std::string script = CompletionScript("bash", kProgram).value();
  EXPECT_THAT(script, HasSubstr("\n    --count) return ;;\n    --on) words='a b:' files=1 ;;\n"));
  EXPECT_THAT(script, HasSubstr("words='--quiet --count --on'"));
  EXPECT_THAT(script, testing::EndsWith("\ncomplete -F _orrery_play play orrery-play\n"));
}

TEST(CompletionScript, OfZshTellsWhatFlagsDo) {
  const std::string script = CompletionScript("zsh", kProgram).value();
  EXPECT_THAT(script, testing::StartsWith("#compdef play orrery-play\n"));
  EXPECT_THAT(script, HasSubstr("'*--quiet[say \\[no\\] more]'"));
  EXPECT_THAT(script, HasSubstr("'*--count=[how many\\: 1]:count: '"));
  EXPECT_THAT(script, HasSubstr("what it'\\''s played on"));
  EXPECT_THAT(script, HasSubstr("_files}"));
}

TEST(CompletionScript, IsOfTwoShells) {
  EXPECT_EQ(CompletionScript("fish", kProgram).status().message(),
            "--completion 'fish': wanted bash or zsh");
}

}  // namespace
}  // namespace completion_test_cc
}  // namespace orrery::tools
