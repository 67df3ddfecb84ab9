#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/op_kind.h"

// Inception-v3 (Szegedy et al. 2015, 1512.00567), by the names and sizes of torchvision, which are
// those of the authors' code: five kinds of modules of three or four branches. Without the
// auxiliary classifier.

namespace orrery::ir {
namespace inception_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "image",
     .fallback = "299",
     .summary = "height and width of a sample",
     .min = 75,
     .max = 1 << 14},
    {.name = "classes", .fallback = "1000", .summary = "of samples", .max = 1 << 24},
    {.name = "width",
     .fallback = "32",
     .summary = "channels of the first convolution; all others in proportion, rounded up",
     .max = 1 << 12},
};

constexpr int64_t kFirstChannels = 32;  // of the paper

std::vector<int64_t> Both(int64_t n) { return {n, n}; }

class Inception {
 public:
  explicit Inception(const ModelValues& values)
      : values_(values), layers_("inception", values.dtype()) {}

  absl::StatusOr<Function> Build() {
    const int64_t image = values_.Int("image");
    const ValueId images = layers_.Data("images", {values_.batch(), 3, image, image});
    const ValueId labels = layers_.Ids("labels", {values_.batch()});
    ValueId x = Conv(images, {.channels = 32, .stride = 2}, "Conv2d_1a_3x3");
    x = Conv(x, {.channels = 32}, "Conv2d_2a_3x3");
    x = Conv(x, {.channels = 64, .pad = true}, "Conv2d_2b_3x3");
    x = MaxPool(x, "maxpool1");
    x = Conv(x, {.channels = 80, .height = 1, .width = 1}, "Conv2d_3b_1x1");
    x = Conv(x, {.channels = 192}, "Conv2d_4a_3x3");
    x = MaxPool(x, "maxpool2");
    x = ModuleA(x, 32, "Mixed_5b.");
    x = ModuleA(x, 64, "Mixed_5c.");
    x = ModuleA(x, 64, "Mixed_5d.");
    x = ModuleB(x, "Mixed_6a.");
    x = ModuleC(x, 128, "Mixed_6b.");
    x = ModuleC(x, 160, "Mixed_6c.");
    x = ModuleC(x, 160, "Mixed_6d.");
    x = ModuleC(x, 192, "Mixed_6e.");
    x = ModuleD(x, "Mixed_7a.");
    x = ModuleE(x, "Mixed_7b.");
    x = ModuleE(x, "Mixed_7c.");
    x = layers_.Op(OpKind::kReduceMean, {x}, "avgpool", {{"axes", std::vector<int64_t>{2, 3}}});
    const ValueId logits = layers_.Linear(x, values_.Int("classes"), {}, "fc");
    return layers_.FinishWithCrossEntropy(logits, labels);
  }

 private:
  struct Filter {
    int64_t channels;
    int64_t height = 3, width = 3, stride = 1;
    bool pad = false;  // such that only the stride makes the image smaller
  };

  // A convolution without bias, batch normalization and ReLU.
  ValueId Conv(ValueId x, const Filter& filter, const std::string& name) {
    const int64_t channels =
        (filter.channels * values_.Int("width") + kFirstChannels - 1) / kFirstChannels;
    const ValueId filters = layers_.Parameter(
        name + ".conv.weight", {channels, layers_.Dim(x, 1), filter.height, filter.width});
    const int64_t rows = filter.pad ? filter.height / 2 : 0;
    const int64_t columns = filter.pad ? filter.width / 2 : 0;
    const ValueId y = layers_.Op(OpKind::kConv, {x, filters}, name + ".conv",
                                 {{"strides", Both(filter.stride)},
                                  {"pads", std::vector<int64_t>{rows, columns, rows, columns}}});
    const ValueId weight = layers_.Parameter(name + ".bn.weight", {channels});
    const ValueId bias = layers_.Parameter(name + ".bn.bias", {channels});
    const ValueId mean = layers_.Buffer(name + ".bn.running_mean", {channels});
    const ValueId variance = layers_.Buffer(name + ".bn.running_var", {channels});
    return layers_.Ops(OpKind::kBatchNorm, {y, weight, bias, mean, variance}, 1, name,
                       {{"training", int64_t{1}},
                        {"epsilon", 1e-3},
                        {"momentum", 0.9},
                        {"activation", std::string("relu")}})[0];
  }

  ValueId Point(ValueId x, int64_t channels, const std::string& name) {
    return Conv(x, {.channels = channels, .height = 1, .width = 1}, name);
  }
  ValueId Square(ValueId x, int64_t channels, const std::string& name) {
    return Conv(x, {.channels = channels, .pad = true}, name);
  }
  ValueId Row(ValueId x, int64_t channels, int64_t length, const std::string& name) {
    return Conv(x, {.channels = channels, .height = 1, .width = length, .pad = true}, name);
  }
  ValueId Column(ValueId x, int64_t channels, int64_t length, const std::string& name) {
    return Conv(x, {.channels = channels, .height = length, .width = 1, .pad = true}, name);
  }

  ValueId MaxPool(ValueId x, const std::string& name) {
    return layers_.Op(OpKind::kMaxPool, {x}, name, {{"kernel", Both(3)}, {"strides", Both(2)}});
  }
  // Averages of the image, and a product of their channels.
  ValueId PoolBranch(ValueId x, int64_t channels, const std::string& module) {
    const ValueId pooled = layers_.Op(OpKind::kAveragePool, {x}, module + "branch_pool.pool",
                                      {{"kernel", Both(3)},
                                       {"strides", Both(1)},
                                       {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                                       {"count_include_pad", int64_t{1}}});
    return Point(pooled, channels, module + "branch_pool");
  }
  ValueId Join(std::initializer_list<ValueId> branches, const std::string& name) {
    return layers_.Op(OpKind::kConcat, branches, name, {{"axis", int64_t{1}}});
  }

  ValueId ModuleA(ValueId x, int64_t pooled, const std::string& name) {
    const ValueId b1 = Point(x, 64, name + "branch1x1");
    ValueId b5 = Point(x, 48, name + "branch5x5_1");
    b5 = Conv(b5, {.channels = 64, .height = 5, .width = 5, .pad = true}, name + "branch5x5_2");
    ValueId b3 = Point(x, 64, name + "branch3x3dbl_1");
    b3 = Square(b3, 96, name + "branch3x3dbl_2");
    b3 = Square(b3, 96, name + "branch3x3dbl_3");
    return Join({b1, b5, b3, PoolBranch(x, pooled, name)}, name + "join");
  }

  ValueId ModuleB(ValueId x, const std::string& name) {
    const ValueId b3 = Conv(x, {.channels = 384, .stride = 2}, name + "branch3x3");
    ValueId d3 = Point(x, 64, name + "branch3x3dbl_1");
    d3 = Square(d3, 96, name + "branch3x3dbl_2");
    d3 = Conv(d3, {.channels = 96, .stride = 2}, name + "branch3x3dbl_3");
    return Join({b3, d3, MaxPool(x, name + "branch_pool")}, name + "join");
  }

  ValueId ModuleC(ValueId x, int64_t between, const std::string& name) {
    const ValueId b1 = Point(x, 192, name + "branch1x1");
    ValueId b7 = Point(x, between, name + "branch7x7_1");
    b7 = Row(b7, between, 7, name + "branch7x7_2");
    b7 = Column(b7, 192, 7, name + "branch7x7_3");
    ValueId d7 = Point(x, between, name + "branch7x7dbl_1");
    d7 = Column(d7, between, 7, name + "branch7x7dbl_2");
    d7 = Row(d7, between, 7, name + "branch7x7dbl_3");
    d7 = Column(d7, between, 7, name + "branch7x7dbl_4");
    d7 = Row(d7, 192, 7, name + "branch7x7dbl_5");
    return Join({b1, b7, d7, PoolBranch(x, 192, name)}, name + "join");
  }

  ValueId ModuleD(ValueId x, const std::string& name) {
    ValueId b3 = Point(x, 192, name + "branch3x3_1");
    b3 = Conv(b3, {.channels = 320, .stride = 2}, name + "branch3x3_2");
    ValueId b7 = Point(x, 192, name + "branch7x7x3_1");
    b7 = Row(b7, 192, 7, name + "branch7x7x3_2");
    b7 = Column(b7, 192, 7, name + "branch7x7x3_3");
    b7 = Conv(b7, {.channels = 192, .stride = 2}, name + "branch7x7x3_4");
    return Join({b3, b7, MaxPool(x, name + "branch_pool")}, name + "join");
  }

  ValueId ModuleE(ValueId x, const std::string& name) {
    const ValueId b1 = Point(x, 320, name + "branch1x1");
    const ValueId b3 = Point(x, 384, name + "branch3x3_1");
    const ValueId b3a = Row(b3, 384, 3, name + "branch3x3_2a");
    const ValueId b3b = Column(b3, 384, 3, name + "branch3x3_2b");
    ValueId d3 = Point(x, 448, name + "branch3x3dbl_1");
    d3 = Square(d3, 384, name + "branch3x3dbl_2");
    const ValueId d3a = Row(d3, 384, 3, name + "branch3x3dbl_3a");
    const ValueId d3b = Column(d3, 384, 3, name + "branch3x3dbl_3b");
    const ValueId pool = PoolBranch(x, 192, name);
    return Join({b1, b3a, b3b, d3a, d3b, pool}, name + "join");
  }

  const ModelValues& values_;
  Layers layers_;
};

}  // namespace
}  // namespace inception_cc

extern constinit const ModelInfo kInceptionModel = {
    .name = "inception",
    .summary = "Inception-v3, a convolutional network of modules with parallel branches",
    .keys = inception_cc::kKeys,
    .default_batch = 256,
    .build = [](const ModelValues& values) { return inception_cc::Inception(values).Build(); },
};

}  // namespace orrery::ir
