#include "transforms/memory/recompute_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

// The texts of policies.

namespace orrery::transforms {
namespace recompute_policy_test_cc {
namespace {

std::string Parsed(absl::string_view text) {
  const auto policy = ParseRecomputePolicy(text);
  return policy.ok() ? ToString(*policy) : std::string(policy.status().message());
}

TEST(RecomputePolicy, ReadsAndPrints) {
  for (const char* text : {"none", "selective", "full", "every:2", "match:gelu|ln,2", "match:a=b",
                           "modules:core_attn,mlp,moe_act"}) {
    EXPECT_EQ(Parsed(text), text);
  }
  EXPECT_EQ(Parsed("every:1"), "full");
  EXPECT_EQ(Parsed("modules:moe_act,layernorm,moe_act"), "modules:layernorm,moe_act");
  EXPECT_EQ(ParseRecomputePolicy("every:12")->every, 12);
  EXPECT_EQ(*ParseRecomputePolicy("none"), RecomputePolicy());
}

// Not one is left out.
TEST(RecomputePolicy, EachLineHasARecord) {
  const std::vector<const RecomputeRecord*> lines = {
#define ORRERY_RECOMPUTE_POLICY(Name, file) &k##Name##Recompute,
#include "transforms/memory/recompute_policies.def"
#undef ORRERY_RECOMPUTE_POLICY
  };
  EXPECT_THAT(AllRecomputePolicies(), testing::IsSupersetOf(lines));
}

// Of each record: what it is written as is read by that record and by no other.
TEST(RecomputePolicy, EveryRecordIsReadAndPrinted) {
  for (const RecomputeRecord* record : AllRecomputePolicies()) {
    SCOPED_TRACE(record->name);
    EXPECT_EQ(Parsed(record->example), record->example);
    EXPECT_EQ(ParseRecomputePolicy(record->example)->record, record);
    for (const RecomputeRecord* other : AllRecomputePolicies()) {
      EXPECT_EQ(*ParseRecomputePolicy(record->example) == *ParseRecomputePolicy(other->example),
                record == other);
    }
    if (record->suggested.text.empty()) continue;
    EXPECT_EQ(Parsed(record->suggested.text), record->suggested.text);
    EXPECT_EQ(ParseRecomputePolicy(record->suggested.text)->record, record);
    EXPECT_GT(record->suggested.share, 0);
    EXPECT_LT(record->suggested.share, 1);
  }
}

TEST(RecomputePolicy, SaysWhatIsWrong) {
  const std::string wanted = ": wanted none, selective, full, every:K with K of at least 1, ";
  for (const char* text : {"", "all", "every:0", "every:-1", "every:", "every:2x", "Full"}) {
    EXPECT_THAT(Parsed(text), testing::StartsWith(absl::StrCat("'", text, "'", wanted)));
  }
  for (const RecomputeRecord* record : AllRecomputePolicies()) {
    EXPECT_THAT(Parsed("all"), testing::HasSubstr(record->wanted));
    EXPECT_THAT(RecomputeValues(), testing::HasSubstr(record->values));
  }
  for (const char* text : {"match:", "match:("}) {
    EXPECT_EQ(Parsed(text), absl::StrCat("'", text,
                                         "': wanted a regular expression of at most 1000 "
                                         "characters, as in match:gelu|norm"));
  }
}

TEST(RecomputePolicy, NamesTheModulesThereAre) {
  const std::string wanted =
      "' is no module; wanted core_attn, mlp, layernorm, moe, moe_act, shared_experts, mla_up_proj "
      "with commas between";
  EXPECT_EQ(Parsed("modules:mlp,attn"), absl::StrCat("'modules:mlp,attn': 'attn", wanted));
  EXPECT_EQ(Parsed("modules:"), absl::StrCat("'modules:': '", wanted));
}

TEST(RecomputePolicy, ReadsLists) {
  const auto list = [](absl::string_view text) { return ParseRecomputeList(text); };
  EXPECT_THAT(*list("none,every:1,every:3"), testing::ElementsAre("none", "full", "every:3"));
  EXPECT_THAT(*list("match:a{1,2},full"), testing::ElementsAre("match:a{1,2}", "full"));
  EXPECT_THAT(*list("match:(a,b),match:c"), testing::ElementsAre("match:(a,b)", "match:c"));
  EXPECT_THAT(*list("modules:core_attn,mlp,full,modules:moe"),
              testing::ElementsAre("modules:core_attn,mlp", "full", "modules:moe"));
  EXPECT_FALSE(list("none,").ok());
  EXPECT_FALSE(list("match:(a,b").ok());
  EXPECT_FALSE(list("some,none").ok());
}

}  // namespace
}  // namespace recompute_policy_test_cc
}  // namespace orrery::transforms
