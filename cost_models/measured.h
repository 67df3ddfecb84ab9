#ifndef ORRERY_COST_MODELS_MEASURED_H_
#define ORRERY_COST_MODELS_MEASURED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/cost_model.h"
#include "cost_models/measured_curves.h"

// Collectives as they were measured; compute as kernels reach it.
//
// A request takes the lines of the sweep that is nearest to it: of its kind (else of all-reduce,
// else any), within a node or across as it is, and then of the nearest number of devices. From a
// group of n devices to one of m, α grows as log2 does, as the steps of a tree do, and β as the
// share of the size that passes a rank does (2(n-1)/n of an all-reduce). Where only the other of
// within and across was measured, β also grows as the rate of the slowest hop falls.

namespace orrery::cost_models {

/// Times of collectives by the sweeps of one machine; see the top of this file.
class MeasuredCollectives {
 public:
  /// Requires curves.
  explicit MeasuredCollectives(const MeasuredCurves& curves);

  /// How a collective is carried out: by the algorithm that is fastest on this topology, in the
  /// time that was measured. InvalidArgument as ChooseCollective.
  absl::StatusOr<ChosenCollective> Choose(const CollectiveRequest& request,
                                          const cluster::Topology& topology,
                                          const CollectiveChoice& choice = {}) const;

 private:
  struct Sweep {
    CollectiveKind kind;
    int32_t devices, nodes;
    CurveFit fit;
  };
  const Sweep& Nearest(CollectiveKind kind, int32_t devices, bool across) const;

  std::vector<Sweep> sweeps_;
};

/// The sweeps of "FILE", or with "FILE,only=H100" those that have this in their id or hw: a file
/// may hold several machines.
absl::StatusOr<MeasuredCurves> ReadMeasuredCurves(const std::string& spec);

/// The cost model of "FILE", likewise; its errors are those of ReadMeasuredCurves.
absl::StatusOr<std::unique_ptr<const CostModel>> MakeMeasuredCostModel(const std::string& spec);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_MEASURED_H_
