#include "transforms/substitutions/draw_rule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "support/numbers/mix_bits.h"

namespace orrery::transforms::substitutions {
namespace draw_rule_cc {
namespace {

using ir::Attribute;

constexpr int kGenericDraws = 2000;
constexpr absl::string_view kActivations[] = {"", "relu", "relu6", "gelu", "gelu_tanh", "silu"};
// Of numbers that a rule names: beside which of them sizes are drawn.
constexpr int64_t kLeastNamed = 2, kMostNamed = 64;

template <typename List>
auto OneOf(const List& list, RandomBits& random) {
  return list[static_cast<size_t>(random.Between(0, static_cast<int64_t>(std::size(list)) - 1))];
}

// With so much padding kernels of any size fit into any image.
std::optional<Attribute> OpaqueAttribute(absl::string_view name) {
  if (name == "strides") return Attribute(std::vector<int64_t>{2, 3});
  if (name == "dilations") return Attribute(std::vector<int64_t>{3, 2});
  if (name == "pads") return Attribute(std::vector<int64_t>{2003, 2011, 2017, 2027});
  return std::nullopt;
}

double DrawFactor(bool few, RandomBits& random) {
  if (few || random.Between(0, 2) == 0) return static_cast<double>(random.Between(-3, 3));
  return static_cast<double>(random.Between(-40, 40)) / 8;
}

// No axiom names relu6; what does not take it takes relu.
std::string DrawActivation(AttributeDraw draw, RandomBits& random) {
  if (draw == AttributeDraw::kAll) return std::string(OneOf(kActivations, random));
  const int64_t relu = draw == AttributeDraw::kFew ? 1 : 7;
  if (random.Between(0, relu) == relu) return "relu";
  return draw == AttributeDraw::kFew ? "" : "relu6";
}

// Odd sixteenths: variances are quarters, and none and an epsilon add up to 0, where one side may
// be infinite and the other no number.
double DrawEpsilon(bool few, RandomBits& random) {
  if (few) return static_cast<double>(random.Between(1, 8)) / 8;
  if (random.Between(0, 3) == 0) return 1e-5;
  return static_cast<double>(2 * random.Between(0, 7) + 1) / 16;
}

// What an attribute that is a variable may be.
std::optional<Attribute> DrawAttribute(absl::string_view name, AttributeDraw draw,
                                       RandomBits& random) {
  const bool few = draw == AttributeDraw::kFew;
  const auto list = [&](size_t count, int64_t low, int64_t high) {
    std::vector<int64_t> values(count);
    for (int64_t& value : values) value = random.Between(low, high);
    return Attribute(std::move(values));
  };
  if (draw == AttributeDraw::kOpaque) {
    if (std::optional<Attribute> opaque = OpaqueAttribute(name)) return opaque;
  }
  if (name == "strides" || name == "dilations") return list(2, 1, few ? 2 : 3);
  if (name == "pads") return list(4, 0, few ? 2 : 3);
  if (name == "group") return Attribute(random.Between(1, few ? 3 : 4));
  if (name == "factor") return Attribute(DrawFactor(few, random));
  if (name == "activation") return Attribute(DrawActivation(draw, random));
  if (name == "epsilon") return Attribute(DrawEpsilon(few, random));
  return std::nullopt;
}

// The attributes' variables, by the attribute that each stands for. Generic factors are primes.
bool DrawAttributes(const Rule& rule, const SizeDraw& draw, RandomBits& random,
                    Variables& variables) {
  constexpr double kPrimes[] = {3, 5, 7, 11};
  size_t factors = 0;
  for (const RuleSide* side : {&rule.left, &rule.right}) {
    for (const RuleOp& op : side->ops) {
      for (const auto& [name, pattern] : op.attributes) {
        for (const int32_t variable : pattern.variables) {
          auto& value = variables.attributes[static_cast<size_t>(variable)];
          if (value.has_value()) continue;
          value = name == "factor" && draw.generic ? Attribute(kPrimes[factors++ % 4])
                                                   : DrawAttribute(name, draw.attributes, random);
          if (!value.has_value()) return false;
        }
      }
    }
  }
  return true;
}

// Whether a size is unlike all that are there, and no sum of two of them all.
bool IsGeneric(const std::vector<int64_t>& sizes, int64_t size) {
  for (const int64_t a : sizes) {
    if (a == size) return false;
    for (const int64_t b : sizes) {
      if (a + b == size || a + size == b || 2 * size == a) return false;
    }
  }
  return true;
}

// By variable: whether a dimension of an input names it.
std::vector<char> AreDims(const Rule& rule) {
  std::vector<char> are_dims(rule.sizes.size(), 0);
  for (const RuleInput& input : rule.inputs) {
    for (const Expression& dim : input.dims) {
      for (const Expression::Term& term : dim.terms) {
        for (const int32_t v : term.variables) are_dims[static_cast<size_t>(v)] = 1;
      }
    }
  }
  return are_dims;
}

// Powers of primes that no product of small sizes is a multiple of.
constexpr int64_t kLargeSizes[] = {16, 17, 19, 23, 25, 27, 29, 31};

// One of these, or one beside a number of the rule.
int64_t DrawOneLarge(const Rule& rule, RandomBits& random) {
  std::vector<int64_t> named;
  for (const double number : NumbersOf(rule)) {
    const double size = std::abs(number);
    if (size >= kLeastNamed && size <= kMostNamed) named.push_back(static_cast<int64_t>(size));
  }
  if (named.empty() || random.Between(0, 1) == 0) return OneOf(kLargeSizes, random);
  return OneOf(named, random) + random.Between(-1, 1);
}

// Some sizes in place of those that were drawn. What attributes alone name may be any number, and
// is often beside a size.
void Enlarge(const Rule& rule, LargeSizes large, RandomBits& random, Variables& variables) {
  const std::vector<char> is_dim = AreDims(rule);
  std::vector<int64_t*> dims;
  for (size_t v = 0; v < is_dim.size(); ++v) {
    if (is_dim[v] != 0) dims.push_back(&*variables.sizes[v]);
  }
  const bool leads = std::ranges::any_of(rule.inputs, &RuleInput::leading);
  if (leads) {
    for (int64_t& size : *variables.leading) dims.push_back(&size);
  }
  if (dims.empty()) return;
  for (int i = 0; i < (large == LargeSizes::kTwo ? 2 : 1); ++i) {
    *OneOf(dims, random) =
        large == LargeSizes::kTwo ? random.Between(6, 13) : DrawOneLarge(rule, random);
  }
  for (size_t v = 0; v < is_dim.size(); ++v) {
    if (is_dim[v] != 0) continue;
    int64_t& size = *variables.sizes[v];
    const int64_t kind = random.Between(0, 3);
    size = random.Between(0, kind < 2 ? 3 : 13);
    if (kind == 3) size = std::max<int64_t>(0, *OneOf(dims, random) + random.Between(-1, 1));
  }
}

// Sizes of dimensions are as asked for, those that attributes alone name 0 to 2.
void DrawSizes(const Rule& rule, const SizeDraw& draw_sizes, RandomBits& random,
               Variables& variables) {
  const std::vector<char> is_dim = AreDims(rule);
  std::vector<int64_t> sizes;
  for (size_t v = 0; v < is_dim.size(); ++v) {
    int64_t size = random.Between(0, 2);
    if (is_dim[v] != 0) {
      for (int draw = 0; draw < kGenericDraws; ++draw) {
        size = random.Between(draw_sizes.least, draw_sizes.most);
        if (!draw_sizes.generic || IsGeneric(sizes, size)) break;
      }
      sizes.push_back(size);
    }
    variables.sizes[v] = size;
  }
  variables.leading.emplace(
      static_cast<size_t>(random.Between(draw_sizes.least_leading_dims, draw_sizes.leading_dims)));
  for (int64_t& size : *variables.leading) size = random.Between(1, 3);
  if (draw_sizes.large != LargeSizes::kNone) {
    Enlarge(rule, draw_sizes.large, random, variables);
  }
}

// Free ones are drawn when their bounds are known; where nothing is below one, it is none.
void DrawFreeSizes(const Rule& rule, RandomBits& random, Variables& variables) {
  for (const FreeSize& each : rule.free_sizes) {
    const int64_t below = Evaluate(each.below, variables).value_or(0);
    variables.sizes[static_cast<size_t>(each.size)] = below > 1 ? random.Between(1, below - 1) : 0;
  }
}

// Quarters of up to 100 are exact in products of five of them, and so are their sums.
double DrawAny(const InputDraw& draw, RandomBits& random) {
  switch (draw.elements) {
    case ElementDraw::kWhole:
      return static_cast<double>(random.Between(-4, 4));
    case ElementDraw::kQuarters:
      return static_cast<double>(random.Between(-16, 16)) / 4;
    case ElementDraw::kNumbers:
      if (!draw.numbers.empty() && random.Between(0, 1) == 0) {
        const double number = OneOf(draw.numbers, random);
        const int64_t kind = random.Between(0, 3);
        if (kind < 2) return number + static_cast<double>(random.Between(-4, 4)) / 4;
        return kind == 2 ? 1.5 * number : -number;
      }
      [[fallthrough]];
    default:
      return static_cast<double>(random.Between(-400, 400)) / 4;
  }
}

double DrawElement(const InputDraw& draw, RandomBits& random) {
  if (!draw.positive) return DrawAny(draw, random);
  if (draw.elements == ElementDraw::kWhole) return static_cast<double>(random.Between(1, 4));
  return std::abs(DrawAny(draw, random)) + 0.25;
}

}  // namespace
}  // namespace draw_rule_cc

uint64_t RandomBits::Next() {
  state_ += kMixStep;
  return MixBits(state_);
}

int64_t RandomBits::Between(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
}

std::optional<Variables> DrawAnyVariables(const Rule& rule, const SizeDraw& draw,
                                          RandomBits& random) {
  Variables variables = NoVariables(rule);
  if (!draw_rule_cc::DrawAttributes(rule, draw, random, variables)) return std::nullopt;
  draw_rule_cc::DrawSizes(rule, draw, random, variables);
  draw_rule_cc::DrawFreeSizes(rule, random, variables);
  return variables;
}

std::vector<double> NumbersOf(const Rule& rule) {
  std::vector<double> numbers;
  for (const RuleSide* side : {&rule.left, &rule.right}) {
    for (const RuleOp& op : side->ops) {
      for (const auto& [name, pattern] : op.attributes) {
        if (pattern.form == AttributePattern::Form::kReal) numbers.push_back(pattern.real);
        for (const Expression& each : pattern.integers) {
          for (const Expression::Term& term : each.terms) {
            numbers.push_back(static_cast<double>(term.factor));
          }
        }
      }
    }
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

ir::Tensor DrawTensor(const ir::TensorType& type, const InputDraw& draw, RandomBits& random) {
  ir::Tensor tensor(type.dtype, type.dims);
  if (!ir::IsFloat(type.dtype)) return tensor;
  for (double& value : tensor.floats()) value = draw_rule_cc::DrawElement(draw, random);
  return tensor;
}

std::vector<ir::Tensor> DrawInputs(const WorkTable& works, const Dataflow& flow,
                                   const InputDraw& draw, RandomBits& random) {
  std::vector<ir::Tensor> inputs;
  for (int32_t i = 0; i < flow.inputs; ++i) {
    inputs.push_back(DrawTensor(works.type(TypeOf(works, flow, {.node = i})), draw, random));
  }
  return inputs;
}

}  // namespace orrery::transforms::substitutions
