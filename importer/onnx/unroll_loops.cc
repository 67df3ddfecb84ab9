#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "importer/onnx/control_flow.h"
#include "importer/onnx/embedding_bag.h"
#include "importer/onnx/graph_importer.h"
#include "importer/onnx/onnx_type.h"
#include "ir/op_kind.h"
#include "support/printable.h"
#include "support/status.h"

// Loop and Scan, where how often they run is known while importing: one turn after the other. What
// a body holds (weights, constants) is the same in all turns.

namespace orrery::importer {
namespace unroll_loops_cc {
namespace {

using ir::ValueId;
using Ints = std::vector<int64_t>;

// Ops that the turns of one loop may become, and turns.
constexpr int64_t kMostOps = 10000;
// A turn costs more than its bytes in the file.
constexpr size_t kBytesOfTurn = 1024;

absl::Status RunsByData(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("how often it runs depends on data: ", what,
                                                 " is not known beforehand; try to unroll it"));
}

absl::Status CheckParts(absl::string_view what, int got, int64_t wanted) {
  if (got == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("its body has ", got, " ", what, "; wanted ", wanted));
}

// Slices of all turns in one tensor, along `axis`.
absl::StatusOr<ValueId> Stack(NodeContext& c, std::vector<ValueId> parts, int64_t axis) {
  if (parts.empty()) {
    return absl::InvalidArgumentError("it never runs, and its slices are asked for");
  }
  ORRERY_ASSIGN_OR_RETURN(const size_t at,
                          ir::NormalizeAxis(axis, c.type(parts[0]).dims.size() + 1));
  const auto position = static_cast<int64_t>(at);
  for (ValueId& part : parts) {
    ORRERY_ASSIGN_OR_RETURN(part, c.Op(ir::OpKind::kUnsqueeze, {part}, {{"axes", Ints{position}}}));
  }
  if (parts.size() == 1) return parts[0];
  return c.Op(ir::OpKind::kConcat, parts, {{"axis", position}});
}

// What the turns of a loop have made: values that go on to the next, and slices of each.
struct Turns {
  std::vector<ValueId> carried;
  std::vector<std::vector<ValueId>> slices;

  // Takes the results of a turn, from position `first` on.
  void Take(const std::vector<ValueId>& results, size_t first) {
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[first + i];
    for (size_t i = 0; i < slices.size(); ++i) {
      slices[i].push_back(results[first + carried.size() + i]);
    }
  }
};

// How often a Loop runs at most, as far as its first input says.
absl::StatusOr<int64_t> MostTurns(const NodeContext& c) {
  if (!c.has_input(0)) return std::numeric_limits<int64_t>::max();
  const ir::Tensor* const count = c.KnownInput(0);
  if (count == nullptr || count->is_float() || count->size() != 1) {
    return RunsByData("its trip count");
  }
  const int64_t turns = count->ints()[0];
  const bool endless = turns > std::numeric_limits<int32_t>::max();  // until a condition says so
  if (endless || !c.GrowsWithBatch(turns)) return turns;
  return absl::OutOfRangeError(
      "how often it runs depends on data: once a sample; wanted one op for all samples");
}

// Whether there is another turn, as `condition` says; true where there is none.
absl::StatusOr<bool> GoesOn(const NodeContext& c, ValueId condition) {
  if (!condition.valid()) return true;
  const ir::Tensor* const known = c.Known(condition);
  if (known == nullptr || known->size() != 1) return RunsByData("its condition");
  return known->Number(0) != 0;
}

// Turn `turn` of a dimension: the slice that a body sees.
absl::StatusOr<ValueId> SliceOf(NodeContext& c, ValueId x, int64_t axis, int64_t turn) {
  ORRERY_ASSIGN_OR_RETURN(const ValueId slice, c.Op(ir::OpKind::kSlice, {x},
                                                    {{"axes", Ints{axis}},
                                                     {"starts", Ints{turn}},
                                                     {"ends", Ints{turn + 1}},
                                                     {"steps", Ints{1}}}));
  return c.Op(ir::OpKind::kSqueeze, {slice}, {{"axes", Ints{axis}}});
}

// What a Scan goes along: a dimension of each input, forward or backward.
struct Scanned {
  std::vector<ValueId> inputs;
  Ints axes, backward;
  int64_t turns = 0;
};

// Numbers of an attribute, one for each of `count` things; zeros where it is absent.
absl::StatusOr<Ints> EachOf(NodeContext& c, absl::string_view name, size_t count) {
  Ints values = c.Ints(name, Ints(count, 0));
  if (values.size() == count) return values;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " has ", values.size(), " numbers; wanted ", count));
}

absl::StatusOr<Scanned> ScannedOf(NodeContext& c, int first) {
  Scanned scanned;
  for (int i = first; i < c.node().input_size(); ++i) scanned.inputs.push_back(c.input(i));
  const size_t count = scanned.inputs.size();
  ORRERY_ASSIGN_OR_RETURN(scanned.axes, EachOf(c, "scan_input_axes", count));
  ORRERY_ASSIGN_OR_RETURN(scanned.backward, EachOf(c, "scan_input_directions", count));
  for (size_t i = 0; i < count; ++i) {
    const ir::Dims& dims = c.type(scanned.inputs[i]).dims;
    ORRERY_ASSIGN_OR_RETURN(const size_t axis, ir::NormalizeAxis(scanned.axes[i], dims.size()));
    scanned.axes[i] = static_cast<int64_t>(axis);
    if (c.GrowsWithBatch(dims[axis])) {
      return absl::OutOfRangeError("it runs once a sample; wanted one op for all samples");
    }
    if (i == 0) scanned.turns = dims[axis];
    if (dims[axis] == scanned.turns) continue;
    return absl::InvalidArgumentError(absl::StrCat("scans dimensions of ", scanned.turns, " and ",
                                                   dims[axis], "; wanted one size"));
  }
  return scanned;
}

}  // namespace
}  // namespace unroll_loops_cc

// Adds what the body of the node holds, and leaves of it what each turn does.
absl::StatusOr<GraphImporter::Body> GraphImporter::BeginTurns(const onnx::NodeProto& node) {
  const onnx::GraphProto* const graph = GraphOf(node, "body");
  if (graph == nullptr) return absl::InvalidArgumentError("wanted a body");
  Body body{.turn = {}, .held = {}, .prefix = PrefixOf(node)};
  onnx::GraphProto held;
  *held.mutable_initializer() = graph->initializer();
  *body.turn.mutable_input() = graph->input();
  *body.turn.mutable_output() = graph->output();
  for (const onnx::NodeProto& inner : graph->node()) {
    *(inner.op_type() == "Constant" ? held : body.turn).add_node() = inner;
  }
  const onnx::GraphProto& copy = Copied(held, body.prefix, body.held);
  ORRERY_RETURN_IF_ERROR(CheckBudget(budget_));
  ORRERY_RETURN_IF_ERROR(AddBranch(copy));
  body.counted = function_.order().size();
  return body;
}

// What a turn of the body makes of `inputs`, output by output.
absl::StatusOr<std::vector<ir::ValueId>> GraphImporter::AddTurn(
    const std::vector<ir::ValueId>& inputs, Body& body) {
  using unroll_loops_cc::kMostOps;
  const std::vector<ir::OpId>& order = function_.order();
  for (; body.counted < order.size(); ++body.counted) {
    if (function_.kind(order[body.counted]) != ir::OpKind::kConstant) ++body.ops;
  }
  if (body.ops > kMostOps || body.turns >= kMostOps) {
    return absl::InvalidArgumentError(
        absl::StrCat("unrolled it has more than ", kMostOps, " ops or turns; wanted fewer"));
  }
  Renaming renaming = body.held;
  budget_.Spend(body.turn.ByteSizeLong() + unroll_loops_cc::kBytesOfTurn);
  ORRERY_RETURN_IF_ERROR(CheckBudget(budget_));
  const onnx::GraphProto& copy =
      Copied(body.turn, absl::StrCat(body.prefix, "/", body.turns++), renaming);
  ORRERY_RETURN_IF_ERROR(CheckBudget(budget_));
  for (size_t i = 0; i < inputs.size(); ++i) {
    scope_[copy.input(static_cast<int>(i)).name()] = inputs[i];
  }
  ORRERY_RETURN_IF_ERROR(AddBranch(copy));
  std::vector<ir::ValueId> results;
  for (const onnx::ValueInfoProto& output : copy.output()) {
    const auto found = scope_.find(output.name());
    if (found == scope_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", Show(output.name()), " of its body is made by no node"));
    }
    results.push_back(found->second);
  }
  return results;
}

// Bags of one size, one behind another, as far as the file says where they begin and end: what an
// EmbeddingBag of ids with a fixed batch, or with fixed offsets, is.
absl::StatusOr<bool> GraphImporter::AddEqualBags(const onnx::NodeProto& node) {
  const std::optional<BagLoop> bags = MatchBagLoop(node, graph_);
  if (!bags.has_value()) return false;
  for (const std::string& name : {bags->ids, bags->starts, bags->ends}) {
    if (!scope_.contains(name)) return false;
  }
  const NodeContext c(node, opset_, known_, function_, scope_);
  const ir::Tensor* const starts = c.Known(scope_.at(bags->starts));
  const ir::Tensor* const ends = c.Known(scope_.at(bags->ends));
  if (starts == nullptr || ends == nullptr || starts->is_float() || ends->is_float() ||
      ends->size() < 1 || starts->size() < ends->size()) {
    return false;
  }
  const int64_t count = ends->size(), size = ends->ints()[0];
  const ir::Dims& ids = c.type(scope_.at(bags->ids)).dims;
  if (size < 1 || ids.size() != 1 || ids[0] % count != 0 || ids[0] / count != size) return false;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto bag = static_cast<int64_t>(i);
    if (starts->ints()[i] != bag * size || ends->ints()[i] != (bag + 1) * size) return false;
  }
  ORRERY_RETURN_IF_ERROR(AddBranch(taken_.emplace_back(BagsAtOnce(node, *bags, count, size))));
  return true;
}

// Inputs: how often at most, whether at all, and values for the first turn. The body gets the
// number of the turn, the condition and the values, and makes a condition, values and slices.
absl::Status GraphImporter::AddLoop(const onnx::NodeProto& node) {
  ORRERY_ASSIGN_OR_RETURN(const bool all_at_once, AddEqualBags(node));
  if (all_at_once) return absl::OkStatus();
  NodeContext c(node, opset_, known_, function_, scope_);
  ORRERY_ASSIGN_OR_RETURN(const int64_t most, unroll_loops_cc::MostTurns(c));
  ir::ValueId condition = c.has_input(1) ? c.input(1) : ir::ValueId();
  unroll_loops_cc::Turns turns;
  for (int i = 2; i < node.input_size(); ++i) turns.carried.push_back(c.input(i));
  const size_t carried = turns.carried.size();
  ORRERY_ASSIGN_OR_RETURN(Body body, BeginTurns(node));
  ORRERY_RETURN_IF_ERROR(unroll_loops_cc::CheckParts("inputs", body.turn.input_size(),
                                                     static_cast<int64_t>(carried) + 2));
  if (body.turn.output_size() < static_cast<int>(carried) + 1 ||
      node.output_size() >= body.turn.output_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its body has ", body.turn.output_size(), " outputs; wanted a condition, ", carried,
        " values, and one for each other output of the node, which has ", node.output_size()));
  }
  turns.slices.resize(static_cast<size_t>(body.turn.output_size()) - 1 - carried);
  for (int64_t turn = 0; turn < most; ++turn) {
    ORRERY_ASSIGN_OR_RETURN(const bool goes_on, unroll_loops_cc::GoesOn(c, condition));
    if (!goes_on) break;
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId number,
                            c.Constant(ir::Tensor::OfInts(ir::DType::kI64, {}, {turn})));
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId yes,
                            c.Constant(ir::Tensor::OfInts(ir::DType::kBool, {}, {1})));
    std::vector<ir::ValueId> inputs = {number, yes};
    inputs.insert(inputs.end(), turns.carried.begin(), turns.carried.end());
    ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results, AddTurn(inputs, body));
    condition = results[0];
    turns.Take(results, 1);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (!c.has_output(i)) continue;
    const auto at = static_cast<size_t>(i);
    if (at < carried) {
      c.SetOutput(i, turns.carried[at]);
      continue;
    }
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId stacked,
                            unroll_loops_cc::Stack(c, turns.slices[at - carried], 0));
    c.SetOutput(i, stacked);
  }
  return c.status();
}

// Inputs: values for the first turn, and what is gone along. The body gets values and a slice of
// each, and makes values and slices.
absl::Status GraphImporter::AddScan(const onnx::NodeProto& node) {
  if (opset_ < 9) {
    return absl::InvalidArgumentError(
        absl::StrCat("of opset ", opset_, " is not supported; wanted opset 9 or later"));
  }
  NodeContext c(node, opset_, known_, function_, scope_);
  const int64_t along = c.Int("num_scan_inputs", 0);
  if (along < 1 || along > node.input_size()) {
    return absl::InvalidArgumentError(absl::StrCat("num_scan_inputs is ", along, " of ",
                                                   node.input_size(), " inputs; wanted 1 or more"));
  }
  const int first = node.input_size() - static_cast<int>(along);
  unroll_loops_cc::Turns turns;
  for (int i = 0; i < first; ++i) turns.carried.push_back(c.input(i));
  ORRERY_ASSIGN_OR_RETURN(const unroll_loops_cc::Scanned scanned,
                          unroll_loops_cc::ScannedOf(c, first));
  ORRERY_ASSIGN_OR_RETURN(Body body, BeginTurns(node));
  ORRERY_RETURN_IF_ERROR(
      unroll_loops_cc::CheckParts("inputs", body.turn.input_size(), node.input_size()));
  ORRERY_RETURN_IF_ERROR(
      unroll_loops_cc::CheckParts("outputs", body.turn.output_size(), node.output_size()));
  const size_t carried = turns.carried.size();
  if (static_cast<size_t>(node.output_size()) < carried) {
    return absl::InvalidArgumentError("it has fewer outputs than values that go on");
  }
  turns.slices.resize(static_cast<size_t>(node.output_size()) - carried);
  ORRERY_ASSIGN_OR_RETURN(const auto axes,
                          unroll_loops_cc::EachOf(c, "scan_output_axes", turns.slices.size()));
  ORRERY_ASSIGN_OR_RETURN(const auto backward, unroll_loops_cc::EachOf(c, "scan_output_directions",
                                                                       turns.slices.size()));
  for (int64_t turn = 0; turn < scanned.turns; ++turn) {
    std::vector<ir::ValueId> inputs = turns.carried;
    for (size_t i = 0; i < scanned.inputs.size(); ++i) {
      const int64_t at = scanned.backward[i] != 0 ? scanned.turns - 1 - turn : turn;
      ORRERY_ASSIGN_OR_RETURN(const ir::ValueId slice,
                              unroll_loops_cc::SliceOf(c, scanned.inputs[i], scanned.axes[i], at));
      inputs.push_back(slice);
    }
    ORRERY_ASSIGN_OR_RETURN(const std::vector<ir::ValueId> results, AddTurn(inputs, body));
    turns.Take(results, 0);
  }
  for (size_t i = 0; i < carried; ++i) c.SetOutput(static_cast<int>(i), turns.carried[i]);
  for (size_t i = 0; i < turns.slices.size(); ++i) {
    const int output = static_cast<int>(carried + i);
    if (!c.has_output(output)) continue;
    if (backward[i] != 0) std::reverse(turns.slices[i].begin(), turns.slices[i].end());
    ORRERY_ASSIGN_OR_RETURN(const ir::ValueId stacked,
                            unroll_loops_cc::Stack(c, turns.slices[i], axes[i]));
    c.SetOutput(output, stacked);
  }
  return c.status();
}

}  // namespace orrery::importer
