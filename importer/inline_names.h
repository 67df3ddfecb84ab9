#ifndef ORRERY_IMPORTER_INLINE_NAMES_H_
#define ORRERY_IMPORTER_INLINE_NAMES_H_

#include <onnx/onnx_pb.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

// Names of values where nodes of one graph move into another: of a function into its caller, of a
// branch into the graph around it.

namespace orrery::importer {

/// Old names of values and their new ones; other names stay.
using Renaming = absl::flat_hash_map<std::string, std::string>;

/// Renames what the node reads and makes, in the graphs among its attributes too.
void RenameValues(const Renaming& renaming, onnx::NodeProto& node);

/// The names that a graph has given away.
class NameSet {
 public:
  NameSet() = default;
  /// All names of values in `graph` and in the graphs inside it.
  explicit NameSet(const onnx::GraphProto& graph) { Add(graph); }

  /// Takes `name`, or the first of name', name'', … that is free.
  std::string Take(std::string name);

 private:
  void Add(const onnx::GraphProto& graph);

  absl::flat_hash_set<std::string> names_;
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_INLINE_NAMES_H_
