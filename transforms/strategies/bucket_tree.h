#ifndef ORRERY_TRANSFORMS_STRATEGIES_BUCKET_TREE_H_
#define ORRERY_TRANSFORMS_STRATEGIES_BUCKET_TREE_H_

#include <cstdint>
#include <vector>

#include "transforms/strategies/elimination_order.h"
#include "transforms/strategies/model.h"

// Bucket elimination (Dechter 1999): node after node is minimized away; what remains of it is a
// message, a table over its neighbours. Where that table would be too large, the bucket is split,
// and each part is minimized by itself (mini-buckets, Dechter & Rish 2003): the messages then bound
// a lower bound of the cost. Read in reverse, the messages say for each partial choice what the
// rest costs at least, and exactly where no bucket was split.

namespace orrery::transforms::strategies {

class BucketTree {
 public:
  /// For the tables of `model`, which must outlive it. `last` are not eliminated.
  BucketTree(const Model& model, double table_limit, const std::vector<int32_t>& last = {});

  /// A part of a bucket.
  struct Part {
    std::vector<int32_t> inputs;  // tables
    int32_t message = -1;         // table
  };
  struct Bucket {
    int32_t node = 0;
    std::vector<Part> parts;  // at least one, but none for the nodes in `last`
  };

  /// No bucket is split.
  bool exact() const { return exact_; }
  /// Numbers that Fill reads, and that the messages have.
  double work() const { return work_; }
  double entries() const { return entries_; }
  /// In the order in which nodes are assigned, the reverse of elimination: `last` come first, then
  /// a node only after all that its bucket speaks of, and near to them.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  const Table& table(int32_t number) const { return tables_[static_cast<size_t>(number)]; }

  /// Computes the messages where nodes cost `costs`; returns the lower bound of everything that
  /// does not touch `last`.
  double Fill(const Costs& costs);
  const std::vector<double>& costs(int32_t node) const {
    return (*costs_)[static_cast<size_t>(node)];
  }
  /// Chooses for all nodes not in `last` what the messages say is cheapest, given the choice for
  /// those in `last`. Needs Fill; the costs given there must still live.
  void Descend(std::vector<int32_t>& choice) const;
  /// What `last` cost for each choice of theirs, the least over all others; the last node in the
  /// scope varies fastest. Needs Fill, and at most a table of `last` fits memory.
  Table Remaining(const std::vector<int32_t>& last) const;

 private:
  void AddTables();
  void MakeBuckets(double table_limit, size_t last);
  void MakeParts(Bucket& bucket, std::vector<int32_t> inputs, double table_limit);
  int32_t AddTable(Table table);
  void FillBucket(const Bucket& bucket);
  void OrderBuckets(size_t last);

  const Model& model_;
  EliminationOrder order_;
  std::vector<Table> tables_;                  // of the model, then messages
  std::vector<std::vector<int32_t>> waiting_;  // [node]: tables that its elimination takes up
  std::vector<Bucket> buckets_;
  const Costs* costs_ = nullptr;
  bool exact_ = true;
  double work_ = 0;
  double entries_ = 0;
};

/// A tree whose Fill does not take longer than can be waited for: exact if that can be.
BucketTree AffordableTree(const Model& model, double table_limit);

}  // namespace orrery::transforms::strategies

#endif  // ORRERY_TRANSFORMS_STRATEGIES_BUCKET_TREE_H_
