#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "importer/load_model.h"
#include "importer/onnx_test_util.h"
#include "ir/batch.h"
#include "ir/execution/execute.h"
#include "ir/op_info.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/file.h"
#include "support/paths_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/auto_shard.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/sharding/shard.h"
#include "transforms/simplify/simplify.h"
#include "transforms/training/microbatch.h"
#include "transforms/training/training_step.h"

// The small models of tests/data/exports/: kinds that people export, node by node as PyTorch 1.13
// writes them, with the batch baked into inputs and shapes or computed by the graph. They are
// imported at other batches, simplified, differentiated, and sharded.

namespace orrery {
namespace exports_test_cc {
namespace {

constexpr const char* kExports[] = {
    "vit",       "swin",    "mobilenet",   "densenet", "gpt2_past",  "last_token",
    "experts",   "queries", "llama",       "bart",     "llama_half", "tf_bert",
    "diffusion", "vit_mha", "transformer", "detr",     "seq2seq",    "ort_bert",
    "ort_llama", "crnn",    "siamese",     "pooling",  "frames"};
// With what has no result for each sample besides.
constexpr const char* kTrained[] = {"vit",         "swin",    "mobilenet", "densenet", "gpt2_past",
                                    "last_token",  "experts", "queries",   "llama",    "bart",
                                    "llama_half",  "tf_bert", "diffusion", "own_loss", "vit_mha",
                                    "transformer", "detr",    "seq2seq",   "crnn",     "siamese",
                                    "pooling",     "frames"};

// Those whose samples meet.
constexpr const char* kMeeting[] = {"clip", "clip_loss"};

// The text without its remarks.
std::string ReadGraph(const std::string& name) {
  const std::string text =
      ReadFile(absl::StrCat(SourceDir() + "/tests/data/exports/", name, ".onnx.txt")).value();
  std::string graph;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "//")) absl::StrAppend(&graph, line, "\n");
  }
  return graph;
}

// What is declared and neither made nor given is a weight, whose values lie in a file that nobody
// has.
std::string Write(const std::string& name) {
  onnx::ModelProto model = importer::ModelOf(ReadGraph(name), 14);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const onnx::ValueInfoProto& info : graph.value_info()) {
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(info.name());
    tensor.set_data_type(info.type().tensor_type().elem_type());
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      tensor.add_dims(dim.dim_value());
    }
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  }
  graph.clear_value_info();
  return importer::WriteTestFile(name + ".onnx", model.SerializeAsString());
}

ir::Function Load(const std::string& name, int64_t batch) {
  auto function = importer::LoadModel({.model = Write(name), .batch_size = batch});
  EXPECT_TRUE(function.ok()) << name << " at " << batch << ": " << function.status();
  return function.ok() ? *std::move(function) : ir::Function();
}

// Random inputs with variances that are some.
semantics::Named Inputs(const ir::Function& function, uint32_t seed) {
  semantics::Named inputs = semantics::RandomInputs(function, seed);
  for (auto& [name, tensor] : inputs) {
    const bool variance = name == "v1" || name == "v2";
    for (double& number : tensor.floats()) number = variance ? std::abs(number) + 0.5 : number;
    // Nobody sees what is masked, but for the first token: rows masked all over are undefined.
    if (name != "attention_mask") continue;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      int64_t& seen = tensor.ints()[static_cast<size_t>(i)];
      seen = i % tensor.dims().back() == 0 ? 1 : seen % 2;
    }
  }
  return inputs;
}

TEST(Exports, AtOtherBatches) {
  for (const char* name : kExports) {
    for (const int64_t batch : {1, 2, 3, 8}) {
      const ir::Function function = Load(name, batch);
      EXPECT_EQ(ir::BatchOf(function), batch) << name;
      EXPECT_TRUE(ir::Verify(function).ok()) << name << ": " << ir::Verify(function);
    }
  }
}

// Sample by sample the same: a batch of 4 gives what two batches of 2 give.
TEST(Exports, ABatchIsItsSamples) {
  for (const char* name : kExports) {
    SCOPED_TRACE(name);
    const ir::Function whole = Load(name, 4), half = Load(name, 2);
    const semantics::Named inputs = Inputs(whole, 1);
    const auto all = ir::Execute(whole, inputs, {.round = false});
    ASSERT_TRUE(all.ok()) << all.status();
    semantics::Named first = inputs;
    for (const ir::Input& input : half.inputs()) {
      const std::string input_name(half.value_name(input.value));
      const ir::TensorType& type = half.type(input.value);
      if (type.dims == inputs.at(input_name).dims()) continue;
      ir::Tensor part(type.dtype, type.dims);
      for (int64_t i = 0; i < part.size(); ++i) part.CopyElement(i, inputs.at(input_name), i);
      first[input_name] = part;
    }
    const auto some = ir::Execute(half, first, {.round = false});
    ASSERT_TRUE(some.ok()) << some.status();
    for (size_t o = 0; o < some->outputs.size(); ++o) {
      ASSERT_EQ(2 * some->outputs[o].size(), all->outputs[o].size());
      for (int64_t i = 0; i < some->outputs[o].size(); ++i) {
        EXPECT_NEAR(some->outputs[o].Number(i), all->outputs[o].Number(i), 1e-9);
      }
    }
  }
}

// One of four microbatches, after all that is done to the whole batch, is what a batch of that size
// is.
TEST(Exports, MicrobatchesAreSmallerBatches) {
  for (const char* name : kExports) {
    SCOPED_TRACE(name);
    ir::Function whole = Load(name, 12), part = Load(name, 3);
    ASSERT_TRUE(transforms::Simplify(whole).ok());
    ASSERT_TRUE(transforms::Simplify(part).ok());
    const auto microbatch = transforms::Microbatch(whole, 4);
    ASSERT_TRUE(microbatch.ok()) << microbatch.status();
    EXPECT_EQ(ir::Print(*microbatch), ir::Print(part));
  }
}

// Where each sample meets each other one, the samples of a microbatch do, and those of all ranks.
TEST(Exports, SamplesThatMeet) {
  ir::Function whole = Load("clip", 12), part = Load("clip", 3);
  EXPECT_EQ(part.type(part.outputs()[0].value).dims, (ir::Dims{3, 3}));
  ASSERT_TRUE(transforms::Simplify(whole).ok());
  ASSERT_TRUE(transforms::Simplify(part).ok());
  const auto microbatch = transforms::Microbatch(whole, 4);
  ASSERT_TRUE(microbatch.ok()) << microbatch.status();
  EXPECT_EQ(ir::Print(*microbatch), ir::Print(part));
}

// What simplifying took apart, by columns or by rows of a weight that is stored transposed, put
// together again.
semantics::Named WithWholes(const ir::Function& plain, semantics::Named inputs) {
  for (const ir::Input& input : plain.inputs()) {
    const std::string name(plain.value_name(input.value));
    if (inputs.contains(name)) continue;
    const ir::TensorType& type = plain.type(input.value);
    ir::Tensor whole(type.dtype, type.dims);
    int64_t begin = 0;
    for (int i = 0; inputs.contains(absl::StrCat(name, ".", i)); ++i) {
      const ir::Tensor& part = inputs.at(absl::StrCat(name, ".", i));
      const bool by_rows = part.dims().back() == type.dims.back();
      const int64_t run = by_rows ? part.size() : part.dims().back();
      const int64_t step = by_rows ? 0 : type.dims.back();
      for (int64_t at = 0; at < part.size(); ++at) {
        whole.CopyElement(at / run * step + begin + at % run, part, at);
      }
      begin += run;
    }
    inputs[name] = whole;
  }
  return inputs;
}

// Kernels after simplifying, and that the same is computed.
TEST(Exports, SimplifyToFewKernels) {
  const std::map<std::string, int> most = {
      {"vit", 15},       {"swin", 22},       {"mobilenet", 15},   {"densenet", 10},
      {"gpt2_past", 12}, {"last_token", 30}, {"experts", 30},     {"queries", 30},
      {"llama", 60},     {"bart", 21},       {"llama_half", 13},  {"tf_bert", 11},
      {"diffusion", 14}, {"vit_mha", 14},    {"transformer", 29}, {"detr", 12},
      {"seq2seq", 18},   {"ort_bert", 31},   {"ort_llama", 33},   {"crnn", 20},
      {"siamese", 10},   {"pooling", 11},    {"frames", 11}};
  for (const char* name : kExports) {
    SCOPED_TRACE(name);
    const ir::Function plain = Load(name, 2);
    ir::Function simple = plain;
    ASSERT_TRUE(transforms::Simplify(simple).ok());
    int kernels = 0;
    for (const ir::OpId op : simple.order()) {
      kernels += simple.info(op).op_class == ir::OpClass::kView ? 0 : 1;
    }
    EXPECT_LE(kernels, most.at(name)) << ir::Print(simple);
    const semantics::Named inputs = Inputs(simple, 3);
    const auto expected = ir::Execute(plain, WithWholes(plain, inputs), {.round = false});
    const auto got = ir::Execute(simple, inputs, {.round = false});
    ASSERT_TRUE(expected.ok() && got.ok()) << expected.status() << got.status();
    for (size_t o = 0; o < expected->outputs.size(); ++o) {
      for (int64_t i = 0; i < expected->outputs[o].size(); ++i) {
        EXPECT_NEAR(got->outputs[o].Number(i), expected->outputs[o].Number(i), 1e-6);
      }
    }
  }
}

ir::Function StepOf(const std::string& name) {
  ir::Function step = Load(name, 8);
  const absl::Status made = transforms::MakeTrainingStep(step, {.optimizer = "momentum"});
  EXPECT_TRUE(made.ok()) << name << ": " << made;
  EXPECT_TRUE(ir::Verify(step).ok()) << ir::Verify(step);
  return step;
}

// Samples know nothing of each other: data parallelism sums gradients and losses, and moves no
// more.
TEST(Exports, DataParallelismGathersNothing) {
  for (const std::string name : kTrained) {
    if (name == "own_loss") continue;  // has a result of all samples
    const auto sharded = transforms::Shard(StepOf(name), ir::Mesh({{"dp", 4}}));
    ASSERT_TRUE(sharded.ok()) << name << ": " << sharded.status();
    for (const ir::OpId op : sharded->order()) {
      const absl::string_view kind = sharded->info(op).name;
      EXPECT_TRUE(kind != "AllGather" && kind != "AllToAll")
          << name << ": " << ir::PrintValue(*sharded, sharded->result(op));
    }
  }
}

TEST(Exports, ShardedTheyAreTheSame) {
  std::vector<std::string> names(std::begin(kTrained), std::end(kTrained));
  for (const char* name : kMeeting) names.emplace_back(name);
  for (const std::string& name : names) {
    const ir::Function step = StepOf(name);
    const semantics::Named inputs = Inputs(step, 5);
    const semantics::Named expected = semantics::RunAll(step, inputs).outputs;
    for (const auto& [dp, hp] : std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {4, 3}}) {
      SCOPED_TRACE(absl::StrCat(name, " dp=", dp, " hp=", hp));
      const auto sharded = transforms::Shard(step, ir::Mesh({{"dp", dp}, {"hp", hp}}));
      if (hp == 3 && AsInfeasible(sharded.status()).has_value()) continue;  // a width of 32
      ASSERT_TRUE(sharded.ok()) << sharded.status();
      ASSERT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
      semantics::ExpectSame(semantics::RunAll(*sharded, inputs).outputs, expected);
    }
  }
}

// Column and row products, tables and losses by the vocabulary, and streams along the sequence.
TEST(Exports, ByThePatternTheyAreTheSame) {
  for (const char* name : kTrained) {
    const ir::Function step = StepOf(name);
    const semantics::Named inputs = Inputs(step, 5);
    const semantics::Named expected = semantics::RunAll(step, inputs).outputs;
    for (const ir::Mesh& mesh : {ir::Mesh({{"dp", 1}, {"hp", 2}}), ir::Mesh({{"dp", 2}, {"hp", 4}}),
                                 ir::Mesh({{"dp", 1}, {"ep", 2}, {"hp", 2}})}) {
      const transforms::PlainPrices prices(mesh, {});
      for (const auto sequence :
           {transforms::SequenceParallel::kOff, transforms::SequenceParallel::kOn}) {
        SCOPED_TRACE(absl::StrCat(name, " ", ir::ToString(mesh), " ", static_cast<int>(sequence)));
        const auto sharded = transforms::AutoShard(step, mesh, transforms::BatchedInputs(step),
                                                   prices, {.pattern = sequence});
        if (AsInfeasible(sharded.status()).has_value()) continue;  // a width of 2
        ASSERT_TRUE(sharded.ok()) << sharded.status();
        ASSERT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
        semantics::ExpectSame(semantics::RunAll(*sharded, inputs).outputs, expected);
      }
    }
  }
}

semantics::Named Trained(const ir::Function& step, const transforms::ParallelPlan& plan,
                         const semantics::Named& inputs) {
  const auto pipelined = transforms::ParallelTransform3d(step, transforms::ByFlops(plan));
  EXPECT_TRUE(pipelined.ok()) << ToString(plan) << ": " << pipelined.status();
  if (!pipelined.ok()) return {};
  return semantics::RunPipelined(*pipelined, semantics::OrdersOf("1f1b", *pipelined), inputs)
      .outputs;
}

// Negatives of a rank's own are those of as many microbatches more; those of all ranks are those of
// the microbatch.
TEST(Exports, NegativesAreOfTheMicrobatchOrOfTheRank) {
  for (const char* name : kMeeting) {
    SCOPED_TRACE(name);
    const ir::Function step = StepOf(name);
    semantics::Named inputs = Inputs(step, 6);
    for (auto& [input, tensor] : inputs) {  // labels among any two samples
      if (input != "labels") continue;
      for (int64_t& label : tensor.ints()) label %= 2;
    }
    const semantics::Named of_two = Trained(step, {.microbatches = 4}, inputs);
    const auto expect = [&](const transforms::ParallelPlan& plan,
                            const semantics::Named& expected) {
      SCOPED_TRACE(ToString(plan));
      semantics::ExpectSame(Trained(step, plan, inputs), expected);
    };
    constexpr auto kLocal = transforms::ContrastiveNegatives::kLocal;
    expect({.dp = 2}, Trained(step, {}, inputs));
    expect({.dp = 2, .microbatches = 2, .negatives = kLocal}, of_two);
    // Sums over microbatches, which a single one lacks, are outputs of their own.
    semantics::ExpectSame(of_two, Trained(step, {.dp = 4, .negatives = kLocal}, inputs));
    expect({.dp = 2, .pp = 2, .microbatches = 2, .negatives = kLocal}, of_two);
  }
}

TEST(Exports, NegativesOfTheRankAreNotGathered) {
  for (const char* name : kMeeting) {
    const ir::Function step = StepOf(name);
    const auto gathered = transforms::ParallelTransform3d(step, transforms::ByFlops({.dp = 4}));
    const auto local = transforms::ParallelTransform3d(
        step,
        transforms::ByFlops({.dp = 4, .negatives = transforms::ContrastiveNegatives::kLocal}));
    ASSERT_TRUE(gathered.ok() && local.ok()) << gathered.status() << local.status();
    EXPECT_FALSE(gathered->gathered.empty()) << name;
    EXPECT_TRUE(local->gathered.empty()) << name << ": " << ToString(local->gathered);
  }
}

TEST(Exports, PipelinedTheyAreTheSame) {
  for (const std::string name : kTrained) {
    if (name == "queries") continue;  // has no layers to cut
    const ir::Function step = StepOf(name);
    const semantics::Named inputs = Inputs(step, 6);
    const semantics::Named expected = semantics::RunAll(step, inputs).outputs;
    for (const transforms::ParallelPlan& plan : std::vector<transforms::ParallelPlan>{
             {.pp = 2, .microbatches = 4}, {.dp = 2, .hp = 2, .pp = 2, .microbatches = 2}}) {
      SCOPED_TRACE(absl::StrCat(name, " ", ToString(plan)));
      const auto pipelined = transforms::ParallelTransform3d(step, transforms::ByFlops(plan));
      ASSERT_TRUE(pipelined.ok()) << pipelined.status();
      const auto outcome =
          semantics::RunPipelined(*pipelined, semantics::OrdersOf("1f1b", *pipelined), inputs);
      semantics::ExpectSame(outcome.outputs, expected);
      EXPECT_EQ(outcome.lost, 0);
    }
  }
}

}  // namespace
}  // namespace exports_test_cc
}  // namespace orrery
