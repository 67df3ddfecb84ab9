#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_

#include <cstdint>
#include <deque>
#include <memory>

#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"

namespace orrery::transforms {

/// Equal for functions that do the same, within a run of the program: numbers of choices would mean
/// something else under other rules.
uint64_t NumberOf(const ir::Function& function);

/// Sets what the report says of memory to what `kept` comes to under those options.
void SumKept(const AutoShardOptions& options, AutoShardReport& report);

/// What AutoShard answered and reported. Steps are shared by all who asked for the same.
struct ShardingAnswer {
  std::shared_ptr<const ir::Function> sharded;
  AutoShardReport report;
  uint64_t number = 0;  // of `sharded`, where it is known: equal for equal steps
};

/// What AutoShard answered for one step, mesh and prices, and options that agree in all but how
/// attention gets by, the pattern, the prices of memory and of links, what is in flight, the limit
/// of memory, and, where one of these counts, whether what is gathered is kept in parts. A plan is
/// played several times in search of the best way; what was found needs not be found again.
class ShardingMemo {
 public:
  /// The answer, or null. It stays where it is.
  const ShardingAnswer* Find(const AutoShardOptions& options) const;

  /// Remembers what AutoShard answered and reported.
  void Add(const AutoShardOptions& options, ShardingAnswer answer);

  /// What questions that have no answer yet share with others.
  AxisFrames& frames();

  /// Questions that were answered from here.
  int64_t found() const { return found_; }
  /// As in AutoShardReport, of all answers that were added.
  int64_t solved() const { return solved_; }

 private:
  struct Known {
    AutoShardOptions options;
    ShardingAnswer answer;
  };
  std::deque<Known> answers_;
  std::shared_ptr<AxisFrames> frames_;
  mutable int64_t found_ = 0;
  int64_t solved_ = 0;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
