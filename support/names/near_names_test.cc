#include "support/names/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace near_names_test_cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Slips, CountWhatMakesOneOfTheOther) {
  EXPECT_EQ(Slips("", ""), 0u);
  EXPECT_EQ(Slips("abc", ""), 3u);
  EXPECT_EQ(Slips("", "abc"), 3u);
  EXPECT_EQ(Slips("schedule", "schedule"), 0u);
  EXPECT_EQ(Slips("shedule", "schedule"), 1u);    // left out
  EXPECT_EQ(Slips("schedulle", "schedule"), 1u);  // put in
  EXPECT_EQ(Slips("schedulo", "schedule"), 1u);   // changed
  EXPECT_EQ(Slips("shcedule", "schedule"), 1u);   // swapped
  EXPECT_EQ(Slips("ca", "abc"), 3u);              // no letter is touched twice
  EXPECT_EQ(Slips("kitten", "sitting"), 3u);
}

constexpr absl::string_view kNames[] = {"gpipe", "1f1b",  "interleaved", "zb-h1",
                                        "zb-h2", "zb-1p", "dualpipe",    "dualpipe-v"};

TEST(NearNames, AreThoseOfFewestSlips) {
  EXPECT_THAT(NearNames("gpip", kNames), ElementsAre("gpipe"));
  EXPECT_THAT(NearNames("interlaeved", kNames), ElementsAre("interleaved"));
  EXPECT_THAT(NearNames("zb-h9", kNames), ElementsAre("zb-h1", "zb-h2"));
  EXPECT_THAT(NearNames("dualpipe_v", kNames), ElementsAre("dualpipe-v"));
  EXPECT_THAT(NearNames("DualPipe", kNames), ElementsAre("dualpipe"));
}

TEST(NearNames, MayBeginAlike) {
  EXPECT_THAT(NearNames("inter", kNames), ElementsAre("interleaved"));
  EXPECT_THAT(NearNames("zb", kNames), ElementsAre("zb-h1", "zb-h2", "zb-1p"));
}

TEST(NearNames, AreNoneWhereItIsNotClearWhichIsMeant) {
  EXPECT_THAT(NearNames("megatron", kNames), IsEmpty());
  EXPECT_THAT(NearNames("", kNames), IsEmpty());
  EXPECT_THAT(NearNames("z", kNames), IsEmpty());
  EXPECT_THAT(NearNames(std::string(100'000, 'z'), kNames), IsEmpty());
  const absl::string_view alike[] = {"gpt3-1b", "gpt3-2b", "gpt3-3b", "gpt3-4b"};
  EXPECT_THAT(NearNames("gpt3", alike), IsEmpty());
}

TEST(WantedNames, AreFewWhereSomeAreNear) {
  EXPECT_EQ(WantedNames("gpip", kNames, "list-schedules"),
            "did you mean gpipe? `list-schedules` names all");
  EXPECT_EQ(WantedNames("zb-h9", kNames, "list-schedules"),
            "did you mean zb-h1 or zb-h2? `list-schedules` names all");
  EXPECT_EQ(WantedNames("zb", kNames, "list-schedules"),
            "did you mean zb-h1, zb-h2 or zb-1p? `list-schedules` names all");
}

TEST(WantedNames, AreAllWhereNoneIsNear) {
  const absl::string_view two[] = {"ring", "tree"};
  EXPECT_EQ(WantedNames("megatron", two, "list-algorithms"), "wanted one of ring, tree");
  EXPECT_EQ(WantedNames("rinf", two, ""), "wanted one of ring, tree; did you mean ring?");
  EXPECT_EQ(WantedNames("x", two, "list-algorithms", "wanted ring or tree"), "wanted ring or tree");
}

}  // namespace
}  // namespace near_names_test_cc
}  // namespace orrery
