#include <set>
#include <utility>

#include "search/walks/beginnings.h"

namespace orrery::search {
namespace exhaustive_cc {
namespace {

// All in the order in which they promise most.
class PromisingWalk final : public Walk {
 public:
  explicit PromisingWalk(WalkQuestion question)
      : question_(std::move(question)), starts_(question_) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    starts_.Fill(most, taken);
    return {taken.begin(), taken.end()};
  }
  void Found(size_t /*candidate*/, std::optional<WalkScore> /*score*/) override {}

 private:
  const WalkQuestion question_;
  Beginnings starts_;
};

}  // namespace
}  // namespace exhaustive_cc

constinit const MethodInfo kExhaustiveMethod = {
    .name = "exhaustive",
    .summary = "all, those first whose bounds promise most",
    .source = "branch and bound: Land and Doig 1960",
    .by_bounds = true,
    .make = [](WalkQuestion question) -> std::unique_ptr<Walk> {
      question.family = {};
      return std::make_unique<exhaustive_cc::PromisingWalk>(std::move(question));
    },
};

}  // namespace orrery::search
