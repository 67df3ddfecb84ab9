#include "cost_models/measured.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cost_models/beside_kernels.h"
#include "cost_models/collectives/steps.h"
#include "support/check.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::cost_models {
namespace measured_cc {
namespace {

using cluster::DeviceId;
using cluster::Topology;

double ShareOf(CollectiveKind kind, int32_t devices) {
  const Share share = GetCollectiveKind(kind).bus_share(devices);
  return static_cast<double>(share.numerator) / static_cast<double>(share.denominator);
}

bool Crosses(std::span<const DeviceId> group, const Topology& topology) {
  const int32_t a_node = DevicesANode(topology);
  return a_node > 1 && std::ranges::any_of(group, [&](DeviceId device) {
           return device.index() / a_node != group[0].index() / a_node;
         });
}

// Of a hop within a node or out of it; 0 where there is none.
double HopRate(const Topology& topology, bool across) {
  const int32_t to = across ? DevicesANode(topology) : 1;
  if (to >= topology.devices() || (across && to == 1)) return 0;
  return static_cast<double>(topology.Path(DeviceId(0), DeviceId(to)).rate.bytes_per_second());
}

// A line as a protocol: α is the start, and the part of the links' rate is what makes β of it.
cluster::CollectiveProtocol ProtocolOf(const RoundsCost& cost, Bytes size, double alpha,
                                       double seconds) {
  cluster::CollectiveProtocol wires = {.name = "measured", .start_up_has_steps = true};
  const double streaming = TimeOf(cost, size, wires).seconds();
  wires.start_up = Duration::FromSeconds(alpha);
  if (seconds > alpha && streaming > 0) {
    wires.rate = wires.rate_between_nodes = streaming / (seconds - alpha);
  } else {
    wires.start_up = Duration::FromSeconds(seconds);
    wires.rate = wires.rate_between_nodes = 1e6;
  }
  return wires;
}

class Measured final : public BesideKernels {
 public:
  explicit Measured(const MeasuredCurves& curves) : collectives_(curves) {}

  Duration Collective(CollectiveKind kind, Bytes size, std::span<const DeviceId> group,
                      const Topology& topology) const override {
    return Plan({.kind = kind, .size = size, .group = group}, topology).time;
  }

  absl::StatusOr<ChosenCollective> Choose(const CollectiveRequest& request,
                                          const Topology& topology,
                                          const CollectiveChoice& choice) const override {
    return collectives_.Choose(request, topology, choice);
  }

 private:
  MeasuredCollectives collectives_;
};

}  // namespace
}  // namespace measured_cc

MeasuredCollectives::MeasuredCollectives(const MeasuredCurves& curves) {
  ORRERY_CHECK(!curves.curves.empty()) << "no sweeps";
  for (const MeasuredCurve& curve : curves.curves) {
    sweeps_.push_back({curve.kind, curve.devices, curve.nodes, FitCurve(curve)});
  }
}

const MeasuredCollectives::Sweep& MeasuredCollectives::Nearest(CollectiveKind kind, int32_t devices,
                                                               bool across) const {
  const auto distance = [&](const Sweep& sweep) {
    const int other_kind = sweep.kind == kind                         ? 0
                           : sweep.kind == CollectiveKind::kAllReduce ? 1
                                                                      : 2;
    const double size = std::abs(std::log2(static_cast<double>(sweep.devices) / devices));
    return std::tuple(other_kind, across != (sweep.nodes > 1), size);
  };
  return *std::ranges::min_element(sweeps_, {}, distance);
}

absl::StatusOr<ChosenCollective> MeasuredCollectives::Choose(const CollectiveRequest& request,
                                                             const cluster::Topology& topology,
                                                             const CollectiveChoice& choice) const {
  ORRERY_ASSIGN_OR_RETURN(ChosenCollective chosen, ChooseCollective(request, topology, choice));
  const auto devices = static_cast<int32_t>(request.group.size());
  const bool across = measured_cc::Crosses(request.group, topology);
  const Sweep& sweep = Nearest(request.kind, devices, across);
  // A barrier moves nothing: its sweep's share of the size is none.
  const double measured_share = measured_cc::ShareOf(sweep.kind, sweep.devices);
  double beta =
      measured_share > 0 ? measured_cc::ShareOf(request.kind, devices) / measured_share : 0;
  if (const bool measured_across = sweep.nodes > 1; measured_across != across) {
    const double was = measured_cc::HopRate(topology, measured_across),
                 is = measured_cc::HopRate(topology, across);
    if (was > 0 && is > 0) beta *= was / is;
  }
  const double alpha = std::log2(devices) / std::log2(sweep.devices);
  const auto bytes = static_cast<double>(request.size.count()) * beta;
  const AlphaBeta* least = nullptr;
  for (const AlphaBeta& line : sweep.fit.lines) {
    const auto seconds = [&](const AlphaBeta& l) {
      return l.alpha_s * alpha + l.beta_s_a_byte * bytes;
    };
    if (least == nullptr || seconds(line) < seconds(*least)) least = &line;
  }
  const double line_alpha = least->alpha_s * alpha;
  const double seconds =
      std::max(sweep.fit.floor_s * alpha, line_alpha + least->beta_s_a_byte * bytes);
  const Bytes moved = chosen.call.size;
  chosen.protocol =
      measured_cc::ProtocolOf(chosen.cost, moved, seconds - least->beta_s_a_byte * bytes, seconds);
  chosen.time = TimeOf(chosen.cost, moved, chosen.protocol);
  return chosen;
}

absl::StatusOr<MeasuredCurves> ReadMeasuredCurves(const std::string& spec) {
  const std::string kOnly = ",only=";
  const size_t at = spec.rfind(kOnly);
  const std::string path = spec.substr(0, at);
  ORRERY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ORRERY_ASSIGN_OR_RETURN(MeasuredCurves curves, ParseMeasuredCurves(text, path));
  if (at == std::string::npos) return curves;
  const std::string only = spec.substr(at + kOnly.size());
  std::erase_if(curves.curves, [&](const MeasuredCurve& curve) {
    return !absl::StrContains(
        absl::StrCat(curve.id, " ", curve.device, " ", curve.in_node, " ", curve.between_nodes),
        only);
  });
  if (!curves.curves.empty()) return curves;
  return absl::InvalidArgumentError(absl::StrCat(path, ": got no sweep with '", only,
                                                 "' in its id or hw; wanted one, as in only=H100"));
}

absl::StatusOr<std::unique_ptr<const CostModel>> MakeMeasuredCostModel(const std::string& spec) {
  ORRERY_ASSIGN_OR_RETURN(const MeasuredCurves curves, ReadMeasuredCurves(spec));
  return std::make_unique<measured_cc::Measured>(curves);
}

}  // namespace orrery::cost_models
