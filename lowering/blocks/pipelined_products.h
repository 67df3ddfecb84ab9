#ifndef ORRERY_LOWERING_BLOCKS_PIPELINED_PRODUCTS_H_
#define ORRERY_LOWERING_BLOCKS_PIPELINED_PRODUCTS_H_

#include <cstdint>
#include <span>

#include "ir/function.h"
#include "ir/mesh.h"
#include "lowering/blocks/task_template.h"
#include "simulator/program/program.h"

namespace orrery::lowering {

/// Software that moves parts of a tensor as they are made or needed (TransformerEngine's user
/// buffers, FLUX) hides a gather over tensor-parallel ranks under the product that reads it, and
/// under the product that makes it a reduce-scatter. Of n ranks each has one part of what it
/// gathers, with which the product begins; and what it keeps of a sum is made last. So such a
/// product becomes two tasks: of a gather (n-1)/n of it do not wait for the gather, and the rest
/// does; a reduce-scatter waits for 1/n of its product:
///
///     max(product, product / n + collective)
///
/// either way, in place of their sum (Wang et al. 2023, "Overlap communication with dependent
/// computation via decomposition"). Nothing else changes: not the bytes, not the memory. A product
/// that both reads and makes such a tensor is parted for what it reads. `products` says of each
/// task whether it is a product; the tasks are those of a function with that mesh.
void PipelineProducts(std::span<const char> products, const ir::Mesh& mesh,
                      TaskTemplate& task_template, simulator::Program& program);

/// Likewise, of tasks that `function` became, each by the op that it begins with.
void PipelineProducts(const ir::Function& function, TaskTemplate& task_template,
                      simulator::Program& program);

}  // namespace orrery::lowering

#endif  // ORRERY_LOWERING_BLOCKS_PIPELINED_PRODUCTS_H_
