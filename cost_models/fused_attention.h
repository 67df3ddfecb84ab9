#ifndef ORRERY_COST_MODELS_FUSED_ATTENTION_H_
#define ORRERY_COST_MODELS_FUSED_ATTENTION_H_

#include "cost_models/cost_model.h"
#include "cost_models/kernels/attention_in_parts.h"
#include "cost_models/kernels/attention_kernel.h"

namespace orrery::cost_models {

/// Whether the op is an Attention or AttentionGrad with flash=1.
bool IsFusedAttention(const OpView& op);

/// Whether it is one with flash=0: products and what goes over the scores.
bool IsAttentionInParts(const OpView& op);

/// The kernel of a fused one, of the class of the view's software. What causality leaves to see
/// follows from the rows of the whole: of a rank of several along the sequence on average, as ranks
/// share out what is hidden (Llama 3, section 3.3.2).
FusedAttention FusedAttentionOf(const OpView& op);

/// The kernels of one in parts.
AttentionInParts AttentionInPartsOf(const OpView& op);

/// How many kernels the host launches for an op: those of attention in parts, or by the op's
/// record; none for a view.
int LaunchesOf(const OpView& op);

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_FUSED_ATTENTION_H_
