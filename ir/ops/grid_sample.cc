#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/builder.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/checks.h"
#include "ir/ops/kernels.h"
#include "support/status.h"

// An image read at the points of a grid (spatial transformers: Jaderberg et al. 2015), by linear,
// nearest or cubic interpolation along each dimension.

namespace orrery::ir {
namespace grid_sample_cc {
namespace {

constexpr double kCubic = -0.75;  // the coefficient of the cubic that frameworks use

bool IsOneOf(absl::string_view value, std::initializer_list<absl::string_view> names) {
  return std::find(names.begin(), names.end(), value) != names.end();
}

absl::Status CheckModes(const AttributeSet& attributes) {
  const std::string mode = attributes.String("mode", "linear");
  const std::string padding = attributes.String("padding_mode", "zeros");
  if (!IsOneOf(mode, {"linear", "nearest", "cubic"})) {
    return absl::InvalidArgumentError(
        absl::StrCat("mode is \"", mode, "\"; wanted linear, nearest or cubic"));
  }
  if (IsOneOf(padding, {"zeros", "border", "reflection"})) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("padding_mode is \"", padding, "\"; wanted zeros, border or reflection"));
}

absl::Status InferGridSample(const OpTypes& op, TypeList& results) {
  ORRERY_RETURN_IF_ERROR(CheckModes(op.attributes));
  for (size_t i = 0; i < 2; ++i) {
    ORRERY_RETURN_IF_ERROR(CheckRankAtLeast(op, i, 3, "3 dimensions or more"));
    ORRERY_RETURN_IF_ERROR(CheckFloat(op, i));
  }
  const Dims &x = op.operands[0]->dims, &grid = op.operands[1]->dims;
  if (x.size() != grid.size() || x[0] != grid[0] ||
      grid.back() != static_cast<int64_t>(x.size()) - 2) {
    return absl::InvalidArgumentError(absl::StrCat("got shapes ", Show(x), " and ", Show(grid),
                                                   "; wanted [batch,channels,..] and a grid "
                                                   "[batch,..,coordinates]"));
  }
  Dims dims = {x[0], x[1]};
  dims.insert(dims.end(), grid.begin() + 1, grid.end() - 1);
  AddResult(results, op.operands[0]->dtype, dims);
  return absl::OkStatus();
}

absl::Status InferGridSampleGrad(const OpTypes& op, TypeList& results) {
  TypeList forward;
  ORRERY_RETURN_IF_ERROR(InferGridSample(op, forward));
  ORRERY_RETURN_IF_ERROR(CheckFloat(op, 2));
  ORRERY_RETURN_IF_ERROR(CheckDims(op, 2, forward[0].dims, "as the result"));
  for (size_t i = 0; i < 2; ++i) AddResult(results, op.operands[i]->dtype, op.operands[i]->dims);
  return absl::OkStatus();
}

// The elements that each point sees: 2 or 4 along each dimension.
double SeenElements(const OpTypes& op) {
  const std::string mode = op.attributes.String("mode", "linear");
  const double along = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  return std::pow(along, static_cast<double>(op.operands[0]->dims.size()) - 2);
}

// The batch may be split.
ShardingRule GridSampleSharding(const OpTypes& op, const TypeList& results) {
  const auto factors = [](const TensorType& type) {
    ShardingRule::Factors row(type.dims.size(), kNoFactor);
    row[0] = 0;
    return row;
  };
  ShardingRule rule;
  for (const TensorType* operand : op.operands) rule.operands.push_back(factors(*operand));
  for (const TensorType& result : results) rule.results.push_back(factors(result));
  return rule;
}

// An element along one dimension, its weight, and what the weight gains by a step of the point.
struct Tap {
  int64_t index;  // -1: outside
  double weight, slope;
};

// A number and how it changes with what it was made of.
struct Moving {
  double value, slope;
};

class Sampler {
 public:
  explicit Sampler(const AttributeSet& attributes)
      : mode_(attributes.String("mode", "linear")),
        padding_(attributes.String("padding_mode", "zeros")),
        align_(attributes.Int("align_corners", 0) != 0) {}

  std::vector<Tap> TapsAt(double coordinate, int64_t size) const {
    const double last = static_cast<double>(size) - 1;
    Moving at = align_ ? Moving{(coordinate + 1) / 2 * last, last / 2}
                       : Moving{((coordinate + 1) * static_cast<double>(size) - 1) / 2,
                                static_cast<double>(size) / 2};
    if (mode_ == "cubic") return CubicTaps(at, size);
    if (padding_ == "border") at = Clamped(at, last);
    if (padding_ == "reflection") at = Clamped(Reflected(at, size), last);
    if (mode_ == "nearest")
      return {{.index = Inside(std::nearbyint(at.value), size), .weight = 1, .slope = 0}};
    const double low = std::floor(at.value), part = at.value - low;
    return {{.index = Inside(low, size), .weight = 1 - part, .slope = -at.slope},
            {.index = Inside(low + 1, size), .weight = part, .slope = at.slope}};
  }

 private:
  static int64_t Inside(double at, int64_t size) {
    return at >= 0 && at < static_cast<double>(size) ? static_cast<int64_t>(at) : -1;
  }
  static Moving Clamped(Moving at, double last) {
    if (at.value < 0) return {0, 0};
    return at.value > last ? Moving{last, 0} : at;
  }
  // Mirrored at the middle of the outermost elements, or at their edges.
  Moving Reflected(Moving at, int64_t size) const {
    const double low = align_ ? 0 : -0.5;
    const double range = static_cast<double>(size) - (align_ ? 1 : 0);
    if (range <= 0) return {0, 0};
    double from_low = at.value - low;
    double slope = at.slope;
    if (from_low < 0) {
      from_low = -from_low;
      slope = -slope;
    }
    const double turns = std::floor(from_low / range), rest = from_low - turns * range;
    const bool back = std::fmod(turns, 2) != 0;
    return {low + (back ? range - rest : rest), back ? -slope : slope};
  }
  std::vector<Tap> CubicTaps(const Moving& at, int64_t size) const {
    const double low = std::floor(at.value), part = at.value - low;
    std::vector<Tap> taps;
    for (int i = -1; i <= 2; ++i) {
      Moving position = {low + i, 0};
      const double last = static_cast<double>(size) - 1;
      if (padding_ == "border") position = Clamped(position, last);
      if (padding_ == "reflection") position = Clamped(Reflected(position, size), last);
      const Moving weight = Cubic(part - i);
      taps.push_back({.index = Inside(std::nearbyint(position.value), size),
                      .weight = weight.value,
                      .slope = weight.slope * at.slope});
    }
    return taps;
  }
  // Keys 1981.
  static Moving Cubic(double distance) {
    const double x = std::abs(distance), sign = distance < 0 ? -1 : 1;
    if (x <= 1) {
      return {((kCubic + 2) * x - (kCubic + 3)) * x * x + 1,
              sign * (3 * (kCubic + 2) * x - 2 * (kCubic + 3)) * x};
    }
    if (x >= 2) return {0, 0};
    return {((kCubic * x - 5 * kCubic) * x + 8 * kCubic) * x - 4 * kCubic,
            sign * ((3 * kCubic * x - 10 * kCubic) * x + 8 * kCubic)};
  }

  std::string mode_, padding_;
  bool align_;
};

// Walks over all points of the grid. Calls f(sample, position in the result's plane, point, taps of
// each dimension).
template <typename F>
void ForEachPoint(const Evaluation& e, F f) {
  const Dims &x = e.operand(0).dims(), &grid = e.operand(1).dims();
  const Sampler sampler(e.attributes);
  const int64_t rank = grid.back(),
                points = e.operand(1).size() / std::max<int64_t>(grid[0] * rank, 1);
  std::vector<std::vector<Tap>> taps(static_cast<size_t>(rank));
  for (int64_t sample = 0; sample < grid[0]; ++sample) {
    for (int64_t position = 0; position < points; ++position) {
      const int64_t point = (sample * points + position) * rank;
      for (int64_t d = 0; d < rank; ++d) {
        // The last coordinate is that of the first spatial dimension.
        taps[static_cast<size_t>(d)] = sampler.TapsAt(e.operand(1).Number(point + rank - 1 - d),
                                                      x[static_cast<size_t>(d) + 2]);
      }
      f(sample, position, point, taps);
    }
  }
}

// Calls f(offset in a plane, weight, the weight's slope along each dimension) for what a point
// sees.
template <typename F>
void ForEachTap(const std::vector<std::vector<Tap>>& taps, const Dims& x, F f) {
  Dims counts;
  for (const auto& along : taps) counts.push_back(static_cast<int64_t>(along.size()));
  std::vector<double> slopes(taps.size());
  for (Odometer at(counts, {}); !at.done(); at.Next()) {
    int64_t offset = 0;
    double weight = 1;
    std::fill(slopes.begin(), slopes.end(), 1.0);
    for (size_t d = 0; d < taps.size() && offset >= 0; ++d) {
      const Tap& tap = taps[d][static_cast<size_t>(at.at()[d])];
      offset = tap.index < 0 ? -1 : offset * x[d + 2] + tap.index;
      weight *= tap.weight;
      for (size_t s = 0; s < slopes.size(); ++s) slopes[s] *= s == d ? tap.slope : tap.weight;
    }
    if (offset >= 0) f(offset, weight, slopes);
  }
}

absl::Status EvaluateGridSample(Evaluation& e) {
  const Tensor& x = e.operand(0);
  const int64_t channels = x.dims()[1], pixels = SplitAround(x.dims(), 1).inner;
  Tensor& y = e.results[0];
  const int64_t positions = SplitAround(y.dims(), 1).inner;
  ForEachPoint(e, [&](int64_t sample, int64_t position, int64_t, const auto& taps) {
    ForEachTap(taps, x.dims(), [&](int64_t offset, double weight, const auto&) {
      for (int64_t plane = sample * channels; plane < (sample + 1) * channels; ++plane) {
        y.floats()[static_cast<size_t>(plane * positions + position)] +=
            weight * x.Number(plane * pixels + offset);
      }
    });
  });
  return absl::OkStatus();
}

absl::Status EvaluateGridSampleGrad(Evaluation& e) {
  const Tensor &x = e.operand(0), &dy = e.operand(2);
  const int64_t channels = x.dims()[1], pixels = SplitAround(x.dims(), 1).inner;
  const int64_t positions = SplitAround(dy.dims(), 1).inner;
  auto &dx = e.results[0].floats(), &dgrid = e.results[1].floats();
  ForEachPoint(e, [&](int64_t sample, int64_t position, int64_t point, const auto& taps) {
    ForEachTap(taps, x.dims(), [&](int64_t offset, double weight, const auto& slopes) {
      for (int64_t plane = sample * channels; plane < (sample + 1) * channels; ++plane) {
        const double gradient = dy.Number(plane * positions + position);
        dx[static_cast<size_t>(plane * pixels + offset)] += weight * gradient;
        for (size_t d = 0; d < slopes.size(); ++d) {
          dgrid[static_cast<size_t>(point) + slopes.size() - 1 - d] +=
              gradient * slopes[d] * x.Number(plane * pixels + offset);
        }
      }
    });
  });
  return absl::OkStatus();
}

absl::Status GridSampleGradient(GradientContext& c) {
  const std::string names[] = {c.GradientName(0), c.GradientName(1)};
  const absl::string_view views[] = {names[0], names[1]};
  const ValueId operands[] = {c.operand(0), c.operand(1), c.result_gradient()};
  const OpId op = c.builder().Ops(OpKind::kGridSampleGrad, operands, views, c.attributes());
  if (!op.valid()) return c.builder().status();
  for (int i = 0; i < 2; ++i) c.SetOperandGradient(i, c.builder().function().result(op, i));
  return absl::OkStatus();
}

}  // namespace
}  // namespace grid_sample_cc

extern const OpInfo kGridSampleOp = {
    .name = "GridSample",
    .summary =
        "x [batch,channels,..] at the points of a grid [batch,..,coordinates] from -1 to 1; "
        "`mode` linear, nearest or cubic",
    .operands = 2,
    .infer = grid_sample_cc::InferGridSample,
    .flops =
        [](const OpTypes& op, const TypeList& results) {
          return 2 * grid_sample_cc::SeenElements(op) *
                 static_cast<double>(ElementCount(results[0].dims));
        },
    .sharding = grid_sample_cc::GridSampleSharding,
    .evaluate = grid_sample_cc::EvaluateGridSample,
    .gradient = grid_sample_cc::GridSampleGradient,
};

extern const OpInfo kGridSampleGradOp = {
    .name = "GridSampleGrad",
    .summary = "gradients of x and grid of GridSample from both and that of its result",
    .operands = 3,
    .results = 2,
    .infer = grid_sample_cc::InferGridSampleGrad,
    .flops =
        [](const OpTypes& op, const TypeList&) {
          return 4 * grid_sample_cc::SeenElements(op) *
                 static_cast<double>(ElementCount(op.operands[2]->dims));
        },
    .sharding = grid_sample_cc::GridSampleSharding,
    .evaluate = grid_sample_cc::EvaluateGridSampleGrad,
};

}  // namespace orrery::ir
