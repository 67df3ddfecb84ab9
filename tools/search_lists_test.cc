#include "tools/search_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace orrery::tools {
namespace search_lists_test_cc {
namespace {

using ::testing::ElementsAre;

TEST(SplitNames, KeepsKeysWithTheirModel) {
  EXPECT_THAT(SplitNames("mlp:layers=64,dim=8192", true), ElementsAre("mlp:layers=64,dim=8192"));
  EXPECT_THAT(SplitNames("gpt2-xl,mlp:layers=2,dim=8,gpt3-13b:seq=1024,m.onnx", true),
              ElementsAre("gpt2-xl", "mlp:layers=2,dim=8", "gpt3-13b:seq=1024", "m.onnx"));
  EXPECT_THAT(SplitNames("", true), ElementsAre(""));
}

TEST(SplitNames, KeepsWordsWithTheirCluster) {
  EXPECT_THAT(SplitNames("ring:8@50GB/s,one-way,dgx-a100:4,nic=hdr,oversubscription=2", false),
              ElementsAre("ring:8@50GB/s,one-way", "dgx-a100:4,nic=hdr,oversubscription=2"));
  EXPECT_THAT(SplitNames("product:ring(4)@100GB/s,switch(8)@50GB/s,uniform:2@1GB/s", false),
              ElementsAre("product:ring(4)@100GB/s,switch(8)@50GB/s", "uniform:2@1GB/s"));
}

TEST(ParseBatchSizes, ReadsNumbersOnce) {
  EXPECT_THAT(*ParseBatchSizes("256,512,256"), ElementsAre(256, 512));
  EXPECT_EQ(ParseBatchSizes("2x").status().message(),
            "'2x': wanted numbers of samples, as in 256,512");
  EXPECT_FALSE(ParseBatchSizes("").ok());
  EXPECT_FALSE(ParseBatchSizes("1,,2").ok());
}

TEST(ParsePrices, ReadsOneEachOrOneOfAll) {
  EXPECT_THAT(*ParsePrices("", 2), ElementsAre(0, 0));
  EXPECT_THAT(*ParsePrices("2.5", 2), ElementsAre(2.5, 2.5));
  EXPECT_THAT(*ParsePrices("2.5,1", 2), ElementsAre(2.5, 1));
  EXPECT_EQ(ParsePrices("1,2,3", 2).status().message(),
            "'1,2,3': 3 prices for 2 clusters; wanted one, or one each");
  for (const char* bad : {"0", "-1", "inf", "nan", "dear", "1,"}) {
    EXPECT_THAT(std::string(ParsePrices(bad, 1).status().message()),
                testing::HasSubstr("wanted what a device costs an hour, as in 2.5"))
        << bad;
  }
}

}  // namespace
}  // namespace search_lists_test_cc
}  // namespace orrery::tools
