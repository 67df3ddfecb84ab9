#include "transforms/sharding/sharding_pin.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace orrery::transforms {
namespace sharding_pin_test_cc {
namespace {

TEST(ParseShardingPin, TakesAPatternAnAxisAndADimension) {
  const auto show = [](absl::string_view text) {
    const auto pin = ParseShardingPin(text);
    return pin.ok() ? absl::StrCat(pin->pattern, " ", pin->axis, " ", pin->dim)
                    : std::string(pin.status().message());
  };
  EXPECT_EQ(show("mlp.up.weight$=hp@1"), "mlp.up.weight$ hp 1");
  EXPECT_EQ(show("a=b@c=cp@whole"), "a=b@c cp -1");
  for (const char* bad : {"", "w0", "w0=hp", "w0@1", "=hp@1", "w0=@1", "w0=hp@", "w0=hp@-1",
                          "w0=hp@one", "w0@1=hp", "w0=dp@0", "w0=HP@0", "w0=hp@0@1"}) {
    EXPECT_EQ(show(bad),
              absl::StrCat("'", bad,
                           "': wanted REGEX=AXIS@DIMENSION with one of the axes hp, cp "
                           "and ep, as in 'mlp.up.weight$=hp@1', or @whole; or batch=hp"));
  }
  EXPECT_EQ(show("batch=hp"), "batch hp -2");
  EXPECT_EQ(ToString(*ParseShardingPin("batch=tp")), "batch=hp");
}

}  // namespace
}  // namespace sharding_pin_test_cc
}  // namespace orrery::transforms
