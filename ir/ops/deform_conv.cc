#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "ir/ops/window.h"
#include "support/status.h"

// Deformable convolution (Dai et al. 2017; with a mask Zhu et al. 2019) of [batch,channels,height,
// width]: each element of the kernel reads the image between pixels, at an offset of its own.
// Groups of channels share their offsets: [batch,groups·kernel·2,..] and [batch,groups·kernel,..].

namespace orrery::ir {
namespace deform_conv_cc {
namespace {

constexpr size_t kMask = 3;

int64_t OffsetGroups(const AttributeSet& attributes) { return attributes.Int("offset_group", 1); }

absl::Status CheckShapes(const OpTypes& op) {
  for (size_t i = 0; i < op.operands.size(); ++i) {
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
    if (op.operands[i]->dims.size() == 4) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "operand ", i, " has shape ", Show(op.operands[i]->dims), "; wanted 4 dimensions"));
  }
  const Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  const int64_t group = op.attributes.Int("group", 1), offsets = OffsetGroups(op.attributes);
  const bool fits = group > 0 && offsets > 0 && offsets < (int64_t{1} << 20) && x[1] > 0 &&
                    w[0] > 0 && x[1] % group == 0 && w[0] % group == 0 && x[1] % offsets == 0 &&
                    x[1] / group == w[1];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("group=", group, " and offset_group=", offsets,
                                                 " do not fit shapes ", Show(x), " and ", Show(w)));
}

// Checks all but the gradient; the dims of the maps.
absl::StatusOr<Dims> MapDims(const OpTypes& op, bool has_mask) {
  ORRERY_RETURN_IF_ERROR(CheckShapes(op));
  const Dims &x = op.operands[0]->dims, &w = op.operands[1]->dims;
  ORRERY_ASSIGN_OR_RETURN(const Window window, WindowOf(op.attributes, SpatialDims(w)));
  ORRERY_ASSIGN_OR_RETURN(const Dims counts, WindowCounts(window, SpatialDims(x)));
  if (w[2] * w[3] > (int64_t{1} << 30))
    return absl::InvalidArgumentError("the kernel is too large");
  const int64_t elements = OffsetGroups(op.attributes) * w[2] * w[3];
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, {x[0], 2 * elements, counts[0], counts[1]}, "(offsets)"));
  if (has_mask) {
    ORRERY_RETURN_IF_ERROR(
        CheckDims(op, kMask, {x[0], elements, counts[0], counts[1]}, "(the mask)"));
  }
  return Dims{x[0], w[0], counts[0], counts[1]};
}

absl::Status InferDeformConv(const OpTypes& op, TypeList& results) {
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, MapDims(op, op.operands.size() > kMask));
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferDeformConvGrad(const OpTypes& op, TypeList& results) {
  const size_t last = op.operands.size() - 1;
  ORRERY_ASSIGN_OR_RETURN(const Dims dims, MapDims(op, last > kMask));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, last, dims, "as the result"));
  for (size_t i = 0; i < last; ++i) {
    AddResult(results, op.operands[i]->dtype, op.operands[i]->dims);
  }
  return absl::OkStatus();
}

double Flops(const OpTypes& op, const Dims& maps) {
  const Dims& w = op.operands[1]->dims;
  return 2.0 * static_cast<double>(ElementCount(maps)) * static_cast<double>(w[1] * w[2] * w[3]);
}

// Only the batch can be split.
ShardingRule BatchSharding(const OpTypes& op, const TypeList& results) {
  const auto factors = [](bool is_weight) {
    return ShardingRule::Factors{is_weight ? kNoFactor : int8_t{0}, kNoFactor, kNoFactor,
                                 kNoFactor};
  };
  ShardingRule rule;
  for (size_t i = 0; i < op.operands.size(); ++i) rule.operands.push_back(factors(i == 1));
  for (size_t j = 0; j < results.size(); ++j) rule.results.push_back(factors(j == 1));
  return rule;
}

// A pixel that a point sees, and how its weight changes as the point moves down and across.
struct Tap {
  int64_t pixel;
  double weight, down, across;
};

struct Taps {
  std::array<Tap, 4> taps;
  int count = 0;
};

Taps TapsAt(double y, double x, int64_t height, int64_t width) {
  Taps result;
  const double top = std::floor(y), left = std::floor(x), down = y - top, across = x - left;
  for (int i = 0; i < 4; ++i) {
    const double row = top + i / 2, column = left + i % 2;
    const bool inside = row >= 0 && column >= 0 && row < static_cast<double>(height) &&
                        column < static_cast<double>(width);
    if (!inside) continue;
    const double vertical = i / 2 == 0 ? 1 - down : down,
                 horizontal = i % 2 == 0 ? 1 - across : across;
    result.taps[static_cast<size_t>(result.count++)] = {
        .pixel = static_cast<int64_t>(row) * width + static_cast<int64_t>(column),
        .weight = vertical * horizontal,
        .down = (i / 2 == 0 ? -1 : 1) * horizontal,
        .across = (i % 2 == 0 ? -1 : 1) * vertical};
  }
  return result;
}

// One reading: what a kernel element sees of a channel at a position.
struct Reading {
  int64_t sample, channel, element, position;
  int64_t offset,
      mask;  // positions in the operands; the horizontal offset follows `positions` later
  const Taps& taps;
};

class Deformed {
 public:
  static absl::StatusOr<Deformed> Create(const Evaluation& e, const Dims& maps) {
    Deformed d;
    d.x_ = e.operand(0).dims();
    d.w_ = e.operand(1).dims();
    ORRERY_ASSIGN_OR_RETURN(d.window_, WindowOf(e.attributes, SpatialDims(d.w_)));
    d.columns_ = maps[3];
    d.positions_ = maps[2] * maps[3];
    d.groups_ = d.x_[1] / d.w_[1];
    d.offset_groups_ = OffsetGroups(e.attributes);
    return d;
  }
  int64_t positions() const { return positions_; }

  template <typename F>
  void ForEachReading(const Tensor& offsets, F f) const {
    const int64_t kernel = w_[2] * w_[3], channels = x_[1] / offset_groups_;
    for (int64_t i = 0; i < x_[0] * offset_groups_ * kernel; ++i) {
      const int64_t sample = i / kernel / offset_groups_, element = i % kernel;
      const int64_t first = i / kernel % offset_groups_ * channels;
      for (int64_t position = 0; position < positions_; ++position) {
        const int64_t offset = 2 * i * positions_ + position;
        const Taps taps = TapsAt(
            Start(0, element / w_[3], position / columns_) + offsets.Number(offset),
            Start(1, element % w_[3], position % columns_) + offsets.Number(offset + positions_),
            x_[2], x_[3]);
        for (int64_t channel = first; channel < first + channels; ++channel) {
          f(Reading{.sample = sample,
                    .channel = channel,
                    .element = element,
                    .position = position,
                    .offset = offset,
                    .mask = i * positions_ + position,
                    .taps = taps});
        }
      }
    }
  }
  // Calls f(element of the weights, element of the maps) for the maps that a reading goes to.
  template <typename F>
  void ForEachMap(const Reading& r, F f) const {
    const int64_t group = r.channel / w_[1], maps = w_[0] / groups_;
    for (int64_t map = group * maps; map < (group + 1) * maps; ++map) {
      f((map * w_[1] + r.channel % w_[1]) * w_[2] * w_[3] + r.element,
        (r.sample * w_[0] + map) * positions_ + r.position);
    }
  }
  int64_t Plane(const Reading& r) const { return (r.sample * x_[1] + r.channel) * x_[2] * x_[3]; }

 private:
  double Start(size_t d, int64_t element, int64_t position) const {
    return static_cast<double>(position * window_.strides[d] - window_.before[d] +
                               element * window_.dilations[d]);
  }

  Dims x_, w_;
  Window window_;
  int64_t columns_ = 0, positions_ = 0, groups_ = 1, offset_groups_ = 1;
};

absl::Status EvaluateDeformConv(Evaluation& e) {
  const Tensor &x = e.operand(0), &w = e.operand(1);
  auto& y = e.results[0].floats();
  ORRERY_ASSIGN_OR_RETURN(const Deformed d, Deformed::Create(e, e.results[0].dims()));
  d.ForEachReading(e.operand(2), [&](const Reading& r) {
    double value = 0;
    for (int t = 0; t < r.taps.count; ++t) {
      const Tap& tap = r.taps.taps[static_cast<size_t>(t)];
      value += tap.weight * x.Number(d.Plane(r) + tap.pixel);
    }
    if (e.has_operand(kMask)) value *= e.operand(kMask).Number(r.mask);
    d.ForEachMap(r, [&](int64_t weight, int64_t to) {
      y[static_cast<size_t>(to)] += w.Number(weight) * value;
    });
  });
  return absl::OkStatus();
}

absl::Status EvaluateDeformConvGrad(Evaluation& e) {
  const bool masked = e.has_operand(kMask + 1);
  const Tensor &x = e.operand(0), &w = e.operand(1), &dy = e.operand(masked ? kMask + 1 : kMask);
  auto &dx = e.results[0].floats(), &dw = e.results[1].floats(), &doffset = e.results[2].floats();
  ORRERY_ASSIGN_OR_RETURN(const Deformed d, Deformed::Create(e, dy.dims()));
  d.ForEachReading(e.operand(2), [&](const Reading& r) {
    double value = 0, down = 0, across = 0, gradient = 0;
    for (int t = 0; t < r.taps.count; ++t) {
      const Tap& tap = r.taps.taps[static_cast<size_t>(t)];
      const double pixel = x.Number(d.Plane(r) + tap.pixel);
      value += tap.weight * pixel;
      down += tap.down * pixel;
      across += tap.across * pixel;
    }
    const double mask = masked ? e.operand(kMask).Number(r.mask) : 1;
    d.ForEachMap(r, [&](int64_t weight, int64_t from) {
      gradient += w.Number(weight) * dy.Number(from);
      dw[static_cast<size_t>(weight)] += value * mask * dy.Number(from);
    });
    for (int t = 0; t < r.taps.count; ++t) {
      const Tap& tap = r.taps.taps[static_cast<size_t>(t)];
      dx[static_cast<size_t>(d.Plane(r) + tap.pixel)] += tap.weight * mask * gradient;
    }
    doffset[static_cast<size_t>(r.offset)] += down * mask * gradient;
    doffset[static_cast<size_t>(r.offset + d.positions())] += across * mask * gradient;
    if (masked) e.results[kMask].floats()[static_cast<size_t>(r.mask)] += value * gradient;
  });
  return absl::OkStatus();
}

absl::Status DeformConvGradient(GradientContext& c) {
  std::vector<ValueId> operands;
  std::vector<std::string> names;
  for (int i = 0; i < c.operand_count(); ++i) {
    operands.push_back(c.operand(i));
    names.push_back(c.GradientName(i));
  }
  operands.push_back(c.result_gradient());
  const std::vector<absl::string_view> views(names.begin(), names.end());
  const OpId op = c.builder().Ops(OpKind::kDeformConvGrad, operands, views, c.attributes());
  if (!op.valid()) return c.builder().status();
  for (int i = 0; i < c.operand_count(); ++i) {
    c.SetOperandGradient(i, c.builder().function().result(op, i));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace deform_conv_cc

extern const OpInfo kDeformConvOp = {
    .name = "DeformConv",
    .summary =
        "image convolved with weights [maps,channels/group,..], each element read at an "
        "offset and times a mask, if there is one",
    .operands = 4,
    .optional = 1,
    .infer = deform_conv_cc::InferDeformConv,
    .flops = [](const OpTypes& op,
                const TypeList& results) { return deform_conv_cc::Flops(op, results[0].dims); },
    .sharding = deform_conv_cc::BatchSharding,
    .evaluate = deform_conv_cc::EvaluateDeformConv,
    .gradient = deform_conv_cc::DeformConvGradient,
    .matrix_product = true,
};

extern const OpInfo kDeformConvGradOp = {
    .name = "DeformConvGrad",
    .summary = "gradients of the operands of DeformConv from these and that of its result",
    .operands = 5,
    .optional = 1,
    .results = OpInfo::kVariadic,
    .infer = deform_conv_cc::InferDeformConvGrad,
    .flops =
        [](const OpTypes& op, const TypeList&) {
          return 2 * deform_conv_cc::Flops(op, op.operands.back()->dims);
        },
    .sharding = deform_conv_cc::BatchSharding,
    .evaluate = deform_conv_cc::EvaluateDeformConvGrad,
    .matrix_product = true,
};

}  // namespace orrery::ir
