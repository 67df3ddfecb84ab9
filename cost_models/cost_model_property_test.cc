#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "tests/ir_text/golden.h"

// What holds for every line of cost_models.def and every kernel of ops.def. A new cost model and a
// new op are tested here without an edit.

namespace orrery::cost_models {
namespace cost_model_property_test_cc {
namespace {

using cluster::DeviceId;
using ir::DType;
using ir::OpClass;
using ir::OpKind;

constexpr int kTrials = 40;

struct Model {
  absl::string_view name;
  std::unique_ptr<const CostModel> model;
};

std::vector<Model> Models() {
  std::vector<Model> models;
  for (const CostModelInfo* info : AllCostModels()) models.push_back({info->name, info->make()});
  return models;
}

std::vector<OpKind> Kernels() {
  std::vector<OpKind> kernels;
  for (int i = 0; i < ir::OpKindCount(); ++i) {
    const auto kind = static_cast<OpKind>(i);
    const OpClass op_class = ir::GetOpInfo(kind).op_class;
    if (op_class == OpClass::kCompute || op_class == OpClass::kOptimizer) kernels.push_back(kind);
  }
  return kernels;
}

struct Shape {
  int64_t m, k, n;
};

// Every attribute that some op insists on.
ir::AttributeSet Attributes() {
  return {{"parameters", int64_t{2}}, {"batch", int64_t{64}}, {"axes", std::vector<int64_t>{0}}};
}

// An application of `kind` to tensors of m, k and n: operands m x k, k x n and m x n where the op
// takes that, else all alike. Null when it takes neither: a convolution, attention.
std::unique_ptr<OpFixture> Sample(OpKind kind, Shape s, DType dtype) {
  const int arity = ir::GetOpInfo(kind).operands;
  const auto count = static_cast<size_t>(arity == ir::OpInfo::kVariadic ? 8 : arity);
  std::vector<ir::TensorType> product = {Tensor({s.m, s.k}, dtype), Tensor({s.k, s.n}, dtype),
                                         Tensor({s.m, s.n}, dtype)};
  product.resize(std::min(count, product.size()));
  const std::vector<ir::TensorType> alike(count, Tensor({s.m, s.k}, dtype));
  for (const std::vector<ir::TensorType>& operands : {product, alike}) {
    auto op = std::make_unique<OpFixture>(kind, operands, Attributes());
    if (op->status().ok() && !op->view().results.empty()) return op;
  }
  return nullptr;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t UpTo(int64_t most) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(most));
  }
  Shape NewShape() { return {2 + UpTo(3000), 2 + UpTo(3000), 2 + UpTo(3000)}; }
  // At least as large in each dimension.
  Shape Grow(Shape s) { return {s.m + UpTo(500), s.k + UpTo(500), s.n + UpTo(500)}; }
  DType NewDType() {
    constexpr DType kFloats[] = {DType::kF8, DType::kF16, DType::kBF16, DType::kF32};
    return kFloats[UpTo(std::size(kFloats))];
  }

 private:
  std::mt19937 engine_;  // its sequence is the same everywhere
};

Shape Aligned(const Shape& s) {
  const auto up = [](int64_t size) { return (size + 15) / 16 * 16; };
  return {up(s.m), up(s.k), up(s.n)};
}

const cluster::Device& AnyDevice(Random& random) {
  const auto devices = cluster::AllDevices();
  return devices[static_cast<size_t>(random.UpTo(static_cast<int64_t>(devices.size())))];
}

std::string Name(OpKind kind, Shape s) {
  return absl::StrCat(ir::GetOpInfo(kind).name, " of m=", s.m, " k=", s.k, " n=", s.n);
}

// The op as one rank would run it that holds everything, with floats of `dtype`.
OpFixture Example(const ir::Function& function, ir::OpId op, DType dtype) {
  std::vector<ir::TensorType> operands;
  for (const ir::ValueId operand : function.operands(op)) {
    ir::TensorType type = function.type(operand);
    if (type.dtype == DType::kF32) type.dtype = dtype;
    type.sharding = {};
    operands.push_back(std::move(type));
  }
  return OpFixture(function.kind(op), std::move(operands), function.attributes(op));
}

// What random shapes do not suit has a price in the example that every op has.
TEST(CostModelProperty, KernelsOfTheExamplesTakeTime) {
  std::set<OpKind> unseen;
  for (const OpKind kind : Kernels()) unseen.insert(kind);
  for (const std::string& text : ir::golden::Texts()) {
    const auto functions = ir::ParseFunctions(text);
    ASSERT_TRUE(functions.ok()) << functions.status();
    for (const ir::Function& function : *functions) {
      for (const ir::OpId op : function.order()) {
        const OpKind kind = function.kind(op);
        const OpClass op_class = function.info(op).op_class;
        if (op_class != OpClass::kCompute && op_class != OpClass::kOptimizer) continue;
        const OpFixture example = Example(function, op, DType::kF32);
        // What each rank does of its group by itself has no form on one rank.
        if (function.info(op).exchange != nullptr) unseen.erase(kind);
        if (!example.status().ok()) continue;  // it needs the sharding that its example has
        unseen.erase(kind);
        for (const Model& m : Models()) {
          EXPECT_GT(m.model->Compute(example.view(), cluster::AllDevices()[0]), Duration(0))
              << m.name << ", " << function.info(op).name;
        }
      }
    }
  }
  for (const OpKind kind : unseen) ADD_FAILURE() << ir::GetOpInfo(kind).name << " has no example";
}

TEST(CostModelProperty, KernelsTakeTimeAndMoreForMoreFlopsAndBytes) {
  Random random(1);
  const std::vector<Model> models = Models();
  for (const OpKind kind : Kernels()) {
    for (int trial = 0; trial < kTrials; ++trial) {
      // Where rows begin at multiples of 16 bytes, as all do or none.
      const Shape small_shape = Aligned(random.NewShape()),
                  large_shape = Aligned(random.Grow(small_shape));
      const DType dtype = random.NewDType();
      const auto small = Sample(kind, small_shape, dtype), large = Sample(kind, large_shape, dtype);
      if (small == nullptr || large == nullptr) break;
      SCOPED_TRACE(absl::StrCat(Name(kind, small_shape), " and ", Name(kind, large_shape)));
      ASSERT_GE(FlopsOf(small->view()), Flops(0));
      ASSERT_GE(FlopsOf(large->view()), FlopsOf(small->view()));
      ASSERT_GE(BytesMovedBy(large->view()), BytesMovedBy(small->view()));
      const cluster::Device& device = AnyDevice(random);
      for (const Model& m : models) {
        const Duration time = m.model->Compute(small->view(), device);
        ASSERT_GT(time, Duration(0)) << m.name;
        ASSERT_GE(m.model->Compute(large->view(), device), time) << m.name;
      }
    }
  }
}

TEST(CostModelProperty, WiderElementsTakeNoLessTime) {
  Random random(2);
  const std::vector<Model> models = Models();
  for (const OpKind kind : Kernels()) {
    // Where rows begin at multiples of 16 bytes: of cards whose products of 16 bits are twice as
    // fast as those of fp32, what rows that do not leave of them is no more than fp32.
    const Shape shape = Aligned(random.NewShape());
    const auto narrow = Sample(kind, shape, DType::kF16), wide = Sample(kind, shape, DType::kF32);
    if (narrow == nullptr || wide == nullptr) continue;
    for (const cluster::Device& device : cluster::AllDevices()) {
      for (const Model& m : models) {
        EXPECT_GE(m.model->Compute(wide->view(), device), m.model->Compute(narrow->view(), device))
            << m.name << ", " << Name(kind, shape) << " on " << device.name;
      }
    }
  }
}

TEST(CostModelProperty, ATransferIsMonotoneAndNotBelowItsBandwidth) {
  Random random(3);
  for (const Model& m : Models()) {
    for (int trial = 0; trial < kTrials; ++trial) {
      const cluster::PathInfo path = {Bandwidth(1 + random.UpTo(1'000'000'000)),
                                      Duration(random.UpTo(10'000'000))};
      const Bytes size(1 + random.UpTo(1'000'000'000));
      const Duration time = m.model->Transfer(size, path);
      EXPECT_GE(time, TransferTime(size, path.rate)) << m.name;
      EXPECT_GE(m.model->Transfer(size + Bytes(random.UpTo(1000)), path), time) << m.name;
    }
  }
}

// Random groups over nodes, in any order.
std::vector<DeviceId> NewGroup(Random& random, int32_t devices) {
  std::vector<DeviceId> group;
  for (int32_t device = 0; device < devices; ++device) group.push_back(DeviceId(device));
  for (size_t i = group.size() - 1; i > 0; --i) {
    std::swap(group[i], group[static_cast<size_t>(random.UpTo(static_cast<int64_t>(i) + 1))]);
  }
  group.resize(static_cast<size_t>(2 + random.UpTo(devices - 1)));
  return group;
}

TEST(CostModelProperty, ACollectiveTakesTimeAndMoreForMoreBytes) {
  Random random(4);
  for (const absl::string_view spec : {"uniform:16@200Gbps", "dgx-a100:4", "dgx-h100:2"}) {
    const auto cluster = cluster::ParseCluster(spec);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const Model& m : Models()) {
      for (int trial = 0; trial < kTrials; ++trial) {
        const std::vector<DeviceId> group = NewGroup(random, cluster->size());
        const Bytes size(1 + random.UpTo(1'000'000'000));
        for (const auto kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
          const Duration time = m.model->Collective(kind, size, group, cluster->topology);
          EXPECT_GT(time, Duration(0)) << m.name;
          EXPECT_GE(
              m.model->Collective(kind, size + Bytes(random.UpTo(1000)), group, cluster->topology),
              time)
              << m.name;
        }
      }
    }
  }
}

// A model keeps no state: whoever asks twice, and whichever of two instances, gets one answer.
TEST(CostModelProperty, AModelIsPure) {
  const auto op = Sample(OpKind::kMatMul, {128, 256, 512}, DType::kF32);
  const std::vector<Model> models = Models(), others = Models();
  for (size_t i = 0; i < models.size(); ++i) {
    for (const cluster::Device& device : cluster::AllDevices()) {
      const Duration time = models[i].model->Compute(op->view(), device);
      EXPECT_EQ(models[i].model->Compute(op->view(), device), time) << models[i].name;
      EXPECT_EQ(others[i].model->Compute(op->view(), device), time) << models[i].name;
    }
  }
}

}  // namespace
}  // namespace cost_model_property_test_cc
}  // namespace orrery::cost_models
