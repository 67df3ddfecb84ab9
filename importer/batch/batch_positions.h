#ifndef ORRERY_IMPORTER_BATCH_BATCH_POSITIONS_H_
#define ORRERY_IMPORTER_BATCH_BATCH_POSITIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ir/function.h"
#include "ir/op_info.h"

namespace orrery::importer {

/// Where a value has the batch: dimension `dim` is outer x batch x inner in row-major order.
struct BatchPosition {
  int dim = -1;  // negative: nowhere
  int64_t outer = 1, inner = 1;
  int second = -1;       // another dimension that is the batch: each sample against each
  bool uniform = false;  // all rows are equal, so that any order of them is as good

  bool has_batch() const { return dim >= 0; }
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

/// What the size of the batch tells.
enum class BatchSize {
  kOrdinary,  // other dimensions may be as large
  kRare,      // each dimension that is a multiple of it has the batch
};

/// Which dimension of a Reshape has the batch where several could: a batch of 1 fits anywhere.
enum class BatchInReshape {
  kByRank,   // the one that it is the outermost part of, but where dimensions are taken together
  kFirst,    // the first
  kOutside,  // the one that it is the outermost part of
};

/// Finds where the values of a function have its batch, and what must change for it to be free:
/// see rebatch.h.
class BatchPositions {
 public:
  BatchPositions(const ir::Function& function, BatchSize size,
                 BatchInReshape in_reshape = BatchInReshape::kByRank);

  /// Looks until nothing new is found. The error names the op that cannot follow the batch.
  absl::Status Find();

  int64_t batch() const { return batch_; }
  /// The attributes of `op` without the batch.
  const ir::AttributeSet& AttributesOf(ir::OpId op) const;
  /// A Slice of the whole batch, whose result is its operand.
  bool IsDropped(ir::OpId op) const { return dropped_.contains(op.index()); }
  /// The dimension along which operand k of `op` must be expanded to the batch first; nothing when
  /// it is as it should be.
  std::optional<size_t> ExpandedDim(ir::OpId op, size_t k) const;

 private:
  using Position = BatchPosition;

  void FindSources();
  absl::Status FindMade();
  absl::Status FindMadeByExpand(ir::OpId op);
  absl::Status FindMadeByConstant(ir::OpId op, size_t k);
  // The dimension of `dims` that is a multiple of the batch; of several an error.
  absl::StatusOr<std::optional<size_t>> GrowingDim(ir::OpId op, const ir::Dims& dims) const;

  absl::Status VisitAll();
  absl::Status Visit(ir::OpId op);
  absl::Status CheckSamplesStay(ir::OpId op) const;
  absl::Status VisitReshape(ir::OpId op);
  absl::Status VisitSlice(ir::OpId op);
  absl::Status VisitExpand(ir::OpId op);
  bool VisitConcat(ir::OpId op);

  /// The types of the results when the batch is twice as large.
  absl::StatusOr<ir::TypeList> Doubled(ir::OpId op) const;
  absl::StatusOr<Position> ResultPosition(ir::OpId op, int32_t j, const ir::Dims& doubled) const;
  Position PositionOfOperand(ir::OpId op, size_t k) const;
  bool AnyBatched(ir::OpId op) const;
  void SetAttributes(ir::OpId op, ir::AttributeSet attributes);

  // Asks what `op` reads beside batched values to follow the batch. False when nothing can be asked
  // for.
  bool Request(ir::OpId op);
  // Asks the same of outputs that are as large as the batch but have it nowhere.
  absl::StatusOr<bool> RequestOutputs();
  bool RequestOperand(ir::OpId op, size_t k, const Position& wanted, int depth);
  bool RequestOfProducer(ir::ValueId value, const Position& wanted, int depth);
  bool RequestOfExpand(ir::OpId op, const Position& wanted);
  bool RequestOfReshape(ir::OpId op, const Position& wanted, int depth);
  void VisitAgain(ir::OpId op);
  bool CanExpand(ir::ValueId value, size_t dim) const;

  ir::ShardingRule RuleOf(ir::OpId op) const;
  absl::Status Fails(ir::OpId op, absl::string_view why) const;

  const ir::Function& function_;
  int64_t batch_;
  BatchSize size_;
  BatchInReshape in_reshape_;
  IdTable<ir::ValueId, Position> positions_;
  std::map<int32_t, ir::AttributeSet> attributes_;             // by op
  std::set<int32_t> dropped_;                                  // ops
  std::map<std::pair<int32_t, size_t>, Position> expansions_;  // by op and operand
  IdTable<ir::OpId, size_t> steps_;                            // positions in the order
  size_t next_ = 0;                                            // the step that is visited next
  size_t visits_ = 0;
};

/// Where a row-major shape has the batch, of which so many elements lie `before` and `after`: the
/// first dimension that is the batch; else the first that holds it or, with `outside`, that it is
/// the outermost part of. Nothing where no dimension holds it.
std::optional<BatchPosition> FindInShape(const ir::Dims& dims, int64_t before, int64_t after,
                                         bool outside);

/// One row of a constant along dimension `dim`, when all its rows are equal.
std::optional<ir::AttributeSet> OneRow(const ir::AttributeSet& constant, const ir::TensorType& type,
                                       size_t dim);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_BATCH_POSITIONS_H_
