#ifndef ORRERY_LOWERING_BLOCKS_EXPERT_EXCHANGE_H_
#define ORRERY_LOWERING_BLOCKS_EXPERT_EXCHANGE_H_

#include <cstdint>

#include "ir/function.h"
#include "lowering/blocks/task_template.h"

// Tokens on their way to experts on other ranks, and back.

namespace orrery::lowering {

/// How many rows of each token an all-to-all moves that a dispatch made, or that are combined
/// afterwards: as many as a token has experts; 0: another op.
double RowsOfTokens(const ir::Function& function, ir::OpId op);

/// Of `rows` that go to as many experts, drawn evenly from those of `places`, the share that is
/// left where each place gets a token once: places (1 - (1 - 1 / places)^rows) / rows, at most 1.
double DistinctShare(double rows, int64_t places);

/// Where software sends a token once to each node or rank (StackKernels::sends_tokens_once), the
/// exchange of the op moves so much less. Others stay as they are.
void SendTokensOnce(const ir::Function& function, ir::OpId op, const TemplateContext& context,
                    TemplateTask& task);

/// Software that runs the forward of one microbatch beside the backward of another
/// (StackKernels::overlaps_experts) has kernels at hand while tokens are under way: what waits for
/// an exchange of tokens waits for what the exchange waits for. So a phase takes what its kernels
/// take, and where exchanges take longer, these hold up each other. The first and the last
/// microbatch of a step, which have nobody beside them, count as the others do.
void OverlapExchanges(const ir::Function& function, TaskTemplate& task_template);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_EXPERT_EXCHANGE_H_
