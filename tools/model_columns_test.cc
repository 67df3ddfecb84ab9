#include "tools/model_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/models/model.h"
#include "search/search.h"

namespace orrery::tools {
namespace model_columns_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Value = decltype(search::ModelColumn::value);

std::vector<Value> Values(const std::string& model, const std::vector<std::string>& names) {
  std::vector<Value> values;
  for (const search::ModelColumn& column : ModelColumnsOf(model, names)) {
    values.push_back(column.value);
  }
  return values;
}

TEST(ModelColumnNames, AreKeysThatAModelNames) {
  EXPECT_THAT(ModelColumnNames({"mlp:dim=8192,layers=64"}), ElementsAre("layers", "dim"));
  EXPECT_THAT(ModelColumnNames({"mlp:dim=1", "mlp", "gpt:heads=4,layers=2"}),
              ElementsAre("dim", "layers", "heads"));
  EXPECT_THAT(ModelColumnNames({"gpt2-small"}),
              ElementsAre("layers", "hidden", "heads", "seq", "vocab"));
  EXPECT_THAT(ModelColumnNames({"mlp", "model.onnx", "mlp:no=1"}), IsEmpty());
}

// What another model names, this one has by default or by its preset.
TEST(ModelColumnsOf, HasEachValueOnce) {
  EXPECT_THAT(Values("mlp:layers=2", {"layers", "dim", "heads"}),
              ElementsAre(Value(int64_t{2}), Value(int64_t{8192}), Value()));
  EXPECT_THAT(Values("gpt2-small:seq=128,dropout=0.1,mlp=gelu", {"seq", "dropout", "mlp", "ffn"}),
              ElementsAre(Value(int64_t{128}), Value(0.1), Value("gelu"), Value()));
  EXPECT_THAT(Values("model.onnx", {"layers"}), ElementsAre(Value()));
}

// A table with two columns of one name would be read wrongly.
TEST(ModelColumnsOf, AreNoOtherColumns) {
  std::set<std::string> names;
  for (const search::ResultCell& cell : CellsOf(search::Setting(), search::Result())) {
    names.insert(cell.name);
  }
  for (const ir::ModelInfo* family : ir::AllModels()) {
    for (const ir::ModelKey& key : family->keys) {
      EXPECT_FALSE(names.contains(std::string(key.name))) << family->name << ": " << key.name;
    }
  }
}

}  // namespace
}  // namespace model_columns_test_cc
}  // namespace orrery::tools
