#ifndef ORRERY_COST_MODELS_COST_MODEL_H_
#define ORRERY_COST_MODELS_COST_MODEL_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster.h"
#include "cluster/device.h"
#include "cluster/topology.h"
#include "cost_models/collectives/choice.h"
#include "cost_models/collectives/collective_kind.h"
#include "cost_models/kernels/kernel_choice.h"
#include "ir/attributes.h"
#include "ir/op_info.h"
#include "ir/op_kind_fwd.h"
#include "ir/type.h"
#include "support/time_source.h"
#include "support/units.h"

// How long things take: an op on a device, a message on a path, a collective on a topology.

namespace orrery::cost_models {

/// One op as one rank carries it out: all types are local, of the part that the rank holds.
struct OpView {
  ir::OpKind kind;
  const ir::AttributeSet& attributes;
  std::span<const ir::TensorType* const> operands;
  std::span<const ir::TensorType* const> results;
  /// The first operand as all ranks together hold it; null: as this one does.
  const ir::TensorType* first_operand = nullptr;
  /// What software makes of it; null: what the op itself must do, by the fastest kernels.
  const KernelChoice* choice = nullptr;
};

/// Floating-point operations of one rank, from the op's record.
Flops FlopsOf(const OpView& op);

/// Those of them that compute once more what forward computed and did not keep: hardware does them,
/// the flops of a model do not count them.
Flops RecomputedFlopsOf(const OpView& op);

/// Those that the flops of a model count: of matrix products, as published formulas do (Narayanan
/// et al., 2021, appendix), without what is computed once more.
Flops ModelFlopsOf(const OpView& op);

/// Bytes that one rank moves to and from its memory, from the op's record: all operands read and
/// all results written once, where it says nothing else; none for a view.
Bytes BytesMovedBy(const OpView& op);

/// Bytes that the software of the view moves besides (ExtraTraffic).
Bytes ExtraBytesOf(const OpView& op);

/// The matrix products that one rank computes for the op, a kernel each, from the op's record; none
/// where the record has none.
ir::ProductShapes ProductsOf(const OpView& op);

/// Pure and thread-safe. Durations are rounded once, up.
class CostModel {
 public:
  virtual ~CostModel() = default;

  /// Time of the op's kernels on `device`. Not for collectives, sends and receives.
  virtual Duration Compute(const OpView& op, const cluster::Device& device) const = 0;
  /// Time of one kernel that a compiler has made of several element-wise ones: so much arithmetic,
  /// and so many bytes to and from memory. Nothing: the model prices ops one by one.
  virtual std::optional<Duration> Fused(Flops flops, Bytes bytes,
                                        const cluster::Device& device) const;
  /// Of the time that Compute says, which share is from what; all 0: it has no measurements.
  virtual SourceShares SourcesOf(const OpView& op, const cluster::Device& device) const;
  /// The same of the time that Fused says.
  virtual SourceShares SourcesOfFused(Flops flops, Bytes bytes,
                                      const cluster::Device& device) const;
  /// Time of one message over an idle path.
  virtual Duration Transfer(Bytes size, const cluster::PathInfo& path) const = 0;
  /// Time of a collective of `group` (at least two devices) on an idle network. CollectiveKind says
  /// what `size` is.
  virtual Duration Collective(CollectiveKind kind, Bytes size,
                              std::span<const cluster::DeviceId> group,
                              const cluster::Topology& topology) const = 0;
  /// Whether messages and collectives share the links of the network with what else is under way.
  /// If not, `Transfer` and `Collective` hold whatever else happens.
  virtual bool shares_links() const { return false; }
  /// How a collective is carried out, by the algorithm asked for or the fastest; errors are those
  /// of ChooseCollective. Requires `shares_links`.
  virtual absl::StatusOr<ChosenCollective> Choose(const CollectiveRequest& request,
                                                  const cluster::Topology& topology,
                                                  const CollectiveChoice& choice) const;
  /// The same for a group that CheckGroup accepts: by the fastest algorithm, where the one asked
  /// for cannot serve it. With an open choice it takes the time of `Collective`.
  ChosenCollective Plan(const CollectiveRequest& request, const cluster::Topology& topology,
                        const CollectiveChoice& choice = {}) const;
  /// How much longer kernels take for each doubling of the ranks that wait for each other once a
  /// step: the slowest of more is slower. A share; 0: all are alike.
  virtual double Straggling(const cluster::Device&) const { return 0; }
  /// What of `device` its prices only assume, in a line for people; empty: nothing.
  virtual std::string DoubtAbout(const cluster::Device& device) const;
  /// Whether memory is counted as if no op wrote over its operand and no view shared its memory.
  virtual bool copies_everything() const { return false; }
};

/// The same of all kinds of device of a cluster, each once.
std::string DoubtAbout(const CostModel& cost_model, const cluster::Cluster& cluster);

/// The one record of a cost model. All that a new one needs, besides its line in cost_models.def.
struct CostModelInfo {
  absl::string_view name;     // as on the command line
  absl::string_view summary;  // one sentence
  absl::string_view source;
  std::unique_ptr<const CostModel> (*make)() = nullptr;
};

/// All cost models, in the order of cost_models.def.
std::span<const CostModelInfo* const> AllCostModels();

/// A cost model by name, or "kernels:FILE" (cost_models/measured_kernels.h), or "measured:FILE"
/// (cost_models/measured.h); the error lists the names that there are.
absl::StatusOr<std::unique_ptr<const CostModel>> MakeCostModel(absl::string_view name);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_COST_MODEL_H_
