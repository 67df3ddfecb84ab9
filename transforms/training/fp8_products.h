#ifndef ORRERY_TRANSFORMS_TRAINING_FP8_PRODUCTS_H_
#define ORRERY_TRANSFORMS_TRAINING_FP8_PRODUCTS_H_

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/function.h"

namespace orrery::transforms {

/// Which products of a function read narrow copies, of 8 bits or 4, of their operands, and of what.
struct Fp8Products {
  /// Of each op, so many of its first operands: 0 of all others. A bias, which comes after them,
  /// stays in 16 bits.
  IdTable<ir::OpId, int32_t> operands;
  /// Values that nothing else reads, and what is only moved on its way to such products: they need
  /// not be there in 16 bits.
  IdTable<ir::ValueId, char> only_in_copies;
  /// Weights of which a copy serves the whole step: optimizers alone read them in 16 bits, or,
  /// where they are frozen, nobody.
  absl::flat_hash_set<ir::ValueId> weights;
};

/// Finds them: products of linear layers with parameters of 16 bits, whose rows, columns and inner
/// dimension are multiples of kFp8Multiple on each rank (kFp8BlockMultiple with copies of kF8Block,
/// kFp4Multiple of kF4), and
/// the products of their backward, however these are split. Not products of two activations, as
/// attention's, nor what goes on into a softmax or the choice of a class: logits of the vocabulary,
/// and the router's.
Fp8Products FindFp8Products(const ir::Function& function, ir::DType copies = ir::DType::kF8);

/// Kernels want rows of 16 bytes: cuBLASLt, and `assert_dim_for_fp8_exec` of Transformer Engine.
inline constexpr int64_t kFp8Multiple = 16;
/// The same of operands that have a scale a block: whole blocks in both orders
/// (TransformerEngine's Float8BlockQuantizer.is_quantizable).
inline constexpr int64_t kFp8BlockMultiple = 128;
/// The same of operands of 4 bits.
inline constexpr int64_t kFp4Multiple = 32;

/// Whether the op makes a copy for products of how a value is stored: of 8 or 4 bits of something
/// wider, or a wider one of a quantized weight.
bool MakesCopy(const ir::Function& function, ir::OpId op);

/// Whether the op moves or renames elements, so that a narrow copy made before it is the copy made
/// after, and does so with copies where those alone are wanted: views, and gathers, as Transformer
/// Engine has them. What else ranks exchange, tokens for experts or heads for attention, goes in 16
/// bits.
bool MovesCopies(const ir::Function& function, ir::OpId op);

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_FP8_PRODUCTS_H_
