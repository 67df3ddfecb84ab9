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
#include "importer/batch/batch_in_shape.h"
#include "ir/function.h"
#include "ir/op_info.h"

namespace orrery::importer {

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

/// Of Reshapes in which several dimensions may have the batch, which one it is, by op: the position
/// in BatchInShape. Others take the first.
using ReshapeChoices = std::map<int32_t, size_t>;

/// How to look for the batch.
struct BatchSearch {
  BatchSize size = BatchSize::kOrdinary;
  BatchInReshape in_reshape = BatchInReshape::kByRank;
  ReshapeChoices choices = {};
  bool keeps_outputs = false;  // of one sample, too, outputs that come from it must have the batch
};

/// Finds where the values of a function have its batch, and what must change for it to be free:
/// see rebatch.h. It has so many fields as one search finds what is to change op by op, each kind
/// of change in a table of its own.
class BatchPositions {
 public:
  BatchPositions(const ir::Function& function, BatchSearch search);

  /// Looks until nothing new is found. The error names the op that cannot follow the batch.
  absl::Status Find();

  int64_t batch() const { return batch_; }
  /// The position in the order at which Find failed; its size where results did.
  size_t failed_step() const { return failed_step_; }
  /// Reshapes that could have taken another dimension for the batch, of those that lead to where
  /// Find failed: the nearest first, each with the choices that were left to it.
  std::vector<std::pair<ir::OpId, size_t>> OtherChoices() const;
  /// The attributes of `op` without the batch.
  const ir::AttributeSet& AttributesOf(ir::OpId op) const;
  /// Where operand 0 of a Concat, Slice or Split has the batch that parts of the batch follow each
  /// other in, views of each sample; nothing for other ops.
  std::optional<BatchPosition> TakesViews(ir::OpId op) const;
  /// Whether views may as well stand together sample by sample: nothing sees in which order they
  /// are but what joins them and takes them apart.
  bool ViewsMove() const { return views_move_; }
  /// Where operand k of `op` has the batch.
  BatchPosition PositionOfOperand(ir::OpId op, size_t k) const;
  /// A Slice of the whole batch, whose result is its operand.
  bool IsDropped(ir::OpId op) const { return dropped_.contains(op.index()); }
  /// The dimension along which operand k of `op` must be expanded to the batch first; nothing when
  /// it is as it should be.
  std::optional<size_t> ExpandedDim(ir::OpId op, size_t k) const;
  /// Whether that operand is to be the number of each sample, in place of equal rows.
  bool CountsSamples(ir::OpId op, size_t k) const;

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
  bool VisitPartsOfBatch(ir::OpId op);
  void FindWhetherViewsMove();
  bool KeepsViews(ir::OpId op) const;

  /// The types of the results when the batch is twice as large.
  absl::StatusOr<ir::TypeList> Doubled(ir::OpId op) const;
  absl::StatusOr<Position> ResultPosition(ir::OpId op, int32_t j, const ir::Dims& doubled) const;
  bool AnyBatched(ir::OpId op) const;
  void SetAttributes(ir::OpId op, ir::AttributeSet attributes);

  // Asks what `op` reads beside batched values to follow the batch. False when nothing can be asked
  // for.
  bool Request(ir::OpId op);
  // Where an operand without the batch should have it.
  struct Wish {
    size_t operand;
    Position position;
    bool by_each;  // the op holds each sample against each
  };
  std::vector<Wish> WishesOf(ir::OpId op) const;
  bool ReadsOtherRows(ir::OpId op) const;
  // Asks the same of outputs that are as large as the batch but have it nowhere.
  absl::StatusOr<bool> RequestOutputs();
  bool LosesSamples(const ir::Output& output) const;
  bool RequestOperand(ir::OpId op, size_t k, const Position& wanted, int depth);
  bool RequestNumbers(ir::OpId op, size_t k, const Position& wanted);
  bool RequestOfProducer(ir::ValueId value, const Position& wanted, int depth);
  bool RequestOfExpand(ir::OpId op, const Position& wanted);
  bool RequestOfReshape(ir::OpId op, const Position& wanted, int depth);
  void VisitAgain(ir::OpId op);
  bool CanExpand(ir::ValueId value, size_t dim) const;

  absl::Status Fails(ir::OpId op, absl::string_view why) const;

  const ir::Function& function_;
  int64_t batch_;
  BatchSearch search_;
  IdTable<ir::ValueId, Position> positions_;
  std::map<int32_t, ir::AttributeSet> attributes_;  // by op
  std::set<int32_t> of_views_;                      // ops that join or part views
  bool views_move_ = true;
  std::set<int32_t> dropped_;                                  // ops
  std::map<std::pair<int32_t, size_t>, Position> expansions_;  // by op and operand
  IdTable<ir::OpId, size_t> steps_;                            // positions in the order
  std::map<int32_t, size_t> possible_;  // dimensions that Reshapes can choose from
  size_t failed_step_ = 0;
  size_t next_ = 0;  // the step that is visited next
  size_t visits_ = 0;
};

/// One row of a constant along dimension `dim`, when all its rows are equal.
std::optional<ir::AttributeSet> OneRow(const ir::AttributeSet& constant, const ir::TensorType& type,
                                       size_t dim);

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_BATCH_BATCH_POSITIONS_H_
