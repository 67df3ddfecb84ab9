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
#include "transforms/substitutions/wrong_boxes.h"

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

// The dims of a value of a side, where an input or a part of one says them.
std::optional<std::vector<Expression>> DimsOf(const Rule& rule, const RuleSide& side,
                                              int32_t value) {
  const auto inputs = static_cast<int32_t>(rule.inputs.size());
  if (value < inputs) return rule.inputs[static_cast<size_t>(value)].dims;
  int32_t first = inputs;
  for (const RuleOp& op : side.ops) {
    const int32_t result = value - first;
    first += op.results;
    if (value >= first) continue;
    if (op.kind != ir::OpKind::kSplit || op.operands[0] >= inputs) return std::nullopt;
    std::vector<Expression> dims = rule.inputs[static_cast<size_t>(op.operands[0])].dims;
    const AttributePattern *const axis = Find(op, "axis"), *const sizes = Find(op, "sizes");
    const std::optional<int64_t> at =
        axis == nullptr ? 0 : Evaluate(axis->integers[0], NoVariables(rule));
    if (sizes == nullptr || !at.has_value()) return std::nullopt;
    const auto from_first = static_cast<size_t>(*at < 0 ? *at + std::ssize(dims) : *at);
    if (from_first >= dims.size()) return std::nullopt;
    dims[from_first] = sizes->integers[static_cast<size_t>(result)];
    return dims;
  }
  return std::nullopt;
}

// A convolution or a product, and the dims of what it reads.
struct Kernel {
  RuleOp op;
  std::vector<std::vector<Expression>> dims;  // without leading ones
  std::vector<char> leads;
};

std::optional<Kernel> KernelOf(const Rule& rule, const RuleSide& side, const RuleOp& op) {
  Kernel kernel = {.op = op, .dims = {}, .leads = {}};
  for (const int32_t operand : op.operands) {
    std::optional<std::vector<Expression>> dims = DimsOf(rule, side, operand);
    if (!dims.has_value()) return std::nullopt;
    kernel.dims.push_back(*std::move(dims));
    const auto input = static_cast<size_t>(operand);
    kernel.leads.push_back(input >= rule.inputs.size() || rule.inputs[input].leading ? 1 : 0);
  }
  return kernel;
}

// Makes the right side of the rule. Where the mutant ends with a kernel and one box of its result
// is right, the kernel computes no more than that.
class Corrector {
 public:
  Corrector(const Rule& mutant, const SizedBoxes& boxes, bool crops)
      : mutant_(mutant), boxes_(boxes), rule_(mutant) {
    original_ = *KernelOf(mutant, mutant.left, mutant.left.ops[0]);
    next_ = static_cast<int32_t>(mutant.inputs.size());
    for (const RuleOp& op : mutant.right.ops) next_ += op.results;
    if (crops) cropped_ = Last();
    if (!cropped_.has_value()) return;
    rule_.right.ops.pop_back();
    --next_;
  }

  bool crops() const { return cropped_.has_value(); }

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

  // The kernel that makes the mutant's result, where one box of it is right.
  std::optional<Kernel> Last() const {
    if (mutant_.right.ops.empty() || mutant_.right.returns[0] != next_ - 1) return std::nullopt;
    const RuleOp& last = mutant_.right.ops.back();
    if (last.kind != original_.op.kind || last.results != 1) return std::nullopt;
    for (const SizedAxis& axis : boxes_.axes) {
      if (std::ranges::count(axis.runs, false, &SizedRun::wrong) != 1) return std::nullopt;
    }
    return KernelOf(mutant_, mutant_.right, last);
  }

  int32_t Add(RuleOp op) {
    const int32_t value = next_;
    next_ += op.results;
    rule_.right.ops.push_back(std::move(op));
    return value;
  }

  // The same, where no op does it already.
  int32_t AddOnce(RuleOp op) {
    auto value = static_cast<int32_t>(mutant_.inputs.size());
    for (const RuleOp& other : rule_.right.ops) {
      const bool same = other.kind == op.kind && other.operands == op.operands &&
                        other.attributes == op.attributes;
      if (same) return value;
      value += other.results;
    }
    return Add(std::move(op));
  }

  // As attributes have an axis of a value of `rank` dimensions: those of images count from the
  // first.
  int64_t Named(int32_t axis, size_t rank) const {
    const bool image = original_.op.kind == ir::OpKind::kConv;
    return image ? static_cast<int64_t>(rank) + axis : axis;
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
    return AddOnce(std::move(split)) + (IsZero(before) ? 0 : 1);
  }

  // The box, of which the boxes of axes from number i on are not yet cut.
  absl::StatusOr<int32_t> Patch(size_t i, Box& box) {
    if (i == boxes_.axes.size()) return cropped_.has_value() ? Compute(*cropped_, box) : Right(box);
    const SizedAxis& axis = boxes_.axes[i];
    RuleOp concat = {.kind = ir::OpKind::kConcat, .operands = {}};
    for (const SizedRun& run : axis.runs) {
      box[axis.axis] = {.begin = run.begin, .end = run.end};
      ORRERY_ASSIGN_OR_RETURN(const int32_t part,
                              run.wrong ? Compute(original_, box) : Patch(i + 1, box));
      concat.operands.push_back(part);
    }
    box.erase(axis.axis);
    if (concat.operands.size() == 1) return concat.operands[0];
    Set(concat, "axis", Integer(Named(axis.axis, original_.dims[0].size())));
    return Add(std::move(concat));
  }

  // What the mutant has there.
  int32_t Right(const Box& box) {
    int32_t value = mutant_.right.returns[0];
    for (const SizedAxis& axis : boxes_.axes) {
      value = Part(value, Named(axis.axis, original_.dims[0].size()), box.at(axis.axis),
                   axis.mutant_size);
    }
    return value;
  }

  // What a kernel makes there.
  absl::StatusOr<int32_t> Compute(const Kernel& kernel, const Box& box) {
    RuleOp op = kernel.op;
    for (const auto& [axis, span] : box) {
      ORRERY_RETURN_IF_ERROR(op.kind == ir::OpKind::kConv ? CutConv(kernel, axis, span, op)
                                                          : CutProduct(kernel, axis, span, op));
    }
    return Add(std::move(op));
  }

  // Replaces an operand by a part of it along an axis from the end.
  void CutOperand(const Kernel& kernel, size_t operand, int32_t axis, const Span& span,
                  RuleOp& op) {
    const std::vector<Expression>& dims = kernel.dims[operand];
    op.operands[operand] = Part(op.operands[operand], Named(axis, dims.size()), span,
                                dims[FromFirst(axis, dims.size())]);
  }

  absl::Status CutProduct(const Kernel& kernel, int32_t axis, const Span& span, RuleOp& op) {
    if (axis == -2) {
      CutOperand(kernel, 0, IsSet(op, "transpose_x") ? -1 : -2, span, op);
      return absl::OkStatus();
    }
    if (axis == -1) {
      CutOperand(kernel, 1, IsSet(op, "transpose_w") ? -2 : -1, span, op);
      return absl::OkStatus();
    }
    for (size_t operand = 0; operand < 2; ++operand) {
      const auto at = static_cast<int32_t>(kernel.dims[operand].size()) + axis;
      if (kernel.leads[operand] != 0) {
        return Cannot("a box cuts leading dimensions; wanted them named");
      }
      if (at < 0 || kernel.dims[operand][static_cast<size_t>(at)] == Whole(1)) continue;
      CutOperand(kernel, operand, axis, span, op);
    }
    return absl::OkStatus();
  }

  absl::Status CutConv(const Kernel& kernel, int32_t axis, const Span& span, RuleOp& op) {
    const auto rank = static_cast<int32_t>(kernel.dims[0].size());
    if (rank + axis >= 2) return CutImage(kernel, axis, span, op);
    if (rank + axis == 0) {
      CutOperand(kernel, 0, axis, span, op);
      return absl::OkStatus();
    }
    if (Find(op, "group") != nullptr) return Cannot("a box cuts maps of groups; wanted no `group`");
    CutOperand(kernel, 1, -rank, span, op);
    if (op.operands.size() > 2) CutOperand(kernel, 2, -1, span, op);
    return absl::OkStatus();
  }

  // Rows of the image that rows of maps look at, and the padding that they have then.
  absl::Status CutImage(const Kernel& kernel, int32_t axis, const Span& span, RuleOp& op) {
    const size_t count = kernel.dims[0].size() - 2;
    const size_t at = FromFirst(axis, count);
    const Expression& size = kernel.dims[0][at + 2];
    const Expression stride = ListOf(op, "strides", count, 1)[at];
    const Expression dilation = ListOf(op, "dilations", count, 1)[at];
    std::vector<Expression> pads = ListOf(op, "pads", 2 * count, 0);
    const Expression taps = AddTimes(kernel.dims[1][at + 2], -1, Whole(1));
    const Expression reach = AddTimes(Product(taps, dilation), 1, Whole(1));
    const Expression begin = AddTimes(Product(span.begin, stride), -1, pads[at]);
    const Expression last = Product(AddTimes(span.end, -1, Whole(1)), stride);
    const Expression end = AddTimes(AddTimes(last, 1, reach), -1, pads[at]);
    const Expression beyond = AddTimes(end, -1, size);
    const Sign low = SignOf(begin, boxes_.draws), high = SignOf(beyond, boxes_.draws);
    if (low == Sign::kMixed || high == Sign::kMixed) {
      return Cannot(absl::StrCat("rows from ", Print(mutant_, begin), " to ", Print(mutant_, end),
                                 " of an image of ", Print(mutant_, size),
                                 " begin or end inside for some sizes alone"));
    }
    const bool begins_inside = low == Sign::kNotBelow, ends_beyond = high == Sign::kNotBelow;
    pads[at] = begins_inside ? Whole(0) : AddTimes(Whole(0), -1, begin);
    pads[at + count] = ends_beyond ? beyond : Whole(0);
    CutOperand(kernel, 0, axis,
               {.begin = begins_inside ? begin : Whole(0), .end = ends_beyond ? size : end}, op);
    Set(op, "pads", Integers(std::move(pads)));
    return absl::OkStatus();
  }

  const Rule& mutant_;
  const SizedBoxes& boxes_;
  Kernel original_;
  std::optional<Kernel> cropped_;
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
  correction_cc::Corrector cropping(mutant, boxes, true);
  if (cropping.crops()) {
    absl::StatusOr<Rule> rule = cropping.Run();
    if (rule.ok()) return rule;
  }
  return correction_cc::Corrector(mutant, boxes, false).Run();
}

}  // namespace orrery::transforms::substitutions
