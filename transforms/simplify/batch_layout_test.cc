#include "transforms/simplify/batch_layout.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::transforms {
namespace batch_layout_test_cc {
namespace {

// "[8,5,6]: 1 0 2" is a base and the groups of a value of three dimensions.
std::string Text(const std::optional<Regrouping>& regrouping) {
  if (!regrouping.has_value()) return "no";
  std::string text = absl::StrCat("[", absl::StrJoin(regrouping->base, ","), "]:");
  for (const std::vector<size_t>& group : regrouping->groups) {
    absl::StrAppend(&text, " ", group.empty() ? "-" : absl::StrJoin(group, "+"));
  }
  return text;
}

constexpr int64_t kBatch = 8;

// Of bases that have the batch first.
std::optional<Regrouping> Regrouped(const ir::Dims& base, const DimGroups& groups,
                                    const ir::Dims& to) {
  return Regroup({.base = base, .groups = groups, .batch = 0, .samples = kBatch}, to);
}

TEST(BatchLayout, RegroupsWhereEndsMeet) {
  const ir::Dims base = {kBatch, 5, 6};
  const DimGroups time_first = {{1}, {0}, {2}};
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 8, 6})), "[8,5,6]: 1 0 2");
  // Flattened with time, heads parted, and heads taken together with the batch.
  EXPECT_EQ(Text(Regrouped(base, time_first, {40, 6})), "[8,5,6]: 1+0 2");
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 8, 3, 2})), "[8,5,3,2]: 1 0 2 3");
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 24, 2})), "[8,5,3,2]: 1 0+2 3");
  EXPECT_EQ(Text(Regrouped(base, time_first, {1, 5, 8, 1, 6})), "[8,5,6]: - 1 0 - 2");
  // What is read together is one dimension of the base; the batch stays by itself.
  EXPECT_EQ(Text(Regrouped({kBatch, 5, 3, 2}, {{1}, {0}, {2}, {3}}, {5, 8, 6})), "[8,5,6]: 1 0 2");
  EXPECT_EQ(Text(Regrouped(base, {{0}, {1}, {2}}, {8, 30})), "[8,30]: 0 1");
  EXPECT_EQ(Text(Regrouped(base, {{0}, {1}, {2}}, {240})), "[8,30]: 0+1");
}

TEST(BatchLayout, DoesNotRegroupWhereTheyDoNot) {
  const ir::Dims base = {kBatch, 5, 6};
  EXPECT_EQ(Text(Regrouped(base, {{1}, {0}, {2}}, {10, 4, 6})), "no");  // parts the batch
  EXPECT_EQ(Text(Regrouped(base, {{1}, {0}, {2}}, {3, 80})), "no");
  EXPECT_EQ(Text(Regrouped(base, {{1}, {0}, {2}}, {5, 8})), "no");
  EXPECT_EQ(Text(Regrouped(base, {{1}, {0}, {2}}, {5, 8, 12})), "no");
  EXPECT_EQ(Text(Regrouped(base, {{1}, {0}, {2}}, {0, 8})), "no");
}

// As what recurrent ops make has it.
TEST(BatchLayout, BatchBehindTime) {
  const Regrouping steps = {
      .base = {5, 1, kBatch, 6}, .groups = {{0}, {1}, {2}, {3}}, .batch = 2, .samples = kBatch};
  EXPECT_FALSE(BatchIsInside(steps));
  const auto flat = Regroup(steps, {5 * kBatch, 6});
  EXPECT_EQ(Text(flat), "[5,8,6]: 0+1 2");
  EXPECT_EQ(flat->batch, 1u);
  EXPECT_TRUE(BatchIsInside(*flat));
  const auto apart = Regroup(*flat, {5, kBatch, 6});
  EXPECT_EQ(Text(apart), "[5,8,6]: 0 1 2");
  EXPECT_FALSE(BatchIsInside(*apart));
  // The last state has nothing outside of the batch but a dimension of 1.
  const Regrouping state = {
      .base = {1, kBatch, 6}, .groups = {{0}, {1}, {2}}, .batch = 1, .samples = kBatch};
  EXPECT_FALSE(BatchIsInside(*Regroup(state, {kBatch, 6})));
}

// What there is of each sample beside each other, two views or heads, is parted where it must be.
TEST(BatchLayout, PartsWhatBelongsToSamples) {
  const ir::Dims base = {2 * kBatch, 5, 6};
  const DimGroups time_first = {{1}, {0}, {2}};
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 16, 3, 2})), "[16,5,3,2]: 1 0 2 3");
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 48, 2})), "[16,5,3,2]: 1 0+2 3");
  const auto parted = Regrouped(base, time_first, {40, 12});
  EXPECT_EQ(Text(parted), "[8,2,5,6]: 2+0 1+3");
  EXPECT_EQ(parted->batch, 0u);
  EXPECT_EQ(Text(Regroup(*parted, {5, 8, 12})), "[8,2,5,6]: 2 0 1+3");
  EXPECT_EQ(Text(Regrouped(base, time_first, {5, 4, 24})), "no");
}

// Position of each element of the value in the base.
std::vector<int64_t> Positions(const ir::Dims& base, const DimGroups& groups) {
  const std::vector<size_t> order = OrderOf(groups);
  std::vector<int64_t> strides(base.size(), 1);
  for (size_t d = base.size(); d-- > 1;) strides[d - 1] = strides[d] * base[d];
  std::vector<int64_t> positions = {0};
  for (const size_t dim : order) {
    std::vector<int64_t> next;
    for (const int64_t position : positions) {
      for (int64_t i = 0; i < base[dim]; ++i) next.push_back(position + i * strides[dim]);
    }
    positions = std::move(next);
  }
  return positions;
}

// The elements stay where they were, whatever the dimensions.
TEST(BatchLayout, RegroupedValuesAreTheSame) {
  std::mt19937 random(3);
  int regrouped = 0;
  for (int round = 0; round < 2000; ++round) {
    ir::Dims base = {random() % 2 == 0 ? 3 : 6};
    for (size_t d = 0; d < 1 + random() % 3; ++d)
      base.push_back(1 + static_cast<int64_t>(random() % 6));
    const size_t batch = random() % base.size();
    std::swap(base[0], base[batch]);
    std::vector<size_t> order(base.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random);
    DimGroups groups(1 + random() % base.size());
    for (size_t i = 0; i < order.size(); ++i)
      groups[i * groups.size() / order.size()].push_back(order[i]);
    const int64_t count = ir::ElementCount(base);
    ir::Dims to;
    for (int64_t left = count; left > 1;) {
      int64_t size = 2;
      while (left % size != 0) ++size;
      if (random() % 2 == 0) size = left;
      to.push_back(size);
      left /= size;
    }
    std::ranges::shuffle(to, random);
    if (to.empty()) continue;
    const auto found = Regroup({.base = base, .groups = groups, .batch = batch, .samples = 3}, to);
    if (!found.has_value()) continue;
    ++regrouped;
    EXPECT_EQ(ir::ElementCount(found->base), count);
    EXPECT_EQ(found->base[found->batch] % 3, 0);
    EXPECT_EQ(Positions(found->base, found->groups), Positions(base, groups)) << round;
    ASSERT_EQ(found->groups.size(), to.size());
    for (size_t k = 0; k < to.size(); ++k) {
      int64_t size = 1;
      for (const size_t dim : found->groups[k]) size *= found->base[dim];
      EXPECT_EQ(size, to[k]) << round;
    }
  }
  EXPECT_GT(regrouped, 500);
}

}  // namespace
}  // namespace batch_layout_test_cc
}  // namespace orrery::transforms
