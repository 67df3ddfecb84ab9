#include "transforms/substitutions/correction.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/status.h"
#include "transforms/substitutions/size_algebra.h"

namespace orrery::transforms::substitutions {
namespace correction_cc {
namespace {

// From an element to before another, along one axis.
struct Span {
  Expression begin, end;
};
using Box = std::map<int32_t, Span>;  // by axis from the end

const AttributePattern* Find(const RuleOp& op, absl::string_view name) {
  const auto found =
      std::ranges::find(op.attributes, name, &std::pair<std::string, AttributePattern>::first);
  return found == op.attributes.end() ? nullptr : &found->second;
}

bool IsSet(const RuleOp& op, absl::string_view name) {
  const AttributePattern* const found = Find(op, name);
  return found != nullptr && found->integers != std::vector{Whole(0)};
}

AttributePattern Integers(std::vector<Expression> integers) {
  AttributePattern pattern;
  pattern.form = AttributePattern::Form::kIntegers;
  pattern.integers = std::move(integers);
  return pattern;
}

AttributePattern Integer(int64_t value) {
  AttributePattern pattern;
  pattern.integers = {Whole(value)};
  return pattern;
}

void Set(RuleOp& op, const std::string& name, AttributePattern pattern) {
  std::erase_if(op.attributes, [&](const auto& entry) { return entry.first == name; });
  op.attributes.emplace_back(name, std::move(pattern));
  std::ranges::sort(op.attributes, {}, [](const auto& entry) { return entry.first; });
}

// A list of sizes that an op has, or as many of a number.
std::vector<Expression> ListOf(const RuleOp& op, absl::string_view name, size_t count,
                               int64_t other) {
  const AttributePattern* const found = Find(op, name);
  return found == nullptr ? std::vector<Expression>(count, Whole(other)) : found->integers;
}

// Which of 0 or more, 0 or less an expression is at all sizes.
enum class Sign : uint8_t { kMixed, kNotBelow, kNotAbove };

Sign SignOf(const Expression& expression, const std::vector<const Variables*>& draws) {
  const auto all = [&](auto is_so) {
    return std::ranges::all_of(draws, [&](const Variables* draw) {
      const std::optional<int64_t> value = Evaluate(expression, *draw);
      return value.has_value() && is_so(*value);
    });
  };
  if (all([](int64_t value) { return value >= 0; })) return Sign::kNotBelow;
  return all([](int64_t value) { return value <= 0; }) ? Sign::kNotAbove : Sign::kMixed;
}

class Corrector {
 public:
  Corrector(const Rule& mutant, const SizedBoxes& boxes)
      : mutant_(mutant), boxes_(boxes), original_(mutant.left.ops[0]), rule_(mutant) {
    next_ = static_cast<int32_t>(mutant.inputs.size());
    for (const RuleOp& op : mutant.right.ops) next_ += op.results;
  }

  absl::StatusOr<Rule> Run() {
    Box box;
    ORRERY_ASSIGN_OR_RETURN(const int32_t value, Patch(0, box));
    rule_.right.returns = {value};
    return std::move(rule_);
  }

 private:
  absl::Status Cannot(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("mutant @", mutant_.name, " (line ", mutant_.line, "): ", what));
  }

  int32_t Add(RuleOp op) {
    const int32_t value = next_;
    next_ += op.results;
    rule_.right.ops.push_back(std::move(op));
    return value;
  }

  // As attributes have axes: those of an image count from the first.
  int64_t Named(int32_t axis) const {
    return original_.kind == ir::OpKind::kConv
               ? static_cast<int64_t>(mutant_.inputs[0].dims.size()) + axis
               : axis;
  }

  // A part of a value of `size` along an axis: a view.
  int32_t Part(int32_t value, int64_t axis, const Span& span, const Expression& size) {
    const Expression before = span.begin, inside = AddTimes(span.end, -1, span.begin),
                     after = AddTimes(size, -1, span.end);
    std::vector<Expression> sizes;
    for (const Expression& each : {before, inside, after}) {
      if (!IsZero(each)) sizes.push_back(each);
    }
    if (sizes.size() < 2) return value;
    RuleOp split = {.kind = ir::OpKind::kSplit,
                    .operands = {value},
                    .results = static_cast<int32_t>(sizes.size())};
    Set(split, "axis", Integer(axis));
    Set(split, "sizes", Integers(std::move(sizes)));
    return Add(std::move(split)) + (IsZero(before) ? 0 : 1);
  }

  // The box, of which the boxes of axes from number i on are not yet cut.
  absl::StatusOr<int32_t> Patch(size_t i, Box& box) {
    if (i == boxes_.axes.size()) return RightPart(box);
    const SizedAxis& axis = boxes_.axes[i];
    RuleOp concat = {.kind = ir::OpKind::kConcat, .operands = {}};
    for (const SizedRun& run : axis.runs) {
      box[axis.axis] = {.begin = run.begin, .end = run.end};
      if (run.wrong) {
        ORRERY_ASSIGN_OR_RETURN(const int32_t part, Kernel(box));
        concat.operands.push_back(part);
      } else {
        ORRERY_ASSIGN_OR_RETURN(const int32_t part, Patch(i + 1, box));
        concat.operands.push_back(part);
      }
    }
    box.erase(axis.axis);
    if (concat.operands.size() == 1) return concat.operands[0];
    Set(concat, "axis", Integer(Named(axis.axis)));
    return Add(std::move(concat));
  }

  int32_t RightPart(const Box& box) {
    int32_t value = mutant_.right.returns[0];
    for (const SizedAxis& axis : boxes_.axes) {
      value = Part(value, Named(axis.axis), box.at(axis.axis), axis.mutant_size);
    }
    return value;
  }

  absl::StatusOr<int32_t> Kernel(const Box& box) {
    RuleOp op = original_;
    for (const auto& [axis, span] : box) {
      ORRERY_RETURN_IF_ERROR(op.kind == ir::OpKind::kConv ? CutConv(op, axis, span)
                                                          : CutProduct(op, axis, span));
    }
    return Add(std::move(op));
  }

  // Replaces an operand by a part of it along an axis from the end.
  void CutOperand(RuleOp& op, size_t operand, int32_t axis, const Span& span) {
    const auto input = static_cast<size_t>(original_.operands[operand]);
    const std::vector<Expression>& dims = mutant_.inputs[input].dims;
    const auto rank = static_cast<int32_t>(dims.size());
    const bool image = original_.kind == ir::OpKind::kConv;
    op.operands[operand] = Part(op.operands[operand], image ? rank + axis : axis, span,
                                dims[static_cast<size_t>(rank + axis)]);
  }

  absl::Status CutProduct(RuleOp& op, int32_t axis, const Span& span) {
    if (axis == -2) {
      CutOperand(op, 0, IsSet(op, "transpose_x") ? -1 : -2, span);
    } else if (axis == -1) {
      CutOperand(op, 1, IsSet(op, "transpose_w") ? -2 : -1, span);
    } else {
      for (size_t operand = 0; operand < 2; ++operand) {
        const RuleInput& input = mutant_.inputs[static_cast<size_t>(original_.operands[operand])];
        const auto rank = static_cast<int32_t>(input.dims.size());
        if (input.leading) return Cannot("a box cuts leading dimensions; wanted them named");
        if (rank + axis < 0 || input.dims[static_cast<size_t>(rank + axis)] == Whole(1)) continue;
        CutOperand(op, operand, axis, span);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CutConv(RuleOp& op, int32_t axis, const Span& span) {
    const auto rank = static_cast<int32_t>(mutant_.inputs[0].dims.size());
    if (rank + axis >= 2) return CutImage(op, axis, span);
    if (rank + axis == 0) {
      CutOperand(op, 0, axis, span);
      return absl::OkStatus();
    }
    if (Find(op, "group") != nullptr) return Cannot("a box cuts maps of groups; wanted no `group`");
    CutOperand(op, 1, -rank, span);
    if (op.operands.size() > 2) CutOperand(op, 2, -1, span);
    return absl::OkStatus();
  }

  // Rows of the image that rows of maps look at, and the padding that they have then.
  absl::Status CutImage(RuleOp& op, int32_t axis, const Span& span) {
    const std::vector<Expression>& image = DimsOf(0);
    const size_t count = image.size() - 2;
    const auto at = static_cast<size_t>(static_cast<int32_t>(count) + axis);
    const Expression& size = image[at + 2];
    const Expression stride = ListOf(op, "strides", count, 1)[at];
    std::vector<Expression> pads = ListOf(op, "pads", 2 * count, 0);
    const Expression reach = AddTimes(
        Whole(1), 1,
        Product(AddTimes(DimsOf(1)[at + 2], -1, Whole(1)), ListOf(op, "dilations", count, 1)[at]));
    const Expression begin = AddTimes(Product(span.begin, stride), -1, pads[at]);
    const Expression last = Product(AddTimes(span.end, -1, Whole(1)), stride);
    const Expression end = AddTimes(AddTimes(last, 1, reach), -1, pads[at]);
    Span rows = {.begin = Whole(0), .end = size};
    Expression before = Whole(0), after = Whole(0);
    const Expression beyond = AddTimes(end, -1, size);
    const Sign low = SignOf(begin, boxes_.draws), high = SignOf(beyond, boxes_.draws);
    if (low == Sign::kMixed || high == Sign::kMixed) {
      return Cannot(absl::StrCat("rows from ", Print(mutant_, begin), " to ", Print(mutant_, end),
                                 " of an image of ", Print(mutant_, size),
                                 " begin or end inside for some sizes alone"));
    }
    (low == Sign::kNotBelow ? rows.begin : before) =
        low == Sign::kNotBelow ? begin : AddTimes(Whole(0), -1, begin);
    (high == Sign::kNotBelow ? after : rows.end) = high == Sign::kNotBelow ? beyond : end;
    pads[at] = before;
    pads[at + count] = after;
    CutOperand(op, 0, axis, rows);
    Set(op, "pads", Integers(std::move(pads)));
    return absl::OkStatus();
  }

  const std::vector<Expression>& DimsOf(size_t operand) const {
    return mutant_.inputs[static_cast<size_t>(original_.operands[operand])].dims;
  }

  const Rule& mutant_;
  const SizedBoxes& boxes_;
  const RuleOp& original_;
  Rule rule_;
  int32_t next_ = 0;  // value
};

}  // namespace
}  // namespace correction_cc

absl::Status CheckOriginal(const Rule& mutant) {
  const auto wanted = [&](absl::string_view found, absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("mutant @", mutant.name, " (line ", mutant.line,
                                                   "): ", found, "; wanted ", what));
  };
  const auto inputs = static_cast<int32_t>(mutant.inputs.size());
  if (mutant.left.ops.size() != 1 || mutant.left.returns != std::vector{inputs}) {
    return wanted(absl::StrCat("its original has ", mutant.left.ops.size(), " ops and returns ",
                               mutant.left.returns.size(), " values"),
                  "one op, whose result it returns");
  }
  const RuleOp& op = mutant.left.ops[0];
  if (op.kind != ir::OpKind::kConv && op.kind != ir::OpKind::kMatMul) {
    return wanted(absl::StrCat("its original is ", ir::GetOpInfo(op.kind).name),
                  "Conv or MatMul, which are linear in each input");
  }
  for (const auto& [name, pattern] : op.attributes) {
    const bool listed = name == "pads" || name == "strides" || name == "dilations";
    if (!listed || pattern.form == AttributePattern::Form::kIntegers) continue;
    return wanted(absl::StrCat("its original has any ", name),
                  "a list of sizes, by which boxes are cut");
  }
  if (op.kind != ir::OpKind::kConv) return absl::OkStatus();
  if (op.operands[0] != 0) return wanted("its image is not the first input", "the image first");
  for (const RuleInput& input : mutant.inputs) {
    if (input.leading)
      return wanted(absl::StrCat("%", input.name, " has `..`"), "named dimensions");
  }
  return absl::OkStatus();
}

absl::StatusOr<Rule> Correct(const Rule& mutant, const SizedBoxes& boxes) {
  return correction_cc::Corrector(mutant, boxes).Run();
}

}  // namespace orrery::transforms::substitutions
