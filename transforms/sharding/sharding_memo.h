#ifndef ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
#define ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_

#include <cstdint>
#include <vector>

#include "ir/function.h"
#include "transforms/sharding/auto_shard.h"

namespace orrery::transforms {

/// What AutoShard answered for one step, mesh and prices, and options that agree in all but how
/// attention gets by, what is in flight, and the limit of memory. A plan is played several times in
/// search of one that fits; what was found needs not be found again.
class ShardingMemo {
 public:
  /// The answer, or null. Where no choice took less memory than one that was over its limit, it is
  /// the answer for all limits below that, too. Good until the next Add.
  const ir::Function* Find(const AutoShardOptions& options) const;

  /// Remembers what AutoShard answered and reported.
  void Add(const AutoShardOptions& options, const ir::Function& sharded,
           const AutoShardReport& report);

  /// Questions that were answered from here.
  int64_t found() const { return found_; }
  /// As in AutoShardReport, of all answers that were added.
  int64_t solved() const { return solved_; }

 private:
  struct Answer {
    ContextAttention attention;
    int64_t in_flight;
    Bytes limit;
    bool least;
    ir::Function sharded;
  };

  std::vector<Answer> answers_;
  mutable int64_t found_ = 0;
  int64_t solved_ = 0;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SHARDING_SHARDING_MEMO_H_
