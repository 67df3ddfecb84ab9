#include "transforms/strategies/label_layers.h"

#include <algorithm>

namespace orrery::transforms::strategies {
namespace label_layers_cc {
namespace {

size_t At(int32_t number) { return static_cast<size_t>(number); }

// -1 where it is not among them.
int32_t PositionOf(const std::vector<int32_t>& numbers, int32_t number) {
  const auto at = std::ranges::find(numbers, number);
  return at == numbers.end() ? -1 : static_cast<int32_t>(at - numbers.begin());
}

class LayerMaker {
 public:
  LayerMaker(const Model& model, const BucketTree& tree)
      : model_(model),
        tree_(tree),
        last_use_(model.nodes(), -1),
        limits_of_(model.nodes()),
        open_nodes_(model.limits.size()) {
    for (size_t i = 0; i < tree.buckets().size(); ++i) {
      for (const BucketTree::Part& part : tree.buckets()[i].parts) {
        for (const int32_t node : tree.table(part.message).scope) {
          last_use_[At(node)] = std::max(last_use_[At(node)], static_cast<int32_t>(i));
        }
      }
    }
    for (size_t i = 0; i < model.limits.size(); ++i) {
      for (const int32_t node : model.limits[i].nodes) {
        limits_of_[At(node)].push_back(static_cast<int32_t>(i));
      }
      open_nodes_[i] = model.limits[i].nodes.size();
    }
  }

  std::vector<LabelLayer> Run() {
    for (size_t i = 0; i < tree_.buckets().size(); ++i) AddLayer(static_cast<int32_t>(i));
    SumUses();
    return std::move(layers_);
  }

 private:
  void AddLayer(int32_t number) {
    const BucketTree::Bucket& bucket = tree_.buckets()[At(number)];
    LabelLayer layer;
    layer.node = bucket.node;
    layer.context = context_;
    layer.limits = limits_;
    for (const BucketTree::Part& part : bucket.parts) {
      for (const int32_t input : part.inputs) layer.inputs.push_back(LookUp(input, bucket.node));
      layer.messages.push_back(LookUp(part.message, bucket.node));
    }
    std::vector<int32_t> next;
    for (const int32_t node : context_) {
      if (last_use_[At(node)] > number) next.push_back(node);
    }
    if (last_use_[At(bucket.node)] > number) next.push_back(bucket.node);
    for (const int32_t node : next) layer.next_context.push_back(PositionOf(context_, node));
    context_ = std::move(next);
    AddUses(layer);
    layers_.push_back(std::move(layer));
  }

  LabelLayer::Lookup LookUp(int32_t number, int32_t chosen) const {
    const Table& table = tree_.table(number);
    LabelLayer::Lookup lookup{.table = &table, .positions = {}, .strides = {}};
    size_t stride = 1;
    for (size_t i = table.scope.size(); i-- > 0;) {
      if (table.scope[i] != chosen) {
        lookup.positions.push_back(PositionOf(context_, table.scope[i]));
        lookup.strides.push_back(stride);
      }
      stride *= model_.strategies(table.scope[i]);
    }
    return lookup;
  }

  void AddUses(LabelLayer& layer) {
    std::vector<int32_t> next;
    for (const int32_t limit : limits_of_[At(layer.node)]) --open_nodes_[At(limit)];
    for (const int32_t limit : limits_) {
      if (open_nodes_[At(limit)] > 0) next.push_back(limit);
    }
    for (const int32_t limit : limits_of_[At(layer.node)]) {
      if (open_nodes_[At(limit)] > 0 && PositionOf(limits_, limit) < 0) next.push_back(limit);
    }
    for (const int32_t limit : next) {
      const bool used = PositionOf(limits_of_[At(layer.node)], limit) >= 0;
      layer.next_limits.push_back(used ? -1 : PositionOf(limits_, limit));
    }
    for (const int32_t limit : limits_of_[At(layer.node)]) {
      layer.uses.push_back(
          {.limit = limit, .from = PositionOf(limits_, limit), .to = PositionOf(next, limit)});
    }
    limits_ = std::move(next);
  }

  void SumUses() {
    std::vector<double> least(model_.limits.size()), most(model_.limits.size());
    for (size_t i = layers_.size(); i-- > 0;) {
      const std::vector<double>& memory = model_.memory[At(layers_[i].node)];
      for (LabelLayer::Use& use : layers_[i].uses) {
        use.least_after = least[At(use.limit)];
        use.most_after = most[At(use.limit)];
        least[At(use.limit)] += std::ranges::min(memory);
        most[At(use.limit)] += std::ranges::max(memory);
      }
    }
  }

  const Model& model_;
  const BucketTree& tree_;
  std::vector<int32_t> last_use_;                // [node]: the last layer that looks at it
  std::vector<std::vector<int32_t>> limits_of_;  // [node]
  std::vector<size_t> open_nodes_;               // [limit]: nodes not yet assigned
  std::vector<int32_t> context_, limits_;
  std::vector<LabelLayer> layers_;
};

}  // namespace
}  // namespace label_layers_cc

std::vector<LabelLayer> MakeLayers(const Model& model, const BucketTree& tree) {
  return label_layers_cc::LayerMaker(model, tree).Run();
}

}  // namespace orrery::transforms::strategies
