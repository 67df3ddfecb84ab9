#include "search/spaces/plan_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "support/check.h"
#include "support/numbers/mix_bits.h"
#include "transforms/plan/axis.h"

namespace orrery::search {
namespace plan_list_cc {
namespace {

uint64_t HashOfValue(size_t axis, uint32_t value) {
  return value == 0 ? 0 : MixBits((uint64_t{axis + 1} << 32) + value);
}

int64_t DegreeOf(size_t axis, const transforms::ParallelPlan& plan) {
  const auto degree = transforms::AllAxes()[axis]->degree;
  return degree != nullptr ? degree(plan) : 1;
}

}  // namespace
}  // namespace plan_list_cc

// A sum in which first values count nothing: so it stays the same when an axis begins to vary.
uint64_t PlanList::Table::HashOf(uint32_t row) const {
  uint64_t hash = 0;
  for (const Column& column : columns) {
    if (!column.rows.empty()) hash += column.hashes[column.rows[row]];
  }
  return hash;
}

size_t PlanList::RowHash::operator()(const Values& values) const {
  uint64_t hash = 0;
  for (size_t axis = 0; axis < values.size(); ++axis) {
    hash += plan_list_cc::HashOfValue(axis, values[axis]);
  }
  return hash;
}

bool PlanList::Table::Has(uint32_t row, const Values& values) const {
  for (size_t axis = 0; axis < columns.size(); ++axis) {
    const ValueNumbers& rows = columns[axis].rows;
    if ((rows.empty() ? 0 : rows[row]) != values[axis]) return false;
  }
  return true;
}

bool PlanList::Table::AreEqual(uint32_t a, uint32_t b) const {
  return std::ranges::all_of(columns, [&](const Column& column) {
    return column.rows.empty() || column.rows[a] == column.rows[b];
  });
}

PlanList::PlanList()
    : table_(std::make_unique<Table>()), seen_(0, RowHash{table_.get()}, RowsEqual{table_.get()}) {
  table_->columns.resize(transforms::AllAxes().size());
}

// Of a value, which is new where no plan has it. Most values are those of the plan before.
uint32_t PlanList::NumberOf(size_t axis, const transforms::ParallelPlan& plan,
                            Column& column) const {
  const auto has = [&](const transforms::ParallelPlan& value) {
    return transforms::HaveSameValue(axis, value, plan);
  };
  const uint32_t last = column.rows.empty() ? 0 : column.rows.back();
  if (!column.values.empty() && has(column.values[last])) return last;
  const auto found = std::ranges::find_if(column.values, has);
  const auto number = static_cast<uint32_t>(found - column.values.begin());
  if (found != column.values.end()) return number;
  column.are_plain.push_back(column.values.empty() || std::ranges::any_of(plain_, has) ? 1 : 0);
  column.hashes.push_back(plan_list_cc::HashOfValue(axis, number));
  column.values.push_back(plan);
  return number;
}

// Whether the plan that was written behind all others is new; else it is taken back.
bool PlanList::TakeLast() {
  ORRERY_CHECK(size_ < std::numeric_limits<uint32_t>::max()) << "plans in a list";
  if (seen_.insert(static_cast<uint32_t>(size_)).second) {
    ++size_;
    return true;
  }
  for (Column& column : table_->columns) {
    if (!column.rows.empty()) column.rows.RemoveLast();
  }
  return false;
}

bool PlanList::Insert(const transforms::ParallelPlan& plan) {
  for (size_t axis = 0; axis < table_->columns.size(); ++axis) {
    Column& column = table_->columns[axis];
    const uint32_t number = NumberOf(axis, plan, column);
    if (number > 0 || !column.rows.empty()) column.rows.Add(size_, number);
  }
  return TakeLast();
}

void PlanList::InsertAll(const PlanList& others, size_t most) {
  std::vector<std::vector<uint32_t>> numbers(table_->columns.size());
  for (size_t axis = 0; axis < numbers.size() && !others.empty(); ++axis) {
    Column& column = table_->columns[axis];
    for (const transforms::ParallelPlan& value : others.table_->columns[axis].values) {
      numbers[axis].push_back(NumberOf(axis, value, column));
    }
  }
  for (size_t i = 0; i < others.size() && size_ < most; ++i) {
    for (size_t axis = 0; axis < numbers.size(); ++axis) {
      Column& column = table_->columns[axis];
      const ValueNumbers& rows = others.table_->columns[axis].rows;
      const uint32_t number = numbers[axis][rows.empty() ? 0 : rows[i]];
      if (number > 0 || !column.rows.empty()) column.rows.Add(size_, number);
    }
    TakeLast();
  }
}

void PlanList::ShrinkToFit() {
  for (Column& column : table_->columns) column.rows.ShrinkToFit();
}

transforms::ParallelPlan PlanList::operator[](size_t i) const {
  ORRERY_CHECK(i < size_) << "plan " << i << " of " << size_;
  transforms::ParallelPlan plan = table_->columns.front().values.front();
  for (size_t axis = 0; axis < table_->columns.size(); ++axis) {
    const Column& column = table_->columns[axis];
    if (column.rows.empty() || column.rows[i] == 0) continue;
    transforms::AllAxes()[axis]->copy(column.values[column.rows[i]], plan);
  }
  return plan;
}

PlanList::Values PlanList::ValuesOf(size_t i) const {
  Values values;
  for (const Column& column : table_->columns) {
    values.push_back(column.rows.empty() ? 0 : column.rows[i]);
  }
  return values;
}

void PlanList::AddIfThere(const Values& values, std::vector<size_t>& places) const {
  const auto found = seen_.find(values);
  if (found != seen_.end()) places.push_back(*found);
}

// From one plan to others of other degrees.
class PlanList::Moves {
 public:
  Moves(const PlanList& list, size_t i) : list_(list), from_(list.ValuesOf(i)) {
    while (transforms::AllAxes()[microbatches_]->flag != "micro-batches") ++microbatches_;
  }

  void AddTo(std::vector<size_t>& places) {
    for (size_t a = 0; a < from_.size(); ++a) {
      if (transforms::AllAxes()[a]->degree == nullptr) continue;
      Vary(a, from_, [&](const Values& one, int64_t was_a, int64_t is_a) {
        Add(one, places);
        for (size_t b = a + 1; b < from_.size(); ++b) {
          if (transforms::AllAxes()[b]->degree == nullptr) continue;
          Vary(b, one, [&](const Values& both, int64_t was_b, int64_t is_b) {
            if (was_a * was_b == is_a * is_b) Add(both, places);
          });
        }
      });
    }
  }

 private:
  const Column& ColumnOf(size_t axis) const { return list_.table_->columns[axis]; }

  template <typename See>
  void Vary(size_t axis, const Values& from, const See& see) const {
    const Column& column = ColumnOf(axis);
    Values to = from;
    const int64_t was = plan_list_cc::DegreeOf(axis, column.values[from[axis]]);
    for (uint32_t value = 0; value < column.values.size(); ++value) {
      if (value == from[axis]) continue;
      to[axis] = value;
      see(to, was, plan_list_cc::DegreeOf(axis, column.values[value]));
    }
  }

  // Ranks that split the batch.
  int64_t ReplicasOf(const Values& values) const {
    int64_t replicas = 1;
    for (size_t axis = 0; axis < values.size(); ++axis) {
      const absl::string_view flag = transforms::AllAxes()[axis]->flag;
      if (flag != "dp" && flag != "ep") continue;
      replicas *= plan_list_cc::DegreeOf(axis, ColumnOf(axis).values[values[axis]]);
    }
    return replicas;
  }

  void Add(Values values, std::vector<size_t>& places) const {
    list_.AddIfThere(values, places);
    const int64_t was = ReplicasOf(from_), is = ReplicasOf(values);
    if (was == is) return;
    const Column& column = ColumnOf(microbatches_);
    const int64_t all = column.values[from_[microbatches_]].microbatches * was;
    for (uint32_t value = 0; value < column.values.size(); ++value) {
      if (value == from_[microbatches_] || column.values[value].microbatches * is != all) continue;
      values[microbatches_] = value;
      list_.AddIfThere(values, places);
    }
  }

  const PlanList& list_;
  const Values from_;
  size_t microbatches_ = 0;  // the axis
};

std::vector<size_t> PlanList::Neighbours(size_t i) const {
  std::vector<size_t> places;
  Moves(*this, i).AddTo(places);
  Values values = ValuesOf(i);
  for (size_t axis = 0; axis < values.size(); ++axis) {
    if (transforms::AllAxes()[axis]->degree != nullptr) continue;
    const uint32_t own = values[axis];
    for (uint32_t value = 0; value < table_->columns[axis].values.size(); ++value) {
      values[axis] = value;
      if (value != own) AddIfThere(values, places);
    }
    values[axis] = own;
  }
  return places;
}

int32_t PlanList::ChangesOf(size_t i, std::span<const absl::string_view> besides) const {
  int32_t changes = 0;
  for (size_t axis = 0; axis < table_->columns.size(); ++axis) {
    const Column& column = table_->columns[axis];
    const transforms::AxisInfo& info = *transforms::AllAxes()[axis];
    if (column.rows.empty() || std::ranges::find(besides, info.flag) != besides.end()) continue;
    if (info.flag == "cp") {
      changes += column.values[column.rows[i]].cp > 1 ? 1 : 0;
    } else if (info.degree == nullptr && info.flag != "micro-batches") {
      changes += column.are_plain[column.rows[i]] == 0 ? 1 : 0;
    }
  }
  return changes;
}

std::vector<double> PlanList::FeaturesOf(size_t i) const {
  std::vector<double> features;
  for (size_t axis = 0; axis < table_->columns.size(); ++axis) {
    const Column& column = table_->columns[axis];
    if (column.rows.empty()) continue;
    const transforms::AxisInfo& info = *transforms::AllAxes()[axis];
    int64_t number = 0;
    if (info.is_number && absl::SimpleAtoi(info.print(column.values[column.rows[i]]), &number)) {
      features.push_back(std::log2(1 + static_cast<double>(number)));
      continue;
    }
    for (size_t value = 0; value < column.values.size(); ++value) {
      features.push_back(value == column.rows[i] ? 1 : 0);
    }
  }
  return features;
}

uint64_t PlanList::FamilyOf(size_t i) const {
  uint64_t hash = 0;
  for (size_t axis = 0; axis < table_->columns.size(); ++axis) {
    const ValueNumbers& rows = table_->columns[axis].rows;
    if (rows.empty() || transforms::AllAxes()[axis]->degree == nullptr) continue;
    hash += plan_list_cc::HashOfValue(axis, rows[i]);
  }
  return hash;
}

}  // namespace orrery::search
