#ifndef ORRERY_IMPORTER_ONNX_TEST_UTIL_H_
#define ORRERY_IMPORTER_ONNX_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/onnx.h"
#include "ir/text/text.h"
#include "support/check.h"

// ONNX models as text, for tests: the text form of the ONNX project.

namespace orrery::importer {

/// The model of a graph in ONNX's text form: "g (float[4,8] x) => (float[4,8] y) { y = Relu(x) }".
inline onnx::ModelProto ModelOf(const std::string& graph, int opset = 14) {
  const std::string text =
      absl::StrCat("<ir_version: 7, opset_import: [\"\" : ", opset, "]>\n", graph);
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, text.c_str());
  ORRERY_CHECK(status.IsOK()) << status.ErrorMessage() << "\n" << text;
  return model;
}

/// A folder of this process, which goes with it.
inline std::string TestFolder() {
  struct Folder {
    std::string path;
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder{absl::StrCat(testing::TempDir(), "orrery_importer_", getpid(), "/")};
  return folder.path;
}

/// Writes `bytes` to a file `name` of this process and returns its path.
inline std::string WriteTestFile(const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(TestFolder());
  const std::string path = absl::StrCat(TestFolder(), name);
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  ORRERY_CHECK(out.good()) << path;
  return path;
}

/// The text of the function, or of the error without the folder of the test.
inline std::string TextOf(const absl::StatusOr<ir::Function>& function) {
  if (function.ok()) return absl::StrCat("\n", ir::Print(*function));
  return absl::StrReplaceAll(std::string(function.status().message()), {{TestFolder(), ""}});
}

/// What comes of importing `model` from a file "m.onnx".
inline std::string ImportText(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  return TextOf(ImportOnnx(WriteTestFile("m.onnx", model.SerializeAsString()), options));
}

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ONNX_TEST_UTIL_H_
