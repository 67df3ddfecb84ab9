#include "cost_models/least_time.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/cluster.h"
#include "cost_models/kernels/least_kernel.h"
#include "cost_models/op_fixture_test_util.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/text/text.h"
#include "tests/ir_text/golden.h"

namespace orrery::cost_models {
namespace least_time_test_cc {
namespace {

using ir::DType;
using ir::OpKind;

const LeastTimes* PromiseOf(const CostModel& model) {
  return dynamic_cast<const LeastTimes*>(&model);
}

// Measurements may beat a data sheet.
TEST(LeastTimes, AreKnownOfModelsThatAreFormulasOfTheDevice) {
  for (const char* name : {"roofline", "distir", "kernels"}) {
    const auto model = MakeCostModel(name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(PromiseOf(**model) != nullptr, std::string(name) != "distir");
  }
}

TEST(LeastKernel, TakesAsLongAsBothAreFarApart) {
  EXPECT_DOUBLE_EQ((LeastKernel{.arithmetic_s = 3, .memory_s = 2}).seconds(), 3);
  EXPECT_DOUBLE_EQ((LeastKernel{.arithmetic_s = 3, .memory_s = 4, .overlap = 2}).seconds(), 5);
  EXPECT_DOUBLE_EQ((LeastKernel{.memory_s = 4, .overlap = 2}).seconds(), 4);
  EXPECT_DOUBLE_EQ(LeastKernel().seconds(), 0);
}

// So many fields: what is drawn of a product or an attention.
class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {}

  int64_t UpTo(int64_t most) {
    return 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(most));
  }
  template <typename T>
  T Of(std::initializer_list<T> list) {
    return *(list.begin() + random_() % list.size());
  }
  int64_t Size() { return Of<int64_t>({UpTo(40), UpTo(5000), 16 * UpTo(300), 256 * UpTo(30)}); }
  // A few that add up to it.
  std::vector<int64_t> Parts(int64_t size) {
    std::vector<int64_t> parts;
    for (int64_t n = UpTo(6); n > 1 && size > 1; --n) {
      parts.push_back(Of<int64_t>({std::max<int64_t>(1, size / n), UpTo(size - 1)}));
      size -= std::min(parts.back(), size - 1);
      parts.back() = std::max<int64_t>(1, parts.back());
    }
    parts.push_back(size);
    return parts;
  }
  const cluster::Device& Device() {
    const auto devices = cluster::AllDevices();
    return devices[random_() % devices.size()];
  }

 private:
  std::mt19937 random_;
};

// Shares may be larger than the whole together, never smaller.
void ExpectNoLess(const CostModel& model, const OpFixture& whole,
                  const std::vector<const OpFixture*>& shares, const cluster::Device& device,
                  const std::string& text) {
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const LeastTime least = PromiseOf(model)->LeastOf(whole.view(), device);
  double seconds = 0, starts = 0;
  for (const LeastKernel& kernel : least.kernels) seconds += kernel.seconds();
  double taken = 0;
  for (const OpFixture* share : shares) {
    ASSERT_TRUE(share->status().ok()) << share->status();
    taken += model.Compute(share->view(), device).seconds();
    starts += least.starts_s;
  }
  EXPECT_LE((seconds + starts) * (1 - 1e-9), taken) << text << " on " << device.name;
}

// Products of any shape, parted along any dimension: rows, columns, and what is summed up over.
TEST(LeastTimes, HoldForProductsHoweverTheyAreParted) {
  for (const char* name : {"kernels", "roofline"}) {
    const auto model = MakeCostModel(name).value();
    for (uint32_t seed = 0; seed < 400; ++seed) {
      Drawn draw(seed);
      const int64_t sizes[] = {draw.Size(), draw.Size(), draw.Size()};
      const DType dtype = draw.Of({DType::kBF16, DType::kBF16, DType::kF32, DType::kF8});
      const auto along = static_cast<size_t>(draw.UpTo(3)) - 1;
      const OpKind kind = draw.Of({OpKind::kMatMul, OpKind::kMatMulGrad});
      const auto product = [&](const int64_t(&s)[3]) {
        std::vector<ir::TensorType> operands = {Tensor({s[0], s[1]}, dtype),
                                                Tensor({s[1], s[2]}, dtype)};
        if (kind == OpKind::kMatMulGrad) operands.push_back(Tensor({s[0], s[2]}, dtype));
        return std::make_unique<OpFixture>(kind, operands);
      };
      std::vector<std::unique_ptr<OpFixture>> shares;
      std::vector<const OpFixture*> pointers;
      for (const int64_t part : draw.Parts(sizes[along])) {
        int64_t of_share[] = {sizes[0], sizes[1], sizes[2]};
        of_share[along] = part;
        pointers.push_back(shares.emplace_back(product(of_share)).get());
      }
      ExpectNoLess(*model, *product(sizes), pointers, draw.Device(),
                   absl::StrCat(name, " ", sizes[0], "x", sizes[1], "x", sizes[2], " along ", along,
                                " in ", shares.size(), ", seed ", seed));
    }
  }
}

// Attention, fused or in parts, by samples and by heads.
TEST(LeastTimes, HoldForAttentionWithSomeOfTheHeads) {
  for (const char* name : {"kernels", "roofline"}) {
    const auto model = MakeCostModel(name).value();
    for (uint32_t seed = 0; seed < 200; ++seed) {
      Drawn draw(seed);
      const int64_t batch = draw.UpTo(9), heads = draw.UpTo(40), rows = draw.Size();
      const int64_t width = draw.Of<int64_t>({16, 64, 80, 128, 256});
      ir::AttributeSet attributes = {{"causal", draw.Of<int64_t>({0, 1})},
                                     {"flash", draw.Of<int64_t>({0, 1})}};
      const auto attention = [&](int64_t b, int64_t h) {
        attributes.Set("heads", h);
        const ir::TensorType type = Tensor({b, rows, h * width}, DType::kBF16);
        return std::make_unique<OpFixture>(
            OpKind::kAttention, std::vector<ir::TensorType>{type, type, type}, attributes);
      };
      const bool by_heads = draw.Of({false, true});
      std::vector<std::unique_ptr<OpFixture>> shares;
      std::vector<const OpFixture*> pointers;
      for (const int64_t part : draw.Parts(by_heads ? heads : batch)) {
        shares.push_back(by_heads ? attention(batch, part) : attention(part, heads));
        pointers.push_back(shares.back().get());
      }
      ExpectNoLess(
          *model, *attention(batch, heads), pointers, draw.Device(),
          absl::StrCat(name, " ", batch, "x", heads, "x", rows, "x", width, ", seed ", seed));
    }
  }
}

// Of every op that there is, in the example that it has.
TEST(LeastTimes, AreNoMoreThanComputeSays) {
  int seen = 0;
  for (const std::string& text : ir::golden::Texts()) {
    const auto functions = ir::ParseFunctions(text);
    ASSERT_TRUE(functions.ok()) << functions.status();
    for (const ir::Function& function : *functions) {
      for (const ir::OpId op : function.order()) {
        const ir::OpClass op_class = function.info(op).op_class;
        if (op_class != ir::OpClass::kCompute && op_class != ir::OpClass::kOptimizer) continue;
        std::vector<ir::TensorType> operands;
        for (const ir::ValueId operand : function.operands(op)) {
          operands.push_back(function.type(operand));
          operands.back().sharding = {};
        }
        const OpFixture example(function.kind(op), operands, function.attributes(op));
        if (!example.status().ok()) continue;
        ++seen;
        for (const char* name : {"kernels", "roofline"}) {
          const auto model = MakeCostModel(name).value();
          for (const cluster::Device& device : cluster::AllDevices()) {
            const double least = PromiseOf(*model)->LeastOf(example.view(), device).seconds();
            EXPECT_LE(least * (1 - 1e-9), model->Compute(example.view(), device).seconds())
                << name << " " << function.info(op).name << " on " << device.name;
            EXPECT_GT(least, 0) << name << " " << function.info(op).name;
          }
        }
      }
    }
  }
  EXPECT_GT(seen, 50);
}

// A promise that is far off says nothing: of large products no more than a tenth is missing.
TEST(LeastTimes, AreNearWhatLargeProductsTake) {
  const auto model = MakeCostModel("kernels").value();
  const ir::TensorType type = Tensor({16384, 16384}, DType::kBF16);
  const OpFixture product(OpKind::kMatMul, {type, type});
  for (const char* name : {"a100-80gb", "h100-80gb", "b200"}) {
    const auto device = cluster::FindDevice(name);
    ASSERT_TRUE(device.ok()) << device.status();
    const cluster::Device& of = *device;
    const double taken = model->Compute(product.view(), of).seconds();
    EXPECT_GT(PromiseOf(*model)->LeastOf(product.view(), of).seconds(), 0.9 * taken) << name;
  }
}

}  // namespace
}  // namespace least_time_test_cc
}  // namespace orrery::cost_models
