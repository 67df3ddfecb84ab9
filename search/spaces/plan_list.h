#ifndef ORRERY_SEARCH_SPACES_PLAN_LIST_H_
#define ORRERY_SEARCH_SPACES_PLAN_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "search/spaces/value_numbers.h"
#include "transforms/plan/parallel_plan.h"

namespace orrery::search {

/// Distinct plans in an order, a few bytes each, of a space that may have millions: of each axis
/// that varies the number of its value. An axis may have 65,536 values.
class PlanList {
 public:
  PlanList();
  PlanList(PlanList&&) = default;
  PlanList& operator=(PlanList&&) = default;

  /// Its values are as plain as those of the first plan (ChangesOf). To come before all plans.
  void CallPlain(const transforms::ParallelPlan& plan) { plain_.push_back(plan); }

  /// Adds a plan behind all others; false where it is among them.
  bool Insert(const transforms::ParallelPlan& plan);

  /// Adds those of another list behind all others, but for those that are among them, until there
  /// are `most`.
  void InsertAll(const PlanList& others, size_t most);

  /// Where the `plan`-th stands: as in ChoiceList, which has more than plans.
  static size_t PlaceOf(size_t plan) { return plan; }

  /// Keeps no room for more.
  void ShrinkToFit();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// The `i`-th, made anew.
  transforms::ParallelPlan operator[](size_t i) const;
  transforms::ParallelPlan front() const { return (*this)[0]; }
  transforms::ParallelPlan back() const { return (*this)[size_ - 1]; }
  /// The places of plans that differ from the `i`-th in little: in one axis; or, of the mesh, in a
  /// degree, or in two that have the same product, with as many samples in a microbatch or as many
  /// microbatches. In the order of axes and values.
  std::vector<size_t> Neighbours(size_t i) const;
  /// Equal for plans that have the same degrees.
  uint64_t FamilyOf(size_t i) const;
  /// What the plan is, as numbers: of each axis that varies the logarithm of its value where that
  /// is a number, else 0 or 1 for each of its values. Of like plans they are like.
  std::vector<double> FeaturesOf(size_t i) const;
  /// In how many axes beside degrees, microbatches and those of the flags `besides` the plan has
  /// another value than the first and than all that were called plain; one more with cp, which few
  /// train with.
  int32_t ChangesOf(size_t i, std::span<const absl::string_view> besides = {}) const;

  /// All of them, at several hundred bytes each.
  std::vector<transforms::ParallelPlan> All() const { return {begin(), end()}; }

  /// Walks through the plans by value.
  class Iterator {
   public:
    /// As iterators have it.
    using iterator_category = std::input_iterator_tag;
    /// As iterators have it.
    using value_type = transforms::ParallelPlan;
    /// As iterators have it.
    using difference_type = std::ptrdiff_t;
    /// As iterators have it.
    using pointer = void;
    /// As iterators have it.
    using reference = transforms::ParallelPlan;

    Iterator() = default;
    Iterator(const PlanList* list, size_t at) : list_(list), at_(at) {}
    transforms::ParallelPlan operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return {list_, at_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const PlanList* list_ = nullptr;
    size_t at_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

 private:
  // The number of its value for each axis.
  using Values = std::vector<uint32_t>;
  // Values of one axis, as plans that have them, and which of them each plan has: nothing as long
  // as all have the first.
  struct Column {
    std::vector<transforms::ParallelPlan> values;
    std::vector<char> are_plain = {};   // by value
    std::vector<uint64_t> hashes = {};  // likewise
    ValueNumbers rows;
  };
  // Where lookups of rows find them: stays where it is when a list is moved.
  struct Table {
    std::vector<Column> columns;
    uint64_t HashOf(uint32_t row) const;
    bool AreEqual(uint32_t a, uint32_t b) const;
    bool Has(uint32_t row, const Values& values) const;
  };
  struct RowHash {
    using is_transparent = void;
    const Table* table;
    size_t operator()(uint32_t row) const { return table->HashOf(row); }
    size_t operator()(const Values& values) const;
  };
  struct RowsEqual {
    using is_transparent = void;
    const Table* table;
    bool operator()(uint32_t a, uint32_t b) const { return table->AreEqual(a, b); }
    bool operator()(uint32_t row, const Values& values) const { return table->Has(row, values); }
    bool operator()(const Values& values, uint32_t row) const { return table->Has(row, values); }
  };
  // The neighbours that differ in degrees.
  class Moves;

  Values ValuesOf(size_t i) const;
  void AddIfThere(const Values& values, std::vector<size_t>& places) const;
  uint32_t NumberOf(size_t axis, const transforms::ParallelPlan& plan, Column& column) const;
  bool TakeLast();

  size_t size_ = 0;
  std::vector<transforms::ParallelPlan> plain_;
  std::unique_ptr<Table> table_;
  absl::flat_hash_set<uint32_t, RowHash, RowsEqual> seen_;  // looked up
};

/// Plans that stand elsewhere and live longer: in a list, in a vector, or at some places of others.
class PlansView {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): reads as the plans
  PlansView(const PlanList& plans)
      : size_(plans.size()), at_([&plans](size_t i) { return plans[i]; }) {}
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  PlansView(const std::vector<transforms::ParallelPlan>& plans)
      : size_(plans.size()), at_([&plans](size_t i) { return plans[i]; }) {}
  PlansView(size_t size, std::function<transforms::ParallelPlan(size_t)> at)
      : size_(size), at_(std::move(at)) {}

  size_t size() const { return size_; }
  transforms::ParallelPlan operator[](size_t i) const { return at_(i); }

 private:
  size_t size_;
  std::function<transforms::ParallelPlan(size_t)> at_;
};

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_SPACES_PLAN_LIST_H_
