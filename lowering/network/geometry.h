#ifndef ORRERY_LOWERING_NETWORK_GEOMETRY_H_
#define ORRERY_LOWERING_NETWORK_GEOMETRY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/topology.h"
#include "ir/mesh.h"
#include "transforms/stages/pipeline.h"

namespace orrery::lowering {

/// Where the ranks of a pipelined step are: mesh coordinates to rank numbers to devices.
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
  /// The mesh, and the device of each rank; empty: those of the same numbers.
  const ir::Mesh& mesh() const { return mesh_; }
  const std::vector<int32_t>& devices() const { return devices_; }
  /// The coordinate along "pp" of the ranks that hold a stage.
  int32_t position_of(int32_t stage) const { return positions_[static_cast<size_t>(stage)]; }
  /// Whether the ranks of two stages are others, so that what one hands the other is sent.
  bool Travels(int32_t from, int32_t to) const { return position_of(from) != position_of(to); }
  int32_t positions() const { return static_cast<int32_t>(ranks_.size()); }
  int32_t stages() const { return static_cast<int32_t>(positions_.size()); }
  /// The device that a rank is on. Requires a rank of the mesh.
  cluster::DeviceId device(int32_t rank) const;

  /// The ranks of one stage in groups that differ only along `axes`: as positions in
  /// ranks_of_stage.
  std::vector<std::vector<int32_t>> Groups(const ir::AxisList& axes) const;
  /// The devices of ranks of a stage that are given as positions in ranks_of_stage, in that order.
  std::vector<cluster::DeviceId> Devices(int32_t stage,
                                         const std::vector<int32_t>& positions) const;

  /// "dp0 hp1 pp3".
  std::string Name(int32_t rank) const;

 private:
  int64_t Coordinate(int32_t rank, ir::AxisIndex axis) const {
    return rank / mesh_.stride(axis) % mesh_.size(axis);
  }

  const ir::Mesh& mesh_;
  const std::vector<int32_t>& devices_;
  std::vector<std::vector<int32_t>> ranks_;  // by coordinate along "pp"
  std::vector<int32_t> positions_;           // of stages
};

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_NETWORK_GEOMETRY_H_
