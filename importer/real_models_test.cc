#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "importer/load_model.h"
#include "importer/onnx_test_util.h"
#include "ir/batch.h"
#include "ir/op_info.h"
#include "ir/verifier.h"
#include "support/paths_test_util.h"

// Exports as they come, at other batches than they were made with. ORRERY_MODELS names a folder
// with more of them than this repository keeps.

namespace orrery::importer {
namespace real_models_test_cc {
namespace {

std::vector<std::string> Folders() {
  std::vector<std::string> folders = {SourceDir() + "/examples/models",
                                      SourceDir() + "/tests/data/models"};
  if (const char* more = std::getenv("ORRERY_MODELS"); more != nullptr) folders.push_back(more);
  return folders;
}

// The model of that name, or "".
std::string Find(const std::string& name) {
  for (const std::string& folder : Folders()) {
    const std::string path = absl::StrCat(folder, "/", name, ".onnx");
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

std::vector<std::string> AllModels() {
  std::vector<std::string> paths;
  for (const std::string& folder : Folders()) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(RealModels, AtOtherBatches) {
  for (const std::string& path : AllModels()) {
    for (const int64_t batch : {1, 3, 64}) {
      const auto function = LoadModel({.model = path, .batch_size = batch});
      ASSERT_TRUE(function.ok()) << function.status();
      EXPECT_EQ(ir::BatchOf(*function), batch) << path;
      EXPECT_TRUE(ir::Verify(*function).ok()) << path << ": " << ir::Verify(*function);
      const auto again = ir::ParseFunction(ir::Print(*function));
      ASSERT_TRUE(again.ok()) << path << ": " << again.status();
      EXPECT_EQ(ir::Print(*again), ir::Print(*function));
    }
  }
}

// How many results of each type the ops have: "Add f32[3,1024,768]" to 25.
std::map<std::string, int> Census(const ir::Function& function) {
  std::map<std::string, int> census;
  for (const ir::OpId op : function.order()) {
    ++census[absl::StrCat(function.info(op).name, " ",
                          ir::ToString(function.type(function.result(op)), function.mesh()))];
  }
  return census;
}

// The same model, once with its batch fixed and once with a dynamic one.
TEST(RealModels, StaticAndDynamicExportsAreOne) {
  const std::string fixed = Find("gpt2_small"), dynamic = Find("gpt2_small_dynamic");
  ASSERT_TRUE(!fixed.empty() && !dynamic.empty());
  for (const int64_t batch : {1, 3, 64}) {
    const auto a = LoadModel({.model = fixed, .batch_size = batch});
    const auto b = LoadModel({.model = dynamic, .batch_size = batch});
    ASSERT_TRUE(a.ok()) << a.status();
    ASSERT_TRUE(b.ok()) << b.status();
    EXPECT_EQ(Census(*a), Census(*b));
  }
}

TEST(RealModels, ParametersOfGpt2) {
  const std::string path = Find("gpt2_small");
  if (path.empty()) GTEST_SKIP() << "set ORRERY_MODELS to its folder";
  const auto function = LoadModel({.model = path});
  ASSERT_TRUE(function.ok()) << function.status();
  int64_t parameters = 0;
  for (const ir::Input& input : function->inputs()) {
    if (input.role != ir::InputRole::kParameter) continue;
    parameters += ir::ElementCount(function->type(input.value).dims);
  }
  EXPECT_EQ(parameters, 163'037'184);  // with an untied head
}

}  // namespace
}  // namespace real_models_test_cc
}  // namespace orrery::importer
