#ifndef ORRERY_IMPORTER_ONNX_OPS_TEST_UTIL_H_
#define ORRERY_IMPORTER_ONNX_OPS_TEST_UTIL_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "importer/onnx_test_util.h"

// What single ONNX ops become, for tests.

namespace orrery::importer {

/// The ops that a graph becomes, each on a line of its own after a line break; without its header
/// and inputs. Or the error, from behind the node on: "p is 3; wanted 1 or 2".
inline std::string OpLines(const std::string& graph, int opset = 13) {
  const std::string text = ImportText(ModelOf(graph, opset));
  std::string ops;
  bool in_body = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (in_body && line.rfind("  %", 0) == 0) absl::StrAppend(&ops, "\n", line);
    in_body = in_body || line.rfind(") {", 0) == 0;
  }
  if (!ops.empty()) return ops;
  const size_t node = text.find("': ");
  return node == std::string::npos ? text : text.substr(node + 3);
}

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_OPS_TEST_UTIL_H_
