#include "transforms/substitutions/terms.h"

#include <bit>
#include <optional>
#include <utility>

#include "support/numbers/mix_bits.h"
#include "transforms/substitutions/check_rule.h"
#include "transforms/substitutions/match_rule.h"

namespace orrery::transforms::substitutions {
namespace terms_cc {
namespace {

using ir::Tensor;

constexpr int64_t kElements = 97;  // whole numbers up to this on both sides of 0

uint64_t HashOf(const Tensor& tensor) {
  uint64_t hash = kMixStep;
  for (const int64_t dim : tensor.dims()) hash = MixBits(hash + static_cast<uint64_t>(dim));
  // 0.0 and -0.0 are one number.
  for (const double value : tensor.floats()) {
    hash = MixBits(hash + std::bit_cast<uint64_t>(value + 0.0) + kMixStep);
  }
  return hash;
}

}  // namespace
}  // namespace terms_cc

Terms::Terms(const Alphabet& alphabet, const Variables& variables)
    : alphabet_(alphabet), variables_(variables) {
  flow_ = *InputsOf(alphabet.frame, variables, works_);
  RandomBits random(7);
  for (int32_t i = 0; i < flow_.inputs; ++i) {
    const ir::TensorType& type = works_.type(TypeOf(works_, flow_, {.node = i}));
    ir::Tensor tensor(type.dtype, type.dims);
    for (double& value : tensor.floats()) {
      value = static_cast<double>(random.Between(-terms_cc::kElements, terms_cc::kElements));
    }
    Keep({std::move(tensor)});
  }
  terms_.resize(static_cast<size_t>(flow_.inputs));
}

int32_t Terms::Find(int32_t op, const std::vector<Port>& operands) {
  std::vector<int32_t> key = {op};
  for (const Port port : operands) {
    key.push_back(port.node);
    key.push_back(port.result);
  }
  const auto found = nodes_.find(key);
  if (found != nodes_.end()) return found->second;
  const int32_t node = Add(op, operands);
  nodes_.emplace(std::move(key), node);
  return node;
}

int32_t Terms::Add(int32_t op, const std::vector<Port>& operands) {
  RuleSide side;
  side.ops.push_back(alphabet_.frame.left.ops[static_cast<size_t>(op)]);
  Rule frame;  // whose inputs are the operands
  frame.inputs.resize(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    side.ops[0].operands[i] = static_cast<int32_t>(i);
  }
  std::optional<Instance> instance;
  for (int32_t results = 1; !instance.has_value() && results <= 2; ++results) {
    side.ops[0].results = results;
    instance = Instantiate(frame, side, operands, variables_, flow_, works_);
  }
  if (!instance.has_value()) return -1;
  const Work& work = works_[instance->nodes[0].work];
  std::vector<const ir::Tensor*> tensors;
  for (const Port port : operands) {
    tensors.push_back(&tensors_[static_cast<size_t>(port.node)][static_cast<size_t>(port.result)]);
  }
  std::vector<ir::TensorType> types;
  for (const ir::TypeId type : work.results) types.push_back(works_.type(type));
  auto results = ir::Evaluate(work.kind, works_.attributes(work.attributes), tensors, types);
  if (!results.ok()) return -1;
  flow_.nodes.push_back(std::move(instance->nodes[0]));
  terms_.push_back({op, operands});
  Keep(*std::move(results));
  return static_cast<int32_t>(flow_.nodes.size()) - 1;
}

void Terms::Keep(std::vector<ir::Tensor> results) {
  hashes_.emplace_back();
  for (const ir::Tensor& result : results) hashes_.back().push_back(terms_cc::HashOf(result));
  tensors_.push_back(std::move(results));
}

}  // namespace orrery::transforms::substitutions
