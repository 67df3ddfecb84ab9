#include "transforms/strategies/repeats.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/status.h"
#include "transforms/strategies/bucket_tree.h"

namespace orrery::transforms::strategies {
namespace repeats_cc {
namespace {

// A product of tables over so many choices of the boundary takes a tenth of a second.
constexpr size_t kMostBoundaryChoices = 400;
// One block stands for many: its tables may be so many times larger, if they are filled in as long.
// Two boundaries of 12 × 12 choices, as of layers whose batch, sequence and width can be split,
// need 6.
constexpr double kMoreEntries = 16;
constexpr double kMostBlockWork = 1e8;

size_t At(int32_t number) { return static_cast<size_t>(number); }

// Where a node stands among repeated blocks.
struct Place {
  int32_t block = -1;  // -1: in none
  int32_t index = 0;   // in the block
};

std::vector<Place> PositionsOf(const Model& model, const RepeatedBlocks& repeat) {
  std::vector<Place> positions(model.nodes());
  for (size_t block = 0; block < repeat.blocks.size(); ++block) {
    for (size_t i = 0; i < repeat.blocks[block].size(); ++i) {
      positions[At(repeat.blocks[block][i])] = {static_cast<int32_t>(block),
                                                static_cast<int32_t>(i)};
    }
  }
  return positions;
}

// A table of a block: between node `index` of it and node `other` of the same block or of the next
// one. The rows of `table` are of the first of both, unless it is turned.
struct BlockTable {
  int32_t index;
  bool next;
  int32_t other;
  const Table* table;
  bool turned;

  std::tuple<int32_t, bool, int32_t> key() const { return {index, next, other}; }
};
// In the order of their keys.
using BlockTables = std::vector<BlockTable>;

// The earlier node's strategies as rows.
std::vector<double> ValuesOf(const Model& model, const BlockTable& of) {
  std::vector<double> values = of.table->values;
  if (!of.turned) return values;
  const size_t rows = model.strategies(of.table->scope[0]);
  const size_t columns = model.strategies(of.table->scope[1]);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i % columns * rows + i / columns] = of.table->values[i];
  }
  return values;
}

// [block]: its tables, and those with the next block; of the first `blocks` of them.
std::vector<BlockTables> TablesOfBlocks(const Model& model, const std::vector<Place>& positions,
                                        size_t blocks) {
  std::vector<BlockTables> tables(blocks);
  for (const Table& table : model.tables) {
    if (table.scope.size() != 2) continue;
    Place a = positions[At(table.scope[0])], b = positions[At(table.scope[1])];
    if (a.block < 0 || b.block < 0) continue;
    const bool turned = std::pair(b.block, b.index) < std::pair(a.block, a.index);
    if (turned) std::swap(a, b);
    if (At(a.block) >= blocks) continue;
    tables[At(a.block)].push_back({a.index, b.block > a.block, b.index, &table, turned});
  }
  for (BlockTables& of : tables) std::ranges::sort(of, {}, &BlockTable::key);
  return tables;
}

bool AreEqual(const Model& model, const BlockTable& a, const BlockTable& b) {
  if (a.key() != b.key()) return false;
  if (a.turned == b.turned) return a.table->values == b.table->values;
  return ValuesOf(model, a) == ValuesOf(model, b);
}

absl::Status ValidateNodes(const Model& model, const RepeatedBlocks& repeat,
                           std::vector<bool>& taken) {
  for (const std::vector<int32_t>& block : repeat.blocks) {
    if (block.size() != repeat.blocks[0].size()) {
      return absl::InvalidArgumentError(absl::StrCat("repeats: got blocks of ",
                                                     repeat.blocks[0].size(), " and of ",
                                                     block.size(), " nodes, wanted equal ones"));
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] < 0 || At(block[i]) >= model.nodes() || taken[At(block[i])]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "repeats: got node ", block[i], ", wanted nodes of the graph, each in one block"));
      }
      taken[At(block[i])] = true;
      if (model.cost[At(block[i])] != model.cost[At(repeat.blocks[0][i])]) {
        return absl::InvalidArgumentError(absl::StrCat("repeats: the costs of node ", block[i],
                                                       " are not those of node ",
                                                       repeat.blocks[0][i]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateTables(const Model& model, const RepeatedBlocks& repeat) {
  const std::vector<Place> positions = PositionsOf(model, repeat);
  const auto last = static_cast<int32_t>(repeat.blocks.size()) - 1;
  for (const Table& table : model.tables) {
    const auto [low, high] =
        std::minmax(positions[At(table.scope[0])].block, positions[At(table.scope[1])].block);
    if (high < 0 || (low >= 0 ? high - low <= 1 : high == 0 || high == last)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "repeats: got an edge between nodes ", table.scope[0], " and ", table.scope[1],
        ", wanted edges within blocks, to the next one, and from elsewhere to the first or last"));
  }
  const std::vector<BlockTables> tables = TablesOfBlocks(model, positions, repeat.blocks.size());
  BlockTables within;  // the last block has no next one
  std::ranges::copy_if(tables[0], std::back_inserter(within), std::not_fn(&BlockTable::next));
  for (size_t block = 0; block < tables.size(); ++block) {
    const BlockTables& expected = block + 1 == tables.size() ? within : tables[0];
    const auto equal = [&](const BlockTable& a, const BlockTable& b) {
      return AreEqual(model, a, b);
    };
    if (std::ranges::equal(tables[block], expected, equal)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("repeats: the edges of block ", block,
                     " are not those of block 0; leave the repeats out, "
                     "or give blocks that are equal"));
  }
  return absl::OkStatus();
}

// left ⊗ right in min-plus algebra, both `size` × `size`.
std::vector<double> Product(const std::vector<double>& left, const std::vector<double>& right,
                            size_t size) {
  std::vector<double> product(size * size, kImpossible);
  for (size_t i = 0; i < size; ++i) {
    double* const row = product.data() + i * size;
    for (size_t k = 0; k < size; ++k) {
      const double first = left[i * size + k];
      if (first == kImpossible) continue;
      const double* const second = right.data() + k * size;
      for (size_t j = 0; j < size; ++j) {
        const double sum = first + second[j];
        row[j] = sum < row[j] ? sum : row[j];
      }
    }
  }
  return product;
}

std::vector<double> Power(std::vector<double> base, size_t exponent, size_t size) {
  std::optional<std::vector<double>> power;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = power.has_value() ? Product(*power, base, size) : base;
    if (exponent > 1) base = Product(base, base, size);
  }
  return *std::move(power);
}

// One block between its boundary and that of the next block.
class BlockSolver {
 public:
  BlockSolver(const Model& model, const RepeatedBlocks& repeat, double table_limit)
      : nodes_(repeat.blocks[0].size()), model_(SubModel(model, repeat)) {
    for (const int32_t index : boundary_) {
      boundary_choices_ *= model_.strategies(index);
      if (boundary_choices_ > kMostBoundaryChoices) return;
    }
    std::vector<int32_t> last = boundary_;
    for (size_t i = 0; i < boundary_.size(); ++i) last.push_back(static_cast<int32_t>(nodes_ + i));
    tree_.emplace(model_, kMoreEntries * table_limit, last);
    if (!tree_->exact() || tree_->work() > kMostBlockWork) return;
    tree_->Fill(model_.cost);
    between_ = tree_->Remaining(last).values;
  }

  bool solved() const { return !between_.empty(); }
  const std::vector<int32_t>& boundary() const { return boundary_; }  // positions in the block
  size_t boundary_choices() const { return boundary_choices_; }
  /// [choice of the boundary][choice of the next block's boundary]: the least cost of the block.
  const std::vector<double>& between() const { return between_; }

  // The number of what `choice`, for a block's nodes, has on the boundary; and back.
  size_t NumberOf(const std::vector<int32_t>& choice) const {
    size_t number = 0;
    for (const int32_t index : boundary_) {
      number = number * model_.strategies(index) + At(choice[At(index)]);
    }
    return number;
  }
  // The cheapest choice for the block's nodes between the two boundaries.
  std::vector<int32_t> Complete(size_t boundary, size_t next_boundary) const {
    std::vector<int32_t> choice(model_.nodes());
    for (size_t i = boundary_.size(); i-- > 0;) {
      const size_t strategies = model_.strategies(boundary_[i]);
      choice[At(boundary_[i])] = static_cast<int32_t>(boundary % strategies);
      choice[nodes_ + i] = static_cast<int32_t>(next_boundary % strategies);
      boundary /= strategies;
      next_boundary /= strategies;
    }
    tree_->Descend(choice);
    choice.resize(nodes_);
    return choice;
  }

 private:
  // The nodes of a block, then those of the next block's boundary, which cost nothing here.
  Model SubModel(const Model& model, const RepeatedBlocks& repeat) {
    const BlockTables tables =
        std::move(TablesOfBlocks(model, PositionsOf(model, repeat), 1).front());
    for (const BlockTable& table : tables) {
      if (table.next && std::ranges::count(boundary_, table.other) == 0) {
        boundary_.push_back(table.other);
      }
    }
    std::ranges::sort(boundary_);
    Model sub;
    for (const int32_t node : repeat.blocks[0]) sub.cost.push_back(model.cost[At(node)]);
    for (const int32_t index : boundary_) {
      sub.cost.emplace_back(sub.cost[At(index)].size());
    }
    for (const BlockTable& table : tables) {
      const auto position = std::ranges::find(boundary_, table.other) - boundary_.begin();
      const auto next = static_cast<int32_t>(nodes_) + static_cast<int32_t>(position);
      sub.tables.push_back({.scope = {table.index, table.next ? next : table.other},
                            .values = ValuesOf(model, table)});
    }
    return sub;
  }

  size_t nodes_;
  std::vector<int32_t> boundary_;
  size_t boundary_choices_ = 1;
  Model model_;
  std::optional<BucketTree> tree_;
  std::vector<double> between_;
};

// A model without what lies between the first two boundaries and the last block.
struct Composed {
  Model outer;
  std::vector<int32_t> nodes;         // of the outer model, in the whole one
  std::vector<int32_t> new_position;  // of the whole model's nodes in the outer one; -1: left out
};

Composed Compose(const Model& model, const RepeatedBlocks& repeat, const BlockSolver& block) {
  const std::vector<Place> positions = PositionsOf(model, repeat);
  const auto last = static_cast<int32_t>(repeat.blocks.size()) - 1;
  const auto inner = [&](const Place& position) {
    return position.block > 0 && position.block < last;
  };
  const auto on_boundary = [&](const Place& position) {
    return position.block == 1 && std::ranges::count(block.boundary(), position.index) > 0;
  };
  Composed composed{.outer = {}, .nodes = {}, .new_position = {}};
  composed.new_position.assign(model.nodes(), -1);
  for (size_t node = 0; node < model.nodes(); ++node) {
    const bool is_inner = inner(positions[node]);
    if (is_inner && !on_boundary(positions[node])) continue;
    composed.new_position[node] = static_cast<int32_t>(composed.nodes.size());
    composed.nodes.push_back(static_cast<int32_t>(node));
    composed.outer.kept.push_back(model.kept[node]);
    composed.outer.memory.push_back(model.memory[node]);
    // The table between the boundaries counts what the inner nodes cost.
    composed.outer.cost.push_back(is_inner ? std::vector<double>(model.cost[node].size())
                                           : model.cost[node]);
  }
  for (const Table& table : model.tables) {
    int32_t first = last;
    Table moved{.scope = {}, .values = table.values};
    for (const int32_t node : table.scope) {
      first = std::min(first, positions[At(node)].block < 0 ? last : positions[At(node)].block);
      moved.scope.push_back(composed.new_position[At(node)]);
    }
    if (first == 0 || first == last) composed.outer.tables.push_back(std::move(moved));
  }
  if (block.boundary().empty()) return composed;
  Table between{.scope = {},
                .values = Power(block.between(), repeat.count() - 2, block.boundary_choices())};
  for (const size_t number : {size_t{1}, repeat.blocks.size() - 1}) {
    for (const int32_t index : block.boundary()) {
      between.scope.push_back(composed.new_position[At(repeat.blocks[number][At(index)])]);
    }
  }
  composed.outer.tables.push_back(std::move(between));
  return composed;
}

// The choice of the boundary of each inner block, given those of the first inner and the last
// block.
std::vector<size_t> Boundaries(const BlockSolver& block, size_t inner, size_t first, size_t last) {
  const size_t size = block.boundary_choices();
  const std::vector<double>& between = block.between();
  std::vector<std::vector<double>> least(inner, std::vector<double>(size, kImpossible));
  least[0][first] = 0;
  for (size_t k = 1; k < inner; ++k) {
    for (size_t x = 0; x < size; ++x) {
      for (size_t y = 0; y < size; ++y) {
        least[k][y] = std::min(least[k][y], least[k - 1][x] + between[x * size + y]);
      }
    }
  }
  std::vector<size_t> boundaries(inner + 1);
  boundaries[inner] = last;
  for (size_t k = inner; k-- > 0;) {
    double best = kImpossible;
    for (size_t x = 0; x < size; ++x) {
      const double cost = least[k][x] + between[x * size + boundaries[k + 1]];
      if (cost >= best) continue;
      best = cost;
      boundaries[k] = x;
    }
  }
  return boundaries;
}

// The choice for the whole model from that for the outer one, and for what it stands for.
void Expand(const Model& model, const RepeatedBlocks& repeat, const BlockSolver& block,
            const Composed& composed, ModelSolution& solution) {
  std::vector<int32_t> choice(model.nodes());
  for (size_t i = 0; i < composed.nodes.size(); ++i) {
    choice[At(composed.nodes[i])] = solution.choice[i];
  }
  const auto at = [&](size_t number) {
    std::vector<int32_t> own;
    for (const int32_t node : repeat.blocks[number]) own.push_back(choice[At(node)]);
    return block.NumberOf(own);
  };
  const size_t inner = repeat.count() - 2, last = repeat.blocks.size() - 1;
  const std::vector<size_t> boundaries = Boundaries(block, inner, at(1), at(last));
  for (size_t k = 0; k < inner; ++k) {
    std::vector<int32_t> own = block.Complete(boundaries[k], boundaries[k + 1]);
    if (k + 1 < last) {
      for (size_t i = 0; i < own.size(); ++i) choice[At(repeat.blocks[k + 1][i])] = own[i];
    } else {
      solution.further.back().push_back(std::move(own));
    }
  }
  solution.choice = std::move(choice);
}

}  // namespace
}  // namespace repeats_cc

absl::Status ValidateRepeats(const Model& model, const std::vector<RepeatedBlocks>& repeats) {
  std::vector<bool> taken(model.nodes());
  for (const RepeatedBlocks& repeat : repeats) {
    if (repeat.blocks.empty()) continue;
    ORRERY_RETURN_IF_ERROR(repeats_cc::ValidateNodes(model, repeat, taken));
    ORRERY_RETURN_IF_ERROR(repeats_cc::ValidateTables(model, repeat));
  }
  return absl::OkStatus();
}

ModelSolution SolveRepeated(const Model& model, const std::vector<RepeatedBlocks>& repeats,
                            const SolveOptions& options) {
  if (repeats.empty()) return SolveModel(model, options);
  const RepeatedBlocks& repeat = repeats.back();
  std::vector<RepeatedBlocks> others(repeats.begin(), repeats.end() - 1);
  std::optional<repeats_cc::BlockSolver> block;
  if (repeat.blocks.size() >= 3 && !repeat.blocks[0].empty()) {
    block.emplace(model, repeat, static_cast<double>(options.table_limit));
  }
  if (!block.has_value() || !block->solved()) {
    auto solution = repeat.more == 0 ? SolveRepeated(model, others, options) : ModelSolution();
    solution.further.resize(repeats.size());
    return solution;
  }
  const repeats_cc::Composed composed = repeats_cc::Compose(model, repeat, *block);
  for (RepeatedBlocks& other : others) {
    for (std::vector<int32_t>& nodes : other.blocks) {
      for (int32_t& node : nodes) node = composed.new_position[repeats_cc::At(node)];
    }
  }
  ModelSolution solution = SolveRepeated(composed.outer, others, options);
  if (!solution.found()) return solution;
  solution.composed += std::ssize(repeat.blocks) + repeat.more;
  const double gap = std::max(0.0, solution.cost - solution.bound);
  solution.further.resize(repeats.size());
  repeats_cc::Expand(model, repeat, *block, composed, solution);
  solution.cost = CostOf(model, solution.choice);
  solution.bound = solution.cost - gap;
  return solution;
}

}  // namespace orrery::transforms::strategies
