#include "lowering/kernel_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cluster/device.h"
#include "cost_models/cost_model.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "lowering/blocks/batched_kernels.h"
#include "lowering/blocks/kernel_room.h"
#include "lowering/blocks/pointwise_groups.h"

// Which kernels a function is: by hand, and of random functions against sets of what is read and
// written, an order in which launches can run, and registers that are counted one by one.

namespace orrery::lowering {
namespace kernel_listing_test_cc {
namespace {

using testing::ElementsAre;

constexpr StackKernels kAlone = {};
constexpr StackKernels kFused = {.fuses_pointwise = true};
constexpr StackKernels kAll = {
    .fuses_pointwise = true, .bounds_fusion = true, .batches_kernels = true};

ir::Function Parsed(const std::string& text) {
  const auto function = ir::ParseFunction(text);
  EXPECT_TRUE(function.ok()) << function.status() << "\n" << text;
  return function.ok() ? *function : ir::Function("none");
}

KernelListing List(const ir::Function& function, const StackKernels& kernels) {
  const auto cost_model = cost_models::MakeCostModel("kernels").value();
  const cluster::Device device = *cluster::FindDevice("a100-80gb");
  return ListKernels(function, {.cost_model = *cost_model, .device = &device, .kernels = kernels});
}

// "1: a b" a kernel: its launch, and what its ops make.
std::vector<std::string> Lines(const ir::Function& function, const KernelListing& listing) {
  std::vector<std::string> lines;
  for (const ListedKernel& kernel : listing.kernels) {
    std::vector<std::string> names;
    for (const ir::OpId op : kernel.ops) {
      names.emplace_back(function.value_name(function.result(op)));
    }
    lines.push_back(absl::StrCat(kernel.launch, ": ", absl::StrJoin(names, " ")));
  }
  return lines;
}

constexpr int64_t kMiB = int64_t{1} << 20;

// E = D + (A + B) C of tensors of 4 MiB: nine of them go to and from memory op by op, five of one
// kernel.
TEST(KernelListing, FusesAChain) {
  const ir::Function chain = Parsed(R"(func @chain (
  %A: f32[1024,1024] data, %B: f32[1024,1024] data, %C: f32[1024,1024] data, %D: f32[1024,1024] data
) {
  %s: f32[1024,1024] = Add(%A, %B)
  %p: f32[1024,1024] = Mul(%s, %C)
  %E: f32[1024,1024] = Add(%p, %D)
  return %E: result
})");
  const KernelListing apart = List(chain, kAlone), fused = List(chain, kFused);
  EXPECT_EQ(apart.bytes(), Bytes(36 * kMiB));
  EXPECT_EQ(fused.bytes(), Bytes(20 * kMiB));
  EXPECT_EQ(apart.launches, 3);
  EXPECT_EQ(fused.launches, 1);
  EXPECT_EQ(apart.flops(), fused.flops());
  ASSERT_EQ(fused.kernels.size(), 1u);
  EXPECT_EQ(fused.kernels[0].reads, Bytes(16 * kMiB));
  EXPECT_EQ(fused.kernels[0].writes, Bytes(4 * kMiB));
  EXPECT_EQ(fused.kernels[0].inside, 2);
  EXPECT_EQ(fused.kernels[0].needs.live_values, 3);
  EXPECT_LT(fused.time(), apart.time());
}

// What somebody else reads is still written.
TEST(KernelListing, WritesWhatIsReadOutside) {
  const ir::Function function = Parsed(R"(func @f (
  %x: f32[1024,1024] data, %w: f32[1024,1024] parameter
) {
  %a: f32[1024,1024] = Relu(%x)
  %b: f32[1024,1024] = Neg(%a)
  %m: f32[1024,1024] = MatMul(%a, %w)
  %y: f32[1024,1024] = Add(%m, %b)
  return %y: result
})");
  const KernelListing listing = List(function, kFused);
  EXPECT_THAT(Lines(function, listing), ElementsAre("0: a b", "1: m", "2: y"));
  EXPECT_EQ(listing.kernels[0].writes, Bytes(8 * kMiB));
  EXPECT_EQ(listing.kernels[0].inside, 0);
}

// %x is read once by a and b, which do not wait for each other; c waits for b by way of a product.
TEST(KernelListing, JoinsWhatReadsOneValue) {
  const ir::Function function = Parsed(R"(func @f (
  %x: f32[1024,1024] data, %z: f32[1024,1024] data, %w: f32[1024,1024] parameter
) {
  %a: f32[1024,1024] = Relu(%x)
  %b: f32[1024,1024] = Neg(%x)
  %m: f32[1024,1024] = MatMul(%b, %w)
  %c: f32[1024,1024] = Mul(%m, %x)
  return %a: result, %c: result
})");
  EXPECT_THAT(Lines(function, List(function, kFused)), ElementsAre("0: a", "1: b", "2: m", "3: c"));
  const KernelListing joined = List(function, kAll);
  EXPECT_THAT(Lines(function, joined), ElementsAre("0: a b", "1: m", "2: c"));
  EXPECT_EQ(joined.kernels[0].reads, Bytes(4 * kMiB));
  EXPECT_EQ(joined.kernels[0].writes, Bytes(8 * kMiB));
}

// The updates of parameters of any size are one launch; each takes what it took, less its share of
// the starts that are gone.
TEST(KernelListing, SharesLaunchesOfUpdates) {
  const ir::Function function = Parsed(R"(func @f (
  %p: f32[1024,1024] parameter, %q: f32[7] parameter, %r: f32[512] parameter,
  %g: f32[1024,1024] saved, %h: f32[7] saved, %i: f32[512] saved
) {
  %u: f32[1024,1024] = Sgd(%p, %g) {lr=0.1, parameters=1}
  %v: f32[7] = Sgd(%q, %h) {lr=0.1, parameters=1}
  %w: f32[512] = Sgd(%r, %i) {lr=0.1, parameters=1}
  return %u: updated(%p), %v: updated(%q), %w: updated(%r)
})");
  const KernelListing apart = List(function, kFused), shared = List(function, kAll);
  EXPECT_EQ(apart.launches, 3);
  EXPECT_EQ(shared.launches, 1);
  EXPECT_EQ(apart.bytes(), shared.bytes());
  const Duration start = *cost_models::MakeCostModel("kernels").value()->Fused(
      Flops(0), Bytes(0), *cluster::FindDevice("a100-80gb"));
  const Duration saved = apart.time() - shared.time();
  EXPECT_NEAR(saved.seconds(), 2 * start.seconds(), 3e-12);
}

// The gradients of a product are a kernel each, of which the host launches two.
TEST(KernelListing, CountsLaunchesOfOps) {
  const ir::Function function = Parsed(R"(func @f (
  %x: f32[8,16] data, %w: f32[16,4] parameter, %dy: f32[8,4] saved
) {
  %dx: f32[8,16], %dw: f32[16,4] = MatMulGrad(%x, %w, %dy)
  %y: f32[8,16] = Relu(%dx)
  return %y: result, %dw: result
})");
  for (const StackKernels& kernels : {kAlone, kFused, kAll}) {
    const KernelListing listing = List(function, kernels);
    EXPECT_EQ(listing.launches, 3);
    EXPECT_THAT(Lines(function, listing), ElementsAre("0: dx", "2: y"));
    EXPECT_EQ(listing.kernels[0].launches, 2);
  }
}

// As many pointers as 4,096 bytes hold: three tensors and a size are 32 bytes, so that of
// 200 updates 128 are one launch.
TEST(KernelListing, SharesNoMoreThanArgumentsHold) {
  std::string inputs, ops, outputs;
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&inputs, i > 0 ? ", " : "", "%p", i, ": f32[8] parameter, %g", i,
                    ": f32[8] saved");
    absl::StrAppend(&ops, "  %u", i, ": f32[8] = Sgd(%p", i, ", %g", i,
                    ") {lr=0.1, parameters=1}\n");
    absl::StrAppend(&outputs, i > 0 ? ", " : "", "%u", i, ": result");
  }
  const ir::Function function =
      Parsed(absl::StrCat("func @f (\n", inputs, "\n) {\n", ops, "  return ", outputs, "\n}"));
  EXPECT_EQ(List(function, kAll).launches, 2);  // 128 of 32 bytes each, and 72
}

// Random element-wise ops, products and reductions over [rows,8] values.
std::string RandomText(std::mt19937_64& random, int count) {
  const auto draw = [&](size_t most) { return random() % most; };
  std::vector<std::string> wide, narrow;
  std::string text = "func @f (%w: f32[8,8] parameter";
  constexpr size_t kInputs = 6;
  for (size_t i = 0; i < kInputs; ++i) {
    wide.push_back(absl::StrCat("%x", i));
    absl::StrAppend(&text, ", ", wide.back(), ": f32[16,8] data");
  }
  absl::StrAppend(&text, ") {\n");
  std::set<std::string> used;
  const auto pick = [&](const std::vector<std::string>& from) {
    const bool input = draw(2) == 0 && from.size() > kInputs;
    const std::string name = input ? from[draw(kInputs)]
                                   : from[from.size() - 1 - draw(std::min<size_t>(from.size(), 6))];
    used.insert(name);
    return name;
  };
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat("%v", i), type = ": f32[16,8] = ";
    const uint64_t kind = draw(10);
    if (kind < 4) {
      absl::StrAppend(&text, "  ", name, type, kind < 2 ? "Add" : "Mul", "(", pick(wide), ", ",
                      pick(wide), ")\n");
    } else if (kind < 7) {
      absl::StrAppend(&text, "  ", name, type, kind < 6 ? "Relu" : "Exp", "(", pick(wide), ")\n");
    } else if (kind == 7) {
      absl::StrAppend(&text, "  ", name, type, "MatMul(", pick(wide), ", %w)\n");
    } else if (kind == 8 || narrow.empty()) {
      absl::StrAppend(&text, "  ", name, ": f32[16,1] = ReduceSum(", pick(wide),
                      ") {axes=[1], keepdims=1}\n");
      narrow.push_back(name);
      continue;
    } else {
      absl::StrAppend(&text, "  ", name, type, "Sub(", pick(wide), ", ", pick(narrow), ")\n");
    }
    wide.push_back(name);
  }
  std::vector<std::string> outputs;
  for (const auto& values : {wide, narrow}) {
    for (const std::string& value : values) {
      if (value[1] == 'v' && !used.contains(value)) outputs.push_back(value + ": result");
    }
  }
  return absl::StrCat(text, "  return ", absl::StrJoin(outputs, ", "), "\n}");
}

// The function, and the same beside it on values of other sizes and names.
std::string Twice(const std::string& text) {
  const std::string other = absl::StrReplaceAll(text, {{"%", "%o"}, {"[16,", "[24,"}});
  const auto part = [](absl::string_view of, absl::string_view from, absl::string_view to) {
    const size_t begin = of.find(from) + from.size();
    return of.substr(begin, of.find(to, begin) - begin);
  };
  std::string twice = "func @f (";
  for (const auto& [from, to, between] : std::vector<std::array<absl::string_view, 3>>{
           {"(", ") {", ", "}, {") {\n", "  return ", ""}, {"  return ", "\n}", ", "}}) {
    absl::StrAppend(&twice, part(text, from, to), between, part(other, from, to),
                    from == "("       ? ") {\n"
                    : from == ") {\n" ? "  return "
                                      : "\n}");
  }
  return twice;
}

int64_t SizeOf(const ir::Function& function, ir::ValueId value) {
  return ir::SizeOf(function.type(value)).count();
}

// Bytes that a kernel has to move, by sets: what its ops read and do not make, and what they make
// that another op or an output reads.
void ExpectTraffic(const ir::Function& function, const ListedKernel& kernel) {
  const std::set<ir::OpId> ops(kernel.ops.begin(), kernel.ops.end());
  std::set<ir::ValueId> read, made, wanted;
  for (const ir::OpId op : function.order()) {
    for (const ir::ValueId operand : function.operands(op)) {
      (ops.contains(op) ? read : wanted).insert(operand);
    }
    if (ops.contains(op)) made.insert(function.result(op));
  }
  for (const ir::Output& output : function.outputs()) wanted.insert(output.value);
  int64_t reads = 0, writes = 0;
  for (const ir::ValueId value : read) reads += made.contains(value) ? 0 : SizeOf(function, value);
  for (const ir::ValueId value : made)
    writes += wanted.contains(value) ? SizeOf(function, value) : 0;
  EXPECT_EQ(kernel.reads, Bytes(reads));
  EXPECT_EQ(kernel.writes, Bytes(writes));
}

// Runs launches whose inputs are all there, until all have run: an order exists.
void ExpectOrder(const ir::Function& function, const KernelListing& listing) {
  std::set<ir::ValueId> there;
  for (const ir::Input& input : function.inputs()) there.insert(input.value);
  std::map<int32_t, std::vector<ir::OpId>> waiting;
  for (const ListedKernel& kernel : listing.kernels) {
    auto& ops = waiting[kernel.launch];
    ops.insert(ops.end(), kernel.ops.begin(), kernel.ops.end());
  }
  bool runs = true;
  while (runs) {
    runs = false;
    for (auto launch = waiting.begin(); launch != waiting.end(); ++launch) {
      std::set<ir::ValueId> own;
      for (const ir::OpId op : launch->second) own.insert(function.result(op));
      const bool ready = std::ranges::all_of(launch->second, [&](ir::OpId op) {
        return std::ranges::all_of(function.operands(op), [&](ir::ValueId operand) {
          return there.contains(operand) || own.contains(operand);
        });
      });
      if (!ready) continue;
      there.insert(own.begin(), own.end());
      waiting.erase(launch);
      runs = true;
      break;
    }
  }
  EXPECT_TRUE(waiting.empty());
}

// Registers that are taken and given back, op by op: a value is loaded before its first reader, or
// made, and given back behind its last one.
int64_t CountRegisters(const ir::Function& function, const std::vector<ir::OpId>& ops) {
  std::map<ir::ValueId, int> left;
  for (const ir::OpId op : ops) {
    for (const ir::ValueId operand : function.operands(op)) ++left[operand];
  }
  std::set<ir::ValueId> taken;
  size_t most = 0;
  for (const ir::OpId op : ops) {
    for (const ir::ValueId operand : function.operands(op)) taken.insert(operand);
    taken.insert(function.result(op));
    most = std::max(most, taken.size());
    for (const ir::ValueId operand : function.operands(op)) {
      if (--left[operand] == 0) taken.erase(operand);
    }
    if (left[function.result(op)] == 0) taken.erase(function.result(op));
  }
  return static_cast<int64_t>(most);
}

TEST(KernelListing, OfRandomFunctionsIsRight) {
  std::mt19937_64 random(4);
  size_t fused_kernels = 0, shared_launches = 0;
  for (int round = 0; round < 100; ++round) {
    std::string text = RandomText(random, 4 + static_cast<int>(random() % 40));
    if (round % 2 == 0) text = Twice(text);
    const ir::Function function = Parsed(text);
    for (const StackKernels& kernels : {kAlone, kFused, kAll}) {
      const KernelListing listing = List(function, kernels);
      SCOPED_TRACE(absl::StrCat(kernels.batches_kernels ? "all" : "fused", text));
      size_t ops = 0;
      for (const ListedKernel& kernel : listing.kernels) {
        ops += kernel.ops.size();
        if (kernel.ops.size() < 2) continue;  // of one op, each operand counts
        ExpectTraffic(function, kernel);
        ++fused_kernels;
        EXPECT_EQ(kernel.needs.live_values, CountRegisters(function, kernel.ops));
      }
      EXPECT_EQ(ops, function.order().size());
      EXPECT_LE(listing.launches, static_cast<int32_t>(listing.kernels.size()));
      shared_launches += listing.kernels.size() - static_cast<size_t>(listing.launches);
      ExpectOrder(function, listing);
      EXPECT_LE(listing.bytes(), List(function, kAlone).bytes());
      EXPECT_LE(listing.time(), List(function, kAlone).time());
    }
  }
  EXPECT_GT(fused_kernels, 100u);
  EXPECT_GT(shared_launches, 100u);
}

// Kernels that hold early and late ops: one may wait for another by way of what stands before both.
TEST(KernelListing, KernelsNeverWaitForEachOtherInACircle) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 6000; ++round) {
    const std::string text = RandomText(random, 4 + static_cast<int>(random() % 40));
    const ir::Function function = Parsed(text);
    SCOPED_TRACE(text);
    ExpectOrder(function, List(function, kFused));
  }
}

// However little room there is, no kernel of several ops wants more.
TEST(KernelRoom, BoundsKernels) {
  std::mt19937_64 random(5);
  size_t bounded = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string text = RandomText(random, 30);
    const ir::Function function = Parsed(text);
    const LocalTypes local(function);
    const PointwiseGroups free = FindPointwiseGroups(function, local);
    for (const KernelRoom& room : {KernelRoom{.live_values = 3, .held = Bytes(1 << 20)},
                                   KernelRoom{.live_values = 100, .held = Bytes(63)}}) {
      SCOPED_TRACE(text);
      PointwiseGroups groups = FindPointwiseGroups(function, local, FusedOps::kAll, room);
      JoinSiblings(function, local, FusedOps::kAll, room, groups);
      for (const std::vector<ir::OpId>& members : groups.members) {
        EXPECT_LE(KernelNeedsOf(members, function, local).held, room.held);
        EXPECT_LE(CountRegisters(function, members), room.live_values);
      }
      bounded += groups.members != free.members ? 1 : 0;
    }
  }
  EXPECT_GT(bounded, 20u);
}

}  // namespace
}  // namespace kernel_listing_test_cc
}  // namespace orrery::lowering
