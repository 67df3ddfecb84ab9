#include "ir/models/feed_forward.h"

#include <vector>

#include "ir/op_kind.h"

namespace orrery::ir {
namespace feed_forward_cc {
namespace {

// The weights of the chosen experts, and which they are. One expert keeps its share of all, so
// that the router learns (Fedus et al. 2021); several share 1 among them, as in Mixtral.
std::vector<ValueId> Choose(Layers& layers, ValueId scores, const MixtureShape& s,
                            const std::string& name) {
  const AttributeSet last = {{"axis", int64_t{2}}};
  const AttributeSet most = {
      {"axis", int64_t{2}}, {"k", s.topk}, {"largest", int64_t{1}}, {"sorted", int64_t{1}}};
  if (s.topk == 1) scores = layers.Op(OpKind::kSoftmax, {scores}, name + "shares", last);
  std::vector<ValueId> chosen = layers.Ops(OpKind::kTopK, {scores}, 2, name + "chosen", most);
  if (s.topk > 1) chosen[0] = layers.Op(OpKind::kSoftmax, {chosen[0]}, name + "shares", last);
  return chosen;
}

// Rows [experts,rows,width] through the feed-forward of each.
ValueId OfExperts(Layers& layers, ValueId x, const MixtureShape& s, const std::string& name) {
  const int64_t width = layers.Dim(x, -1);
  if (s.style.activation == "swiglu") {
    const ValueId gate = layers.Products(x, s.ffn, name + "gate"),
                  up = layers.Products(x, s.ffn, name + "up");
    x = layers.Op(OpKind::kSwiGlu, {gate, up}, name + "act");
  } else if (s.style.activation == "relu2") {
    x = layers.Op(OpKind::kSquaredRelu, {layers.Products(x, s.ffn, name + "up")}, name + "act");
  } else {
    x = layers.Op(OpKind::kGelu, {layers.Products(x, s.ffn, name + "up")}, name + "act",
                  {{"approximate", std::string("tanh")}});
  }
  return layers.Products(x, width, name + "down");
}

// Experts that the router chooses. They have no biases.
ValueId Experts(Layers& layers, ValueId x, const MixtureShape& s, const std::string& name) {
  const int64_t seq = layers.Dim(x, 1), hidden = layers.Dim(x, -1);
  ValueId scores;
  if (s.latent == 0) {
    scores = layers.Linear(x, s.experts, {.bias = false}, name + "router");
  } else {
    const auto both =
        layers.LinearGroup(x, {{"router", s.experts}, {"latent_in", s.latent}}, false, name);
    scores = both[0];
    x = both[1];
  }
  const std::vector<ValueId> chosen = Choose(layers, scores, s, name);
  const std::vector<ValueId> route =
      layers.Ops(OpKind::kRoute, {chosen[0], chosen[1]}, 2, name + "slots",
                 {{"experts", s.experts}, {"capacity_factor", s.capacity_factor}});
  const int64_t width = layers.Dim(x, -1), capacity = layers.Dim(route[0], -1);
  const std::vector<int64_t> rows = {s.experts, -1, width};
  const std::vector<int64_t> slots = {s.experts, -1, capacity, width};
  ValueId y = layers.Op(OpKind::kDispatch, {x, route[0]}, name + "dispatch");
  y = layers.Op(OpKind::kReshape, {y}, name + "rows", {{"shape", rows}});
  y = OfExperts(layers, y, s, name);
  y = layers.Op(OpKind::kReshape, {y}, name + "slots_out", {{"shape", slots}});
  y = layers.Op(OpKind::kCombine, {y, route[0], route[1]}, name + "combine", {{"size", seq}});
  if (s.latent > 0) y = layers.Linear(y, hidden, {.bias = false}, name + "latent_out");
  return y;
}

}  // namespace
}  // namespace feed_forward_cc

ValueId FeedForward(Layers& layers, ValueId x, int64_t width, const FeedForwardStyle& style,
                    const std::string& name) {
  const int64_t hidden = layers.Dim(x, -1);
  ValueId y;
  if (style.activation == "swiglu") {
    const auto both = layers.LinearGroup(x, {{"gate", width}, {"up", width}}, style.bias, name);
    y = layers.Op(OpKind::kSwiGlu, {both[0], both[1]}, name + "act");
  } else if (style.activation == "relu2") {
    y = layers.Linear(x, width, {.bias = style.bias}, name + "up");
    y = layers.Op(OpKind::kSquaredRelu, {y}, name + "act");
  } else {
    y = layers.Linear(x, width, {.bias = style.bias, .activation = "gelu_tanh"}, name + "up");
  }
  return layers.Linear(y, hidden, {.bias = style.bias}, name + "down");
}

ValueId Mixture(Layers& layers, ValueId x, const MixtureShape& shape, const std::string& name) {
  const ValueId chosen = feed_forward_cc::Experts(layers, x, shape, name);
  if (shape.shared_ffn == 0) return chosen;
  const ValueId shared = FeedForward(layers, x, shape.shared_ffn, shape.style, name + "shared.");
  return layers.Op(OpKind::kAdd, {chosen, shared}, name + "sum");
}

}  // namespace orrery::ir
