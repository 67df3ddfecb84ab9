#ifndef ORRERY_LOWERING_NETWORK_GEOMETRY_H_
#define ORRERY_LOWERING_NETWORK_GEOMETRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/topology.h"
#include "ir/mesh.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// Where the ranks of a pipelined step are: mesh coordinates to rank numbers to devices. So many
/// fields: what stages have in common, and what each has of its own.
class Geometry {
 public:
  explicit Geometry(const transforms::PipelinedStep& step);

  /// Ranks of one coordinate along "pp", all combinations of the other axes, in ascending order.
  const std::vector<int32_t>& ranks_at(int32_t position) const {
    return ranks_[static_cast<size_t>(position)];
  }
  /// Ranks that hold a stage.
  const std::vector<int32_t>& ranks_of_stage(int32_t stage) const {
    return ranks_at(position_of(stage));
  }
  /// The mesh of the ranks at a position: of all ranks, unless stages have ranks of their own.
  const ir::Mesh& mesh_at(int32_t position) const {
    return places_.empty() ? mesh_ : places_[static_cast<size_t>(position)].mesh;
  }
  /// The device of each rank; empty: those of the same numbers.
  const std::vector<int32_t>& devices() const { return devices_; }
  /// The coordinate along "pp" of the ranks that hold a stage.
  int32_t position_of(int32_t stage) const { return positions_[static_cast<size_t>(stage)]; }
  /// Whether the ranks of two stages are others, so that what one hands the other is sent.
  bool Travels(int32_t from, int32_t to) const { return position_of(from) != position_of(to); }
  int32_t positions() const { return static_cast<int32_t>(ranks_.size()); }
  int32_t stages() const { return static_cast<int32_t>(positions_.size()); }
  /// The device that a rank is on. Requires a rank of the mesh.
  cluster::DeviceId device(int32_t rank) const;

  /// Whether stages have ranks of their own, and which microbatches these run (UnequalStages).
  bool unequal() const { return !places_.empty(); }
  bool dealt() const { return !replica_of_.empty(); }
  /// Whether ranks of a stage do the same at the same time, and rank i of one sends to rank i of
  /// the next.
  bool in_step() const { return in_step_; }
  /// Of ranks of a stage, as positions in ranks_of_stage, their coordinate along "dp".
  const std::vector<int32_t>& replicas_at(int32_t position) const {
    return replicas_[static_cast<size_t>(position)];
  }
  /// Which replica of a stage runs a microbatch; -1: all do.
  int32_t ReplicaOf(int32_t stage, int32_t microbatch) const {
    if (replica_of_.empty() || microbatch < 0) return -1;
    const std::vector<int32_t>& row = replica_of_[static_cast<size_t>(position_of(stage))];
    return row[static_cast<size_t>(microbatch) % row.size()];
  }
  /// Of microbatches that are dealt, how many it is said of; else 0.
  int32_t microbatches() const {
    return dealt() ? static_cast<int32_t>(replica_of_.front().size()) : 0;
  }
  /// How many replicas of a stage run microbatches of their own; 1 where all run each.
  int32_t RunnersOf(int32_t stage) const;

  /// The ranks of a stage in groups that differ only along `axes`: as positions in
  /// ranks_of_stage. The same of all stages that are alike in their ranks.
  std::vector<std::vector<int32_t>> Groups(int32_t stage, const ir::AxisList& axes) const;
  /// The devices of ranks of a stage that are given as positions in ranks_of_stage, in that order.
  std::vector<cluster::DeviceId> Devices(int32_t stage,
                                         const std::vector<int32_t>& positions) const;

  /// "dp0 hp1 pp3".
  std::string Name(int32_t rank) const;

 private:
  static int64_t Coordinate(const ir::Mesh& mesh, int64_t rank, ir::AxisIndex axis) {
    return rank / mesh.stride(axis) % mesh.size(axis);
  }
  void PlaceRanks();
  void PlaceUnequalRanks();

  const ir::Mesh& mesh_;
  const std::vector<transforms::StagePlace>& places_;
  const std::vector<std::vector<int32_t>>& replica_of_;
  std::vector<int32_t> devices_;
  bool in_step_ = true;
  std::vector<std::vector<int32_t>> ranks_;     // by coordinate along "pp"
  std::vector<std::vector<int32_t>> replicas_;  // likewise; of unequal stages
  std::vector<int32_t> positions_;              // of stages
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_GEOMETRY_H_
