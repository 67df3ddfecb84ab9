#include "search/unequal/unequal_cuts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "support/check.h"

namespace orrery::search {
namespace unequal_cuts_cc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::vector<double> SumsOf(const std::vector<double>& each) {
  std::vector<double> sums = {0};
  for (const double one : each) sums.push_back(sums.back() + one);
  return sums;
}

// Seconds of a stage with layers begin … end-1; never where it holds too much.
class StageSeconds {
 public:
  StageSeconds(const PacedStage& stage, bool limits)
      : pace_(SumsOf(stage.pace)),
        state_(SumsOf(stage.state_bytes)),
        kept_(SumsOf(stage.kept_bytes)),
        in_flight_(stage.in_flight),
        limit_(limits ? stage.limit : 0) {}

  double Of(size_t begin, size_t end) const {
    const double bytes = Between(state_, begin, end) + in_flight_ * Between(kept_, begin, end);
    return limit_ > 0 && bytes > limit_ ? kNever : Between(pace_, begin, end);
  }

 private:
  static double Between(const std::vector<double>& sums, size_t begin, size_t end) {
    return sums[end] - sums[begin];
  }

  std::vector<double> pace_, state_, kept_;
  double in_flight_, limit_;
};

using Stages = std::vector<StageSeconds>;

// The least sum where no stage takes longer than `cap`; empty where there is none.
std::vector<int64_t> LeastSum(const Stages& stages, size_t layers, double cap) {
  // least[s][l]: of the stages from s on with the layers from l on.
  std::vector<std::vector<double>> least(stages.size() + 1,
                                         std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<size_t>> ends(stages.size(), std::vector<size_t>(layers + 1, 0));
  least[stages.size()][layers] = 0;
  for (size_t s = stages.size(); s-- > 0;) {
    for (size_t begin = 0; begin < layers; ++begin) {
      for (size_t end = begin + 1; end <= layers; ++end) {
        const double seconds = stages[s].Of(begin, end);
        if (seconds > cap || seconds + least[s + 1][end] >= least[s][begin]) continue;
        least[s][begin] = seconds + least[s + 1][end];
        ends[s][begin] = end;
      }
    }
  }
  if (least[0][0] == kNever) return {};
  std::vector<int64_t> counts;
  for (size_t s = 0, begin = 0; s < stages.size(); begin = ends[s][begin], ++s) {
    counts.push_back(static_cast<int64_t>(ends[s][begin] - begin));
  }
  return counts;
}

// Times that the slowest stage may take, ascending: all, or of very many as many as are told apart.
std::vector<double> Caps(const Stages& stages, size_t layers) {
  constexpr size_t kMost = 512;
  std::vector<double> caps;
  for (const StageSeconds& stage : stages) {
    for (size_t begin = 0; begin < layers; ++begin) {
      for (size_t end = begin + 1; end <= layers; ++end) {
        const double seconds = stage.Of(begin, end);
        if (seconds != kNever) caps.push_back(seconds);
      }
    }
  }
  std::ranges::sort(caps);
  caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
  const auto works = [&](double cap) { return !LeastSum(stages, layers, cap).empty(); };
  caps.erase(caps.begin(),
             std::ranges::partition_point(caps, [&](double cap) { return !works(cap); }));
  if (caps.size() <= kMost) return caps;
  // The least ones are where the slowest stage decides; beyond twice that they hardly ever help.
  std::vector<double> few;
  for (size_t i = 0; i < kMost / 2; ++i) few.push_back(caps[i]);
  const size_t rest = caps.size() - kMost / 2;
  for (size_t i = 0; i < kMost / 2; ++i) {
    few.push_back(caps[kMost / 2 + (rest - 1) * (i + 1) / (kMost / 2)]);
  }
  return few;
}

}  // namespace
}  // namespace unequal_cuts_cc

double StepSecondsOf(const std::vector<PacedStage>& stages, const std::vector<int64_t>& layers,
                     int64_t microbatches) {
  double sum = 0, most = 0;
  size_t begin = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const size_t end = begin + static_cast<size_t>(layers[s]);
    const double seconds = unequal_cuts_cc::StageSeconds(stages[s], false).Of(begin, end);
    sum += seconds;
    most = std::max(most, seconds);
    begin = end;
  }
  return sum + static_cast<double>(microbatches - 1) * most;
}

std::optional<std::vector<int64_t>> CutByPace(const std::vector<PacedStage>& stages,
                                              int64_t microbatches, bool limits) {
  const size_t layers = stages.front().pace.size();
  if (layers < stages.size()) return std::nullopt;
  unequal_cuts_cc::Stages seconds;
  for (const PacedStage& stage : stages) seconds.emplace_back(stage, limits);
  std::optional<std::vector<int64_t>> best;
  double least = unequal_cuts_cc::kNever;
  for (const double cap : unequal_cuts_cc::Caps(seconds, layers)) {
    if (static_cast<double>(microbatches) * cap >= least) break;
    std::vector<int64_t> counts = unequal_cuts_cc::LeastSum(seconds, layers, cap);
    if (counts.empty()) continue;
    const double step = StepSecondsOf(stages, counts, microbatches);
    if (step >= least) continue;
    least = step;
    best = std::move(counts);
  }
  return best;
}

std::vector<std::vector<int64_t>> CutsBeside(const std::vector<PacedStage>& stages,
                                             const std::vector<int64_t>& layers,
                                             int64_t microbatches, size_t most) {
  constexpr double kMayBeFastest = 1.1;
  const double least = StepSecondsOf(stages, layers, microbatches);
  std::vector<std::pair<double, std::vector<int64_t>>> beside;
  for (size_t s = 0; s + 1 < layers.size(); ++s) {
    for (const size_t from : {s, s + 1}) {
      std::vector<int64_t> cut = layers;
      if (--cut[from] < 1) continue;
      ++cut[from == s ? s + 1 : s];
      const double seconds = StepSecondsOf(stages, cut, microbatches);
      if (seconds <= kMayBeFastest * least) beside.emplace_back(seconds, std::move(cut));
    }
  }
  std::ranges::sort(beside);
  if (beside.size() > most) beside.resize(most);
  std::vector<std::vector<int64_t>> cuts;
  for (auto& [seconds, cut] : beside) cuts.push_back(std::move(cut));
  return cuts;
}

std::vector<std::vector<int64_t>> AllCuts(int64_t layers, size_t stages, size_t most) {
  std::vector<std::vector<int64_t>> cuts = {{}};
  for (size_t s = 0; s < stages; ++s) {
    const auto behind = static_cast<int64_t>(stages - s - 1);
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& cut : cuts) {
      const int64_t left = layers - std::accumulate(cut.begin(), cut.end(), int64_t{0});
      for (int64_t own = behind == 0 ? left : 1; own >= 1 && own <= left - behind; ++own) {
        longer.push_back(cut);
        longer.back().push_back(own);
        // Each goes on to one cut at least.
        if (longer.size() > most) return {};
      }
    }
    cuts = std::move(longer);
  }
  return cuts;
}

std::vector<int64_t> CutEqually(int64_t layers, int64_t stages) {
  ORRERY_CHECK(layers >= stages) << layers << " layers for " << stages << " stages";
  std::vector<int64_t> counts;
  for (int64_t s = 0; s < stages; ++s) {
    counts.push_back(layers / stages + (s < layers % stages ? 1 : 0));
  }
  return counts;
}

std::vector<int64_t> SharesBySpeed(const std::vector<double>& seconds, int64_t count) {
  std::vector<int64_t> shares(seconds.size(), 1);
  for (auto left = count - static_cast<int64_t>(seconds.size()); left > 0; --left) {
    size_t next = 0;
    const auto then = [&](size_t r) { return static_cast<double>(shares[r] + 1) * seconds[r]; };
    for (size_t r = 1; r < seconds.size(); ++r) {
      if (then(r) < then(next)) next = r;
    }
    ++shares[next];
  }
  return shares;
}

std::vector<double> PathSeconds(const std::vector<PacedStage>& stages,
                                const std::vector<int64_t>& layers) {
  std::vector<double> slowest(stages.front().replica_seconds.size(), 0);
  size_t begin = 0;
  for (size_t s = 0; s < stages.size(); ++s) {
    const size_t end = begin + static_cast<size_t>(layers[s]);
    for (size_t r = 0; r < slowest.size(); ++r) {
      const double* const of = stages[s].replica_seconds[r].data();
      slowest[r] = std::max(slowest[r], std::accumulate(of + begin, of + end, 0.0));
    }
    begin = end;
  }
  return slowest;
}

}  // namespace orrery::search
