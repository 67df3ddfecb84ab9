#include "importer/external_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace {

// A Reshape whose shape lies 8 bytes into `location`.
std::string ReshapeBy(const std::string& location) {
  onnx::ModelProto model =
      ModelOf("g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {0, 0}> { y = Reshape(x, s) }");
  onnx::TensorProto& shape = *model.mutable_graph()->mutable_initializer(0);
  shape.clear_int64_data();
  shape.clear_raw_data();
  shape.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>("location", location),
                                   {"offset", "8"},
                                   {"length", "16"}}) {
    onnx::StringStringEntryProto* entry = shape.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return ImportText(model);
}

constexpr char kUnknown[] =
    "m.onnx: the Reshape that makes 'y': input 1 ('s') depends on data; wanted whole numbers that "
    "are known beforehand; try to export the model with fixed sizes";

TEST(ExternalData, IsReadWhereAShapeDependsOnIt) {
  const int64_t numbers[] = {7, 2, 12};
  WriteTestFile("shape.bin", std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  EXPECT_NE(ReshapeBy("shape.bin").find("%y: f32[2,12] = Reshape(%x)"), std::string::npos);
}

TEST(ExternalData, MayBeAbsentOrElsewhere) {
  EXPECT_EQ(ReshapeBy("absent.bin"), kUnknown);
  WriteTestFile("short.bin", std::string(16, '\0'));
  EXPECT_EQ(ReshapeBy("short.bin"), kUnknown);
  EXPECT_EQ(ReshapeBy("/etc/passwd"), kUnknown);
  EXPECT_EQ(ReshapeBy("../m.onnx"), kUnknown);
  EXPECT_EQ(ReshapeBy("."), kUnknown);
}

// A model that came from elsewhere reads no file of its neighbours, not even one that fits.
TEST(ExternalData, StaysInTheFolderOfTheModel) {
  const int64_t numbers[] = {7, 2, 12};
  WriteTestFile("fits.bin", std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  const std::string folder = std::filesystem::path(TestFolder()).parent_path().filename().string();
  EXPECT_EQ(ReshapeBy(absl::StrCat("../", folder, "/fits.bin")), kUnknown);
}

}  // namespace
}  // namespace orrery::importer
