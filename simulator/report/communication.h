#ifndef ORRERY_SIMULATOR_REPORT_COMMUNICATION_H_
#define ORRERY_SIMULATOR_REPORT_COMMUNICATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/program/program.h"
#include "support/id_table.h"
#include "support/units.h"

// Communication by kind and by level of the network. Where several run on a rank at a moment at
// which it computes nothing, that moment counts as exposed to the one that started first (of those
// that started together, the one with the lower id): so the exposed parts add up to the exposed
// communication of the rank.

namespace orrery::simulator {

/// Time that one rank spends on communication of one kind on one level.
struct CommunicationShare {
  Bytes bytes;       // of the tensors sent or reduced
  Duration total;    // sum of the durations of its tasks, on all streams
  Duration exposed;  // of that, what nothing hides

  CommunicationShare& operator+=(const CommunicationShare& other);
  CommunicationShare& operator-=(const CommunicationShare& other);
  friend bool operator==(const CommunicationShare&, const CommunicationShare&) = default;
};

/// Means over all ranks.
struct CommunicationReport {
  std::string kind;   // "all-reduce dp"; "collective" or "send" where the program names none
  std::string level;  // "nic"; empty where the program names none
  double bytes = 0;   // a send counts for both its ends
  double total_s = 0;
  double exposed_s = 0;
  double hidden_s = 0;  // total less exposed
};

/// A row of shares for each rank class, with a column for each kind and level that labels have.
class CommunicationShares {
 public:
  CommunicationShares() = default;
  explicit CommunicationShares(const Program& program);

  /// The column of tasks of that label; -1 when it is no communication.
  int32_t column_of(LabelId label) const { return columns_[label]; }
  int32_t column_count() const { return static_cast<int32_t>(names_.size()); }
  /// The share of a rank class in a column. Requires a column of this table.
  CommunicationShare& at(RankClassId rank, int32_t column) {
    return shares_[static_cast<size_t>(rank.index()) * names_.size() + static_cast<size_t>(column)];
  }
  const CommunicationShare& at(RankClassId rank, int32_t column) const {
    return shares_[static_cast<size_t>(rank.index()) * names_.size() + static_cast<size_t>(column)];
  }
  /// Makes all that `rank` communicates exposed: nothing hides it.
  void Expose(RankClassId rank);
  /// Takes away those of a shorter run of the same step.
  void Subtract(const CommunicationShares& shorter);
  /// Adds so many times what `longer`, of a longer run of the same step, has more.
  void Extend(const CommunicationShares& longer, int64_t times);
  /// Makes them those of one of `steps` equal steps, rounded down.
  void Divide(int64_t steps);
  /// Means over the ranks of `program`, in the order of their first labels; without those that
  /// never run.
  std::vector<CommunicationReport> Means(const Program& program) const;

 private:
  struct Name {
    std::string kind, level;
  };
  std::vector<Name> names_;  // by column
  IdTable<LabelId, int32_t> columns_;
  std::vector<CommunicationShare> shares_;  // of rank r from r * names_.size() on
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_REPORT_COMMUNICATION_H_
