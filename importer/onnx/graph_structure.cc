#include "importer/onnx/graph_structure.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/onnx_type.h"
#include "support/printable.h"
#include "support/status.h"

namespace orrery::importer {
namespace graph_structure_cc {
namespace {

constexpr int kFromOutside = -1;

// Calls `use` for each name that the node reads, and that graphs inside it may read from outside.
template <typename Use>
void ForEachRead(const onnx::NodeProto& node, const Use& use) {
  for (const std::string& input : node.input()) use(input);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) ForEachRead(inner, use);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) use(output.name());
  }
}

// The node that makes each value; kFromOutside for inputs and initializers.
using Producers = absl::flat_hash_map<absl::string_view, int>;

absl::Status Bad(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status AddSources(const onnx::GraphProto& graph, Producers& producers) {
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.name().empty()) return absl::InvalidArgumentError("a graph input has no name");
    if (producers.emplace(input.name(), kFromOutside).second) continue;
    return Bad(absl::StrCat("input ", Show(input.name())), "stands twice among the inputs");
  }
  absl::flat_hash_set<absl::string_view> initializers;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const std::string where = absl::StrCat("initializer ", Show(tensor.name()));
    if (tensor.name().empty()) return absl::InvalidArgumentError("an initializer has no name");
    if (!initializers.insert(tensor.name()).second) return Bad(where, "stands twice");
    producers.emplace(tensor.name(), kFromOutside);  // it may be an input too
  }
  return absl::OkStatus();
}

absl::StatusOr<Producers> FindProducers(const onnx::GraphProto& graph) {
  Producers producers;
  ORRERY_RETURN_IF_ERROR(AddSources(graph, producers));
  for (int n = 0; n < graph.node_size(); ++n) {
    for (const std::string& output : graph.node(n).output()) {
      if (output.empty() || producers.emplace(output, n).second) continue;
      const int other = producers[output];
      return Bad(Describe(graph.node(n)),
                 absl::StrCat("makes ", Show(output), ", which ",
                              other == kFromOutside ? "is an input or initializer"
                                                    : Describe(graph.node(other)) + " makes too",
                              "; wanted each value made once"));
    }
  }
  return producers;
}

absl::Status CheckOutputs(const onnx::GraphProto& graph, const Producers& producers) {
  if (graph.output_size() == 0) return absl::InvalidArgumentError("the graph has no outputs");
  absl::flat_hash_set<absl::string_view> seen;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    const std::string where = absl::StrCat("output ", Show(output.name()));
    if (!producers.contains(output.name())) return Bad(where, "is made by no node");
    if (!seen.insert(output.name()).second) return Bad(where, "stands twice among the outputs");
  }
  return absl::OkStatus();
}

// Which nodes the outputs need.
std::vector<char> LiveNodes(const onnx::GraphProto& graph, const Producers& producers) {
  std::vector<char> live(static_cast<size_t>(graph.node_size()), 0);
  std::vector<int> pending;
  const auto need = [&](const std::string& name) {
    const auto found = producers.find(name);
    if (found == producers.end() || found->second == kFromOutside) return;
    char& alive = live[static_cast<size_t>(found->second)];
    if (alive == 0) pending.push_back(found->second);
    alive = 1;
  };
  for (const onnx::ValueInfoProto& output : graph.output()) need(output.name());
  while (!pending.empty()) {
    const onnx::NodeProto& node = graph.node(pending.back());
    pending.pop_back();
    ForEachRead(node, need);
  }
  return live;
}

// Keeps the rows that `keep` wants, in their order.
template <typename Rows, typename Keep>
void KeepIf(Rows& rows, Keep keep) {
  int kept = 0;
  for (int i = 0; i < rows.size(); ++i) {
    if (keep(i)) rows.SwapElements(i, kept++);
  }
  rows.DeleteSubrange(kept, rows.size() - kept);
}

void DropDead(const std::vector<char>& live, onnx::GraphProto& graph) {
  KeepIf(*graph.mutable_node(), [&](int i) { return live[static_cast<size_t>(i)] != 0; });
  absl::flat_hash_set<absl::string_view> used, initializers;
  for (const onnx::NodeProto& node : graph.node()) {
    ForEachRead(node, [&](const std::string& name) { used.insert(name); });
  }
  for (const onnx::ValueInfoProto& output : graph.output()) used.insert(output.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) initializers.insert(tensor.name());
  // Up to IR version 3 initializers are inputs too.
  KeepIf(*graph.mutable_input(), [&](int i) {
    const std::string& name = graph.input(i).name();
    return used.contains(name) || !initializers.contains(name);
  });
  KeepIf(*graph.mutable_initializer(),
         [&](int i) { return used.contains(graph.initializer(i).name()); });
}

// Whether node `from` needs, over any number of nodes, what node `to` makes.
bool Needs(const onnx::GraphProto& graph, const Producers& producers, int from, int to) {
  std::vector<char> seen(static_cast<size_t>(graph.node_size()), 0);
  std::vector<int> pending = {from};
  while (!pending.empty()) {
    const int node = pending.back();
    pending.pop_back();
    if (node == to) return true;
    if (std::exchange(seen[static_cast<size_t>(node)], 1) != 0) continue;
    for (const std::string& input : graph.node(node).input()) {
      const auto found = producers.find(input);
      if (found != producers.end() && found->second != kFromOutside)
        pending.push_back(found->second);
    }
  }
  return false;
}

absl::Status CheckOrder(const onnx::GraphProto& graph, const Producers& producers) {
  for (int n = 0; n < graph.node_size(); ++n) {
    const std::string where = Describe(graph.node(n));
    for (const std::string& input : graph.node(n).input()) {
      if (input.empty()) continue;
      const auto found = producers.find(input);
      if (found == producers.end()) {
        return Bad(where, absl::StrCat("uses ", Show(input),
                                       ", which is no input, no initializer and made by no node"));
      }
      if (found->second < n) continue;
      const std::string other = Describe(graph.node(found->second));
      if (Needs(graph, producers, found->second, n)) {
        return Bad(where, absl::StrCat("needs its own result through ", Show(input), " of ", other,
                                       "; wanted a graph without cycles"));
      }
      return Bad(where, absl::StrCat("uses ", Show(input), " before ", other,
                                     " makes it; wanted nodes in topological order"));
    }
  }
  return absl::OkStatus();
}

// Op types that no lowering could take, and why.
struct Refusal {
  absl::string_view type;
  absl::string_view why;
};

constexpr absl::string_view kRunsAgain = "how often it runs depends on data; try to unroll it";
constexpr absl::string_view kSequence = "sequences are not supported; wanted tensors";
constexpr absl::string_view kOptional = "optional values are not supported; wanted tensors";
constexpr absl::string_view kText = "text is not supported; wanted numbers";

constexpr Refusal kRefusals[] = {
    {"ConcatFromSequence", kSequence}, {"Optional", kOptional},
    {"OptionalGetElement", kOptional}, {"OptionalHasElement", kOptional},
    {"RegexFullMatch", kText},         {"SequenceAt", kSequence},
    {"SequenceConstruct", kSequence},  {"SequenceEmpty", kSequence},
    {"SequenceErase", kSequence},      {"SequenceInsert", kSequence},
    {"SequenceLength", kSequence},     {"SequenceMap", kRunsAgain},
    {"SplitToSequence", kSequence},    {"StringConcat", kText},
    {"StringNormalizer", kText},       {"StringSplit", kText},
    {"TfIdfVectorizer", kText},
};

bool IsOfDefaultDomain(const onnx::NodeProto& node) {
  return node.domain().empty() || node.domain() == "ai.onnx";
}

std::string OpTypeOf(const onnx::NodeProto& node) {
  const std::string type = Printable(node.op_type());
  return IsOfDefaultDomain(node) ? type : absl::StrCat(Printable(node.domain()), ".", type);
}

// Null for an op type that is not supported.
const OnnxOp* OpOf(const onnx::NodeProto& node) {
  return FindOnnxOp(node.domain(), node.op_type());
}

absl::Status Unsupported(const onnx::GraphProto& graph, const onnx::NodeProto& first) {
  for (const Refusal& refusal : kRefusals) {
    if (!IsOfDefaultDomain(first) || first.op_type() != refusal.type) continue;
    return Bad(Describe(first), absl::StrCat(refusal.type, ": ", refusal.why));
  }
  std::set<std::string> others;
  for (const onnx::NodeProto& node : graph.node()) {
    if (OpOf(node) == nullptr && !IsControlFlow(node) && OpTypeOf(node) != OpTypeOf(first)) {
      others.insert(OpTypeOf(node));
    }
  }
  const std::string nor =
      others.empty() ? "" : absl::StrCat(" (nor are ", absl::StrJoin(others, ", "), ")");
  return Bad(Describe(first),
             absl::StrCat("op type ", OpTypeOf(first), " is not supported", nor, "; wanted one of ",
                          OnnxOpCount(), " op types; see docs/onnx.md"));
}

absl::Status CheckInputs(const onnx::GraphProto& graph) {
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.type().has_tensor_type() && input.type().tensor_type().has_shape()) continue;
    return Bad(absl::StrCat("input ", Show(input.name())),
               absl::StrCat("is ", ToString(input.type()), "; wanted a tensor of known rank"));
  }
  return absl::OkStatus();
}

absl::Status CheckSupported(const onnx::ModelProto& model) {
  if (model.graph().sparse_initializer_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", model.graph().sparse_initializer_size(),
                     " sparse initializers; not supported; wanted dense ones"));
  }
  ORRERY_RETURN_IF_ERROR(CheckInputs(model.graph()));
  ORRERY_ASSIGN_OR_RETURN(const int64_t opset, OpsetOf(model));
  for (const onnx::NodeProto& node : model.graph().node()) {
    if (IsControlFlow(node)) continue;
    ORRERY_RETURN_IF_ERROR(CheckNode(model.graph(), node, opset));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace graph_structure_cc

bool IsControlFlow(const onnx::NodeProto& node) {
  const std::string& type = node.op_type();
  return graph_structure_cc::IsOfDefaultDomain(node) &&
         (type == "If" || type == "Loop" || type == "Scan");
}

absl::Status CheckNode(const onnx::GraphProto& graph, const onnx::NodeProto& node, int64_t opset) {
  const OnnxOp* op = graph_structure_cc::OpOf(node);
  if (op == nullptr) return graph_structure_cc::Unsupported(graph, node);
  if (graph_structure_cc::IsOfDefaultDomain(node) && opset < op->since_opset) {
    return graph_structure_cc::Bad(
        Describe(node),
        absl::StrCat(op->type, " of opset ", opset, " is not supported; wanted opset ",
                     op->since_opset, " or later; try onnx.version_converter"));
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g() && attribute.graphs_size() == 0) continue;
    return graph_structure_cc::Bad(
        Describe(node), absl::StrCat("attribute ", Show(attribute.name()),
                                     " is a graph; only If, Loop and Scan may have one"));
  }
  for (int i = 0; i < op->inputs; ++i) {
    if (i < node.input_size() && !node.input(i).empty()) continue;
    return graph_structure_cc::Bad(Describe(node), absl::StrCat("input ", i, " is missing; ",
                                                                op->type, " wants ", op->inputs));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> OpsetOf(const onnx::ModelProto& model) {
  for (const onnx::OperatorSetIdProto& opset : model.opset_import()) {
    if (!opset.domain().empty() && opset.domain() != "ai.onnx") continue;
    if (opset.version() <= kNewestOpset) return opset.version();
    return absl::InvalidArgumentError(
        absl::StrCat("is of opset ", opset.version(), "; wanted ", kNewestOpset,
                     " or older; try torch.onnx.export(…, opset_version=", kNewestOpset, ")"));
  }
  return absl::InvalidArgumentError("names no version of the default opset");
}

absl::Status Tidy(onnx::ModelProto& model) {
  onnx::GraphProto& graph = *model.mutable_graph();
  {
    ORRERY_ASSIGN_OR_RETURN(const graph_structure_cc::Producers producers,
                            graph_structure_cc::FindProducers(graph));
    ORRERY_RETURN_IF_ERROR(graph_structure_cc::CheckOutputs(graph, producers));
    graph_structure_cc::DropDead(graph_structure_cc::LiveNodes(graph, producers), graph);
  }
  ORRERY_ASSIGN_OR_RETURN(const graph_structure_cc::Producers producers,
                          graph_structure_cc::FindProducers(graph));
  ORRERY_RETURN_IF_ERROR(graph_structure_cc::CheckSupported(model));
  return graph_structure_cc::CheckOrder(graph, producers);
}

}  // namespace orrery::importer
