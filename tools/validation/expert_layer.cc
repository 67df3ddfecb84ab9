#include "tools/validation/expert_layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cost_models/kernels/matrix_product.h"
#include "support/status.h"

namespace orrery::tools {
namespace expert_layer_cc {
namespace {

constexpr uint32_t kRoutings = 5;  // of which the source has the mean

// What the layer takes whatever its size: the choice of experts, the sorting of their numbers, and
// the starts of all its kernels. This, GroupedShare and `gather` of cluster/kernel_rates.h were
// fitted on two thirds of the shapes of layers (docs/kernels.md).
double FixedSeconds(const KernelPoints& kernels) {
  return absl::StartsWith(kernels.device.name, "a100") ? 50e-6 : 30e-6;
}

// What TensorRT-LLM's kernels of products of experts reach of single products: those of Ampere,
// and CUTLASS's with scales of blocks on Hopper, which are no DeepGEMM.
double GroupedShare(const KernelPoints& kernels) {
  const bool ampere = absl::StartsWith(kernels.device.name, "a100");
  const bool hopper = absl::StartsWith(kernels.device.name, "h");
  return ampere || (hopper && kernels.dtype == ir::DType::kF8Block) ? 0.65 : 1;
}

double Uniform(std::mt19937& random) {
  return (static_cast<double>(random()) + 0.5) / 4294967296.0;
}

std::vector<int64_t> Alike(const Routing& routing) {
  const int64_t all = routing.tokens * routing.topk, experts = routing.experts;
  const auto before = [&](int64_t e) { return (e * all + experts - 1) / experts; };
  std::vector<int64_t> rows(static_cast<size_t>(experts));
  for (int64_t e = 0; e < experts; ++e) rows[static_cast<size_t>(e)] = before(e + 1) - before(e);
  return rows;
}

// From the least loaded on: those that are over the tokens, and what rounding has left.
void Spread(int64_t over, int64_t most, std::vector<int64_t>& rows) {
  std::vector<size_t> by_load(rows.size());
  std::iota(by_load.begin(), by_load.end(), size_t{0});
  std::ranges::stable_sort(by_load, {}, [&](size_t e) { return rows[e]; });
  for (const size_t e : by_load) {
    const int64_t more = over > 0 ? std::min(over, most - rows[e]) : std::max(over, -rows[e]);
    rows[e] += more;
    over -= more;
  }
}

std::vector<int64_t> ByPowerLaw(const Routing& routing, uint32_t seed) {
  const int64_t all = routing.tokens * routing.topk;
  const bool many = all > routing.experts;
  const double least = many ? 1 : 0.01;
  const double most = many ? std::max(0.8 * static_cast<double>(routing.tokens), 1.0) : 2;
  const double power = routing.power == 1 ? 1e-9 : 1 - routing.power;
  const double low = std::pow(least, power), high = std::pow(most, power);
  std::mt19937 random(seed);
  std::vector<double> loads(static_cast<size_t>(routing.experts));
  for (double& load : loads) load = std::pow((high - low) * Uniform(random) + low, 1 / power);
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<int64_t> rows;
  int64_t taken = 0;
  for (const double load : loads) {
    const double share = std::round(load / sum * static_cast<double>(all));
    rows.push_back(std::min(static_cast<int64_t>(share), routing.tokens));
    taken += rows.back();
  }
  Spread(all - taken, routing.tokens, rows);
  return rows;
}

// Sizes of the parts of a layer on one rank.
struct Layer {
  int64_t tokens, hidden, inter;  // inter: of one of tp ranks
};

double SecondsOf(const KernelPoints& kernels, const Layer& layer, std::span<const int64_t> rows) {
  cluster::Device device = kernels.device;
  for (cluster::ProductRates* rates : {&device.rates.half, &device.rates.blocks}) {
    rates->efficiency *= GroupedShare(kernels);
  }
  const cost_models::ProductTypes types = {.in = kernels.dtype, .out = ir::DType::kBF16};
  const auto all = static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t{0}));
  const auto tokens = static_cast<double>(layer.tokens), hidden = static_cast<double>(layer.hidden),
             inter = static_cast<double>(layer.inter);
  double seconds = 0;
  if (all > 0) {
    const auto product = [&](int64_t n, int64_t k) {
      return PriceGroupedProduct({.rows = rows, .n = n, .k = k}, types, device).time.seconds();
    };
    seconds = product(2 * layer.inter, layer.hidden) + product(layer.hidden, layer.inter);
  }
  const double narrow = ir::BytesOf(kernels.dtype);
  const double bytes = all * hidden * (2 + narrow)       // rows to their experts
                       + all * inter * (2 * 2 + narrow)  // the activation of up and gate
                       + (all + tokens) * hidden * 2;    // and back to their tokens
  seconds += bytes / (static_cast<double>(device.memory_bandwidth.bytes_per_second()) *
                      device.rates.gather);
  if (kernels.quantizes) seconds += QuantizeSeconds(kernels, tokens * hidden + all * inter);
  return seconds;
}

absl::Status CheckSizes(const Routing& routing, const Layer& layer, int64_t tp) {
  constexpr int64_t kMostExperts = 1 << 14;
  constexpr double kMostTogether = 1e17;  // as program `kernel` has it
  const bool fits = routing.experts <= kMostExperts && routing.topk <= routing.experts &&
                    routing.experts % routing.ranks == 0 && layer.inter % tp == 0;
  const double together = static_cast<double>(routing.tokens) * static_cast<double>(routing.topk) *
                          static_cast<double>(layer.hidden) * static_cast<double>(layer.inter);
  if (fits && together <= kMostTogether) return absl::OkStatus();
  return absl::FailedPreconditionError(fits
                                           ? "a layer's sizes are together over 1e17"
                                           : "a layer's experts are none that ranks can share out");
}

}  // namespace
}  // namespace expert_layer_cc

absl::StatusOr<double> PowerOfName(absl::string_view distribution) {
  if (distribution == "balanced") return 0;
  double power = 0;
  absl::string_view number = distribution;
  if (absl::ConsumePrefix(&number, "power_law_") && absl::SimpleAtod(number, &power) && power > 0 &&
      power < 10) {
    return power;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no distribution of tokens '", distribution, "'"));
}

std::vector<int64_t> DrawRows(const Routing& routing, uint32_t seed) {
  const std::vector<int64_t> rows = routing.power == 0 ? expert_layer_cc::Alike(routing)
                                                       : expert_layer_cc::ByPowerLaw(routing, seed);
  const int64_t of_rank = routing.experts / routing.ranks;
  int64_t most = -1;
  auto fullest = rows.begin();
  for (auto first = rows.begin(); first != rows.end(); first += of_rank) {
    const int64_t load = std::accumulate(first, first + of_rank, int64_t{0});
    if (load > most) fullest = first;
    most = std::max(most, load);
  }
  return {fullest, fullest + of_rank};
}

absl::StatusOr<double> PredictExpertLayer(const KernelPoints& kernels,
                                          const PointFigures& figures) {
  namespace own = expert_layer_cc;
  Routing routing;
  own::Layer layer;
  ORRERY_ASSIGN_OR_RETURN(routing.tokens, SizeOfPoint(figures, "tokens"));
  ORRERY_ASSIGN_OR_RETURN(routing.topk, SizeOfPoint(figures, "topk"));
  ORRERY_ASSIGN_OR_RETURN(routing.experts, SizeOfPoint(figures, "experts"));
  ORRERY_ASSIGN_OR_RETURN(routing.ranks, SizeOfPoint(figures, "ep"));
  ORRERY_ASSIGN_OR_RETURN(layer.hidden, SizeOfPoint(figures, "hidden"));
  ORRERY_ASSIGN_OR_RETURN(layer.inter, SizeOfPoint(figures, "inter"));
  ORRERY_ASSIGN_OR_RETURN(const int64_t tp, SizeOfPoint(figures, "tp"));
  layer.tokens = routing.tokens;
  ORRERY_RETURN_IF_ERROR(own::CheckSizes(routing, layer, tp));
  layer.inter /= tp;
  const double index = figures.at("distribution");
  if (!(index >= 0 && index < static_cast<double>(kernels.distributions.size()))) {
    return absl::FailedPreconditionError("a layer without a distribution of tokens");
  }
  ORRERY_ASSIGN_OR_RETURN(routing.power,
                          PowerOfName(kernels.distributions[static_cast<size_t>(index)]));
  const uint32_t draws = routing.power == 0 ? 1 : own::kRoutings;
  double seconds = 0;
  for (uint32_t seed = 1; seed <= draws; ++seed) {
    seconds += own::SecondsOf(kernels, layer, DrawRows(routing, seed));
  }
  return seconds / draws + own::FixedSeconds(kernels);
}

}  // namespace orrery::tools
