#include "absl/strings/str_cat.h"
#include "ir/models/layers.h"
#include "ir/models/model.h"
#include "ir/op_kind.h"

// Residual convolutional networks (He et al. 2015): blocks of two convolutions (depth 18 and 34) or
// bottlenecks of three, with batch normalization as in training. In a bottleneck the 3x3 has the
// stride, as torchvision has it.

namespace orrery::ir {
namespace resnet_cc {
namespace {

constexpr ModelKey kKeys[] = {
    {.name = "depth",
     .fallback = "50",
     .summary = "convolutions and products one after another",
     .choices = "18|34|50|101|152"},
    {.name = "image",
     .fallback = "224",
     .summary = "height and width of a sample",
     .min = 32,
     .max = 1 << 14},
    {.name = "classes", .fallback = "1000", .summary = "of samples", .max = 1 << 24},
    {.name = "width",
     .fallback = "64",
     .summary = "channels of the first convolution",
     .max = 1 << 14},
};

// Blocks of each of the four stages, and whether they are bottlenecks: table 1 of the paper.
struct Plan {
  int64_t depth;
  int64_t blocks[4];
  bool bottleneck;
};
constexpr Plan kPlans[] = {{18, {2, 2, 2, 2}, false},
                           {34, {3, 4, 6, 3}, false},
                           {50, {3, 4, 6, 3}, true},
                           {101, {3, 4, 23, 3}, true},
                           {152, {3, 8, 36, 3}, true}};

class ResNet {
 public:
  ResNet(const ModelValues& values, const Plan& plan)
      : values_(values), plan_(plan), layers_("resnet", values.dtype()) {}

  absl::StatusOr<Function> Build() {
    const int64_t image = values_.Int("image"), width = values_.Int("width");
    const ValueId images = layers_.Data("images", {values_.batch(), 3, image, image});
    const ValueId labels = layers_.Ids("labels", {values_.batch()});
    ValueId x = Conv(images, {.channels = width, .size = 7, .stride = 2}, "conv1");
    x = layers_.Op(OpKind::kMaxPool, {Norm(x, "bn1")}, "maxpool",
                   {{"kernel", Both(3)}, {"strides", Both(2)}, {"pads", Sides(1)}});
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (int64_t i = 0; i < plan_.blocks[stage]; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        x = Block(x, width << stage, stride, absl::StrCat("layer", stage + 1, ".", i, "."));
      }
    }
    x = layers_.Op(OpKind::kReduceMean, {x}, "avgpool", {{"axes", std::vector<int64_t>{2, 3}}});
    const ValueId logits = layers_.Linear(x, values_.Int("classes"), {}, "fc");
    return layers_.FinishWithCrossEntropy(logits, labels);
  }

 private:
  static std::vector<int64_t> Both(int64_t n) { return {n, n}; }
  static std::vector<int64_t> Sides(int64_t n) { return {n, n, n, n}; }

  struct Filter {
    int64_t channels, size, stride;
  };
  // Padded such that only the stride makes the image smaller.
  ValueId Conv(ValueId x, const Filter& filter, const std::string& name) {
    const ValueId weight = layers_.Parameter(
        name + ".weight", {filter.channels, layers_.Dim(x, 1), filter.size, filter.size});
    return layers_.Op(OpKind::kConv, {x, weight}, name,
                      {{"strides", Both(filter.stride)}, {"pads", Sides(filter.size / 2)}});
  }

  // With `residual` added to the result, and ReLU over both, where they are wanted.
  ValueId Norm(ValueId x, const std::string& name, bool relu = true, ValueId residual = ValueId()) {
    const Dims channels = {layers_.Dim(x, 1)};
    const ValueId weight = layers_.Parameter(name + ".weight", channels);
    const ValueId bias = layers_.Parameter(name + ".bias", channels);
    const ValueId mean = layers_.Buffer(name + ".running_mean", channels);
    const ValueId variance = layers_.Buffer(name + ".running_var", channels);
    AttributeSet attributes = {{"training", int64_t{1}}, {"epsilon", 1e-5}, {"momentum", 0.9}};
    if (relu) attributes.Set("activation", std::string("relu"));
    if (!residual.valid()) {
      return layers_.Ops(OpKind::kBatchNorm, {x, weight, bias, mean, variance}, 1, name,
                         attributes)[0];
    }
    return layers_.Ops(OpKind::kBatchNorm, {x, weight, bias, mean, variance, residual}, 1, name,
                       attributes)[0];
  }

  ValueId Block(ValueId x, int64_t width, int64_t stride, const std::string& name) {
    const int64_t wide = plan_.bottleneck ? 4 * width : width;
    ValueId y = x, past = x;
    if (stride != 1 || layers_.Dim(x, 1) != wide) {
      past =
          Norm(Conv(x, {wide, 1, stride}, name + "downsample.conv"), name + "downsample.bn", false);
    }
    if (!plan_.bottleneck) {
      y = Norm(Conv(y, {width, 3, stride}, name + "conv1"), name + "bn1");
      return Norm(Conv(y, {width, 3, 1}, name + "conv2"), name + "bn2", true, past);
    }
    y = Norm(Conv(y, {width, 1, 1}, name + "conv1"), name + "bn1");
    y = Norm(Conv(y, {width, 3, stride}, name + "conv2"), name + "bn2");
    return Norm(Conv(y, {wide, 1, 1}, name + "conv3"), name + "bn3", true, past);
  }

  const ModelValues& values_;
  const Plan& plan_;
  Layers layers_;
};

absl::StatusOr<Function> Build(const ModelValues& values) {
  for (const Plan& plan : kPlans) {
    if (plan.depth == values.Int("depth")) return ResNet(values, plan).Build();
  }
  return absl::InvalidArgumentError("there is no such depth");
}

}  // namespace
}  // namespace resnet_cc

extern constinit const ModelInfo kResNetModel = {
    .name = "resnet",
    .summary = "a residual convolutional network that classifies images",
    .keys = resnet_cc::kKeys,
    .default_batch = 256,
    .build = resnet_cc::Build,
};

}  // namespace orrery::ir
