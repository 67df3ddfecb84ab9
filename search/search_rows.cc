#include "search/search_rows.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::search {

SearchRows::SearchRows(std::vector<Result> results) : played_(std::move(results)) {
  for (size_t i = 0; i < played_.size(); ++i) rows_.push_back({.place = static_cast<uint32_t>(i)});
}

void SearchRows::Add(Result result) {
  rows_.push_back({.place = static_cast<uint32_t>(played_.size())});
  played_.push_back(std::move(result));
}

void SearchRows::Add(size_t candidate, Unplayed why) {
  rows_.push_back({.place = static_cast<uint32_t>(candidate), .is_played = false, .why = why});
}

Bytes SearchRows::MemoryOf(size_t i) const {
  const Result* const played = Played(i);
  return played != nullptr ? played->peak_memory : make_.least_memory(rows_[i].place);
}

void SearchRows::NoteLeft(const GoalFigures& least) {
  const double size = SizeOf(goal_, least);
  least_size_left_ = least_left_.has_value() ? std::min(least_size_left_, size) : size;
  least_left_ = std::min(least_left_.value_or(least.time), least.time);
}

Result SearchRows::operator[](size_t i) const {
  ORRERY_CHECK(i < rows_.size()) << "row " << i << " of " << rows_.size();
  const Row& row = rows_[i];
  return row.is_played ? played_[row.place] : make_.row(row.place, row.why);
}

const Result* SearchRows::Played(size_t i) const {
  ORRERY_CHECK(i < rows_.size()) << "row " << i << " of " << rows_.size();
  return rows_[i].is_played ? &played_[rows_[i].place] : nullptr;
}

bool SearchRows::IsPruned(size_t i) const {
  const Result* const played = Played(i);
  return played != nullptr ? !played->pruned.empty() : rows_[i].why == Unplayed::kPruned;
}

bool SearchRows::IsLeft(size_t i) const {
  const Result* const played = Played(i);
  return played != nullptr ? played->left : rows_[i].why == Unplayed::kLeft;
}

void SearchRows::ForEach(const std::function<void(const Result&)>& see) const {
  ForEach(0, rows_.size(), see);
}

void SearchRows::ForEach(size_t begin, size_t end,
                         const std::function<void(const Result&)>& see) const {
  for (size_t i = begin; i < std::min(end, rows_.size()); ++i) {
    if (const Result* const played = Played(i)) {
      see(*played);
    } else {
      see((*this)[i]);
    }
  }
}

}  // namespace orrery::search
