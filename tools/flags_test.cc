#include "tools/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cost_models/cost_model.h"
#include "ir/text/text.h"
#include "support/file.h"

namespace orrery::tools {
namespace flags_test_cc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// How a program ended, and what it wrote.
struct Ended {
  int code = 0;
  std::string out, err;
};

// A program with --model, --batch-size, …, run in this process.
Ended RunModel(
    const std::vector<std::string>& words, ModelFlags& flags,
    const std::function<absl::Status()>& body = [] { return absl::OkStatus(); },
    bool searches = false) {
  ProgramSpec spec{.usage = "play --model M",
                   .about = "Plays a model.",
                   .example = "play --model mlp",
                   .options = boost::program_options::options_description("Flags"),
                   .searches = searches};
  AddModelFlags(spec.options, flags);
  std::vector<std::string> storage = words;
  storage.insert(storage.begin(), "play");
  std::vector<char*> argv;
  for (std::string& word : storage) argv.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = RunProgram(static_cast<int>(argv.size()), argv.data(), spec, body);
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

const std::vector<std::string> kNeeded = {"--model", "mlp:layers=2,dim=8", "--batch-size",
                                          "4",       "--cluster",          "uniform:2@200Gbps"};

std::vector<std::string> With(const std::vector<std::string>& more) {
  std::vector<std::string> words = kNeeded;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Ended EndOf(const std::function<absl::Status()>& body) {
  ModelFlags flags;
  return RunModel(kNeeded, flags, body);
}

TEST(RunProgram, EndsAsItsBodyDoes) {
  const Ended well = EndOf([] {
    std::cout << "12 us";  // nobody flushes
    return absl::OkStatus();
  });
  EXPECT_EQ(well.code, 0);
  EXPECT_EQ(well.out, "12 us");
  EXPECT_EQ(well.err, "");
  const Ended badly = EndOf([] { return absl::NotFoundError("no such thing"); });
  EXPECT_EQ(badly.code, 1);
  EXPECT_EQ(badly.err, "play: no such thing\n");
}

TEST(RunProgram, LetsNoExceptionOut) {
  const Ended memory = EndOf([]() -> absl::Status { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code, 1);
  EXPECT_EQ(memory.err, "play: out of memory; try a smaller model, batch or search\n");
  const Ended other = EndOf([]() -> absl::Status { throw std::runtime_error("a bug"); });
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.err, "play: a bug\n");
}

// Names of files may hold anything.
TEST(RunProgram, WritesErrorsOnOneLineThatPrints) {
  EXPECT_EQ(EndOf([] { return absl::NotFoundError("a\nb\x1b[31m\tc é"); }).err,
            "play: a\\nb\\x1b[31m\\tc é\n");
}

TEST(RunProgram, SaysSoWhereItsOutputIsLost) {
  const Ended lost = EndOf([] {
    std::cout.setstate(std::ios::badbit);
    return absl::OkStatus();
  });
  std::cout.clear();
  EXPECT_EQ(lost.code, 1);
  EXPECT_EQ(lost.err, "play: standard output cannot be written\n");
}

TEST(RunProgram, WrongUsageIsTwoAndRunsNothing) {
  const auto fail = [] { return absl::InternalError("the body has run"); };
  ModelFlags flags;
  const Ended missing = RunModel({"--model", "mlp", "--batch-size", "4"}, flags, fail);
  EXPECT_EQ(missing.code, 2);
  EXPECT_EQ(missing.err, "play: the option '--cluster' is required but missing; try --help\n");
  const Ended unknown = RunModel(With({"--color"}), flags, fail);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "play: unrecognised option '--color'; try --help\n");
}

// Also where what is needed is missing.
TEST(RunProgram, AnswersHelpFirst) {
  ModelFlags flags;
  const auto fail = [] { return absl::InternalError("the body has run"); };
  for (const char* flag : {"--help", "-h"}) {
    const Ended help = RunModel({flag}, flags, fail);
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, StartsWith("Plays a model.\n\nUsage: play --model M\n\nFlags:\n"));
    EXPECT_THAT(help.out, HasSubstr("--list-clusters"));
    EXPECT_THAT(help.out, testing::EndsWith("\nExample:\n  play --model mlp\n"));
  }
}

// Spellings in a column of 28, or on a line of their own where they do not fit.
TEST(RunProgram, ListsClustersInTwoColumns) {
  ModelFlags flags;
  const Ended list = RunModel({"--list-clusters"}, flags);
  EXPECT_EQ(list.code, 0);
  const std::vector<std::string> lines = absl::StrSplit(list.out, '\n');
  size_t line = 0;
  int wide = 0;
  for (const cluster::ClusterSpelling& spelling : cluster::ListClusters()) {
    const std::string at28 = std::string(28, ' ') + spelling.summary;
    if (spelling.example.size() >= 28) {
      ++wide;
      EXPECT_EQ(lines.at(line++), spelling.example);
      EXPECT_EQ(lines.at(line++), at28);
    } else {
      EXPECT_EQ(lines.at(line++), spelling.example + at28.substr(spelling.example.size()));
    }
  }
  EXPECT_EQ(line + 1, lines.size());
  EXPECT_GT(wide, 0);
}

TEST(RunProgram, KnowsNoClustersWhereItTakesNone) {
  ProgramSpec spec{.usage = "", .about = "", .example = "", .options = {}};
  std::string program = "opt", flag = "--list-clusters";
  char* argv[] = {program.data(), flag.data()};
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunProgram(2, argv, spec, [] { return absl::OkStatus(); }), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "opt: unrecognised option '--list-clusters'; try --help\n");
}

TEST(ModelFlags, AreReadAsGiven) {
  ModelFlags flags;
  const Ended ended = RunModel(With({"--optimizer",
                                     "sgd",
                                     "--symbol",
                                     "n=3",
                                     "--symbol",
                                     "m=4",
                                     "--loss",
                                     "mse",
                                     "--output",
                                     "y",
                                     "--freeze",
                                     "w.*",
                                     "--no-simplify",
                                     "--cost-model",
                                     "distir",
                                     "--memory-limit",
                                     "40GB",
                                     "--memory-overhead",
                                     "usual",
                                     "--no-fold",
                                     "--most-unfolded-tasks",
                                     "77"}),
                               flags);
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(flags.model, "mlp:layers=2,dim=8");
  EXPECT_EQ(flags.batch_size, 4);
  EXPECT_EQ(flags.cluster, "uniform:2@200Gbps");
  EXPECT_EQ(flags.optimizer, "sgd");
  EXPECT_THAT(flags.symbols, testing::ElementsAre("n=3", "m=4"));
  EXPECT_EQ(flags.loss.kind, "mse");
  EXPECT_EQ(flags.loss.output, "y");
  EXPECT_EQ(flags.roles.freeze, "w.*");
  EXPECT_EQ(flags.cost_model, "distir");
  EXPECT_EQ(flags.memory_limit, "40GB");
  EXPECT_EQ(flags.memory_overhead, "usual");
  EXPECT_TRUE(flags.no_simplify);
  EXPECT_TRUE(flags.no_fold);
  EXPECT_EQ(flags.most_unfolded_tasks, 77);
}

// Help names what records are there, and so do errors.
TEST(ModelFlags, HelpNamesWhatThereIs) {
  ModelFlags flags;
  boost::program_options::options_description options;
  AddModelFlags(options, flags);
  const auto help = [&](const char* flag) { return options.find(flag, false).description(); };
  EXPECT_EQ(help("optimizer"),
            "none, sgd, momentum, adam, adagrad, lion, adafactor or muon [adam]");
  EXPECT_THAT(help("loss"), HasSubstr(": auto, cross-entropy, mse, sum or none, "));
  for (const cost_models::CostModelInfo* info : cost_models::AllCostModels()) {
    EXPECT_THAT(help("cost-model"), HasSubstr(std::string(info->name)));
  }
  EXPECT_THAT(help("cost-model"), HasSubstr(" or measured:FILE [kernels]"));
}

TEST(ModelFlags, DefaultToNothingSaid) {
  ModelFlags flags;
  ASSERT_EQ(RunModel(kNeeded, flags).code, 0);
  EXPECT_EQ(flags.optimizer + flags.cost_model + flags.preset + flags.memory_limit, "");
  EXPECT_FALSE(flags.no_simplify);
  EXPECT_FALSE(flags.no_fold);
  EXPECT_EQ(flags.most_unfolded_tasks, 65536);
}

// A preset's flags hold where the command line says nothing.
TEST(ModelFlags, OfThePresetAreOverridden) {
  ModelFlags flags;
  ASSERT_EQ(RunModel(With({"--preset", "distir", "--optimizer", "adam"}), flags).code, 0);
  EXPECT_EQ(flags.optimizer, "adam");
  EXPECT_EQ(flags.cost_model, "distir");
  EXPECT_EQ(flags.loss.kind, "mse");
  EXPECT_EQ(flags.memory_limit, "none");
  EXPECT_TRUE(flags.no_simplify);
  ModelFlags unknown;
  EXPECT_EQ(RunModel(With({"--preset", "abacus"}), unknown).code, 0);  // MakeSetting refuses it
  EXPECT_EQ(unknown.cost_model, "");
}

// "micro-batches distir" is a flag of searches alone.
TEST(ModelFlags, OfThePresetThatSearchesHave) {
  for (const bool searches : {false, true}) {
    ModelFlags flags;
    std::string microbatches = "unsaid";
    ProgramSpec spec{.usage = "", .about = "", .example = "", .options = {}, .searches = searches};
    spec.options.add_options()("preset", boost::program_options::value(&flags.preset))(
        "micro-batches", boost::program_options::value(&microbatches));
    std::string program = "p", flag = "--preset=distir";
    char* argv[] = {program.data(), flag.data()};
    EXPECT_EQ(RunProgram(2, argv, spec, [] { return absl::OkStatus(); }), 0);
    EXPECT_EQ(microbatches, searches ? "distir" : "unsaid");
  }
}

ModelFlags Mlp() {
  ModelFlags flags;
  flags.model = "mlp:layers=2,dim=8";
  flags.batch_size = 4;
  flags.cluster = "dgx-a100:1";
  return flags;
}

std::string ErrorOf(const ModelFlags& flags) {
  return std::string(MakeSetting(flags).status().message());
}

TEST(MakeSetting, TellsWhatWasAskedFor) {
  const search::Setting setting = MakeSetting(Mlp(), {.dp = 8}).value();
  EXPECT_EQ(setting.model_name, "mlp:layers=2,dim=8");
  EXPECT_EQ(setting.batch_size, 4);
  EXPECT_EQ(setting.cluster.size(), 8);
  EXPECT_EQ(setting.made_for.dp, 8);
  EXPECT_EQ(setting.base.dp, 1);
  EXPECT_EQ(setting.tokens_a_sample, 1);
  EXPECT_TRUE(setting.lowering.fold);
  EXPECT_EQ(setting.lowering.memory_limit, Bytes(0));
  EXPECT_TRUE(setting.lowering.device_memory);
  // Forward 2 * 4 * 8 * 8 a layer, backward twice that: this model returns the gradient of its
  // data.
  EXPECT_EQ(setting.model_flops, Flops(2 * (512 + 2 * 512)));
  EXPECT_THAT(ir::Print(setting.step), HasSubstr("Adam("));
}

TEST(MakeSetting, TakesLimitsOfMemory) {
  ModelFlags flags = Mlp();
  const auto limit = [&](const std::string& text) {
    flags.memory_limit = text;
    const search::Setting setting = MakeSetting(flags).value();
    return absl::StrCat(setting.lowering.memory_limit.count(),
                        setting.lowering.device_memory ? ", device" : "");
  };
  EXPECT_EQ(limit(""), "0, device");
  EXPECT_EQ(limit("none"), "0");
  EXPECT_EQ(limit("40GB"), "40000000000");
  for (const char* text : {"0", "many"}) {
    flags.memory_limit = text;
    EXPECT_EQ(ErrorOf(flags),
              absl::StrCat("--memory-limit '", text, "': wanted bytes, such as 40GB, or none"));
  }
}

TEST(MakeSetting, TakesWhatChangesTheStep) {
  ModelFlags flags = Mlp();
  flags.optimizer = "sgd";
  flags.no_fold = true;
  flags.most_unfolded_tasks = 5;
  const search::Setting setting = MakeSetting(flags).value();
  EXPECT_THAT(ir::Print(setting.step), HasSubstr("Sgd("));
  EXPECT_FALSE(setting.lowering.fold);
  EXPECT_EQ(setting.lowering.most_unfolded_tasks, 5);
}

TEST(MakeSetting, NamesTheFlagThatIsWrong) {
  ModelFlags flags = Mlp();
  flags.batch_size = 0;
  EXPECT_EQ(ErrorOf(flags), "--batch-size 0: wanted at least 1 sample");
  flags = Mlp();
  flags.preset = "abacus";
  EXPECT_EQ(ErrorOf(flags), "--preset 'abacus': wanted distir");
  flags = Mlp();
  flags.memory_overhead = "abacus";
  EXPECT_THAT(ErrorOf(flags), StartsWith("--memory-overhead"));
  flags = Mlp();
  flags.optimizer = "abacus";
  EXPECT_THAT(ErrorOf(flags), StartsWith("mlp:layers=2,dim=8: "));
  flags = Mlp();
  flags.batch_size = 1;
  EXPECT_EQ(ErrorOf(flags), "");
}

TEST(LoadModel, WantsSymbolsWithNumbers) {
  ModelFlags flags = Mlp();
  for (const char* symbol : {"batch", "=8", "batch=", "batch=0", "batch=-1", "batch=two", "8"}) {
    flags.symbols = {symbol};
    EXPECT_EQ(LoadModel(flags).status().message(),
              absl::StrCat("--symbol '", symbol, "': wanted NAME=NUMBER, as in batch=8"));
  }
}

TEST(CheckFiles, WantsOutputsThatNothingReads) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/orrery_check_files.", getpid(), "/");
  const std::string file = folder + "model.orr", link = folder + "link", hard = folder + "hard";
  ASSERT_TRUE(WriteFile(file, "x").ok());
  std::filesystem::create_symlink("model.orr", link);
  std::filesystem::create_hard_link(file, hard);
  const std::string dotted = folder + "./model.orr", other = folder + "other";
  for (const std::string& text : {file, dotted, link, hard, "measured:" + file + ",only=H100",
                                  "measured:" + file, "a,b:" + file, file + ",x"}) {
    for (const std::string& output : {file, link, hard, dotted}) {
      const std::vector<FlagText> outputs = {{"json", output}}, others = {{"model", text}};
      EXPECT_EQ(CheckFiles(outputs, others).message(),
                absl::StrCat("--json ", output,
                             ": is the file that --model reads; wanted another one to write"));
    }
    const std::vector<FlagText> outputs = {{"json", other}}, others = {{"model", text}};
    EXPECT_TRUE(CheckFiles(outputs, others).ok()) << text;
  }
  const std::vector<FlagText> into = {{"csv", file + "/x"}},
                              twice = {{"csv", link}, {"json", file}};
  EXPECT_THAT(std::string(CheckFiles(into, {}).message()), testing::HasSubstr("cannot be written"));
  EXPECT_THAT(std::string(CheckFiles(twice, {}).message()), testing::HasSubstr("two outputs"));
  const std::vector<FlagText> device = {{"json", "/dev/null"}}, reads = {{"model", "/dev/null"}};
  EXPECT_TRUE(CheckFiles(device, reads).ok());
  EXPECT_EQ(*ReadFile(file), "x");
  std::filesystem::remove_all(folder);
}

TEST(CheckOutputs, WantsAFileEach) {
  EXPECT_TRUE(CheckOutputs({}).ok());
  EXPECT_TRUE(CheckOutputs(std::vector<std::string>{"", "a", "", "b", ""}).ok());
  EXPECT_EQ(CheckOutputs(std::vector<std::string>{"b", "", "a", "", "a"}).message(),
            "a: two outputs go to this file; wanted one each");
  EXPECT_FALSE(CheckOutputs(std::vector<std::string>{"a", "a"}).ok());
  // By whatever name.
  EXPECT_EQ(CheckOutputs(std::vector<std::string>{"a", "./a"}).message(),
            "./a: two outputs go to this file; wanted one each");
  EXPECT_FALSE(CheckOutputs(std::vector<std::string>{"b/../a", "a"}).ok());
  EXPECT_TRUE(CheckOutputs(std::vector<std::string>{"b/a", "a"}).ok());
}

}  // namespace
}  // namespace flags_test_cc
}  // namespace orrery::tools
