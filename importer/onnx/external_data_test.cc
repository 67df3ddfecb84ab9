#include "importer/onnx/external_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace external_data_test_cc {
namespace {

// A Reshape whose shape lies 8 bytes into `location`.
std::string ReshapeBy(const std::string& location, const std::string& length = "16") {
  onnx::ModelProto model =
      ModelOf("g (float[2,3,4] x) => (float[2,12] y) <int64[2] s = {0, 0}> { y = Reshape(x, s) }");
  onnx::TensorProto& shape = *model.mutable_graph()->mutable_initializer(0);
  shape.clear_int64_data();
  shape.clear_raw_data();
  shape.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair<std::string, std::string>("location", location),
                                   {"offset", "8"},
                                   {"length", length}}) {
    onnx::StringStringEntryProto* entry = shape.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return ImportText(model);
}

std::string Trouble(const std::string& what) {
  return absl::StrCat("m.onnx: the Reshape that makes 'y': input 1 ('s'): its external data ",
                      what);
}

TEST(ExternalData, IsReadWhereAShapeDependsOnIt) {
  const int64_t numbers[] = {7, 2, 12};
  WriteTestFile("shape.bin", std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  EXPECT_NE(ReshapeBy("shape.bin").find("%y: f32[2,12] = Reshape(%x)"), std::string::npos);
}

TEST(ExternalData, MayBeAbsentOrElsewhere) {
  EXPECT_EQ(ReshapeBy("absent.bin"),
            Trouble("'absent.bin' is not there; wanted that file in the folder of the model"));
  WriteTestFile("short.bin", std::string(16, '\0'));
  EXPECT_EQ(ReshapeBy("short.bin"), Trouble("'short.bin' has no 16 bytes from byte 8 on"));
  EXPECT_EQ(ReshapeBy("/etc/passwd"),
            Trouble("'/etc/passwd' is not below the folder of the model"));
  EXPECT_EQ(ReshapeBy("../m.onnx"), Trouble("'../m.onnx' is not below the folder of the model"));
  EXPECT_EQ(ReshapeBy("."), Trouble("'.' is no regular file"));
  EXPECT_EQ(ReshapeBy(""), Trouble("names no file"));
}

TEST(ExternalData, HasTheLengthThatItSays) {
  WriteTestFile("long.bin", std::string(64, '\0'));
  EXPECT_EQ(ReshapeBy("long.bin", "8"),
            Trouble("'long.bin' has 8 bytes for it; its shape wants 16"));
  EXPECT_EQ(ReshapeBy("long.bin", "all"), Trouble("has length 'all'; wanted a number of bytes"));
}

// A model that came from elsewhere reads no file of its neighbours, not even one that fits.
TEST(ExternalData, StaysInTheFolderOfTheModel) {
  const int64_t numbers[] = {7, 2, 12};
  WriteTestFile("fits.bin", std::string(reinterpret_cast<const char*>(numbers), sizeof(numbers)));
  const std::string folder = std::filesystem::path(TestFolder()).parent_path().filename().string();
  EXPECT_EQ(
      ReshapeBy(absl::StrCat("../", folder, "/fits.bin")),
      Trouble(absl::StrCat("'../", folder, "/fits.bin' is not below the folder of the model")));
}

}  // namespace
}  // namespace external_data_test_cc
}  // namespace orrery::importer
