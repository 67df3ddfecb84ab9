#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// Files of opt/: a command, its input, and all that it prints. ORRERY_BLESS=1 rewrites the output.
//
//   // RUN: opt input.orr --passes attach-loss
//   func @f ...
//   // OUTPUT
//   func @f ...

namespace orrery::cli {
namespace opt_test_cc {
namespace {

constexpr absl::string_view kMark = "// OUTPUT\n";

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SourceDir() + "/tests/cli/opt")) {
    files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class OptGolden : public testing::TestWithParam<std::string> {};

TEST_P(OptGolden, PrintsWhatTheFileSays) {
  Clear();
  const std::string path = absl::StrCat(SourceDir(), "/tests/cli/opt/", GetParam());
  const std::string text = ReadFile(path).value();
  const size_t mark = text.find(kMark.data(), 0, kMark.size());
  ASSERT_NE(mark, std::string::npos) << "wanted a line " << kMark;
  const std::string input = text.substr(0, mark);
  const std::string first_line = input.substr(0, input.find('\n'));
  absl::string_view command = first_line;
  ASSERT_TRUE(absl::ConsumePrefix(&command, "// RUN: ")) << GetParam();
  Write("input.orr", input);
  const Finished finished = Execute(std::string(command));
  const std::string output =
      absl::StrCat(finished.out, finished.err, finished.code == 0 ? "" : "exit code ",
                   finished.code == 0 ? "" : absl::StrCat(finished.code, "\n"));
  const char* bless = std::getenv("ORRERY_BLESS");
  if (bless != nullptr && std::string(bless) == "1") {
    ASSERT_TRUE(WriteFile(path, absl::StrCat(input, kMark, output)).ok());
    return;
  }
  EXPECT_EQ(output, text.substr(mark + kMark.size()));
}

INSTANTIATE_TEST_SUITE_P(Files, OptGolden, testing::ValuesIn(Files()), [](const auto& info) {
  return info.param.substr(0, info.param.find('.'));
});

TEST(Opt, ListsPassesWithTheirOptions) {
  const Finished finished = Execute("opt --list-passes");
  EXPECT_EQ(finished.code, 0);
  for (const char* pass :
       {"dead-code ", "attach-loss{loss=auto,output=} ", "build-backward ",
        "append-optimizer{optimizer=sgd} ", "microbatch{count=1} ", "shard{dp=1,hp=1} "}) {
    EXPECT_THAT(finished.out, testing::HasSubstr(pass));
  }
}

TEST(Opt, PrintsAfterEachPass) {
  const Finished finished = Execute(
      "opt mlp:layers=2,dim=4 --batch-size 8 --passes 'append-optimizer{optimizer=adam},"
      "microbatch{count=2},shard{dp=2,hp=2}' --print-after-all --verify-each");
  EXPECT_EQ(finished.code, 0) << finished.err;
  std::vector<std::string> headings;
  for (const absl::string_view line : absl::StrSplit(finished.out, '\n')) {
    if (line.substr(0, 2) == "//") headings.emplace_back(line);
  }
  EXPECT_THAT(headings, testing::ElementsAre("// after append-optimizer", "// after microbatch",
                                             "// after shard"));
}

// Stages of work that have nothing to do say nothing.
TEST(Opt, PrintsAfterEachStageOfWork) {
  const auto headings = [](const std::string& more) {
    const Finished finished = Execute(
        "opt mlp:layers=2,dim=4 --batch-size 8 --optimizer adam --stages --dp 2 "
        "--print-after-all " +
        more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    std::vector<std::string> found;
    for (const absl::string_view line : absl::StrSplit(finished.out, '\n')) {
      if (absl::StartsWith(line, "// after ")) found.emplace_back(line.substr(9));
    }
    return absl::StrJoin(found, " ");
  };
  EXPECT_EQ(headings(""), "microbatch shard cut");
  EXPECT_EQ(headings("--zero 1 --recompute full"), "microbatch shard cut recompute zero");
  EXPECT_EQ(headings("--offload optimizer+activations"),
            "microbatch shard cut offload-activations offload-optimizer");
}

// What shapes the step is seen whether or not --stages asks for it; the type alone is no stage.
TEST(Opt, PrintsStagesWhereThePlanAsksForThem) {
  const std::string opt = "opt mlp:layers=2,dim=4 --batch-size 8 ";
  const auto stages = [&](const std::string& flags) {
    const Finished finished = Execute(opt + flags);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.out;
  };
  const std::string plain = stages("");
  for (const std::string flags : {"--zero 3", "--zero 1 --zero-group 1", "--stages-by layers",
                                  "--micro-batches 2", "--recompute full", "--offload optimizer"}) {
    const std::string printed = stages(flags);
    EXPECT_NE(printed, plain) << flags;
    EXPECT_EQ(printed, stages(flags + " --stages"));
  }
  EXPECT_EQ(stages("--stages-by flops --zero 0"), plain);
  EXPECT_NE(stages("--dtype bf16"), stages("--dtype bf16 --stages"));
  // What only a cluster prices is no flag of it.
  for (const char* flag : {"--cp", "--ep", "--sharding"}) {
    EXPECT_EQ(Execute(absl::StrCat(opt, flag, " 2")).code, 2) << flag;
  }
}

TEST(Opt, ListsAxes) {
  const Finished finished = Execute("opt --list-axes");
  EXPECT_EQ(finished.code, 0);
  EXPECT_THAT(finished.out, testing::StartsWith(
                                "| flag | value | default | in a search | of `opt` | column |\n"));
  EXPECT_THAT(finished.out, testing::HasSubstr("\n| `--chunks` | "));
}

// What is not feasible is found before any of them.
TEST(Opt, ChecksAllStagesOfWorkBeforeTheFirst) {
  for (const auto& [flags, why] : std::vector<std::pair<std::string, std::string>>{
           {"--micro-batches 3", "a batch of 8 does not divide into 3 microbatches"},
           {"--dp 8 --micro-batches 2", "dp=8: dimension 0 of %x (4) does not divide"},
           {"--dp 2 --pp 2 --layers-per-stage 2,1",
            "--layers-per-stage 2,1 adds up to 3 layers; the model has 2"},
           {"--dp 2 --pp 2 --split-at nothing",
            "--split-at 'nothing' matches at 0 positions; wanted 1 for 2 stages"},
           {"--pp 64", "ops do not cut into 64 stages; try fewer of"}}) {
    const Finished finished =
        Execute("opt mlp:layers=2,dim=4 --batch-size 8 --stages --print-after-all " + flags);
    EXPECT_EQ(finished.code, 1) << flags;
    EXPECT_EQ(finished.out, "") << flags;
    EXPECT_TRUE(absl::StrContains(finished.err, why)) << finished.err;
  }
}

TEST(Opt, ReadsWhatItPrints) {
  Clear();
  ASSERT_EQ(
      Execute("opt $MODELS/mlp_64x512.onnx --passes attach-loss,build-backward > once.orr").code,
      0);
  const Finished once = Execute("opt $MODELS/mlp_64x512.onnx --passes attach-loss,build-backward");
  Write("once.orr", once.out);
  EXPECT_EQ(Execute("opt once.orr").out, once.out);
}

}  // namespace
}  // namespace opt_test_cc
}  // namespace orrery::cli
