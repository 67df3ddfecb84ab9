#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/paths_test_util.h"
#include "tests/cli/run.h"

// Names that are known: errors that tell which was meant, lists of them, and shells that complete
// them.

namespace orrery::cli {
namespace names_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

std::string ErrorOf(const std::string& command) {
  const Finished finished = Execute(command);
  EXPECT_NE(finished.code, 0);
  EXPECT_EQ(finished.out, "");
  return std::string(absl::StripTrailingAsciiWhitespace(finished.err));
}

TEST(UnknownNames, TellWhichWasMeant) {
  Clear();
  const std::string step = "simulate --batch-size 8 --model ", on = " --cluster dgx-h100:1";
  EXPECT_EQ(ErrorOf("simulate --modle gpt2-small"),
            "simulate: unrecognised option '--modle'; did you mean --model? --help names all");
  EXPECT_EQ(ErrorOf("grid_search --microbatches 4"),
            "grid_search: unrecognised option '--microbatches'; did you mean --micro-batches? "
            "--help names all");
  EXPECT_EQ(ErrorOf(step + "gpt3-17b" + on),
            "simulate: gpt3-17b: is no model; did you mean gpt3-13b or gpt3-175b? --list-models "
            "names all");
  EXPECT_EQ(ErrorOf(step + "lama3-8b:seq=64" + on),
            "simulate: lama3-8b:seq=64: is no model; did you mean llama3-8b? --list-models names "
            "all");
  EXPECT_EQ(ErrorOf(step + "mlp --cluster dgx-h10:1"),
            "simulate: --cluster 'dgx-h10:1': got kind 'dgx-h10'; did you mean dgx-h100? "
            "--list-clusters names all");
  EXPECT_EQ(ErrorOf(step + "mlp --cluster fattree:16@50GB/s"),
            "simulate: --cluster 'fattree:16@50GB/s': got kind 'fattree'; did you mean fat-tree? "
            "--list-clusters names all");
  EXPECT_EQ(ErrorOf(step + "mlp --schedule interleave" + on),
            "simulate: --schedule: schedule 'interleave' is unknown; did you mean interleaved? "
            "--list-schedules names all");
  EXPECT_EQ(ErrorOf(step + "mlp --algorithm halving-dubling" + on),
            "simulate: --algorithm: algorithm 'halving-dubling' is unknown; did you mean "
            "halving-doubling? --list-algorithms names all");
  EXPECT_EQ(ErrorOf(step + "mlp --stack torchtitn" + on),
            "simulate: --stack: there is no stack 'torchtitn'; did you mean torchtitan? "
            "--list-stacks names all");
  EXPECT_EQ(ErrorOf(step + "mlp --cost-model rofline" + on),
            "simulate: cost model 'rofline' is unknown; wanted one of roofline, distir, kernels, "
            "kernels:FILE or measured:FILE; did you mean roofline?");
  EXPECT_EQ(ErrorOf(step + "mlp --preset distr" + on),
            "simulate: --preset 'distr': wanted distir; did you mean distir?");
  EXPECT_EQ(ErrorOf("opt mlp --passes simplfy"),
            "opt: there is no pass 'simplfy'; did you mean simplify? --list-passes names all");
  EXPECT_THAT(ErrorOf("collective --kind allreduce" + on),
              testing::EndsWith("; did you mean all-reduce?"));
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST(Listings, AreALineEach) {
  Clear();
  for (const char* command :
       {"simulate --list-models", "grid_search --list-models", "simulate --list-schedules",
        "schedule --list-schedules", "simulate --list-algorithms", "simulate --list-cost-models",
        "simulate --list-presets", "simulate --list-stacks", "grid_search --list-stacks",
        "collective --list-kinds", "simulate --list-devices"}) {
    SCOPED_TRACE(command);
    const Finished finished = Execute(command);
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.err, "");
    const std::vector<std::string> lines = Lines(finished.out);
    EXPECT_FALSE(lines.empty());
    for (const std::string& line : lines) {
      // A name, and from the column on what it is.
      ASSERT_GT(line.size(), 28u) << line;
      EXPECT_NE(line[0], ' ') << line;
      EXPECT_EQ(line[27], ' ') << line;
      EXPECT_NE(line[28], ' ') << line;
    }
  }
  EXPECT_THAT(Execute("simulate --list-models").out, HasSubstr("\ngpt3-175b  "));
}

// What bash offers for `line`, with the cursor at its end; words are cut as bash cuts them.
std::vector<std::string> Offered(const std::string& program, const std::string& line) {
  const Finished script = Execute(program + " --completion bash");
  EXPECT_EQ(script.code, 0) << script.err;
  Write("completion.bash", script.out);
  std::string words, word;
  int count = 0;
  const auto end_word = [&] {
    absl::StrAppend(&words, " '", word, "'");
    word.clear();
    ++count;
  };
  for (const char c : line) {
    if (c == ' ' && word.empty()) continue;
    const bool breaks = c == '=' || c == ':';
    if ((c == ' ' || breaks) && !word.empty()) end_word();
    if (breaks) {
      word = std::string(1, c);
      end_word();
    } else if (c != ' ') {
      word.push_back(c);
    }
  }
  // Behind a mark the cursor is on the mark; behind a blank on a new word.
  const bool on_mark = line.back() == '=' || line.back() == ':';
  if (!on_mark) end_word();
  Write("ask.bash", absl::StrCat("source completion.bash || exit 3\nCOMP_LINE='", line,
                                 "' COMP_POINT=", line.size(), " COMP_WORDS=(", words,
                                 ") COMP_CWORD=", count - 1, "\nentry=$(complete -p ", program,
                                 ")\nfunction=${entry#*-F }\n\"${function%% *}\"\n"
                                 "printf '%s\\n' \"${COMPREPLY[@]}\"\n"));
  const Finished finished = Execute(program + " --version >&2; bash --norc --noprofile ask.bash");
  EXPECT_EQ(finished.code, 0) << finished.err;
  return Lines(finished.out);
}

TEST(BashCompletion, OffersFlags) {
  Clear();
  EXPECT_THAT(Offered("simulate", "simulate --micro"), ElementsAre("--micro-batches"));
  EXPECT_THAT(
      Offered("simulate", "simulate --dp 2 --list-s"),
      testing::UnorderedElementsAre("--list-schedules", "--list-server-places", "--list-stacks"));
  EXPECT_THAT(Offered("grid_search", "grid_search "),
              IsSupersetOf({"--model", "--budget", "--quiet", "--completion"}));
  EXPECT_THAT(Offered("schedule", "schedule --microb"), IsEmpty());
  // Of both forms of its command line.
  EXPECT_THAT(Offered("kernel", "kernel --roof"), ElementsAre("--roofline"));
  EXPECT_THAT(Offered("kernel", "kernel --sha"), IsSupersetOf({"--shape"}));
}

TEST(BashCompletion, OffersValues) {
  Clear();
  EXPECT_THAT(Offered("simulate", "simulate --schedule zb-h"), ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(Offered("simulate", "simulate --schedule=zb-h"), ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(Offered("simulate", "simulate --recompute "),
              IsSupersetOf({"none", "selective", "full"}));
  EXPECT_THAT(Offered("simulate", "simulate --zero "), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(
      Offered("simulate", "simulate --optimizer "),
      ElementsAre("none", "sgd", "momentum", "adam", "adagrad", "lion", "adafactor", "muon"));
  EXPECT_THAT(Offered("grid_search", "grid_search --space f"), ElementsAre("full"));
  EXPECT_THAT(Offered("grid_search", "grid_search --schedule 1f1b,inter"),
              ElementsAre("1f1b,interleaved", "1f1b,interleaved-zero-bubble"));
  EXPECT_THAT(Offered("simulate", "simulate --cluster dgx-h"),
              ElementsAre("dgx-h100:", "dgx-h200:"));
  EXPECT_THAT(Offered("simulate", "simulate --model gpt3-1"),
              IsSupersetOf({"gpt3-125m", "gpt3-175b"}));
  EXPECT_THAT(Offered("opt", "opt mlp --passes simplify,fuse-gel"),
              ElementsAre("simplify,fuse-gelu"));
  EXPECT_THAT(Offered("simulate", "simulate --stack nem"), ElementsAre("nemo"));
  EXPECT_THAT(Offered("simulate", "simulate --dp "), IsEmpty());
}

TEST(BashCompletion, OffersFiles) {
  Clear();
  Write("models.onnx", "");
  EXPECT_THAT(Offered("simulate", "simulate --model mod"), ElementsAre("models.onnx"));
  EXPECT_THAT(Offered("simulate", "simulate --json=mod"), ElementsAre("models.onnx"));
  EXPECT_THAT(Offered("simulate", "simulate --cost-model measured:mod"), IsEmpty());
  EXPECT_THAT(Offered("opt", "opt mod"), ElementsAre("models.onnx"));
  EXPECT_THAT(Offered("opt", "opt gpt3-17"), ElementsAre("gpt3-175b"));
}

TEST(Completion, IsOfBothNamesUnlessInstalled) {
  Clear();
  EXPECT_THAT(
      Execute("grid_search --completion bash").out,
      testing::EndsWith("\ncomplete -F _orrery_grid_search grid_search orrery-grid-search\n"));
  const std::string installed = absl::StrCat("ln -sf ", BinDir(),
                                             "/grid_search orrery-grid-search; "
                                             "./orrery-grid-search --completion ");
  EXPECT_THAT(Execute("grid_search --version >&2; " + installed + "bash").out,
              testing::EndsWith("\ncomplete -F _orrery_grid_search orrery-grid-search\n"));
  EXPECT_THAT(Execute("grid_search --version >&2; " + installed + "zsh").out,
              testing::StartsWith("#compdef orrery-grid-search\n"));
  EXPECT_EQ(ErrorOf("simulate --completion fish"),
            "simulate: --completion 'fish': wanted bash or zsh");
}

TEST(ZshCompletion, IsReadByZsh) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "there is no zsh here";
  Clear();
  for (const char* program : {"collective", "goodput", "grid_search", "kernel", "opt",
                              "redistribute", "schedule", "simulate", "validate"}) {
    const Finished script = Execute(absl::StrCat(program, " --completion zsh"));
    Write("completion.zsh", script.out);
    const Finished read = Execute(absl::StrCat(program, " --version >&2; zsh -n completion.zsh"));
    EXPECT_EQ(read.code, 0) << program << read.err;
  }
}

}  // namespace
}  // namespace names_test_cc
}  // namespace orrery::cli
