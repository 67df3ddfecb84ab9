#ifndef ORRERY_IMPORTER_BATCH_BATCH_IN_SHAPE_H_
#define ORRERY_IMPORTER_BATCH_BATCH_IN_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/type.h"

namespace orrery::importer {

/// Where a value has the batch: dimension `dim` is outer x batch x inner in row-major order.
struct BatchPosition {
  int dim = -1;  // negative: nowhere
  int64_t outer = 1, inner = 1;
  int second = -1;       // another dimension that is the batch: each sample against each
  int64_t views = 1;     // so many of outer are views of each sample, one behind another
  bool uniform = false;  // all rows are equal, so that any order of them is as good
  bool counts = false;   // 0, 1, 2, …: the number of each sample

  bool has_batch() const { return dim >= 0; }
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

/// Which dimension to prefer where several hold the batch and none is all of it.
struct ShapeSearch {
  bool outside = false;  // the one that it is the outermost part of
  size_t first = 0;      // this one, or one behind it, even where another is all of the batch
  int same = -1;         // this one before all others
};

/// Where a row-major shape may have the batch, of which so many elements lie `before` and `after`:
/// in each dimension that holds it. At the front is the first one that is the batch; else the one
/// that is to be the same, the one that the batch is the outermost part of, or the first that holds
/// it. Empty where none holds it.
std::vector<BatchPosition> BatchInShape(const ir::Dims& dims, int64_t before, int64_t after,
                                        const ShapeSearch& search = {});

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_BATCH_IN_SHAPE_H_
