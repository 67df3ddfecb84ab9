#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "importer/builtin_models.h"
#include "importer/onnx_test_util.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/sanitized_test_util.h"
#include "tests/cli/run.h"

// Each bad input: the command, its exit code, and the one line on standard error. Nothing on
// standard output, and no file.

namespace orrery::cli {
namespace errors_test_cc {
namespace {

struct BadInput {
  int code;
  std::string command;
  std::string err;
};

// So that a failure shows the command.
void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.command; }

class BadInputs : public testing::TestWithParam<BadInput> {};

const std::string kMlp = "--model mlp:layers=4,dim=64 --batch-size 64 --cluster uniform:4@200Gbps";

TEST_P(BadInputs, EndWithOneClearLine) {
  Clear();
  Write("empty.orr", "");
  Write("unknown_op.orr",
        "func @f (\n  %x: f32[4,4] data\n) {\n  %y: f32[4,4] = Gulp(%x)\n  return %y: result\n}\n");
  Write("unfinished.orr", "func @f (\n  %x: f32[4,4] data\n");
  Write("garbage.onnx", "this is no model\n");
  const Finished finished = Execute(GetParam().command);
  EXPECT_EQ(finished.code, GetParam().code);
  EXPECT_EQ(finished.err, GetParam().err + "\n");
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(Left(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Models, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {1, "simulate --model nowhere.onnx --batch-size 64 --cluster uniform:4@200Gbps",
         "simulate: nowhere.onnx: no such file"},
        {1, "simulate --model nowhere.orr --batch-size 64 --cluster uniform:4@200Gbps",
         "simulate: nowhere.orr: no such file"},
        {1, "simulate --model yolo9 --batch-size 64 --cluster uniform:4@200Gbps",
         absl::StrCat(
             "simulate: yolo9: is no model; wanted FILE.onnx, FILE.orr or a built-in one: ",
             importer::BuiltinModels())},
        {1, "simulate --model mlp:layers=0 --batch-size 64 --cluster uniform:4@200Gbps",
         "simulate: mlp:layers=0: layers is '0'; wanted a whole number from 1 to 1000000"},
        {1, "simulate --model unknown_op.orr --batch-size 4 --cluster uniform:4@200Gbps",
         "simulate: unknown_op.orr:4:18: found 'Gulp'; wanted the name of an op"},
        {1, "simulate --model unfinished.orr --batch-size 4 --cluster uniform:4@200Gbps",
         "simulate: unfinished.orr:3:1: found the end of the text; wanted ',' or ')'"},
        {1, "opt empty.orr", "opt: empty.orr: found 0 functions; wanted one"},
        {1, "simulate --model mlp --batch-size -5 --cluster uniform:4@200Gbps",
         "simulate: --batch-size -5: wanted at least 1 sample"},
        {1, "simulate --model mlp --batch-size 9223372036854775807 --cluster uniform:4@200Gbps",
         "simulate: mlp: batch is 9223372036854775807; wanted 1 to 4294967296"},
        {1, "simulate " + kMlp + " --dtype fp12",
         "simulate: --dtype 'fp12': wanted model, fp32, fp16, bf16, fp8-mixed, fp8-block, "
         "nvfp4-mixed or fp8"},
        {1, "simulate " + kMlp + " --recompute all",
         "simulate: --recompute 'all': wanted none, selective, full, every:K with K of at least "
         "1, modules:NAME,…, or match:REGEX"},
        {1, "grid_search " + kMlp + " --recompute 'none,match:('",
         "grid_search: --recompute 'match:(': wanted a regular expression of at most 1000 "
         "characters, as in match:gelu|norm"},
        {1, "simulate " + kMlp + " --recompute match:gelu",
         "simulate: 'match:gelu': finds no value that forward keeps for backward; opt names "
         "them with `stages`"},
        {1, "simulate " + kMlp + " --optimizer lamb",
         "simulate: mlp:layers=4,dim=64: there is no optimizer 'lamb'; wanted none, sgd, momentum, "
         "adam, adagrad, lion, adafactor or muon"},
        {1, "simulate " + kMlp + " --symbol batch",
         "simulate: --symbol 'batch': wanted NAME=NUMBER, as in batch=8"}}));

INSTANTIATE_TEST_SUITE_P(
    Clusters, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {1, "simulate --model mlp --batch-size 64 --cluster cube:4",
         "simulate: --cluster 'cube:4': got kind 'cube'; wanted uniform or one of dgx-a100, "
         "dgx-h100, dgx-v100, dgx-a100-40gb, dgx-h200, dgx-b200, dgx-b300, gb200-nvl72, "
         "gb300-nvl72, gh200, aws-p4de, "
         "aws-p5, aws-p5en, aws-p6-b200, h100-torchtitan, mi250x, mi300x, mi350x, mi355x, tpu-v4, "
         "tpu-v5p, "
         "tpu-v5e, tpu-v6e, tpu-v7, l40s, rtx-pro-6000-server, titan-rtx, rtx-3090, rtx-4090, "
         "rtx-5090, pcie-workstation, "
         "fully-connected, ring, switch, nodes, rails, torus, mesh, product, fat-tree, dragonfly, "
         "or a .textproto or .json file, as in uniform:16@200Gbps"},
        {1, "simulate --model mlp --batch-size 64 --cluster uniform:0@200Gbps",
         "simulate: --cluster 'uniform:0@200Gbps': got '0' devices; wanted 1 to 1048576, as in "
         "uniform:16@200Gbps"},
        {1, "simulate --model mlp --batch-size 64 --cluster uniform:4@0Gbps",
         "simulate: --cluster 'uniform:4@0Gbps': '0Gbps' is no bandwidth; wanted a positive number "
         "with a unit, such as 200Gbps (bits) or 300GB/s (bytes)"},
        {1, "simulate " + kMlp + " --cost-model oracle",
         "simulate: cost model 'oracle' is unknown; wanted one of roofline, distir, kernels, "
         "kernels:FILE or measured:FILE"},
        {1, "simulate " + kMlp + " --algorithm all-reduce=in-line",
         "simulate: --algorithm: algorithm 'in-line' is unknown; wanted one of ring, "
         "bidirectional-ring, multidimensional-ring, tree, minimum-spanning-tree, "
         "halving-doubling, direct, hierarchical, in-network, shortest-path-tree, packed-trees"},
        {1, "simulate " + kMlp + " --preset megatron",
         "simulate: --preset 'megatron': wanted distir"},
        {1, "simulate " + kMlp + " --memory-limit -5",
         "simulate: --memory-limit '-5': wanted bytes, such as 40GB, or none"},
        {1, "simulate " + kMlp + " --bucket-size -5",
         "simulate: --bucket-size '-5': wanted bytes, such as 25MiB, or none to reduce each "
         "gradient by itself"},
        {1, "simulate " + kMlp + " --order dp,dp,pp",
         "simulate: --order: order 'dp,dp,pp'; wanted dp, hp and pp once each, and cp and ep at "
         "most once, "
         "as in hp,dp,pp or hp,cp,ep,dp,pp (fastest first)"}}));

INSTANTIATE_TEST_SUITE_P(
    Degrees, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {1, "simulate " + kMlp + " --dp 0",
         "simulate: dp=0 hp=1 pp=1; wanted degrees from 1 to 16777216"},
        {1, "simulate " + kMlp + " --dp 1000000007",
         "simulate: dp=1000000007 hp=1 pp=1; wanted degrees from 1 to 16777216"},
        {1, "simulate " + kMlp + " --dp 16777216 --hp 16777216 --pp 16777216",
         "simulate: dp=16777216 hp=16777216 pp=16777216; wanted at most 16777216 ranks"},
        {1, "simulate " + kMlp + " --dp 8",
         "simulate: uniform:4@200Gbps has 4 devices; --dp 8 --hp 1 --pp 1 --micro-batches 1 "
         "--schedule 1f1b wants 8"},
        {1, "simulate " + kMlp + " --dp 3",
         "simulate: infeasible (divisibility): dp=3: dimension 0 of %x (64) does not divide"},
        {1, "simulate " + kMlp + " --hp 3 --sharding megatron",
         "simulate: infeasible (divisibility): hp=3: dimension 1 of %w0 (64) does not divide"},
        {1, "simulate " + kMlp + " --pp 3 --preset distir",
         "simulate: infeasible (divisibility): 4 layers do not divide into 3 stages"},
        {1, "simulate " + kMlp + " --micro-batches 5",
         "simulate: infeasible (divisibility): a batch of 64 does not divide into 5 microbatches"},
        {1, "simulate " + kMlp + " --micro-batches 0",
         "simulate: 0 microbatches; wanted at least 1"},
        {1, "simulate " + kMlp + " --micro-batches 9223372036854775807",
         "simulate: infeasible (divisibility): a batch of 64 does not divide into "
         "9223372036854775807 microbatches"},
        {1,
         "simulate --model mlp:layers=2,dim=16 --batch-size 4294967296 --cluster "
         "uniform:4@200Gbps --micro-batches 4294967296",
         "simulate: infeasible (unsupported): would be at least 4294967296 tasks; at most 67108864 "
         "are simulated; try fewer microbatches"},
        {1, "simulate " + kMlp + " --pp 2 --micro-batches 9223372036854775807",
         "simulate: infeasible (divisibility): a batch of 64 does not divide into "
         "9223372036854775807 microbatches"}}));

// What would be taken and then not be used.
INSTANTIATE_TEST_SUITE_P(
    Swallowed, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {1, "simulate " + kMlp + " --loss mse",
         "simulate: --loss mse: mlp:layers=4,dim=64 has a loss or gradients of its own; wanted a "
         "model without"},
        {1, "simulate " + kMlp + " --output y3",
         "simulate: --output y3: mlp:layers=4,dim=64 has a loss or gradients of its own; wanted a "
         "model without"},
        {1, "simulate " + kMlp + " --preset distir --loss sum",
         "simulate: --loss sum: mlp:layers=4,dim=64 has a loss or gradients of its own; wanted a "
         "model without"},
        {1, "opt mlp:layers=4,dim=64 --batch-size 64 --loss sum",
         "opt: --loss sum: mlp:layers=4,dim=64 has a loss or gradients of its own; wanted a model "
         "without"},
        {1, "simulate " + kMlp + " --loss none --output a3",
         "simulate: --output a3: --loss none puts a loss on no output; wanted one of them"},
        {1, "simulate " + kMlp + " --loss none --optimizer adam",
         "simulate: --optimizer adam: --loss none trains nothing; wanted one of them, or "
         "--optimizer none"},
        {1, "grid_search " + kMlp + " --loss none --optimizer sgd",
         "grid_search: --optimizer sgd: --loss none trains nothing; wanted one of them, or "
         "--optimizer none"},
        {1, "simulate " + kMlp + " --most-unfolded-tasks -1",
         "simulate: --most-unfolded-tasks -1: wanted at least 0 tasks"},
        {1, "simulate " + kMlp + " --json ''",
         "simulate: --json '': wanted the name of a file to write"},
        {1, "grid_search " + kMlp + " --csv ''",
         "grid_search: --csv '': wanted the name of a file to write"},
        {1, "simulate " + kMlp + " --hp 2 --tp 4",
         "simulate: --hp and --tp are one flag; got 2 and 4, wanted one value"},
        {1, "grid_search " + kMlp + " --tp 2 --hp 1,2",
         "grid_search: --hp and --tp are one flag; got 1,2 and 2, wanted one value"}}));

INSTANTIATE_TEST_SUITE_P(
    Lists, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {1, "grid_search " + kMlp + " --dp 0",
         "grid_search: --dp '0': wanted numbers of at least 1, as in 1,2,4"},
        {1, "grid_search " + kMlp + " --hp 1,two", "grid_search: --hp 'two': wanted a number"},
        {1, "grid_search " + kMlp + " --micro-batches 9223372036854775807",
         "grid_search: --micro-batches '9223372036854775807': wanted numbers of at least 1, as in "
         "1,2,4"},
        {1, "grid_search " + kMlp + " --dp 3",
         "grid_search: no degrees dp, hp, pp, cp, ep in the lists make 4 devices; try leaving one "
         "of "
         "--dp, --hp, --pp out, or smaller --cp and --ep"},
        {1, "grid_search " + kMlp + " --threads -1",
         "grid_search: --threads and --top: wanted numbers of at least 0"},
        {1, "grid_search " + kMlp + " --top -1",
         "grid_search: --threads and --top: wanted numbers of at least 0"}}));

INSTANTIATE_TEST_SUITE_P(
    Usage, BadInputs,
    testing::ValuesIn(std::vector<BadInput>{
        {2, "simulate " + kMlp + " --no-such-flag",
         "simulate: unrecognised option '--no-such-flag'; try --help"},
        {2, "simulate " + kMlp + " --tokens 1T",
         "simulate: unrecognised option '--tokens'; grid_search has it: try --help there, or here"},
        {2, "simulate --model mlp --batch-size 64",
         "simulate: the option '--cluster' is required but missing; try --help"},
        {2, "simulate " + kMlp + " --dp",
         "simulate: the required argument for option '--dp' is missing; try --help"},
        {2, "simulate " + kMlp + " --dp two",
         "simulate: the argument ('two') for option '--dp' is invalid; try --help"},
        {2, "simulate " + kMlp + " --micro-batches 99999999999999999999",
         "simulate: the argument ('99999999999999999999') for option '--micro-batches' is invalid; "
         "try --help"},
        {2, "simulate " + kMlp + " leftover",
         "simulate: too many positional options have been specified on the command line; try "
         "--help"},
        {2, "grid_search " + kMlp + " --threads 99999999999",
         "grid_search: the argument ('99999999999') for option '--threads' is invalid; try "
         "--help"},
        // Flags of plans are there where something reads them.
        {2, "grid_search " + kMlp + " --schedule-file orders.csv",
         "grid_search: unrecognised option '--schedule-file'; try --help"},
        {2, "opt one.orr --stages --slices balanced",
         "opt: unrecognised option '--slices'; try --help"},
        {2, "opt one.orr two.orr",
         "opt: too many positional options have been specified on the command line; try "
         "--help"}}));

// Where the message depends on a path or on the system: one line, code 1, nothing printed or left.
void ExpectOneLine(const std::string& command, const std::string& part) {
  SCOPED_TRACE(command);
  Clear();
  const Finished finished = Execute(command);
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
  EXPECT_THAT(finished.err, testing::HasSubstr(part));
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(Left(), testing::IsEmpty());
}

// It lists the names that there are, of which more come.
TEST(Schedules, ThatAreUnknown) {
  const Finished finished = Execute("simulate " + kMlp + " --schedule unheard-of");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(
      finished.err,
      testing::MatchesRegex("simulate: --schedule: schedule 'unheard-of' is unknown; wanted one of "
                            "gpipe, 1f1b, [a-z0-9, -]*distir\n"));
}

TEST(Outputs, ThatCannotBeWritten) {
  ExpectOneLine("simulate " + kMlp + " --json /proc/report.json",
                "/proc/report.json: cannot be written");
  ExpectOneLine("simulate " + kMlp + " --trace /proc/trace.json.gz",
                "/proc/trace.json.gz: cannot be written");
  ExpectOneLine("simulate " + kMlp + " --json .", ".: is a folder; wanted a file");
}

// A search has printed its table by then.
TEST(Outputs, OfASearchThatCannotBeWritten) {
  Clear();
  const Finished finished =
      Execute("grid_search " + kMlp + " --csv /proc/grid.csv --json grid.json");
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, testing::StartsWith("grid_search: /proc/grid.csv: cannot be written"));
  EXPECT_THAT(Left(), testing::IsEmpty());
}

TEST(Outputs, AreNotWrittenForAConfigurationThatCannotRun) {
  ExpectOneLine("simulate " + kMlp + " --dp 3 --json report.json --trace trace.json", "infeasible");
}

TEST(Models, CutShort) {
  Clear();
  const std::string whole = ReadFile(SourceDir() + "/examples/models/mlp_64x512.onnx").value();
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    Write("short.onnx", whole.substr(0, bytes));
    const Finished finished =
        Execute("simulate --model short.onnx --batch-size 8192 --cluster uniform:4@200Gbps");
    EXPECT_EQ(finished.code, 1) << bytes;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished.err;
    EXPECT_THAT(finished.err, testing::StartsWith("simulate: short.onnx: "));
  }
}

TEST(Models, WithDynamicDimensionsAndUnknownOps) {
  Clear();
  const auto write = [](const std::string& name, const std::string& graph) {
    Write(name, importer::ModelOf(graph).SerializeAsString());
  };
  write("dynamic.onnx", "g (float[N,S] x) => (float[N,S] y) { y = Relu(x) }");
  write("sine.onnx", "g (float[4,8] x) => (float[4,8] y) { y = Gulp(x) }");
  const auto error = [](const std::string& model) {
    const Finished finished =
        Execute("simulate --model " + model + " --batch-size 4 --cluster uniform:4@200Gbps");
    EXPECT_EQ(finished.code, 1);
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  EXPECT_EQ(
      error("dynamic.onnx"),
      "simulate: dynamic.onnx: no value for the dynamic dimension 'S' (dimension 1 of 'x'); try "
      "--symbol S=VALUE\n");
  EXPECT_EQ(error("dynamic.onnx --symbol T=8"),
            "simulate: dynamic.onnx: symbol 'T' is no dynamic dimension of an input; wanted one of "
            "N, S\n");
  EXPECT_THAT(
      error("sine.onnx"),
      testing::AllOf(testing::StartsWith("simulate: sine.onnx: "),
                     testing::HasSubstr("op type Gulp is not supported"), testing::EndsWith("\n")));
}

// Both names of a flag, and a loss that is what a model without one gets, contradict nothing.
TEST(Flags, MaySayTwiceWhatIsSo) {
  Clear();
  for (const char* flags : {"--hp 2 --tp 2", "--loss auto", "--preset distir"}) {
    const Finished finished = Execute("simulate " + kMlp + " " + flags);
    EXPECT_EQ(finished.code, 0) << flags << finished.err;
  }
}

TEST(Help, NamesFlagsAndAnExample) {
  for (const char* program : {"simulate", "grid_search", "opt"}) {
    const Finished finished = Execute(std::string(program) + " --help");
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.err, "");
    EXPECT_THAT(finished.out, testing::AllOf(testing::HasSubstr("--batch-size"),
                                             testing::HasSubstr("Example:\n  build/bin/"),
                                             testing::HasSubstr("Usage: ")));
  }
}

// The example that --help gives works from the root of the repository.
TEST(Help, ItsExampleWorks) {
  Clear();
  for (const std::string& program : CasesToWalk<std::string>({"simulate", "grid_search", "opt"})) {
    const std::string help = Execute(program + " --help").out;
    const size_t begin = help.find("build/bin/");
    std::string example = help.substr(begin, help.find('\n', begin) - begin);
    const size_t models = example.find("examples/models");
    ASSERT_NE(models, std::string::npos) << example;
    example.replace(models, std::string("examples/models").size(), "$MODELS");
    const Finished finished = Execute(example.substr(std::string("build/bin/").size()));
    EXPECT_EQ(finished.code, 0) << example << finished.err;
  }
}

// A file that shows its form is trained as it is, and a warning says so; a forward is what it is
// for.
TEST(Warnings, TellOfEvaluationForm) {
  Clear();
  const std::string norm = R"(
g (float[2,3,8,8] x) => (float[2,3,8,8] y)
<float[3] s = {1, 2, 3}, float[3] b = {1, 2, 3}, float[3] m = {1, 2, 3}, float[3] v = {1, 2, 3}> {
  y = BatchNormalization(x, s, b, m, v)
})";
  Write("norm.onnx", importer::ModelOf(norm).SerializeAsString());
  const std::string warning =
      "warning: norm.onnx: is in evaluation form: 1 of 1 BatchNormalization";
  const std::string model = " --model norm.onnx --batch-size 2 --cluster dgx-h100:1";
  EXPECT_THAT(Execute("simulate" + model).err, testing::StartsWith(warning));
  EXPECT_THAT(Execute("grid_search" + model).err, testing::StartsWith(warning));
  EXPECT_THAT(Execute("opt norm.onnx --step").err, testing::StartsWith(warning));
  EXPECT_EQ(Execute("simulate --loss none" + model).err, "");
  EXPECT_EQ(Execute("opt norm.onnx").err, "");
}

}  // namespace
}  // namespace errors_test_cc
}  // namespace orrery::cli
