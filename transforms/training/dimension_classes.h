#ifndef ORRERY_TRANSFORMS_TRAINING_DIMENSION_CLASSES_H_
#define ORRERY_TRANSFORMS_TRAINING_DIMENSION_CLASSES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/function.h"

// Which dimensions of the values of a function have to be longer together, where one of them is to
// be: those that a factor of a sharding rule has in common, all in one proportion. 12 heads, the
// 768 columns that they are, and the 256 of their 4 heads of keys are one class.

namespace orrery::transforms {

/// What the dimensions of a class are, the most telling of them last.
enum class DimensionKind : uint8_t {
  kWidth,
  kChannels,  // of convolutions
  kTable,     // rows that are looked up
  kClasses,   // of a cross entropy
  kHeads,     // with the columns that they are
};

/// Dimensions that change together.
struct DimensionClass {
  DimensionKind kind = DimensionKind::kWidth;
  /// The largest number that divides all sizes: they may be made any multiple of size / unit.
  int64_t unit = 0;
  /// What ranks would share out: the heads of queries where there are some, else the unit.
  int64_t count = 0;
  bool looked_up = false;  // some are rows of a table
  bool of_weight = false;  // some are of a parameter or buffer of several dimensions
  /// Nothing may be added: what is computed would be another thing, or nobody knows.
  bool fixed = false;
};

/// The classes of all dimensions of a function of one device. Elements behind the end of a
/// dimension that is split change nothing before it, so that what a sharding rule lets ranks split
/// can be made longer; what is added up along it must be zero there, as it is where the padding of
/// weights is. Fixed are all dimensions of data; what a rule keeps whole (a normalization's width,
/// positions of a softmax); what is averaged, or added up without such zeros; and what ops without
/// a rule touch. Classes of a cross entropy are not where they are a vocabulary, as many as the
/// largest table that is looked up has rows: the logits that are added take part, as in
/// Megatron-LM. Others are.
class DimensionClasses {
 public:
  /// Of a dimension of size 1, which belongs to no class.
  static constexpr int32_t kNone = -1;

  explicit DimensionClasses(const ir::Function& function);

  /// The class of a dimension of a value, as a position in all(); or kNone.
  int32_t Of(ir::ValueId value, size_t dim) const {
    return class_of_[static_cast<size_t>(first_[value]) + dim];
  }
  /// In the order in which inputs and ops have them first.
  const std::vector<DimensionClass>& all() const { return all_; }

 private:
  IdTable<ir::ValueId, int32_t> first_;  // where the dimensions of a value begin in class_of_
  std::vector<int32_t> class_of_;
  std::vector<DimensionClass> all_;
};

}  // namespace orrery::transforms

#endif  // ORRERY_TRANSFORMS_TRAINING_DIMENSION_CLASSES_H_
