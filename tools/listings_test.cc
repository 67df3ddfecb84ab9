#include "tools/listings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transforms/plan/axis.h"

namespace orrery::tools {
namespace listings_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;

TEST(Listings, SayOfEachNameWhatItIs) {
  for (const Listing& listing : AllListings()) {
    const std::vector<NamedThing> things = listing.things();
    EXPECT_FALSE(things.empty()) << listing.flag;
    for (const NamedThing& thing : things) {
      EXPECT_NE(thing.name, "") << listing.flag;
      EXPECT_NE(thing.summary, "") << thing.name;
      EXPECT_EQ(thing.summary.find('\n'), std::string::npos) << thing.name;
    }
  }
}

TEST(ListingText, IsInTwoColumns) {
  const Listing listing = {
      .flag = "list-things", .about = "names all things", .of = {"thing"}, .things = [] {
        return std::vector<NamedThing>{{"short", "One."},
                                       {"one that takes the whole first column", "Two."}};
      }};
  EXPECT_EQ(ListingText(listing),
            "short                       One.\n"
            "one that takes the whole first column\n"
            "                            Two.\n");
}

TEST(KnownValues, AreNamesOfListings) {
  EXPECT_THAT(KnownValues("schedule", AllListings()), IsSupersetOf({"1f1b", "zb-h1"}));
  EXPECT_THAT(KnownValues("model", AllListings()), IsSupersetOf({"mlp", "gpt3-175b"}));
  EXPECT_THAT(KnownValues("cluster", AllListings()), IsSupersetOf({"uniform:", "dgx-h100:"}));
  EXPECT_THAT(KnownValues("cost-model", AllListings()), IsSupersetOf({"roofline", "measured:"}));
}

TEST(KnownValues, AreThoseThatAnAxisTakes) {
  EXPECT_THAT(KnownValues("zero", {}), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(KnownValues("recompute", {}), IsSupersetOf({"none", "selective", "full"}));
  EXPECT_THAT(KnownValues("dp", {}), IsEmpty());
  for (const transforms::AxisInfo* axis : transforms::AllAxes()) {
    for (const std::string& value : KnownValues(axis->flag, {})) {
      transforms::ParallelPlan plan;
      EXPECT_TRUE(axis->parse(value, plan).ok()) << axis->flag << " " << value;
    }
  }
}

TEST(KnownValues, AreFewWordsOfOtherFlags) {
  EXPECT_THAT(KnownValues("optimizer", {}), ElementsAre("none", "sgd", "momentum", "adam",
                                                        "adagrad", "lion", "adafactor", "muon"));
  EXPECT_THAT(KnownValues("space", {}), ElementsAre("default", "full"));
  EXPECT_THAT(KnownValues("passes", {}), IsSupersetOf({"simplify"}));
  EXPECT_THAT(KnownValues("batch-size", {}), IsEmpty());
}

}  // namespace
}  // namespace listings_test_cc
}  // namespace orrery::tools
