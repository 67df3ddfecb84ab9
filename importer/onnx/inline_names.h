#ifndef ORRERY_IMPORTER_ONNX_INLINE_NAMES_H_
#define ORRERY_IMPORTER_ONNX_INLINE_NAMES_H_

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

// Names of values where nodes of one graph move into another: of a function into its caller, of a
// branch into the graph around it.

namespace orrery::importer {

/// Old names of values and their new ones; other names stay.
using Renaming = absl::flat_hash_map<std::string, std::string>;

/// What copies may hold in all: a name, or an attribute, of a small file may be copied so often
/// that no memory holds it.
class ByteBudget {
 public:
  /// Whether there were `bytes` left.
  bool Spend(size_t bytes) {
    if (bytes > left_) spent_ = true;
    left_ -= std::min(left_, bytes);
    return !spent_;
  }
  bool is_spent() const { return spent_; }

  static constexpr size_t kBytes = size_t{256} << 20;

 private:
  size_t left_ = kBytes;
  bool spent_ = false;
};

/// Renames what the node reads and makes, in the graphs among its attributes too, as long as the
/// budget lasts.
void RenameValues(const Renaming& renaming, onnx::NodeProto& node, ByteBudget& budget);

/// The names that a graph has given away.
class NameSet {
 public:
  NameSet() = default;
  /// All names of values in `graph` and in the graphs inside it.
  explicit NameSet(const onnx::GraphProto& graph) { Add(graph); }

  /// Takes `name`, or the first of name', name'2, name'3, … that is free.
  std::string Take(const std::string& name);

 private:
  void Add(const onnx::GraphProto& graph);

  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, int64_t> others_;  // how often a name was wanted again
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_INLINE_NAMES_H_
