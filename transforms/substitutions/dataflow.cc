#include "transforms/substitutions/dataflow.h"

#include <algorithm>

#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "support/numbers/mix_bits.h"

namespace orrery::transforms::substitutions {
namespace dataflow_cc {
namespace {

uint64_t Mixed(uint64_t hash, uint64_t more) { return MixBits(hash + more + kMixStep); }

uint64_t Number(int32_t value) { return static_cast<uint64_t>(static_cast<uint32_t>(value)); }

// Nodes of a flow in the making: without two that compute one thing.
class Maker {
 public:
  explicit Maker(const WorkTable& works) : works_(works) {}

  Dataflow& flow() { return flow_; }

  // The node, or the one that is there already and computes the same.
  int32_t Add(Node node) {
    const Work& work = works_[node.work];
    node.fingerprint = FingerprintOf(node, work);
    if (work.is_input) return Append(std::move(node), Duration(0));
    std::vector<int32_t>& alike = by_fingerprint_[node.fingerprint];
    for (const int32_t other : alike) {
      if (flow_.nodes[static_cast<size_t>(other)].work == node.work) return other;
    }
    node.fixed = AllFixed(node);
    alike.push_back(static_cast<int32_t>(flow_.nodes.size()));
    const Duration price = node.fixed ? Duration(0) : work.price;
    return Append(std::move(node), price);
  }

  void Finish() {
    for (const Port& output : flow_.outputs) {
      flow_.fingerprint = Mixed(flow_.fingerprint, PortFingerprint(output));
    }
  }

 private:
  int32_t Append(Node node, Duration price) {
    flow_.price += price;
    flow_.nodes.push_back(std::move(node));
    return static_cast<int32_t>(flow_.nodes.size()) - 1;
  }

  bool AllFixed(const Node& node) const {
    return std::ranges::all_of(node.operands, [&](Port port) { return flow_.at(port).fixed; });
  }

  uint64_t PortFingerprint(Port port) const {
    return Mixed(flow_.at(port).fingerprint, Number(port.result));
  }

  uint64_t FingerprintOf(const Node& node, const Work& work) const {
    uint64_t hash = Mixed(Number(node.work.index()), Number(node.mark) << 32);
    if (work.is_input) return Mixed(hash, flow_.nodes.size());
    absl::InlinedVector<uint64_t, 4> operands;
    for (const Port port : node.operands) operands.push_back(PortFingerprint(port));
    if (IsCommutative(work.kind)) std::ranges::sort(operands);
    for (const uint64_t operand : operands) hash = Mixed(hash, operand);
    return hash;
  }

  const WorkTable& works_;
  Dataflow flow_;
  absl::flat_hash_map<uint64_t, std::vector<int32_t>> by_fingerprint_;
};

// The nodes of a flow and of its replacement, from the outputs down.
class Copier {
 public:
  Copier(const WorkTable& works, const Dataflow& from, const Replacement& replacement)
      : from_(from),
        replacement_(replacement),
        maker_(works),
        made_(from.nodes.size() + replacement.nodes.size(), kNew) {
    for (const auto& [old, value] : replacement.values) instead_[old] = value;
  }

  std::optional<Dataflow> Run() {
    Dataflow& flow = maker_.flow();
    flow.inputs = from_.inputs;
    for (int32_t i = 0; i < from_.inputs; ++i) {
      made_[static_cast<size_t>(i)] = maker_.Add(from_.nodes[static_cast<size_t>(i)]);
    }
    for (const Port output : from_.outputs) {
      const std::optional<Port> port = Make(output);
      if (!port.has_value()) return std::nullopt;
      flow.outputs.push_back(*port);
    }
    TakeNames(flow);
    maker_.Finish();
    return std::move(flow);
  }

 private:
  static constexpr int32_t kNew = -1, kOpen = -2;

  const Node& node(int32_t i) const {
    const auto own = static_cast<int32_t>(from_.nodes.size());
    return i < own ? from_.nodes[static_cast<size_t>(i)]
                   : replacement_.nodes[static_cast<size_t>(i - own)];
  }

  // What stands for a value; a value that stands for another may have been replaced itself.
  std::optional<Port> Resolve(Port port) const {
    for (size_t i = 0; i <= instead_.size(); ++i) {
      const auto found = instead_.find(port);
      if (found == instead_.end()) return port;
      port = found->second;
    }
    return std::nullopt;
  }

  // Without recursion: a model is thousands of ops deep.
  std::optional<Port> Make(Port wanted) {
    const std::optional<Port> root = Resolve(wanted);
    if (!root.has_value()) return std::nullopt;
    std::vector<int32_t> stack = {root->node};
    while (!stack.empty()) {
      const int32_t i = stack.back();
      int32_t& made = made_[static_cast<size_t>(i)];
      if (made >= 0) {
        stack.pop_back();
        continue;
      }
      Node copy = node(i);
      bool ready = true;
      for (size_t o = copy.operands.size(); o-- > 0;) {  // the first one is made first
        Port& operand = copy.operands[o];
        const std::optional<Port> port = Resolve(operand);
        if (!port.has_value()) return std::nullopt;
        const int32_t there = made_[static_cast<size_t>(port->node)];
        operand = {.node = there, .result = port->result};
        if (there >= 0) continue;
        if (there == kOpen) return std::nullopt;  // it depends on itself
        ready = false;
        stack.push_back(port->node);
      }
      made = kOpen;
      if (!ready) continue;
      made = maker_.Add(std::move(copy));
      stack.pop_back();
    }
    return Port{.node = made_[static_cast<size_t>(root->node)], .result = root->result};
  }

  void TakeNames(Dataflow& flow) const {
    for (const auto& [old, value] : replacement_.values) {
      const std::optional<Port> port = Resolve(value);
      if (!port.has_value()) continue;
      const int32_t made = made_[static_cast<size_t>(port->node)];
      const auto& names = node(old.node).names;
      if (made < flow.inputs || static_cast<size_t>(old.result) >= names.size()) continue;
      auto& taken = flow.nodes[static_cast<size_t>(made)].names;
      const auto at = static_cast<size_t>(port->result);
      if (taken.size() <= at) taken.resize(at + 1);
      if (!taken[at].valid()) taken[at] = names[static_cast<size_t>(old.result)];
    }
  }

  const Dataflow& from_;
  const Replacement& replacement_;
  Maker maker_;
  std::vector<int32_t> made_;  // by node: the copy
  absl::flat_hash_map<Port, Port> instead_;
};

}  // namespace
}  // namespace dataflow_cc

bool IsCommutative(ir::OpKind kind) {
  return kind == ir::OpKind::kAdd || kind == ir::OpKind::kMul || kind == ir::OpKind::kMin ||
         kind == ir::OpKind::kMax;
}

WorkId WorkTable::Add(const Key& key, Work work) {
  const WorkId id(static_cast<int32_t>(works_.size()));
  if (!work.is_input) {
    absl::InlinedVector<const ir::TensorType*, 4> operands, results;
    for (const ir::TypeId type : work.operands) operands.push_back(&types_[type]);
    for (const ir::TypeId type : work.results) results.push_back(&types_[type]);
    const ir::OpInfo& info = ir::GetOpInfo(work.kind);
    const bool is_free = info.op_class == ir::OpClass::kView;
    work.price = price_ != nullptr
                     ? price_(work.kind, attributes_[work.attributes], operands, results)
                     : Duration(is_free ? 0 : 1);
  }
  works_.push_back(std::move(work));
  by_key_.emplace(key, id);
  return id;
}

WorkId WorkTable::Input(ir::TypeId type) {
  Key key = {-1, type.index()};
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  Work work;
  work.is_input = true;
  work.results.push_back(type);
  return Add(key, std::move(work));
}

WorkId WorkTable::Infer(ir::OpKind kind, const ir::AttributeSet& attributes,
                        std::span<const ir::TypeId> operands) {
  const ir::AttributesId set = attributes_.Intern(attributes);
  Key key = {static_cast<int32_t>(kind), set.index()};
  for (const ir::TypeId type : operands) key.push_back(type.index());
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  absl::InlinedVector<const ir::TensorType*, 4> types;
  for (const ir::TypeId type : operands) types.push_back(&types_[type]);
  ir::TypeList results;
  const ir::Mesh no_mesh;
  const ir::OpTypes op = {attributes_[set], types, no_mesh};
  if (ir::GetOpInfo(kind).infer == nullptr || !ir::InferTypes(kind, op, results).ok()) {
    by_key_.emplace(std::move(key), WorkId());
    return WorkId();
  }
  Work work;
  work.kind = kind;
  work.attributes = set;
  work.operands.assign(operands.begin(), operands.end());
  for (const ir::TensorType& type : results) work.results.push_back(types_.Intern(type));
  return Add(key, std::move(work));
}

WorkId WorkTable::Typed(ir::OpKind kind, const ir::AttributeSet& attributes,
                        std::span<const ir::TypeId> operands, std::span<const ir::TypeId> results) {
  const ir::AttributesId set = attributes_.Intern(attributes);
  Key key = {-2, static_cast<int32_t>(kind), set.index()};
  for (const ir::TypeId type : operands) key.push_back(type.index());
  key.push_back(-1);
  for (const ir::TypeId type : results) key.push_back(type.index());
  const auto found = by_key_.find(key);
  if (found != by_key_.end()) return found->second;
  Work work;
  work.kind = kind;
  work.attributes = set;
  work.operands.assign(operands.begin(), operands.end());
  work.results.assign(results.begin(), results.end());
  return Add(key, std::move(work));
}

ir::TypeId TypeOf(const WorkTable& works, const Dataflow& flow, Port port) {
  return works[flow.at(port).work].results[static_cast<size_t>(port.result)];
}

std::optional<Dataflow> Replace(const WorkTable& works, const Dataflow& flow,
                                const Replacement& replacement) {
  return dataflow_cc::Copier(works, flow, replacement).Run();
}

bool KeepsOutputsApart(const Dataflow& from, const Dataflow& to) {
  for (size_t i = 0; i < to.outputs.size(); ++i) {
    if (to.outputs[i].node < to.inputs && from.outputs[i].node >= from.inputs) return false;
    for (size_t j = 0; j < i; ++j) {
      if (to.outputs[i] == to.outputs[j] && from.outputs[i] != from.outputs[j]) return false;
    }
  }
  return true;
}

}  // namespace orrery::transforms::substitutions
