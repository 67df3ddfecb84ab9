#include "transforms/strategies/fix_shared.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace orrery::transforms::strategies {
namespace fix_shared_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

enum class Where : uint8_t { kOutside, kAtAnEnd, kBetween };

std::vector<Where> PositionsOf(const Model& model, const std::vector<RepeatedBlocks>& repeats) {
  std::vector<Where> where(model.nodes(), Where::kOutside);
  for (const RepeatedBlocks& repeat : repeats) {
    for (size_t block = 0; block < repeat.blocks.size(); ++block) {
      const bool between = block > 0 && block + 1 < repeat.blocks.size();
      for (const int32_t node : repeat.blocks[block]) {
        if (node < 0 || At(node) >= where.size()) continue;
        where[At(node)] = between ? Where::kBetween : Where::kAtAnEnd;
      }
    }
  }
  return where;
}

// What `node` costs in `table` with its strategy `own` and the other node's strategy `other`.
double CostIn(const Model& model, const Table& table, int32_t node, size_t own, size_t other) {
  const size_t columns = model.strategies(table.scope[1]);
  return table.values[table.scope[0] == node ? own * columns + other : other * columns + own];
}

int32_t Other(const Table& table, int32_t node) {
  return table.scope[table.scope[0] == node ? 1 : 0];
}

// The strategy of `node` that is never dearer than another one.
std::optional<size_t> Best(const Model& model, int32_t node, const std::vector<Table*>& tables) {
  const std::vector<double>& costs = model.cost[At(node)];
  const auto never_dearer = [&](size_t a, size_t b) {
    if (costs[a] > costs[b]) return false;
    return std::ranges::all_of(tables, [&](const Table* table) {
      for (size_t other = 0; other < model.strategies(Other(*table, node)); ++other) {
        if (CostIn(model, *table, node, a, other) > CostIn(model, *table, node, b, other)) {
          return false;
        }
      }
      return true;
    });
  };
  for (size_t a = 0; a < costs.size(); ++a) {
    bool best = true;
    for (size_t b = 0; b < costs.size() && best; ++b) best = never_dearer(a, b);
    if (best) return a;
  }
  return std::nullopt;
}

// The table of two nodes becomes costs of the other one; it stays, empty, to be erased.
void Fold(Model& model, Table& table, int32_t node, size_t strategy) {
  std::vector<double>& costs = model.cost[At(Other(table, node))];
  for (size_t other = 0; other < costs.size(); ++other) {
    costs[other] += CostIn(model, table, node, strategy, other);
  }
  table.values.clear();
}

}  // namespace
}  // namespace fix_shared_cc

void FixShared(Model& model, const std::vector<RepeatedBlocks>& repeats) {
  const std::vector<fix_shared_cc::Where> where = fix_shared_cc::PositionsOf(model, repeats);
  std::vector<bool> shared(model.nodes());
  std::vector<std::vector<Table*>> tables(model.nodes());
  for (Table& table : model.tables) {
    for (const int32_t node : table.scope) {
      if (where[fix_shared_cc::At(node)] != fix_shared_cc::Where::kOutside) continue;
      tables[fix_shared_cc::At(node)].push_back(&table);
      if (where[fix_shared_cc::At(fix_shared_cc::Other(table, node))] ==
          fix_shared_cc::Where::kBetween)
        shared[fix_shared_cc::At(node)] = true;
    }
  }
  for (size_t i = 0; i < shared.size(); ++i) {
    if (!shared[i]) continue;
    const auto node = static_cast<int32_t>(i);
    std::erase_if(tables[i], [](const Table* table) { return table->values.empty(); });
    const auto best = fix_shared_cc::Best(model, node, tables[i]);
    if (!best.has_value()) continue;
    for (Table* table : tables[i]) fix_shared_cc::Fold(model, *table, node, *best);
    model.kept[i] = {model.kept[i][*best]};
    model.cost[i] = {model.cost[i][*best]};
    model.memory[i] = {model.memory[i][*best]};
  }
  std::erase_if(model.tables, [](const Table& table) { return table.values.empty(); });
}

}  // namespace orrery::transforms::strategies
