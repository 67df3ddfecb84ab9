#include "transforms/substitutions/wrong_boxes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/tensor.h"
#include "transforms/substitutions/check_rule.h"

namespace orrery::transforms::substitutions {
namespace wrong_boxes_cc {
namespace {

constexpr int kElementDraws = 3;  // one without numbers below 0: relu lets all of it through

// What of a tensor no box covers yet.
class Uncovered {
 public:
  Uncovered(const std::vector<Element>& elements, const ir::Dims& dims)
      : elements_(elements), dims_(dims) {
    for (const int64_t size : dims) left_.emplace_back(static_cast<size_t>(size), 1);
  }

  // Takes boxes along the axis on which the fewest elements are lost. False where none is wrong.
  bool Cover(AxisRuns& runs) {
    Count();
    if (most_ == 0) return false;
    const std::optional<size_t> any = Best([](Slab slab) { return slab.wrong > 0; });
    const std::optional<size_t> all = Best([](Slab slab) { return slab.wrong == slab.elements; });
    if (any.has_value()) {
      Take(
          *any, [](Slab slab) { return slab.wrong > 0; }, runs);
    } else if (all.has_value()) {
      Take(
          *all, [](Slab slab) { return slab.wrong == slab.elements; }, runs);
    } else {
      Take(
          0, [](Slab) { return true; }, runs);
    }
    return true;
  }

  // Whether all places along all axes say what they are.
  bool SaysAll() const {
    return std::ranges::all_of(slabs_, [](const std::vector<Slab>& axis) {
      return std::ranges::all_of(axis, [](const Slab& slab) { return slab.elements > 0; });
    });
  }

  // Whether all places along axes that were cut said what they are.
  bool known() const { return known_; }

 private:
  struct Slab {
    int64_t elements = 0, wrong = 0;
  };

  void Count() {
    slabs_.clear();
    for (const int64_t size : dims_) slabs_.emplace_back(static_cast<size_t>(size));
    most_ = 0;
    for (ir::Odometer at(dims_, {}); !at.done(); at.Next()) {
      const Element element = elements_[static_cast<size_t>(at.index())];
      if (element == Element::kNone || IsCovered(at.at())) continue;
      const bool wrong = element == Element::kWrong;
      most_ += wrong ? 1 : 0;
      for (size_t d = 0; d < dims_.size(); ++d) {
        Slab& slab = slabs_[d][static_cast<size_t>(at.at()[d])];
        ++slab.elements;
        slab.wrong += wrong ? 1 : 0;
      }
    }
  }

  bool IsCovered(const ir::Dims& at) const {
    for (size_t d = 0; d < at.size(); ++d) {
      if (left_[d][static_cast<size_t>(at[d])] == 0) return true;
    }
    return false;
  }

  // The axis of which the smallest part of what is left is so, not all and not none.
  template <typename IsSo>
  std::optional<size_t> Best(IsSo is_so) const {
    std::optional<size_t> best;
    double least = 1;
    for (size_t d = 0; d < slabs_.size(); ++d) {
      double so = 0, all = 0;
      for (const Slab& slab : slabs_[d]) {
        if (slab.elements == 0) continue;
        all += 1;
        so += is_so(slab) ? 1 : 0;
      }
      if (so == 0 || so / all >= least) continue;
      least = so / all;
      best = d;
    }
    return best;
  }

  template <typename IsSo>
  void Take(size_t axis, IsSo is_so, AxisRuns& runs) {
    runs = {.axis = static_cast<int32_t>(axis) - static_cast<int32_t>(dims_.size()), .runs = {}};
    std::vector<char>& left = left_[axis];
    for (size_t i = 0; i < left.size(); ++i) {
      const Slab slab = slabs_[axis][i];
      known_ = known_ && (left[i] == 0 || slab.elements > 0);
      if (slab.elements > 0 && is_so(slab)) left[i] = 0;
    }
    for (size_t i = 1; i + 1 < left.size(); ++i) {
      if (left[i - 1] == 0 && left[i + 1] == 0) left[i] = 0;  // a gap of one
    }
    for (size_t i = 0; i < left.size(); ++i) {
      const bool wrong = left[i] == 0;
      const auto at = static_cast<int64_t>(i);
      if (runs.runs.empty() || runs.runs.back().wrong != wrong) {
        runs.runs.push_back({.begin = at, .end = at, .wrong = wrong});
      }
      runs.runs.back().end = at + 1;
    }
  }

  const std::vector<Element>& elements_;
  const ir::Dims& dims_;
  std::vector<std::vector<char>> left_;  // by axis and index
  std::vector<std::vector<Slab>> slabs_;
  int64_t most_ = 0;
  bool known_ = true;
};

// No zeros: what is multiplied by one is not seen.
std::vector<ir::Tensor> DrawNumbers(const WorkTable& works, const Dataflow& flow, bool positive,
                                    RandomBits& random) {
  std::vector<ir::Tensor> inputs =
      DrawInputs(works, flow, {.elements = ElementDraw::kWhole, .positive = positive}, random);
  for (ir::Tensor& tensor : inputs) {
    for (double& value : tensor.floats()) value = value == 0 ? 5 : value;
  }
  return inputs;
}

// Marks what differs. The mutant's elements stand at the same places from the first on.
void Compare(const ir::Tensor& original, const ir::Tensor& mutant, MutantSample& sample) {
  for (ir::Odometer at(sample.dims, {ir::StridesOf(sample.mutant_dims)}); !at.done(); at.Next()) {
    bool beyond = false;
    for (size_t d = 0; d < sample.dims.size(); ++d) {
      beyond = beyond || at.at()[d] >= sample.mutant_dims[d];
    }
    Element& element = sample.elements[static_cast<size_t>(at.index())];
    const double number = original.Number(at.index());
    if (beyond || number != mutant.Number(at.offset(0))) {
      element = Element::kWrong;
    } else if (element == Element::kNone && number != 0) {
      element = Element::kRight;
    }
  }
}

}  // namespace
}  // namespace wrong_boxes_cc

std::optional<std::vector<AxisRuns>> FindBoxes(const std::vector<Element>& elements,
                                               const ir::Dims& dims) {
  std::vector<AxisRuns> boxes;
  wrong_boxes_cc::Uncovered uncovered(elements, dims);
  for (AxisRuns runs; uncovered.Cover(runs);) {
    const auto same = std::ranges::find(boxes, runs.axis, &AxisRuns::axis);
    if (same == boxes.end()) {
      boxes.push_back(runs);
    } else {
      *same = runs;
    }
  }
  if (!uncovered.known() || (boxes.empty() && !uncovered.SaysAll())) return std::nullopt;
  return boxes;
}

std::string MutantSample::Pattern() const {
  if (!boxes.has_value()) return "?";
  std::string pattern;
  for (const AxisRuns& each : *boxes) {
    absl::StrAppend(&pattern, pattern.empty() ? "" : " ", each.axis, ":");
    for (const AxisRun& run : each.runs) pattern += run.wrong ? 'W' : 'R';
  }
  return pattern;
}

std::optional<MutantSample> Sample(const Rule& mutant, const Variables& variables,
                                   RandomBits& random, WorkTable& works) {
  const std::optional<RuleSides> sides = SidesOf(mutant, variables, works);
  if (!sides.has_value()) return std::nullopt;
  const auto dims = [&](const Dataflow& flow) {
    return works.type(TypeOf(works, flow, flow.outputs[0])).dims;
  };
  MutantSample sample = {.variables = variables,
                         .dims = dims(sides->left),
                         .mutant_dims = dims(sides->right),
                         .elements = {},
                         .boxes = {}};
  if (sample.dims.size() != sample.mutant_dims.size()) return std::nullopt;
  for (size_t d = 0; d < sample.dims.size(); ++d) {
    if (sample.mutant_dims[d] > sample.dims[d]) return std::nullopt;
  }
  sample.elements.assign(static_cast<size_t>(ir::ElementCount(sample.dims)), Element::kNone);
  for (int draw = 0; draw < wrong_boxes_cc::kElementDraws; ++draw) {
    const std::vector<ir::Tensor> inputs =
        wrong_boxes_cc::DrawNumbers(works, sides->left, draw == 0, random);
    const auto original = Evaluate(works, sides->left, inputs);
    const auto changed = Evaluate(works, sides->right, inputs);
    if (!original.ok() || !changed.ok()) return std::nullopt;
    wrong_boxes_cc::Compare((*original)[0], (*changed)[0], sample);
  }
  sample.boxes = FindBoxes(sample.elements, sample.dims);
  return sample;
}

}  // namespace orrery::transforms::substitutions
