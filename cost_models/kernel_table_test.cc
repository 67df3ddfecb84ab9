#include "cost_models/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/file.h"

namespace orrery::cost_models {
namespace kernel_table_test_cc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kHead = "op,dtype,shape,layout,seconds\n";

std::string ErrorOf(const std::string& text) {
  return std::string(ParseKernelTable(text, "f.csv").status().message());
}

TEST(ParseKernelTable, ReadsAllForms) {
  const auto table = ParseKernelTable(
      "# a device\n\n"
      "direction,op,dtype,shape,layout,seconds,device,more\r\n"
      ",matmul,bf16,4096x1024x512,TN,1e-4,h100,x\r\n"
      ",matmul,fp16,\"8,64,32,16\",any,2e-5,,\r\n"
      "backward,attention,bf16,2x16x4096x128,causal,3e-3,,\r\n"
      ",attention,bf16,2x16x128x64x4096,all,3e-4,,\r\n"
      ",elementwise,f32, 1048576 ,,5e-6\r\n"
      "forward,layer,bf16,1x2x3x4x5,,1,,\r\n",
      "f.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 5u);
  EXPECT_THAT((*table)[0].sizes, ElementsAre(1, 4096, 1024, 512));
  EXPECT_EQ((*table)[0].layout, ProductLayout::kTN);
  EXPECT_EQ((*table)[0].device, "h100");
  EXPECT_THAT((*table)[0].lines, ElementsAre(4));
  EXPECT_THAT((*table)[1].sizes, ElementsAre(8, 64, 32, 16));
  EXPECT_EQ((*table)[1].dtype, ir::DType::kBF16);
  EXPECT_FALSE((*table)[1].layout.has_value());
  EXPECT_EQ((*table)[2].form, KernelForm::kAttention);
  EXPECT_THAT((*table)[2].sizes, ElementsAre(32, 4096, 4096, 128));
  EXPECT_TRUE((*table)[2].backward && (*table)[2].causal);
  EXPECT_THAT((*table)[3].sizes, ElementsAre(32, 128, 4096, 64));
  EXPECT_FALSE((*table)[3].backward || (*table)[3].causal);
  EXPECT_EQ((*table)[4].form, KernelForm::kMoving);
  std::vector<std::string> shapes;
  for (const MeasuredKernel& row : *table) shapes.push_back(ShapeText(row));
  EXPECT_THAT(shapes, ElementsAre("4096x1024x512", "8x64x32x16", "2x16x4096x128",
                                  "2x16x128x64x4096", "1048576"));
  EXPECT_EQ((*table)[4].sizes[0], 1 << 20);
  EXPECT_EQ((*table)[4].seconds, 5e-6);
}

// Products of experts are none of many matrices: other software has other kernels for them.
TEST(ParseKernelTable, ReadsProductsOfExperts) {
  const auto table =
      ParseKernelTable(kHead + "grouped,f8b,8x64x32x128,TN,1e-4\nmatmul,f8b,8x64x32x128,TN,2e-4\n" +
                           "grouped,f8b,1x64x32x128,TN,1e-5\n",
                       "f.csv");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->size(), 3u);
  EXPECT_EQ((*table)[0].form, KernelForm::kGrouped);
  EXPECT_EQ((*table)[0].dtype, ir::DType::kF8Block);
  EXPECT_THAT((*table)[0].sizes, ElementsAre(8, 64, 32, 128));
  EXPECT_EQ((*table)[1].form, KernelForm::kProduct);
  EXPECT_EQ(ShapeText((*table)[0]), "8x64x32x128");
  EXPECT_EQ(ShapeText((*table)[2]), "1x64x32x128");
}

TEST(ParseKernelTable, TakesTheMedianOfRowsOfOneKernel) {
  const auto table = ParseKernelTable(absl::StrCat(kHead,
                                                   "matmul,bf16,8x8x8,TN,1e-6\n"
                                                   "matmul,bf16,8x8x8,NT,5e-6\n"
                                                   "matmul,bf16,8x8x8,TN,9e-6\n"
                                                   "matmul,bf16,8x8x8,TN,3e-6\n"
                                                   "matmul,bf16,8x8x8,NT,6e-6\n"),
                                      "f.csv");
  ASSERT_EQ(table->size(), 2u);
  EXPECT_EQ((*table)[0].seconds, 3e-6);
  EXPECT_THAT((*table)[0].lines, ElementsAre(2, 4, 5));
  EXPECT_DOUBLE_EQ((*table)[1].seconds, 5.5e-6);
}

TEST(ParseKernelTable, SaysWhereAndWhatIsWrong) {
  const std::pair<std::string, std::string> wrong[] = {
      {"", "f.csv: got no measured kernel; wanted lines such as op,dtype,shape,layout,seconds"},
      {kHead, "f.csv: got no measured kernel"},
      {"op,dtype,shape,seconds\n",
       "f.csv: line 1: the head 'op,dtype,shape,seconds' has no column "
       "layout; wanted op,dtype,shape,layout,seconds and"},
      {"\x7f"
       "ELF\x01\n",
       "f.csv: line 1: the head '\\177ELF\\001' has no column op"},
      {kHead + "conv,bf16,1x2x3,TN,1\n",
       "f.csv: line 2: column 1 (op): got 'conv'; wanted matmul, grouped, attention, elementwise "
       "or "
       "layer"},
      {kHead + "# x\nmatmul,i32,1x2x3,TN,1\n", "f.csv: line 3: column 2 (dtype): got 'i32'"},
      {kHead + "matmul,bf16,1x2,TN,1\n",
       "f.csv: line 2: column 3 (shape): got '1x2'; wanted m x n x k or batch x m x n x k"},
      {kHead + "grouped,bf16,1x2x3,TN,1\n",
       "column 3 (shape): got '1x2x3'; wanted experts x m x n x k, m rows of each"},
      {kHead + "matmul,bf16,1x2x0,TN,1\n", "column 3 (shape): got '1x2x0'"},
      {kHead + "matmul,bf16,16777216x16777216x16777216,TN,1\n", "column 3 (shape)"},
      {kHead + "matmul,bf16,1x2x3,TT,1\n", "column 4 (layout): got 'TT'; wanted TN, NN, NT or any"},
      {kHead + "matmul,bf16,1x2x3,TN,nan\n",
       "column 5 (seconds): got 'nan'; wanted 1e-09 to 100000 seconds"},
      {kHead + "matmul,bf16,1x2x3,TN,-1\n", "got '-1'"},
      {kHead + "matmul,bf16,1x2x3,TN\n", "column 5 (seconds): got ''"},
      {kHead + "attention,bf16,1x2x3,causal,1\n",
       "got '1x2x3'; wanted batch x heads x queries x width, and x keys if others"},
      {kHead + "attention,bf16,1x2x3x4,TN,1\n", "got 'TN'; wanted causal or all (keys)"},
      {"op,dtype,shape,layout,seconds,direction\nattention,bf16,1x2x3x4,all,1,up\n",
       "column 6 (direction): got 'up'; wanted forward or backward"},
      {kHead + "elementwise,bf16,2x3,,1\n", "wanted the bytes that are read and written"}};
  for (const auto& [text, message] : wrong) EXPECT_THAT(ErrorOf(text), HasSubstr(message)) << text;
}

TEST(MeasuredKernel, IsOfDevicesWhoseNamesBeginSo) {
  EXPECT_TRUE(MeasuredKernel{}.IsOf("h100-80gb"));
  EXPECT_TRUE(MeasuredKernel{.device = "h100"}.IsOf("h100-80gb"));
  EXPECT_TRUE(MeasuredKernel{.device = "h100-80gb"}.IsOf("h100-80gb"));
  EXPECT_FALSE(MeasuredKernel{.device = "h10"}.IsOf("h100-80gb"));
  EXPECT_FALSE(MeasuredKernel{.device = "h100-80gb-pcie"}.IsOf("h100-80gb"));
}

TEST(ReadKernelTable, TakesOnlyWhatIsAskedFor) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/kernel_table_test_", getpid(), ".csv");
  ASSERT_TRUE(WriteFile(path,
                        "op,dtype,shape,layout,seconds,device\n"
                        "matmul,bf16,8x8x8,TN,1e-6,h100-80gb\n"
                        "matmul,bf16,8x8x8,TN,2e-6,b200\n")
                  .ok());
  EXPECT_EQ(ReadKernelTable(path)->size(), 2u);
  EXPECT_EQ(ReadKernelTable(path + ",only=b200")->size(), 1u);
  EXPECT_THAT(std::string(ReadKernelTable(path + ",only=tpu").status().message()),
              HasSubstr("got no row with 'tpu' in its device; wanted one, as in only=h100"));
  EXPECT_THAT(std::string(ReadKernelTable("nowhere.csv").status().message()),
              HasSubstr("nowhere.csv"));
}

}  // namespace
}  // namespace kernel_table_test_cc
}  // namespace orrery::cost_models
