#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "ir/verifier.h"
#include "support/sanitized_test_util.h"
#include "support/status.h"
#include "tests/semantics/compare.h"
#include "tests/semantics/random_step.h"
#include "transforms/parallel.h"
#include "transforms/plan/plan_test_util.h"
#include "transforms/plan/plan_text.h"
#include "transforms/sharding/model_step_test_util.h"
#include "transforms/sharding/plain_prices_test_util.h"
#include "transforms/training/microbatch.h"

// Megatron's pattern along hp, cp and ep changes nothing that is computed, refuses nothing that
// divides, and sends what the papers say.

namespace orrery::semantics {
namespace pattern_test_cc {
namespace {

using transforms::ParallelPlan;
using transforms::PlainPrices;
using transforms::SequenceParallel;
using transforms::ShardingMethod;

constexpr SequenceParallel kSequences[] = {SequenceParallel::kAuto, SequenceParallel::kOff,
                                           SequenceParallel::kOn};

// The step by the pattern, verified; none where that is infeasible.
std::optional<ir::Function> ByPattern(const ir::Function& step, const ir::Mesh& mesh,
                                      SequenceParallel sequence) {
  const PlainPrices prices(mesh, {.flops = 1e12, .bytes = 1e11, .link = 1e10, .latency = 1e-8});
  auto sharded = transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices,
                                       {.pattern = sequence});
  EXPECT_TRUE(sharded.ok() || AsInfeasible(sharded.status()).has_value()) << sharded.status();
  if (!sharded.ok()) return std::nullopt;
  EXPECT_TRUE(ir::Verify(*sharded).ok()) << ir::Verify(*sharded);
  return *std::move(sharded);
}

// On all of these meshes, with the sequence split or not; all can be.
void ExpectSameByPattern(const ir::Function& step, const std::vector<ir::Mesh>& meshes) {
  const Named inputs = RandomInputs(step, 5);
  const Named expected = RunAll(step, inputs).outputs;
  for (const ir::Mesh& mesh : meshes) {
    for (const SequenceParallel sequence : kSequences) {
      SCOPED_TRACE(absl::StrCat(ir::ToString(mesh), " ", static_cast<int>(sequence)));
      const auto sharded = ByPattern(step, mesh, sequence);
      ASSERT_TRUE(sharded.has_value());
      const Outcome outcome = RunAll(*sharded, inputs);
      ExpectSame(outcome.outputs, expected);
      EXPECT_LE(outcome.disagreement, kTolerance);
      if (testing::Test::HasFailure()) FAIL() << ir::Print(*sharded);
    }
  }
}

ir::Mesh Mesh(int64_t dp, int64_t ep, int64_t cp, int64_t hp) {
  return ir::Mesh({{"dp", dp}, {"ep", ep}, {"cp", cp}, {"hp", hp}});
}

class Pattern : public testing::TestWithParam<std::pair<absl::string_view, absl::string_view>> {};

INSTANTIATE_TEST_SUITE_P(
    Models, Pattern,
    testing::Values(
        std::pair("gpt", "layers=2,hidden=8,heads=4,seq=8,vocab=8"),
        std::pair("gpt",
                  "layers=1,hidden=16,heads=8,kv_heads=2,seq=8,vocab=16,mlp=swiglu,ffn=16,"
                  "flash=1,tied_embeddings=0"),
        std::pair("gpt", "layers=1,hidden=8,heads=4,seq=8,vocab=9,qkv=packed,flash=1"),
        std::pair("gpt", "layers=1,hidden=8,heads=4,seq=8,vocab=8,mlp=swiglu,ffn=8,experts=4"),
        std::pair("gpt", "layers=1,hidden=8,heads=4,seq=8,vocab=8,experts=4,topk=1,flash=1"),
        std::pair("hybrid",
                  "pattern=M*-,hidden=8,heads=4,seq=8,vocab=8,ffn=8,mamba_heads=8,mamba_dim=2,"
                  "groups=4,state=2,chunk=4"),
        std::pair("hybrid",
                  "pattern=EM,hidden=8,seq=8,vocab=8,mamba_heads=4,mamba_dim=2,groups=4,state=2,"
                  "experts=4,topk=2,expert_ffn=8,shared_ffn=8,latent=4"),
        std::pair("gpt",
                  "layers=1,hidden=8,heads=4,seq=8,vocab=8,mlp=swiglu,ffn=8,experts=4,lora=2"),
        std::pair("bert", "layers=1,hidden=8,heads=4,seq=8,vocab=12,classes=4")));

TEST_P(Pattern, LeavesTransformersTheSame) {
  const auto& [family, keys] = GetParam();
  ExpectSameByPattern(transforms::ModelStep(family, keys, 4),
                      {Mesh(1, 1, 1, 2), Mesh(2, 1, 1, 4), Mesh(1, 1, 2, 2), Mesh(1, 2, 1, 2),
                       Mesh(1, 4, 1, 1), Mesh(2, 1, 4, 1), Mesh(2, 2, 2, 2)});
}

// A transformer of sizes at random, most of which divide.
struct Sizes {
  explicit Sizes(uint32_t seed) : random(seed) {
    // Each draw stands alone: the order in which arguments are evaluated is the compiler's.
    const int64_t heads = Of({2, 3, 4, 6});
    const int64_t width = Of({2, 4});
    const int64_t groups = heads % 2 == 0 ? Of({1, 2, heads}) : Of({1, heads});
    const int64_t experts = Of({0, 0, 2, 4});
    const int64_t length = Of({4, 5, 8});
    const int64_t vocabulary = Of({8, 9, 12});
    const int64_t hidden = Of({8, 12});
    keys = absl::StrCat("layers=1,hidden=", heads * width, ",heads=", heads, ",kv_heads=", groups,
                        ",seq=", length);
    absl::StrAppend(&keys, ",vocab=", vocabulary, ",ffn=", hidden);
    absl::StrAppend(&keys, ",flash=", Of({0, 1}));
    absl::StrAppend(&keys, ",tied_embeddings=", Of({0, 1}));
    if (Of({0, 1}) == 1) keys += ",mlp=swiglu,norm=rms,position=rotary,bias=0";
    if (experts > 0) absl::StrAppend(&keys, ",experts=", experts, ",topk=", Of({1, 2}));
    const int64_t dp = Of({1, 2});
    const int64_t ep = Of({1, 2});
    const int64_t cp = Of({1, 2});
    const int64_t hp = Of({1, 2, 3, 4});
    mesh = Mesh(dp, ep, cp, hp);
    hp_divides = heads % hp == 0 && hidden % hp == 0;
    sequence = kSequences[Of({0, 1, 2})];
    length_divides = length % (sequence == SequenceParallel::kOn ? cp * hp : cp) == 0;
  }

  int64_t Of(const std::vector<int64_t>& values) { return values[random() % values.size()]; }

  std::mt19937 random;
  std::string keys;
  bool hp_divides = true;      // some weight over hp
  bool length_divides = true;  // the sequence over cp, and over hp where that is asked for
  ir::Mesh mesh;
  SequenceParallel sequence = SequenceParallel::kAuto;
};

TEST(Patterns, OfRandomTransformersAreTheSame) {
  int taken = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(120u); ++seed) {
    const Sizes sizes(seed);
    SCOPED_TRACE(absl::StrCat("seed=", seed, " ", sizes.keys, " ", ir::ToString(sizes.mesh), " ",
                              static_cast<int>(sizes.sequence)));
    const ir::Function step = transforms::ModelStep("gpt", sizes.keys, 4);
    const auto sharded = ByPattern(step, sizes.mesh, sizes.sequence);
    if (HasFailure()) return;
    if (!sharded.has_value()) {
      ASSERT_FALSE(sizes.hp_divides && sizes.length_divides);
      continue;
    }
    ++taken;
    const Named inputs = RandomInputs(step, seed);
    const Outcome outcome = RunAll(*sharded, inputs);
    ExpectSame(outcome.outputs, RunAll(step, inputs).outputs);
    EXPECT_LE(outcome.disagreement, kTolerance);
    if (HasFailure()) FAIL() << ir::Print(*sharded);
  }
  EXPECT_GE(taken, CasesToWalk(80));
}

// Of graphs that are no transformers, whatever of the pattern there is in them.
TEST(Patterns, OfRandomStepsAreTheSame) {
  int taken = 0;
  for (uint32_t seed = 0; seed < CasesToWalk(100u); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed=", seed));
    const ir::Function step = RandomStep({.seed = seed,
                                          .layers = 1 + static_cast<int>(seed % 4),
                                          .batch = 12,
                                          .width_unit = seed % 5 == 0 ? 3 : 12,
                                          .tied = seed % 2 == 0},
                                         "momentum");
    const ir::Mesh mesh = Mesh(1 + seed % 2, 1, 1, 2 + seed / 2 % 3);
    const auto sharded = ByPattern(step, mesh, kSequences[seed % 3]);
    if (HasFailure()) return;
    if (!sharded.has_value()) continue;
    ++taken;
    const Named inputs = RandomInputs(step, seed);
    const Outcome outcome = RunAll(*sharded, inputs);
    ExpectSame(outcome.outputs, RunAll(step, inputs).outputs);
    EXPECT_LE(outcome.disagreement, kTolerance);
    if (HasFailure()) FAIL() << ir::Print(*sharded);
  }
  EXPECT_GE(taken, CasesToWalk(80));
}

TEST(Patterns, InPipelinesAreTheSame) {
  for (const auto& [keys, plan] : std::vector<std::pair<const char*, ParallelPlan>>{
           {"layers=2,hidden=16,heads=4,seq=8,vocab=8,tied_embeddings=0,flash=1",
            {.dp = 2, .hp = 2, .pp = 2, .cp = 2, .microbatches = 2}},
           {"layers=2,hidden=16,heads=4,seq=8,vocab=8,flash=1",
            {.hp = 4, .pp = 2, .microbatches = 2}},
           {"layers=2,hidden=8,heads=2,kv_heads=1,seq=4,vocab=8,mlp=swiglu,ffn=8,experts=4",
            {.hp = 2, .pp = 2, .ep = 4, .microbatches = 2}}}) {
    const ir::Function step = transforms::ModelStep("gpt", keys, 16);
    const Named inputs = RandomInputs(step, 5);
    const Named expected = RunAll(step, inputs).outputs;
    for (const SequenceParallel sequence : kSequences) {
      ParallelPlan with = transforms::ByFlops(plan);
      with.sharding = ShardingMethod::kMegatron;
      with.sequence_parallel = sequence;
      SCOPED_TRACE(ToString(with));
      const PlainPrices prices(transforms::MakeMesh(with).value(), {});
      const auto sharded = transforms::ParallelTransform3d(step, with, {.prices = &prices});
      ASSERT_TRUE(sharded.ok()) << sharded.status();
      const PipelinedOutcome outcome = RunPipelined(*sharded, OrdersOf("1f1b", *sharded), inputs);
      ExpectSame(outcome.outputs, expected, 1e-8);
      EXPECT_LE(outcome.disagreement, 1e-8);
      EXPECT_EQ(outcome.lost, 0);
    }
  }
}

// Collectives along an axis of a step, by kind: how many, and the elements a rank has of the larger
// side.
struct Traffic {
  int count = 0;
  int64_t elements = 0;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
std::map<ir::OpKind, Traffic> TrafficOf(const ir::Function& function, absl::string_view axis) {
  std::map<ir::OpKind, Traffic> traffic;
  for (const ir::OpId op : function.order()) {
    if (function.info(op).op_class != ir::OpClass::kCollective) continue;
    ir::AxisList axes;
    EXPECT_TRUE(ir::ParseAxes(function.attributes(op), function.mesh(), axes).ok());
    if (!axes.contains(*function.mesh().Find(axis))) continue;
    Traffic& row = traffic[function.kind(op)];
    const auto elements = [&](ir::ValueId value) {
      return ir::ElementCount(ir::LocalType(function.type(value), function.mesh()).dims);
    };
    ++row.count;
    row.elements += std::max(elements(function.operands(op)[0]), elements(function.result(op)));
  }
  return traffic;
}

// Shoeybi et al. 2019: two all-reduces a layer forward and two backward, each of b s h. Korthikanti
// et al. 2022: as many reduce-scatters and all-gathers of as much instead.
TEST(Patterns, SendWhatThePapersSay) {
  constexpr int64_t kBatch = 2, kSequence = 8, kHidden = 64;
  const auto layers = [&](int64_t count, SequenceParallel sequence) {
    const std::string keys =
        absl::StrCat("layers=", count, ",hidden=", kHidden, ",heads=4,seq=", kSequence,
                     ",vocab=32,tied_embeddings=0,flash=1");
    return TrafficOf(
        *ByPattern(transforms::ModelStep("gpt", keys, kBatch), Mesh(1, 1, 1, 2), sequence), "hp");
  };
  const auto of_a_layer = [&](ir::OpKind kind, SequenceParallel sequence) {
    const Traffic two = layers(2, sequence)[kind], three = layers(3, sequence)[kind];
    return Traffic{three.count - two.count, three.elements - two.elements};
  };
  const Traffic four = {4, 4 * kBatch * kSequence * kHidden};
  EXPECT_EQ(of_a_layer(ir::OpKind::kAllReduce, SequenceParallel::kOff), four);
  for (const ir::OpKind kind :
       {ir::OpKind::kReduceScatter, ir::OpKind::kAllGather, ir::OpKind::kAllToAll}) {
    EXPECT_EQ(of_a_layer(kind, SequenceParallel::kOff), Traffic()) << static_cast<int>(kind);
    const Traffic expected = kind == ir::OpKind::kAllToAll ? Traffic() : four;
    EXPECT_EQ(of_a_layer(kind, SequenceParallel::kOn), expected) << static_cast<int>(kind);
  }
  // Beside layers: the embedding, the gradient of what the logits are made of, and of the loss two
  // numbers a row and rank.
  auto none = layers(2, SequenceParallel::kOff);
  EXPECT_EQ(none[ir::OpKind::kAllReduce].elements - 2 * four.elements,
            2 * kBatch * kSequence * kHidden);
  EXPECT_EQ(none[ir::OpKind::kAllGather], (Traffic{1, kBatch * kSequence * 2 * 2}));
}

// Whole experts, all of their matrices, at every degree; also where shardings are chosen by cost,
// whatever the prices; and parts of them where their number does not divide.
TEST(Patterns, SplitTheWeightsOfExperts) {
  constexpr char kKeys[] =
      "layers=1,hidden=8,heads=2,seq=4,vocab=8,mlp=swiglu,ffn=16,experts=6,topk=1";
  const ir::Function step = transforms::ModelStep("gpt", kKeys, 24);
  for (const int64_t ep : {2, 3, 4, 6}) {
    for (const double link : {1e6, 1e9, 1e12}) {
      const ir::Mesh mesh = Mesh(1, ep, 1, 1);
      const PlainPrices prices(mesh, {.flops = 1e12, .bytes = 1e11, .link = link, .latency = 1e-8});
      for (const bool pattern : {false, true}) {
        transforms::AutoShardOptions options;
        if (pattern) options.pattern = SequenceParallel::kAuto;
        const auto sharded =
            transforms::AutoShard(step, mesh, transforms::BatchedInputs(step), prices, options);
        ASSERT_TRUE(sharded.ok()) << sharded.status();
        const ir::AxisIndex axis = *mesh.Find("ep");
        for (const ir::Input& input : sharded->inputs()) {
          const ir::TensorType& type = sharded->type(input.value);
          if (input.role != ir::InputRole::kParameter) continue;
          SCOPED_TRACE(ir::PrintValue(*sharded, input.value));
          const bool experts = type.dims.size() == 3;
          const bool whole_experts = type.sharding.at(0).contains(axis);
          EXPECT_TRUE(!experts || whole_experts || 6 % ep != 0);
          EXPECT_TRUE(!experts || type.sharding.Uses(axis));
          EXPECT_FALSE(!experts && pattern && type.sharding.Uses(axis));
        }
      }
    }
  }
}

}  // namespace
}  // namespace pattern_test_cc
}  // namespace orrery::semantics
