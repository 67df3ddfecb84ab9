#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_

#include <cstdint>
#include <deque>

#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"

namespace orrery::transforms {

/// Equal for functions that do the same, within a run of the program: numbers of choices would mean
/// something else under other rules.
uint64_t NumberOf(const ir::Function& function);

/// What AutoShard answered for one step, mesh and prices, and options that agree in all but how
/// attention gets by, the pattern, the prices of memory and of links, what is in flight, the limit
/// of memory, and, where one of these counts, whether what is gathered is kept in parts. A plan is
/// played several times in search of the best way; what was found needs not be found again.
class ShardingMemo {
 public:
  /// A question, and what AutoShard answered and reported.
  struct Answer {
    AutoShardOptions options;
    ir::Function sharded;
    AutoShardReport report;
  };

  /// The answer, or null. It stays where it is.
  const Answer* Find(const AutoShardOptions& options) const;

  /// Remembers what AutoShard answered and reported.
  void Add(const AutoShardOptions& options, const ir::Function& sharded,
           const AutoShardReport& report);

  /// Questions that were answered from here.
  int64_t found() const { return found_; }
  /// As in AutoShardReport, of all answers that were added.
  int64_t solved() const { return solved_; }

 private:
  std::deque<Answer> answers_;
  mutable int64_t found_ = 0;
  int64_t solved_ = 0;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
