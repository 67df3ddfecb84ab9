#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "importer/onnx.h"
#include "importer/onnx/onnx_file.h"
#include "importer/onnx/onnx_type.h"
#include "importer/onnx_inference_test_util.h"
#include "importer/onnx_test_util.h"
#include "support/paths_test_util.h"

// ONNX's own shape inference against the types of the importer, value by value. ONNX may know less
// than we do, but it must not say another thing.

namespace orrery::importer {
namespace onnx_inference_test_cc {
namespace {

struct Comparison {
  int models = 0;
  int values = 0;
  std::vector<std::string> differences;
};

void Compare(const std::string& path, Comparison& comparison) {
  const auto function = ImportOnnx(path);
  const auto model = ReadOnnxFile(path);
  if (!function.ok() || !model.ok()) return;
  const auto inferred = InferWithOnnx(*model);
  if (!inferred.ok()) return;  // a contradiction within what the file declares
  absl::flat_hash_map<absl::string_view, const ir::TensorType*> types;
  for (const ir::OpId op : function->order()) {
    for (int32_t i = 0; i < function->result_count(op); ++i) {
      const ir::ValueId value = function->result(op, i);
      types[function->value_name(value)] = &function->type(value);
    }
  }
  ++comparison.models;
  for (const auto* values : {&inferred->value_info(), &inferred->output()}) {
    for (const onnx::ValueInfoProto& value : *values) {
      const auto found = types.find(value.name());
      if (found == types.end()) continue;
      ++comparison.values;
      if (Agrees(value.type(), *found->second)) continue;
      comparison.differences.push_back(absl::StrCat(path, ": ", value.name(), ": ONNX says ",
                                                    ToString(value.type()), ", we say ",
                                                    ir::ToString(*found->second, ir::Mesh())));
    }
  }
}

Comparison CompareAll(const std::string& folder) {
  std::vector<std::string> paths;
  if (std::filesystem::exists(folder)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  Comparison comparison;
  for (const std::string& path : paths) Compare(path, comparison);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
  return comparison;
}

TEST(OnnxInference, ModelsOfThisRepository) {
  const Comparison comparison = CompareAll(SourceDir() + "/examples/models");
  EXPECT_GE(comparison.models, 1);
  EXPECT_GE(comparison.values, 64);
}

TEST(OnnxInference, TestDataOfTheOnnxProject) {
  const std::string folder = "/usr/share/libonnx-testdata/data";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no libonnx-testdata here";
  const Comparison comparison = CompareAll(folder);
  EXPECT_GE(comparison.models, 100);
}

}  // namespace
}  // namespace onnx_inference_test_cc
}  // namespace orrery::importer
