#include "tools/file_flags.h"

#include <gtest/gtest.h>

namespace orrery::tools {
namespace file_flags_test_cc {
namespace {

TEST(FileFlags, SayWhatTheyDoWithFiles) {
  for (const char* flag : {"csv", "json", "trace", "memory-snapshot", "plot", "report", "emit"}) {
    EXPECT_EQ(FileUseOf(flag), FileUse::kWrites) << flag;
  }
  for (const char* flag : {"model", "cluster", "program", "stack", "resume"}) {
    EXPECT_EQ(FileUseOf(flag), FileUse::kReads) << flag;
  }
  EXPECT_EQ(FileUseOf("dp"), FileUse::kNone);
}

TEST(FileFlags, FindTheFileBehindAName) {
  EXPECT_EQ(WrittenFile("json", "out/r.json"), "out/r.json");
  EXPECT_EQ(WrittenFile("plot", "front=f.svg"), "f.svg");
  EXPECT_EQ(WrittenFile("plot", "f.svg"), "f.svg");
  EXPECT_EQ(WrittenFile("emit", "megatron=run.sh"), "run.sh");
  EXPECT_EQ(WrittenFile("emit", "megatron"), "");
  EXPECT_TRUE(MayWriteNothing("emit"));
  EXPECT_FALSE(MayWriteNothing("plot"));
}

}  // namespace
}  // namespace file_flags_test_cc
}  // namespace orrery::tools
