#include "importer/onnx/embedding_bag.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "importer/onnx_test_util.h"

namespace orrery::importer {
namespace embedding_bag_test_cc {
namespace {

using Changes = std::vector<std::pair<absl::string_view, absl::string_view>>;

// An EmbeddingBag over ids [batch,3], as PyTorch 1.13 exports it: bag by bag.
onnx::ModelProto Bags(const Changes& changes = {}) {
  std::string graph = R"(
g (int64[batch,3] ids) => (float[batch,4] y) <float[10,4] table = {}> {
  sizes = Shape(ids)
  one = Constant <value = int64 {1}> ()
  zero = Constant <value = int64 {0}> ()
  size = Gather <axis = 0> (sizes, one)
  count = ReduceProd <keepdims = 0> (sizes)
  offsets = Range(zero, count, size)
  all = Constant <value = int64[1] {-1}> ()
  flat = Reshape(ids, all)
  axis = Constant <value = int64[1] {0}> ()
  total = Unsqueeze(count, axis)
  ends = Concat <axis = 0> (offsets, total)
  first = Constant <value = int64[1] {1}> ()
  last = Constant <value = int64[1] {9223372036854775807}> ()
  later = Slice(ends, first, last, axis)
  shape = Shape(later)
  bags = Gather <axis = 0> (shape, zero)
  yes = Constant <value = bool {1}> ()
  y = Loop <body = body (int64 i, bool c) => (bool d, float[4] row) {
    from = Gather <axis = 0> (ends, i)
    to = Gather <axis = 0> (later, i)
    begin = Unsqueeze(from, axis)
    end = Unsqueeze(to, axis)
    bag = Slice(flat, begin, end, axis)
    rows = Gather <axis = 0> (table, bag)
    row = ReduceSum <keepdims = 0> (rows, axis)
    d = Cast <to = 9> (c)
  }> (bags, yes)
})";
  EXPECT_EQ(absl::StrReplaceAll(changes, &graph), static_cast<int>(changes.size()));
  return ModelOf(graph);
}

TEST(EmbeddingBag, ReadsTheRowsOfAllBagsAtOnce) {
  const std::string text = ImportText(Bags(), {.batch_size = 8});
  EXPECT_EQ(text, R"(
func @m (
  %ids: i64[8,3] data,
  %table: f32[10,4] parameter
) {
  %y.rows: f32[8,3,4] = Gather(%table, %ids) {axis=0}
  %y: f32[8,4] = ReduceSum(%y.rows) {axes=[1]}
  return %y: result
}
)");
  const std::string mean = ImportText(Bags({{"ReduceSum <keepdims = 0> (rows, axis)",
                                             "ReduceMean <keepdims = 0, axes = [0]> (rows)"}}),
                                      {.batch_size = 8});
  EXPECT_NE(mean.find("= ReduceMean(%y.rows) {axes=[1]}"), std::string::npos) << mean;
}

// As it is exported with the batch fixed: the file has the numbers where bags begin. The batch is
// free all the same.
TEST(EmbeddingBag, OfAFixedBatchIsReadAtOnce) {
  const Changes fixed = {
      {"int64[batch,3]", "int64[2,3]"},
      {"float[batch,4]", "float[2,4]"},
      {"offsets = Range(zero, count, size)", "offsets = Constant <value = int64[2] {0, 3}> ()"}};
  EXPECT_EQ(ImportText(Bags(fixed)), R"(
func @m (
  %ids: i64[2,3] data,
  %table: f32[10,4] parameter
) {
  %flat: i64[6] = Reshape(%ids) {shape=[-1]}
  %y.ids: i64[2,3] = Reshape(%flat) {shape=[-1, 3]}
  %y.rows: f32[2,3,4] = Gather(%table, %y.ids) {axis=0}
  %y: f32[2,4] = ReduceSum(%y.rows) {axes=[1]}
  return %y: result
}
)");
}

// Three bags, whatever the batch.
TEST(EmbeddingBag, BagsThatAreCountedAreReadAtOnce) {
  const std::string text =
      ImportText(Bags({{"Gather <axis = 0> (sizes, one)", "Gather <axis = 0> (sizes, zero)"}}),
                 {.batch_size = 8});
  EXPECT_NE(text.find("%y.rows: f32[3,8,4] = Gather(%table, %y.ids)"), std::string::npos) << text;
}

TEST(EmbeddingBag, BagsOfSeveralSizesAreUnrolled) {
  const std::string text = ImportText(Bags(
      {{"int64[batch,3]", "int64[2,3]"},
       {"float[batch,4]", "float[2,4]"},
       {"offsets = Range(zero, count, size)", "offsets = Constant <value = int64[2] {0, 2}> ()"}}));
  EXPECT_NE(text.find("%y/1/rows: f32[4,4] = Gather(%table, %y/1/bag)"), std::string::npos) << text;
}

// A weight an id, in front of the sum.
TEST(EmbeddingBag, WeighsRows) {
  const Changes weighs = {
      {"(int64[batch,3] ids)", "(int64[batch,3] ids, float[batch,3] weights)"},
      {"flat = Reshape(ids, all)", "flat = Reshape(ids, all)\n  flat2 = Reshape(weights, all)"},
      {"row = ReduceSum <keepdims = 0> (rows, axis)",
       "part = Slice(flat2, begin, end, axis)\n"
       "    column = Unsqueeze(part, first)\n"
       "    weighed = Mul(rows, column)\n"
       "    row = ReduceSum <keepdims = 0> (weighed, axis)"}};
  const std::string text = ImportText(Bags(weighs), {.batch_size = 8});
  EXPECT_NE(text.find("%y.column: f32[8,3,1] = Unsqueeze(%weights) {axes=[2]}\n"
                      "  %y.weighed: f32[8,3,4] = Mul(%y.rows, %y.column)\n"
                      "  %y: f32[8,4] = ReduceSum(%y.weighed) {axes=[1]}"),
            std::string::npos)
      << text;
}

// What is no sum of the rows of one bag stays a Loop, and is refused.
TEST(EmbeddingBag, OtherLoopsAreLeft) {
  const std::vector<Changes> others = {
      {{"ReduceSum <keepdims = 0>", "ReduceSum <keepdims = 1>"}},  // a row more
      {{"Range(zero, count, size)", "Range(one, count, size)"}},   // another beginning
      {{"ReduceSum <keepdims = 0> (rows, axis)", "ReduceSum <keepdims = 0> (rows)"}},
      {{"Gather <axis = 0> (table, bag)", "Gather <axis = 0> (bag, bag)"}},
      {{"Gather <axis = 0> (ends, i)", "Gather <axis = 0> (ends, zero)"}}};  // the first each time
  for (const Changes& changes : others) {
    const std::string text = ImportText(Bags(changes), {.batch_size = 8});
    EXPECT_NE(text.find("Loop: how often it runs depends on data"), std::string::npos)
        << changes[0].second << text;
  }
}

// Nobody has checked the graph yet: nodes may lack inputs, and outputs.
TEST(EmbeddingBag, LooksAtAnything) {
  const onnx::ModelProto bags = Bags();
  for (int n = 0; n < bags.graph().node_size(); ++n) {
    onnx::ModelProto model = bags;
    model.mutable_graph()->mutable_node(n)->clear_input();
    CollapseEmbeddingBags(*model.mutable_graph());
    model.mutable_graph()->mutable_node(n)->clear_output();
    CollapseEmbeddingBags(*model.mutable_graph());
  }
  const int loop = bags.graph().node_size() - 1;
  const int nodes = bags.graph().node(loop).attribute(0).g().node_size();
  for (int n = 0; n < nodes; ++n) {
    onnx::ModelProto model = bags;
    onnx::NodeProto& node = *model.mutable_graph()->mutable_node(loop);
    node.mutable_attribute(0)->mutable_g()->mutable_node(n)->clear_input();
    CollapseEmbeddingBags(*model.mutable_graph());
  }
}

}  // namespace
}  // namespace embedding_bag_test_cc
}  // namespace orrery::importer
