#ifndef ORRERY_TRANSFORMS_SIMPLIFY_MATCH_LOGITS_H_
#define ORRERY_TRANSFORMS_SIMPLIFY_MATCH_LOGITS_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "transforms/pass/rewriter.h"

// What stands between a product of queries and keys and the softmax: a scale, and masks in the
// forms in which exporters write them.

namespace orrery::transforms {

/// One mask. Of bools: hides where it is false, or where it is true when `inverted`. Of floats: is
/// added.
struct Mask {
  ir::ValueId value;
  bool inverted = false;
  bool of_matrices = false;  // added to logits [batch heads,queries,keys]
};

/// scale x, masked.
struct Logits {
  ir::ValueId x;
  double scale = 1;
  bool causal = false;
  absl::InlinedVector<Mask, 2> masks;
  /// Into so many heads the logits are parted for a while that are [batch heads,queries,keys] else;
  /// 0: they are one or the other throughout.
  int64_t heads = 0;

  bool plain() const { return scale == 1 && !causal && masks.empty(); }
};

/// Takes apart what `logits` is made from, as far as nothing else uses it. With `attention`, a mask
/// may stand for one set of windows of the first of four dimensions, and what SkipViews skips may
/// stand between. Changes nothing.
Logits MatchLogits(const Rewriter& r, ir::ValueId logits, bool attention);

/// Sees through what the kernel of attention does by itself or has no need of, as far as nothing
/// else uses it: heads and batch made one dimension or two, other precision, a clamp at what is
/// hidden.
void SkipViews(const Rewriter& r, Logits& logits);

/// One value for all masks, made where that takes ops; invalid when there are none. With `heads`,
/// a mask of matrices [batch heads,..] becomes one [batch,heads,..], in the precision of the
/// logits.
ir::ValueId MakeMask(Rewriter& r, const Logits& logits, int64_t heads = 0);

/// Whether `mask`, seen as [..,queries,keys], shows to each query the keys up to its own position
/// and to the last one all.
bool IsCausal(const Rewriter& r, const Mask& mask, int64_t queries, int64_t keys);

/// A number that hides what it is added to, or stands in its place.
inline bool Hides(double number) { return number <= -1e4; }

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_SIMPLIFY_MATCH_LOGITS_H_
