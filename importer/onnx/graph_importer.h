#ifndef ORRERY_IMPORTER_ONNX_GRAPH_IMPORTER_H_
#define ORRERY_IMPORTER_ONNX_GRAPH_IMPORTER_H_

#include <onnx/onnx_pb.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "importer/onnx/inline_names.h"
#include "importer/onnx/known_values.h"
#include "importer/onnx/onnx_op.h"
#include "importer/onnx/symbols.h"
#include "ir/function.h"

namespace orrery::importer {

/// Makes the function of a graph that Tidy has passed. Initializers of floating point become
/// parameters, save for scalars, which are constants as those of whole numbers are; which of them
/// are trained is for AssignRoles to say. So many fields and so many parameters: all that one walk
/// through a file keeps.
class GraphImporter {
 public:
  /// `folder` holds the files of external data; `graph` must outlive this. `rare_batch` is that of
  /// KnownValues.
  GraphImporter(const onnx::GraphProto& graph, int64_t opset, const std::string& name,
                const std::string& folder, int64_t rare_batch = 0)
      : graph_(graph), opset_(opset), function_(name), known_(folder, rare_batch) {}

  /// Errors say which node or value of the graph is wrong.
  absl::Status Run(const SymbolValues& symbols);

  /// Whether element type and rank of each graph output are those that the file says. Sizes may
  /// differ: exports are wrong about them where a batch is dynamic.
  absl::Status CheckOutputs() const;

  ir::Function& function() { return function_; }
  /// Constants of floating point that stand where ops have weights: to be trained.
  const std::vector<ir::ValueId>& weights() const { return weights_.constants; }
  /// Inputs that ops read as weights, in the order in which they are read.
  const std::vector<ir::ValueId>& weight_inputs() const { return weights_.inputs; }
  /// Inputs of a single sample that an Expand or a Tile repeats as often as there are samples.
  const std::vector<ir::ValueId>& shared_inputs() const { return weights_.shared; }

 private:
  absl::Status AddInputs(const SymbolValues& symbols);
  absl::Status AddInitializers(const onnx::GraphProto& graph);
  absl::Status AddInitializer(const onnx::TensorProto& tensor, bool parameters);
  absl::Status AddNode(const onnx::GraphProto& graph, const onnx::NodeProto& node);
  absl::Status Lower(const onnx::NodeProto& node);
  bool AddCopyOfInitializer(const onnx::NodeProto& node);
  void NoteWeights(const onnx::NodeProto& node, const OnnxOp& op);
  void NoteStored(const onnx::NodeProto& node);
  void NoteShared(const onnx::NodeProto& node);
  bool ViewsStored(const onnx::NodeProto& node) const;

  // Control flow, in control_flow.cc and unroll_loops.cc.
  struct Body {
    onnx::GraphProto turn;  // without what it holds
    Renaming held;          // what stands before all turns
    std::string prefix;     // of names
    size_t counted = 0;     // ops of the function up to here
    int64_t ops = 0;        // that turns have made, but for constants
    int64_t turns = 0;
  };
  absl::Status AddControlFlow(const onnx::NodeProto& node);
  absl::Status AddIf(const onnx::NodeProto& node);
  absl::Status AddLoop(const onnx::NodeProto& node);
  absl::StatusOr<bool> AddEqualBags(const onnx::NodeProto& node);
  absl::Status AddScan(const onnx::NodeProto& node);
  onnx::GraphProto& Copied(const onnx::GraphProto& graph, const std::string& prefix,
                           Renaming& renaming);
  absl::Status AddBranch(const onnx::GraphProto& branch);
  absl::StatusOr<Body> BeginTurns(const onnx::NodeProto& node);
  absl::StatusOr<std::vector<ir::ValueId>> AddTurn(const std::vector<ir::ValueId>& inputs,
                                                   Body& body);

  const onnx::GraphProto& graph_;
  int64_t opset_;
  ir::Function function_;
  KnownValues known_;
  Scope scope_;
  // What ops read as weights, each once.
  struct {
    std::vector<ir::ValueId> constants, inputs, shared;
    absl::flat_hash_set<int32_t> seen;
  } weights_;
  absl::flat_hash_set<int32_t> stored_;  // constants that may be weights
  absl::flat_hash_set<int32_t> held_;    // constants that are initializers
  absl::flat_hash_map<absl::string_view, const onnx::TensorProto*> initializers_;
  std::optional<NameSet> names_;        // of the graph, once a branch needs new ones
  ByteBudget budget_;                   // of those
  std::deque<onnx::GraphProto> taken_;  // branches, with names of their own
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_GRAPH_IMPORTER_H_
