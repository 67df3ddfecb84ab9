#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/function.h"
#include "ir/text/text.h"
#include "support/check.h"

namespace orrery::ir {
namespace batch_dims_test_cc {
namespace {

// "%t: dimension 1 behind 1" of each value that has the batch.
std::string Batches(const std::string& text) {
  const auto function = ParseFunction(text);
  ORRERY_CHECK(function.ok()) << function.status();
  const IdTable<ValueId, int8_t> dims = BatchDims(*function);
  const IdTable<ValueId, int64_t> outside = OutsideOfBatch(*function, dims);
  std::string found;
  for (int32_t v = 0; v < function->value_limit(); ++v) {
    const ValueId value(v);
    if (dims[value] < 0) continue;
    absl::StrAppend(&found, PrintValue(*function, value), ": dimension ", int{dims[value]}, ", ",
                    outside[value], " outside\n");
  }
  return found;
}

TEST(BatchDims, BehindTimeAndFlattenedWithIt) {
  EXPECT_EQ(Batches(R"(func @f (
  %x: f32[2,3,8] data,
  %w: f32[8,8] parameter
) {
  %t: f32[3,2,8] = Transpose(%x) {perm=[1, 0, 2]}
  %f: f32[6,8] = Reshape(%t) {shape=[-1, 8]}
  %m: f32[6,8] = MatMul(%f, %w)
  %h: f32[3,8,2] = Reshape(%t) {shape=[3, -1, 2]}
  %u: f32[8,3,2] = Transpose(%h) {perm=[1, 0, 2]}
  %a: f32[8,3,2] = Softmax(%u) {axis=2}
  %v: f32[8,8] = Transpose(%w) {perm=[1, 0]}
  return %a: result, %m: result, %v: result
}
)"),
            "%x: dimension 0, 1 outside\n"
            "%t: dimension 1, 1 outside\n"
            "%f: dimension 0, 3 outside\n"  // time goes slower than samples
            "%m: dimension 0, 3 outside\n"
            "%h: dimension 1, 1 outside\n"  // heads go faster
            "%u: dimension 0, 1 outside\n"
            "%a: dimension 0, 1 outside\n");
}

}  // namespace
}  // namespace batch_dims_test_cc
}  // namespace orrery::ir
