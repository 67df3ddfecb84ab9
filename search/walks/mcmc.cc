#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "search/walks/beginnings.h"

namespace orrery::search {
namespace mcmc_cc {
namespace {

// By so much a worse candidate is still taken with a chance of 1/e.
constexpr double kWorse = 0.05;
constexpr int kMostProposals = 64;  // in a row, of which nothing is to be played
constexpr int kPatience = 32;       // proposals without a better one, after which a chain jumps

// Metropolis and Hastings: from a candidate to a neighbour drawn at random, if it is better, or
// with a chance that falls with how much worse it is. Chains go side by side, as many as are played
// at once. What was played before is accepted or rejected again without being played.
class McmcWalk final : public Walk {
 public:
  explicit McmcWalk(WalkQuestion question)
      : question_(std::move(question)),
        starts_(question_),
        neighbours_(question_),
        draws_(question_.seed) {}

  std::vector<size_t> Next(size_t most, double /*spent*/) override {
    std::set<size_t> taken;
    size_t chain = 0;
    for (size_t i = 0; i < most; ++i, ++chain) {
      while (chain < chains_.size() && chains_[chain].asked.has_value()) ++chain;
      if (chain == chains_.size()) chains_.push_back({.here = best_});
      chains_[chain].asked = Propose(chains_[chain], taken);
      if (chains_[chain].asked.has_value()) taken.insert(*chains_[chain].asked);
    }
    return {taken.begin(), taken.end()};
  }

  void Found(size_t candidate, std::optional<WalkScore> score) override {
    known_[candidate] = score;
    if (score.has_value() && (!best_.has_value() || *score < best_->score)) {
      best_ = State{*score, candidate};
    }
    for (Chain& chain : chains_) {
      if (chain.asked != candidate) continue;
      Decide(chain, candidate, score);
      chain.asked.reset();
    }
  }

  std::string Log() const override {
    return absl::StrCat(chains_.size(), " chains, ", proposals_, " proposals, ", accepted_,
                        " accepted, ", jumps_, " restarts; ", 100 * kWorse,
                        " % worse is taken with a chance of 1/e");
  }

 private:
  struct State {
    WalkScore score;
    size_t candidate = 0;
  };
  struct Chain {
    std::optional<State> here = {};
    std::optional<size_t> asked = {};  // and not found yet
    int idle = 0;                      // proposals since the last better one
  };

  // What the chain wants played next.
  std::optional<size_t> Propose(Chain& chain, const std::set<size_t>& taken) {
    for (int i = 0; chain.here.has_value() && i < kMostProposals; ++i) {
      if (chain.idle >= kPatience) break;
      const std::vector<size_t>& neighbours = neighbours_.Of(chain.here->candidate);
      if (neighbours.empty()) break;
      const size_t to = draws_.Of(neighbours);
      const auto known = known_.find(to);
      if (known != known_.end()) {
        Decide(chain, to, known->second);
      } else if (question_.is_open(to) && !taken.contains(to)) {
        return to;
      } else {
        Decide(chain, to, std::nullopt);
      }
    }
    if (chain.here.has_value()) ++jumps_;
    chain.idle = 0;
    chain.here = best_;
    return starts_.Next(taken);
  }

  void Decide(Chain& chain, size_t to, std::optional<WalkScore> score) {
    ++proposals_;
    ++chain.idle;
    if (!score.has_value()) return;
    const bool better = !chain.here.has_value() || *score < chain.here->score;
    if (!better && draws_.Unit() >= ChanceOf(*chain.here, {*score, to})) return;
    ++accepted_;
    if (better) chain.idle = 0;
    chain.here = State{*score, to};
  }

  // Hastings' factor makes up for candidates with more neighbours.
  double ChanceOf(const State& from, const State& to) {
    if (from.score.fits != to.score.fits) return 0;
    const double worse = to.score.size / std::max(from.score.size, 1e-12) - 1;
    const auto ways = [this](const State& of) {
      return static_cast<double>(std::max<size_t>(1, neighbours_.Of(of.candidate).size()));
    };
    return std::exp(-worse / kWorse) * ways(from) / ways(to);
  }

  const WalkQuestion question_;
  Beginnings starts_;
  NeighbourTable neighbours_;
  Draws draws_;
  std::vector<Chain> chains_;
  std::optional<State> best_;
  std::map<size_t, std::optional<WalkScore>> known_;  // looked up
  int64_t proposals_ = 0, accepted_ = 0, jumps_ = 0;
};

}  // namespace
}  // namespace mcmc_cc

constinit const MethodInfo kMcmcMethod = {
    .name = "mcmc",
    .summary = "a Markov chain: a neighbour at random, worse ones by chance",
    .source = "Metropolis et al. 1953, Hastings 1970; FlexFlow: Jia, Zaharia and Aiken, MLSys 2019",
    .make = MakeWalk<mcmc_cc::McmcWalk>,
};

}  // namespace orrery::search
