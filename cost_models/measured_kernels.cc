#include "cost_models/measured_kernels.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cost_models/beside_kernels.h"
#include "cost_models/kernels/attention_kernel.h"
#include "support/status.h"

namespace orrery::cost_models {
namespace measured_kernels_cc {
namespace {

constexpr double kReach = 1;  // doublings of each size
constexpr double kOtherLayout = 0.5;
// Half of the rows of four tables of products, priced by the other half, chose these: all of 4 to
// 16 of the nearest, and of a quarter up or down, come out within a few tenths of a per cent.
constexpr size_t kMostNear = 8;
constexpr double kAlike = 0.25;  // nearer than so many doublings one is as good as another
constexpr double kNoise = 0.03;  // so far from each other measurements of one thing are
constexpr int kRounds = 5;

struct Weighted {
  double value, weight;
};

double WeightOf(double distance) { return 1 / (distance * distance + kAlike * kAlike); }

// Between a weighted mean and a weighted median: what is far from it counts less, as in iteratively
// reweighted least squares of absolute errors. Within the least and the most of the values.
double RobustMean(std::span<const Weighted> all) {
  double mean = 0;
  for (int round = 0; round <= kRounds; ++round) {
    double sum = 0, weights = 0;
    for (const Weighted& one : all) {
      const double far = round == 0 ? 1 : std::max(std::abs(one.value - mean), kNoise);
      sum += one.value * one.weight / far;
      weights += one.weight / far;
    }
    mean = sum / weights;
  }
  return mean;
}

bool IsOfType(const MeasuredKernel& row, const OpKernel& kernel) {
  // Software that has one kernel for all experts may say so as a product of many matrices.
  const bool of_experts =
      kernel.form == KernelForm::kGrouped && row.form == KernelForm::kProduct && row.sizes[0] > 1;
  if (row.form != kernel.form && !of_experts) return false;
  switch (kernel.form) {
    case KernelForm::kProduct:
    case KernelForm::kGrouped:
      return row.dtype == CountedAs(kernel.types.in);
    case KernelForm::kAttention:
      return row.dtype == CountedAs(kernel.attention.dtype) &&
             row.backward == kernel.attention.backward &&
             row.causal == (kernel.attention.visible < 1);
    default:
      return true;
  }
}

// The kernel that is asked for, were it of the sizes of a measured one.
OpKernel OfSizesOf(const MeasuredKernel& row, const OpKernel& kernel,
                   const cluster::Device& device) {
  const KernelSizes& s = row.sizes;
  if (row.form == KernelForm::kMoving) {
    const double more =
        static_cast<double>(s[0]) / static_cast<double>(std::max<int64_t>(kernel.bytes.count(), 1));
    return MovingKernel(Flops(kernel.flops.count() * more), Bytes(s[0]), device);
  }
  if (IsProduct(row.form)) {
    ProductTypes types = kernel.types;
    const ProductLayout layout = row.layout.value_or(kernel.layout);
    if (row.layout.has_value()) types.along_k = layout != ProductLayout::kNT;
    const OpKernel product =
        ProductKernel({.batch = s[0], .m = s[1], .n = s[2], .k = s[3]}, types, layout, device);
    const bool grouped = row.form == KernelForm::kGrouped;
    return grouped ? ExpertsKernel(product, kernel.experts, device) : product;
  }
  FusedAttention attention = kernel.attention;
  const auto scores = [](const KernelSizes& of) {
    return static_cast<double>(of[0]) * static_cast<double>(of[1]) * static_cast<double>(of[2]) *
           static_cast<double>(of[3]);
  };
  const auto rows = [](const KernelSizes& of) {
    return static_cast<double>(of[0]) * static_cast<double>(of[1] + of[2]) *
           static_cast<double>(of[3]);
  };
  const KernelSizes own = SizesOf(kernel);
  attention.flops = Flops(attention.flops.count() * scores(s) / scores(own));
  attention.bytes = Bytes(
      static_cast<int64_t>(static_cast<double>(attention.bytes.count()) * rows(s) / rows(own)));
  attention.batch = 1;
  attention.heads = s[0];
  attention.queries = s[1];
  attention.keys = s[2];
  attention.width = s[3];
  if (row.causal && s != own) attention.visible = VisibleShare(s[1], s[2]);
  return AttentionKernel(attention, device);
}

// Of a kernel that does something.
NearKernel NearOf(const MeasuredKernel& row, const OpKernel& kernel, const KernelSizes& sizes) {
  NearKernel near = {.measured = &row, .in_reach = true};
  double squares = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (row.sizes[i] == sizes[i]) continue;
    const double doublings =
        std::log2(static_cast<double>(row.sizes[i]) / static_cast<double>(sizes[i]));
    squares += doublings * doublings;
    near.in_reach = near.in_reach && std::abs(doublings) <= kReach;
  }
  const bool other = IsProduct(row.form) && row.layout.value_or(kernel.layout) != kernel.layout;
  near.distance = std::sqrt(squares) + (other ? kOtherLayout : 0);
  return near;
}

// Times of some kernels, and of that the share that is from each source.
struct Sum {
  Duration time = Duration(0);
  SourceShares seconds = {};

  void Add(const KernelPrice& price) {
    time += price.time;
    seconds[static_cast<size_t>(price.source)] += price.time.seconds();
  }
  SourceShares Shares() const {
    SourceShares shares = {};
    const double all = time.seconds();
    for (size_t i = 0; i < shares.size() && all > 0; ++i) shares[i] = seconds[i] / all;
    return shares;
  }
};

// All that the price of a kernel follows from.
using Known = std::tuple<std::string, KernelForm, KernelSizes, int64_t, int64_t, double, int64_t,
                         ir::DType, ir::DType, bool, ProductLayout, AttentionClass, bool, double>;

Known KnownOf(const OpKernel& kernel, const cluster::Device& device) {
  const FusedAttention& attention = kernel.attention;
  const bool product = IsProduct(kernel.form);
  return {device.name,
          kernel.form,
          SizesOf(kernel),
          kernel.time.picoseconds(),
          kernel.host.picoseconds(),
          kernel.flops.count(),
          kernel.bytes.count(),
          product ? kernel.types.in : attention.dtype,
          kernel.types.out,
          kernel.types.along_k,
          kernel.layout,
          attention.kernel,
          attention.backward,
          attention.visible};
}

class Model final : public BesideKernels {
 public:
  Model(std::string name, std::vector<MeasuredKernel> table)
      : name_(std::move(name)), measured_(std::move(table)) {}

  Duration Compute(const OpView& op, const cluster::Device& device) const override {
    return Of(op, device).time;
  }
  SourceShares SourcesOf(const OpView& op, const cluster::Device& device) const override {
    return Of(op, device).Shares();
  }
  std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                const cluster::Device& device) const override {
    return Price(MovingKernel(flops, bytes, device), device).time;
  }
  SourceShares SourcesOfFused(Flops flops, Bytes bytes,
                              const cluster::Device& device) const override {
    Sum sum;
    sum.Add(Price(MovingKernel(flops, bytes, device), device));
    return sum.Shares();
  }
  std::string DoubtAbout(const cluster::Device& device) const override {
    if (measured_.Has(device)) return BesideKernels::DoubtAbout(device);
    const std::string doubt = BesideKernels::DoubtAbout(device);
    return absl::StrCat(doubt, doubt.empty() ? "" : "; ", "all kernels by the model: ", name_,
                        " has none of ", device.name);
  }

 private:
  Sum Of(const OpView& op, const cluster::Device& device) const {
    Sum sum;
    for (const OpKernel& kernel : OpKernelsOf(op, device)) {
      sum.Add(Price(kernel, device));
    }
    return sum;
  }

  // Each kernel is looked up once: a table of 5,000 takes 100 us, and a search for shardings asks
  // for the same again and again.
  KernelPrice Price(const OpKernel& kernel, const cluster::Device& device) const {
    const Known key = KnownOf(kernel, device);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto known = known_.find(key);
      if (known != known_.end()) return known->second;
    }
    const KernelPrice price = measured_.Price(kernel, device);
    const std::lock_guard<std::mutex> lock(mutex_);
    return known_.emplace(key, price).first->second;
  }

  std::string name_;
  MeasuredKernels measured_;
  mutable std::mutex mutex_;
  mutable absl::flat_hash_map<Known, KernelPrice> known_;
};

}  // namespace
}  // namespace measured_kernels_cc

std::vector<NearKernel> MeasuredKernels::Nearest(const OpKernel& kernel,
                                                 const cluster::Device& device, size_t most) const {
  namespace own = measured_kernels_cc;
  const KernelSizes sizes = SizesOf(kernel);
  std::vector<NearKernel> near;
  if (kernel.form == KernelForm::kOther || std::ranges::min(sizes) < 1) return near;
  for (const MeasuredKernel& row : table_) {
    if (own::IsOfType(row, kernel) && row.IsOf(device.name)) {
      near.push_back(own::NearOf(row, kernel, sizes));
    }
  }
  const auto order = [](const NearKernel& one) {
    return std::tuple(!one.in_reach, one.distance, one.measured);
  };
  const size_t count = std::min(most, near.size());
  std::ranges::partial_sort(near, near.begin() + static_cast<int64_t>(count), {}, order);
  near.resize(count);
  for (NearKernel& one : near) {
    const OpKernel model = own::OfSizesOf(*one.measured, kernel, device);
    one.model = model.time - model.host;
  }
  return near;
}

KernelPrice MeasuredKernels::Price(const OpKernel& kernel, const cluster::Device& device) const {
  namespace own = measured_kernels_cc;
  const Duration model = kernel.time - kernel.host;
  // The host is no faster for a kernel that was measured in a graph.
  const Duration least = kernel.host > Duration(0) ? device.launch_overhead : Duration(0);
  std::vector<own::Weighted> logarithms;
  if (model <= Duration(0)) return {.time = kernel.time};
  for (const NearKernel& near : Nearest(kernel, device, own::kMostNear)) {
    if (!near.in_reach || near.model <= Duration(0)) break;
    const double seconds = near.measured->seconds;
    if (near.distance == 0 && near.model == model) {
      return {.time = std::max(Duration::FromSeconds(seconds), least),
              .source = TimeSource::kMeasured};
    }
    logarithms.push_back({.value = std::log(seconds / near.model.seconds()),
                          .weight = own::WeightOf(near.distance)});
  }
  if (logarithms.empty()) return {.time = kernel.time};
  const double ratio = std::exp(own::RobustMean(logarithms));
  return {.time = std::max(Duration::FromSeconds(model.seconds() * ratio), least),
          .source = TimeSource::kInterpolated};
}

bool MeasuredKernels::Has(const cluster::Device& device) const {
  return std::ranges::any_of(table_,
                             [&](const MeasuredKernel& row) { return row.IsOf(device.name); });
}

absl::StatusOr<std::unique_ptr<const CostModel>> MakeMeasuredKernelsCostModel(
    const std::string& spec) {
  ORRERY_ASSIGN_OR_RETURN(std::vector<MeasuredKernel> table, ReadKernelTable(spec));
  return std::make_unique<measured_kernels_cc::Model>(spec, std::move(table));
}

}  // namespace orrery::cost_models
