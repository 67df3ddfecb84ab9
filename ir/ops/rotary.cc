#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "ir/ops/kernels.h"

// Rotary position embedding (Su et al. 2021): pairs of features turned by an angle that grows with
// the position. x is [batch,heads,sequence,d] or the like, against which the tables broadcast; or
// packed [batch,sequence,heads d], with tables [..,sequence,d].

namespace orrery::ir {
namespace rotary_cc {
namespace {

constexpr absl::string_view kHalf = "half";
constexpr absl::string_view kInterleaved = "interleaved";

// The tables' dims as they broadcast against x, whose last dimension a packed x has split in two.
struct Views {
  Dims x, table;
};

Views ViewsOf(const Dims& x, const Dims& table) {
  const int64_t d = table.back();
  if (x.size() > 3 || x.back() == d || d == 0) return {.x = x, .table = table};
  Views views{.x = x, .table = table};
  views.x.back() = x.back() / d;
  views.x.push_back(d);
  views.table.insert(views.table.end() - 1, 1);
  return views;
}

absl::Status InferRotary(const OpTypes& op, TypeList& results) {
  const TensorType &x = *op.operands[0], &cos = *op.operands[1], &sin = *op.operands[2];
  const std::string layout = op.attributes.String("layout", kHalf);
  if (layout != kHalf && layout != kInterleaved) {
    return absl::InvalidArgumentError(
        absl::StrCat("layout=\"", layout, "\"; wanted \"half\" or \"interleaved\""));
  }
  if (cos.dims != sin.dims || cos.dtype != x.dtype || sin.dtype != x.dtype || !IsFloat(x.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("got tables ", ToString(cos, op.mesh), " and ",
                                                   ToString(sin, op.mesh), " for ",
                                                   ToString(x, op.mesh), "; wanted one type"));
  }
  bool fits = !x.dims.empty() && !cos.dims.empty() && cos.dims.back() > 0 &&
              cos.dims.back() % 2 == 0 && x.dims.back() % cos.dims.back() == 0;
  if (fits) {
    const Views views = ViewsOf(x.dims, cos.dims);
    const std::optional<Dims> dims = BroadcastDims(views.x, views.table);
    fits = dims.has_value() && *dims == views.x;
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("tables of shape ", Show(cos.dims),
                                                   " do not broadcast to ", Show(x.dims),
                                                   "; wanted [..,sequence,d] with an even d"));
  }
  return InferUnary(op, results);
}

double RotaryFlops(const OpTypes&, const TypeList& results) {
  return 3.0 * static_cast<double>(ElementCount(results[0].dims));
}

// Heads of a packed x split its last dimension, in which the tables have no part: so its factor
// stands only where whole heads fall to each rank.
ShardingRule RotarySharding(const OpTypes& op, const TypeList&) {
  const TensorType &x = *op.operands[0], &cos = *op.operands[1];
  const size_t rank = x.dims.size();
  ShardingRule::Factors factors(rank), tables(cos.dims.size(), kNoFactor);
  for (size_t d = 0; d < rank; ++d) factors[d] = static_cast<int8_t>(d);
  const bool packed = ViewsOf(x.dims, cos.dims).x.size() > rank;
  const int64_t heads = x.dims.back() / std::max<int64_t>(cos.dims.back(), 1);
  if (!packed || heads % op.mesh.size(x.sharding.at(rank - 1)) != 0) factors.back() = kNoFactor;
  for (size_t d = 0; d + 1 < tables.size(); ++d) {
    const size_t aligned = rank - tables.size() + d;
    if (aligned < rank && cos.dims[d] == x.dims[aligned] && cos.dims[d] != 1) {
      tables[d] = static_cast<int8_t>(aligned);
    }
  }
  return {.operands = {factors, tables, tables}, .results = {factors}};
}

// Feature i and its partner turn together; the first of a pair has the minus sign.
struct Partner {
  int64_t at;
  double sign;
};

Partner PartnerOf(int64_t i, int64_t d, bool interleaved) {
  if (interleaved) return i % 2 == 0 ? Partner{i + 1, -1} : Partner{i - 1, 1};
  return i < d / 2 ? Partner{i + d / 2, -1} : Partner{i - d / 2, 1};
}

// y = x cos + rotated(x) sin; the inverse is the transposed map, which is its gradient.
absl::Status EvaluateRotary(Evaluation& e) {
  const Tensor &x = e.operand(0), &cos = e.operand(1), &sin = e.operand(2);
  const bool interleaved = e.attributes.String("layout", kHalf) == kInterleaved;
  const bool inverse = e.attributes.Int("inverse", 0) != 0;
  const Views views = ViewsOf(x.dims(), cos.dims());
  const int64_t d = cos.dims().back();
  for (Odometer at(views.x, {BroadcastStrides(views.table, views.x)}); !at.done(); at.Next()) {
    const int64_t i = at.at().back();
    const Partner partner = PartnerOf(i, d, interleaved);
    const int64_t step = partner.at - i;
    const double turned = inverse ? -sin.Number(at.offset(0) + step) : sin.Number(at.offset(0));
    e.results[0].SetNumber(at.index(), x.Number(at.index()) * cos.Number(at.offset(0)) +
                                           partner.sign * x.Number(at.index() + step) * turned);
  }
  return absl::OkStatus();
}

absl::Status RotaryGradient(GradientContext& c) {
  AttributeSet attributes = c.attributes();
  attributes.Set("inverse", int64_t{1} - attributes.Int("inverse", 0));
  c.SetOperandGradient(
      0, c.builder().Op(OpKind::kRotary, {c.result_gradient(), c.operand(1), c.operand(2)},
                        c.GradientName(0), attributes));
  return c.builder().status();
}

}  // namespace
}  // namespace rotary_cc

extern const OpInfo kRotaryOp = {
    .name = "Rotary",
    .summary =
        "x [..,sequence,d], or [..,sequence,heads d], with pairs of features turned by the "
        "angles of the tables cos and sin [..,sequence,d]; turned back with inverse=1",
    .operands = 3,
    .infer = rotary_cc::InferRotary,
    .flops = rotary_cc::RotaryFlops,
    .sharding = rotary_cc::RotarySharding,
    .evaluate = rotary_cc::EvaluateRotary,
    .gradient = rotary_cc::RotaryGradient,
    .no_gradient = 0b110,
};

}  // namespace orrery::ir
