#ifndef ORRERY_TRANSFORMS_MATCH_LOGITS_H_
#define ORRERY_TRANSFORMS_MATCH_LOGITS_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "transforms/rewriter.h"

// What stands between a product of queries and keys and the softmax: a scale, and masks in the
// forms in which exporters write them.

namespace orrery::transforms {

/// One mask. Of bools: hides where it is false, or where it is true when `inverted`. Of floats: is
/// added.
struct Mask {
  ir::ValueId value;
  bool inverted = false;
};

/// scale x, masked.
struct Logits {
  ir::ValueId x;
  double scale = 1;
  bool causal = false;
  absl::InlinedVector<Mask, 2> masks;

  bool plain() const { return scale == 1 && !causal && masks.empty(); }
};

/// Takes apart what `logits` is made from, as far as nothing else uses it. With `windows`, a mask
/// may stand for one set of windows of the first of four dimensions. Changes nothing.
Logits MatchLogits(const Rewriter& r, ir::ValueId logits, bool windows);

/// One value for all masks, made where that takes ops; invalid when there are none.
ir::ValueId MakeMask(Rewriter& r, const Logits& logits);

/// Whether `mask`, seen as [..,queries,keys], shows to each query the keys up to its own place and
/// to the last one all.
bool IsCausal(const Rewriter& r, const Mask& mask, int64_t queries, int64_t keys);

/// A number that hides what it is added to, or stands in its place.
inline bool Hides(double number) { return number <= -1e4; }

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_MATCH_LOGITS_H_
