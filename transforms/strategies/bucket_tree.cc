#include "transforms/strategies/bucket_tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "transforms/strategies/minimize.h"

namespace orrery::transforms::strategies {
namespace bucket_tree_cc {
namespace {

// Entries and additions that one Fill may take: a quarter of a GiB, about half a second.
constexpr double kMostEntries = 1 << 25;
constexpr double kMostWork = 6e8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

double SizeOf(const Model& model, const std::vector<int32_t>& scope) {
  double size = 1;
  for (const int32_t node : scope) size *= static_cast<double>(model.strategies(node));
  return size;
}

// How far `table` moves when a node of `scope` moves by one.
std::vector<size_t> Strides(const Model& model, const Table& table,
                            const std::vector<int32_t>& scope) {
  std::vector<size_t> strides(scope.size());
  size_t stride = 1;
  for (size_t i = table.scope.size(); i-- > 0;) {
    const auto at = std::ranges::find(scope, table.scope[i]);
    if (at != scope.end()) strides[static_cast<size_t>(at - scope.begin())] = stride;
    stride *= model.strategies(table.scope[i]);
  }
  return strides;
}

// `table` with its nodes in the order of `scope`.
Table Transposed(const Model& model, const Table& table, std::vector<int32_t> scope) {
  if (scope == table.scope) return table;
  Table result{.scope = std::move(scope), .values = {}};
  MinimizeTask task{.sizes = {}, .inputs = {{table.values.data(), {}}}, .own = {0}};
  for (const int32_t node : result.scope) task.sizes.push_back(model.strategies(node));
  task.inputs[0].strides = Strides(model, table, result.scope);
  result.values.reserve(table.values.size());
  MinimizeOut(task, result.values);
  return result;
}

}  // namespace
}  // namespace bucket_tree_cc

BucketTree::BucketTree(const Model& model, double table_limit, const std::vector<int32_t>& last)
    : model_(model), order_(OrderNodes(model, table_limit, last)), waiting_(model.nodes()) {
  AddTables();
  MakeBuckets(table_limit, last.size());
  OrderBuckets(last.size());
}

void BucketTree::AddTables() {
  for (const Table& table : model_.tables) {
    std::vector<int32_t> scope = table.scope;
    std::ranges::sort(scope, [&](int32_t a, int32_t b) {
      return order_.position[bucket_tree_cc::At(a)] > order_.position[bucket_tree_cc::At(b)];
    });
    AddTable(bucket_tree_cc::Transposed(model_, table, std::move(scope)));
  }
}

int32_t BucketTree::AddTable(Table table) {
  const auto number = static_cast<int32_t>(tables_.size());
  if (!table.scope.empty()) waiting_[bucket_tree_cc::At(table.scope.back())].push_back(number);
  tables_.push_back(std::move(table));
  return number;
}

void BucketTree::MakeBuckets(double table_limit, size_t last) {
  for (size_t i = 0; i < order_.nodes.size(); ++i) {
    Bucket bucket{.node = order_.nodes[i], .parts = {}};
    if (i + last < order_.nodes.size()) {
      MakeParts(bucket, waiting_[bucket_tree_cc::At(bucket.node)], table_limit);
    }
    buckets_.push_back(std::move(bucket));
  }
}

// Largest first, each table goes to the first part that stays within the limit with it.
void BucketTree::MakeParts(Bucket& bucket, std::vector<int32_t> inputs, double table_limit) {
  std::ranges::stable_sort(inputs, [&](int32_t a, int32_t b) {
    return tables_[bucket_tree_cc::At(a)].scope.size() >
           tables_[bucket_tree_cc::At(b)].scope.size();
  });
  const auto later = [&](int32_t a, int32_t b) {
    return order_.position[bucket_tree_cc::At(a)] > order_.position[bucket_tree_cc::At(b)];
  };
  std::vector<std::vector<int32_t>> scopes;
  for (const int32_t input : inputs) {
    const std::vector<int32_t>& scope = tables_[bucket_tree_cc::At(input)].scope;
    size_t part = 0;
    for (; part < scopes.size(); ++part) {
      std::vector<int32_t> joined;
      std::ranges::set_union(scopes[part], scope, std::back_inserter(joined), later);
      if (joined.size() > scopes[part].size() &&
          bucket_tree_cc::SizeOf(model_, joined) > table_limit)
        continue;
      scopes[part] = std::move(joined);
      break;
    }
    if (part == scopes.size()) {
      scopes.push_back(scope);
      bucket.parts.emplace_back();
    }
    bucket.parts[part].inputs.push_back(input);
  }
  if (bucket.parts.empty()) {
    bucket.parts.emplace_back();
    scopes.push_back({bucket.node});
  }
  if (bucket.parts.size() > 1) exact_ = false;
  for (size_t part = 0; part < scopes.size(); ++part) {
    const double size = bucket_tree_cc::SizeOf(model_, scopes[part]);
    work_ += size * static_cast<double>(bucket.parts[part].inputs.size() + 1);
    scopes[part].pop_back();  // the node itself, eliminated before all others
    entries_ += bucket_tree_cc::SizeOf(model_, scopes[part]);
    bucket.parts[part].message = AddTable({.scope = std::move(scopes[part]), .values = {}});
  }
}

// Down from the roots, small subtrees before large ones: few nodes then wait for a neighbour.
void BucketTree::OrderBuckets(size_t last) {
  const size_t nodes = order_.nodes.size();
  std::vector<int64_t> size(nodes, 1);
  std::vector<std::vector<int32_t>> children(nodes + 1);
  for (size_t i = 0; i < nodes; ++i) {
    const int32_t node = order_.nodes[i];
    const int32_t parent = order_.parent[bucket_tree_cc::At(node)];
    children[parent < 0 ? nodes : bucket_tree_cc::At(parent)].push_back(node);
    if (parent >= 0) size[bucket_tree_cc::At(parent)] += size[bucket_tree_cc::At(node)];
  }
  std::vector<Bucket> ordered;
  for (size_t i = 0; i < last; ++i) ordered.push_back(std::move(buckets_[nodes - 1 - i]));
  std::vector<int32_t> open;
  const auto push = [&](std::vector<int32_t>& list) {
    std::ranges::stable_sort(list, [&](int32_t a, int32_t b) {
      return size[bucket_tree_cc::At(a)] > size[bucket_tree_cc::At(b)];
    });
    open.insert(open.end(), list.begin(), list.end());
  };
  push(children[nodes]);
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    const size_t position = bucket_tree_cc::At(order_.position[bucket_tree_cc::At(node)]);
    if (position + last < nodes) ordered.push_back(std::move(buckets_[position]));
    push(children[bucket_tree_cc::At(node)]);
  }
  buckets_ = std::move(ordered);
}

double BucketTree::Fill(const Costs& costs) {
  costs_ = &costs;
  // The order of assignment is a reverse order of elimination too.
  for (size_t i = buckets_.size(); i-- > 0;) FillBucket(buckets_[i]);
  double bound = 0;
  for (const Bucket& bucket : buckets_) {
    for (const Part& part : bucket.parts) {
      const Table& message = table(part.message);
      if (message.scope.empty()) bound += message.values[0];
    }
  }
  return bound;
}

void BucketTree::FillBucket(const Bucket& bucket) {
  const size_t strategies = model_.strategies(bucket.node);
  std::vector<MinimizeTask> tasks;
  for (const Part& part : bucket.parts) {
    const std::vector<int32_t>& scope = table(part.message).scope;
    MinimizeTask task;
    for (const int32_t node : scope) task.sizes.push_back(model_.strategies(node));
    for (const int32_t input : part.inputs) {
      task.inputs.push_back(
          {table(input).values.data(), bucket_tree_cc::Strides(model_, table(input), scope)});
    }
    task.own = tasks.empty() ? costs(bucket.node) : std::vector<double>(strategies);
    tasks.push_back(std::move(task));
  }
  if (tasks.size() > 1) {
    // Shift costs between the parts until each strategy has the same least sum in all: the bound
    // grows (moment matching, Ihler et al. 2012).
    std::vector<std::vector<double>> least;
    std::vector<double> mean(strategies);
    for (const MinimizeTask& task : tasks) {
      least.push_back(LeastForEach(task));
      for (size_t a = 0; a < strategies; ++a) mean[a] += least.back()[a];
    }
    for (size_t a = 0; a < strategies; ++a) {
      if (mean[a] == kImpossible) continue;
      for (size_t part = 0; part < tasks.size(); ++part) {
        tasks[part].own[a] += mean[a] / static_cast<double>(tasks.size()) - least[part][a];
      }
    }
  }
  for (size_t part = 0; part < tasks.size(); ++part) {
    MinimizeOut(tasks[part], tables_[bucket_tree_cc::At(bucket.parts[part].message)].values);
  }
}

void BucketTree::Descend(std::vector<int32_t>& choice) const {
  std::vector<double> sums;
  for (const Bucket& bucket : buckets_) {
    if (bucket.parts.empty()) continue;
    sums = costs(bucket.node);
    for (const Part& part : bucket.parts) {
      for (const int32_t input : part.inputs) {
        const Table& table = this->table(input);
        size_t at = 0;
        for (size_t i = 0; i + 1 < table.scope.size(); ++i) {
          at = at * model_.strategies(table.scope[i]) +
               bucket_tree_cc::At(choice[bucket_tree_cc::At(table.scope[i])]);
        }
        at *= sums.size();
        for (size_t a = 0; a < sums.size(); ++a) sums[a] += table.values[at + a];
      }
    }
    choice[bucket_tree_cc::At(bucket.node)] =
        static_cast<int32_t>(std::ranges::min_element(sums) - sums.begin());
  }
}

Table BucketTree::Remaining(const std::vector<int32_t>& last) const {
  Table result{.scope = last, .values = {}};
  MinimizeTask task{.sizes = {}, .inputs = {}, .own = {0}};
  for (const int32_t node : last) task.sizes.push_back(model_.strategies(node));
  for (const int32_t node : last) {
    for (const int32_t number : waiting_[bucket_tree_cc::At(node)]) {
      const Table& table = this->table(number);
      task.inputs.push_back({table.values.data(), bucket_tree_cc::Strides(model_, table, last)});
    }
    const Table own{.scope = {node}, .values = {}};
    task.inputs.push_back({costs(node).data(), bucket_tree_cc::Strides(model_, own, last)});
  }
  for (const Bucket& bucket : buckets_) {
    for (const Part& part : bucket.parts) {
      if (table(part.message).scope.empty()) task.own[0] += table(part.message).values[0];
    }
  }
  MinimizeOut(task, result.values);
  return result;
}

BucketTree AffordableTree(const Model& model, double table_limit) {
  while (true) {
    BucketTree tree(model, table_limit);
    if (table_limit < 1024 || (tree.entries() <= bucket_tree_cc::kMostEntries &&
                               tree.work() <= bucket_tree_cc::kMostWork)) {
      return tree;
    }
    table_limit /= 4;
  }
}

}  // namespace orrery::transforms::strategies
