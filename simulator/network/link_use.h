#ifndef ORRERY_SIMULATOR_NETWORK_LINK_USE_H_
#define ORRERY_SIMULATOR_NETWORK_LINK_USE_H_

#include <span>
#include <vector>

#include "simulator/program/program.h"
#include "support/id_table.h"
#include "support/units.h"

namespace orrery::simulator {

/// From `from` on, until the next of the same resource, so much of it is used.
struct UseInterval {
  Time from;
  double bytes_per_second = 0;
};

/// What a resource did in a run.
struct ResourceUse {
  double bytes = 0;        // that it carried
  Duration busy;           // time during which it carried any
  Duration full;           // time during which it carried all that it can
  double utilization = 0;  // bytes over what it could have carried in the whole run
};

/// How much of each resource was used when: a recorder for a network model to fill, of one run.
class LinkUse {
 public:
  explicit LinkUse(const Program& program);

  /// From `now` on, `resource` is used so much; moments do not run back.
  void Set(ResourceId resource, Time now, double bytes_per_second);
  /// A flow has started, and its resources will carry it.
  void AddBytes(const Flow& flow);

  /// The use over time of a resource: neighbours differ, the last is 0 when all flows ended. Before
  /// the first, it is 0.
  std::span<const UseInterval> intervals(ResourceId resource) const {
    return rows_[resource].intervals;
  }
  /// The figures of a run that took `makespan`.
  ResourceUse Summarize(ResourceId resource, Duration makespan) const;

 private:
  struct Row {
    double capacity = 0;  // in bytes/s
    double bytes = 0;
    std::vector<UseInterval> intervals;
  };

  IdTable<ResourceId, Row> rows_;
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_NETWORK_LINK_USE_H_
