#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// What programs leave behind: no output takes the place of an input, and what cannot be had, room
// on a disk or memory, ends in one line.

namespace orrery::cli {
namespace outputs_test_cc {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kModel[] =
    "func @f (\n  %x: f32[8,4] data,\n  %w: f32[4,4] parameter\n) {\n"
    "  %y: f32[8,4] = MatMul(%x, %w)\n  return %y: result\n}\n";

// A command that reads IN and can write OUT.
struct Command {
  std::string line;
  std::string input;  // the name that IN has to have
  std::string contents;
};

std::vector<Command> Commands() {
  const std::string data = SourceDir() + "/tests/data/";
  const std::string sweeps = ReadFile(data + "measured_collectives.json").value();
  const std::string cluster =
      ReadFile(SourceDir() + "/examples/clusters/pcie_tree.textproto").value();
  const std::string orders = "0F0,0B0\n";
  const std::string simulate = "simulate --batch-size 8 --memory-limit none ";
  std::vector<Command> commands;
  for (const char* const output : {"--json OUT", "--trace OUT"}) {
    const std::string simulates = absl::StrCat(simulate, output);
    commands.push_back({simulates + " --model IN --cluster uniform:1@8Gbps", "m.orr", kModel});
    commands.push_back(
        {simulates + " --model mlp:layers=2,dim=8 --cluster IN", "c.textproto", cluster});
    commands.push_back({simulates + " --model mlp:layers=2,dim=8 --cluster uniform:1@8Gbps "
                                    "--schedule-file IN",
                        "orders", orders});
    commands.push_back({simulates + " --model mlp:layers=2,dim=8 --cluster uniform:1@8Gbps "
                                    "--cost-model measured:IN",
                        "sweeps.json", sweeps});
  }
  for (const char* const output : {"--csv OUT", "--json OUT", "--trace OUT"}) {
    commands.push_back({absl::StrCat("grid_search --batch-size 8 --memory-limit none ", output,
                                     " --model IN --cluster uniform:1@8Gbps"),
                        "m.orr", kModel});
  }
  commands.push_back({"schedule --from IN --json OUT", "orders", orders});
  return commands;
}

TEST(Outputs, NeverTakeThePlaceOfAnInput) {
  for (const Command& command : Commands()) {
    Clear();
    Write(command.input, command.contents);
    const auto line = [&](const std::string& output) {
      return absl::StrReplaceAll(command.line, {{"IN", command.input}, {"OUT", output}});
    };
    fs::create_symlink(command.input, absl::StrCat(Folder(), "/link"));
    fs::create_hard_link(absl::StrCat(Folder(), "/", command.input),
                         absl::StrCat(Folder(), "/hard"));
    for (const std::string& output :
         {command.input, absl::StrCat("./", command.input),
          absl::StrCat(Folder(), "/", command.input), std::string("link"), std::string("hard")}) {
      SCOPED_TRACE(line(output));
      const Finished finished = Execute(line(output));
      EXPECT_EQ(finished.code, 1);
      EXPECT_THAT(finished.err, HasSubstr("; wanted another one to write\n"));
      EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1);
      EXPECT_EQ(finished.out, "");
      EXPECT_EQ(Contents(command.input), command.contents);
    }
    SCOPED_TRACE(line("other"));
    const Finished finished = Execute(line("other"));
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_THAT(Left(), testing::Contains("other"));
  }
}

TEST(Outputs, DoNotGoWhereTheNextRunReads) {
  Clear();
  const std::string rows = ReadFile(SourceDir() + "/tests/data/measured_collectives.json").value();
  fs::create_directories(Folder() + "/data");
  Write("data/rows.json", "{\"rows\": []}");
  for (const char* output : {"--json data/report.json", "--json ./data/../data/report.json",
                             "--json data/rows.json", "--csv data/rows.json"}) {
    const Finished finished = Execute(absl::StrCat("validate --data data ", output));
    EXPECT_EQ(finished.code, 1) << output;
    EXPECT_THAT(finished.err,
                HasSubstr("is among the files that --data reads; wanted another folder\n"));
    EXPECT_THAT(Left(), testing::ElementsAre("data"));
  }
  EXPECT_EQ(Execute("validate --data data --csv data/report.csv").code, 0);
}

// What cannot be written is told before anything is simulated, not when a search is done.
TEST(Outputs, AreCheckedFirst) {
  Clear();
  Write("file", "x");
  for (const char* output : {"--csv file/grid.csv", "--json /proc/grid.json", "--trace ."}) {
    const Finished finished = Execute(absl::StrCat(
        "grid_search --model mlp --batch-size 64 --cluster uniform:8@200Gbps ", output));
    EXPECT_EQ(finished.code, 1) << output;
    EXPECT_EQ(finished.out, "") << output;
    EXPECT_THAT(Left(), IsEmpty());
  }
}

TEST(Outputs, OfHelpWantRoomToo) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  for (const char* program : {"collective", "goodput", "grid_search", "opt", "redistribute",
                              "schedule", "simulate", "validate"}) {
    for (const char* flag : {"--help", "--list-clusters"}) {
      if (std::string(flag) == "--list-clusters" && std::string(program) != "simulate") continue;
      // What Execute appends takes the standard output: the inner shell has its own.
      const Finished finished =
          Execute(absl::StrCat("schedule --list >/dev/null; sh -c '", BinDir(), "/", program, " ",
                               flag, " >/dev/full'"));
      EXPECT_EQ(finished.code, 1) << program;
      EXPECT_THAT(finished.err, testing::EndsWith(": standard output cannot be written\n"));
    }
  }
}

TEST(Messages, AreOneLineOfTextOfSomeLength) {
  Clear();
  const Finished raw = Execute("simulate --model $'m\\xff\\x1b[31m\\n' --batch-size 8 --cluster c");
  EXPECT_EQ(std::count(raw.err.begin(), raw.err.end(), '\n'), 1) << raw.err;
  EXPECT_EQ(raw.err.find_first_of("\xff\x1b"), std::string::npos) << raw.err;
  for (const std::string& text : {std::string(3000, 'x'), std::string(100'000, 'y')}) {
    for (const char* command : {"simulate --batch-size 8 --cluster uniform:1@8Gbps --model ",
                                "simulate --batch-size 8 --model mlp --cluster ",
                                "collective --cluster uniform:2@8Gbps --kind "}) {
      const Finished finished = Execute(absl::StrCat(command, text));
      EXPECT_EQ(finished.code, 1);
      EXPECT_LT(finished.err.size(), 1100) << command;
    }
  }
}

// Sanitizers reserve more addresses than there is memory.
#ifndef ORRERY_OTHER_HEAP

// Regression: a container that was growing freed on the way out what it did not have.
TEST(Memory, ThatEndsIsOneLine) {
  Clear();
  std::string model = "func @f (\n  %x0: f32[4,4] data\n) {\n";
  constexpr int kOps = 60'000;
  for (int i = 0; i < kOps; ++i) {
    absl::StrAppend(&model, "  %x", i + 1, ": f32[4,4] = Relu(%x", i, ")\n");
  }
  Write("large.orr", absl::StrCat(model, "  return %x", kOps, ": result\n}\n"));
  int short_of_it = 0;
  const auto run_in = [](const std::string& program, int kilobytes) {
    // The first program is for the name that Execute puts before the command.
    return Execute(absl::StrCat("schedule --list >/dev/null; ulimit -v ", kilobytes, "; ", BinDir(),
                                "/", program));
  };
  // Whether it got by.
  const auto run = [&](const std::string& program, int kilobytes) {
    const Finished finished = run_in(program, kilobytes);
    SCOPED_TRACE(absl::StrCat(program, " in ", kilobytes, " KB: ", finished.err));
    if (finished.code == 0) return true;
    // Where there is no room to load the program, it has no say.
    const std::string name = program.substr(0, program.find(' '));
    if (finished.code != 1 && run_in(name + " --help >/dev/null", kilobytes).code != 0)
      return false;
    EXPECT_EQ(finished.code, 1);
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1);
    ++short_of_it;
    return false;
  };
  // With more and more, until it is enough.
  const auto run_with_more = [&](const std::string& program, int from, int to, int step) {
    const int before = short_of_it;
    for (int kilobytes = from; kilobytes <= to && !run(program, kilobytes);) kilobytes += step;
    EXPECT_GT(short_of_it, before) << program;
  };
  run_with_more("opt large.orr", 20'000, 100'000, 2'000);
  run_with_more(
      "grid_search --model mlp:layers=32 --batch-size 64 --micro-batches 8 --threads 8 "
      "--cluster uniform:64@8Gbps --memory-limit none",
      14'000, 100'000, 1'000);
  // Readers of files have another library of C++.
  run_with_more("opt $MODELS/mlp_64x512.onnx --batch-size 64", 14'000, 32'000, 1'000);
  // Regression: with a path of some length, memory could end inside the system's loader, within
  // 132 KB of addresses. It said "out of memory" by itself then, and 127.
  const std::string longer = absl::StrReplaceAll(std::string(700, '.'), {{".", "./"}});
  run_with_more(absl::StrCat("opt $MODELS/", longer, "mlp_64x512.onnx --batch-size 64"), 19'000,
                32'000, 120);
  run_with_more(absl::StrCat("simulate --model mlp --batch-size 8 --cluster ", SourceDir(),
                             "/examples/clusters/pcie_tree.textproto"),
                14'000, 32'000, 1'000);
  EXPECT_GT(short_of_it, 15);
}

#endif

}  // namespace
}  // namespace outputs_test_cc
}  // namespace orrery::cli
