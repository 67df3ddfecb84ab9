#include "simulator/traces/shown_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/check.h"

namespace orrery::simulator {
namespace shown_ranks_cc {
namespace {

// The stream of a kind, as profiles number them: the default one is 7.
int32_t ThreadOf(StreamKind kind) {
  switch (kind) {
    case StreamKind::kCompute:
      return 7;
    case StreamKind::kHorizontal:
      return 20;
    case StreamKind::kData:
      return 24;
    case StreamKind::kSendNext:
      return 28;
    case StreamKind::kReceivePrevious:
      return 29;
    case StreamKind::kSendPrevious:
      return 30;
    case StreamKind::kReceiveNext:
      return 31;
    case StreamKind::kExperts:
      return 32;
    case StreamKind::kContext:
      return 34;
    case StreamKind::kHost:
      return 36;
    case StreamKind::kFromHost:
      return 37;
    case StreamKind::kHostCompute:
      return 40;
  }
  return 0;
}

// A second stream of a kind, which programs may have, comes so much later.
constexpr int32_t kNextOfAKind = 100;

// The class of each rank that is wanted, with its place there.
std::vector<ShownRank> Find(const Program& program, const std::vector<int32_t>& ranks) {
  std::vector<ShownRank> found;
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const std::vector<int32_t>& members = program.rank(RankClassId(i)).members;
    for (size_t m = 0; m < members.size(); ++m) {
      if (ranks.empty() ? m == 0 : std::ranges::binary_search(ranks, members[m])) {
        found.push_back({.rank = members[m], .of = RankClassId(i), .member = m});
      }
    }
  }
  std::ranges::sort(found, {}, &ShownRank::rank);
  return found;
}

}  // namespace
}  // namespace shown_ranks_cc

ShownRanks::ShownRanks(const Program& program, const std::vector<int32_t>& ranks)
    : program_(program),
      by_class_(program.rank_count()),
      streams_(program.rank_count()),
      threads_(program.stream_count()) {
  std::vector<int32_t> wanted = ranks;
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  ranks_ = shown_ranks_cc::Find(program, wanted);
  ORRERY_CHECK(wanted.empty() || ranks_.size() == wanted.size())
      << "a rank is wanted that the program does not have";
  for (const ShownRank& shown : ranks_) by_class_[shown.of].push_back(shown);
  NumberThreads();
}

void ShownRanks::NumberThreads() {
  std::map<std::pair<RankClassId, StreamKind>, int32_t> next;
  for (int32_t i = 0; i < program_.stream_count(); ++i) {
    const Stream& stream = program_.stream(StreamId(i));
    const int32_t before = next[{stream.rank, stream.kind}]++;
    threads_[StreamId(i)] =
        shown_ranks_cc::ThreadOf(stream.kind) + before * shown_ranks_cc::kNextOfAKind;
  }
  IdTable<StreamId, char> used(program_.stream_count());
  for (const StreamId stream : program_.stream_pool()) used[stream] = 1;
  for (int32_t i = 0; i < program_.stream_count(); ++i) {
    const StreamId stream(i);
    if (used[stream] != 0) streams_[program_.stream(stream).rank].push_back(stream);
  }
}

std::string ShownRanks::ThreadName(StreamId stream) const {
  return absl::StrCat("stream ", thread(stream), " · ", ToString(program_.stream(stream).kind));
}

std::string ProcessName(const Program& program, const ShownRank& shown,
                        const TraceOptions& options) {
  const RankClass& rank = program.rank(shown.of);
  const TraceRank known = options.describe ? options.describe(shown.rank) : TraceRank();
  std::string name = absl::StrCat("rank ", shown.rank);
  const std::string& own = known.name.empty() ? rank.name : known.name;
  if (!own.empty()) absl::StrAppend(&name, " · ", own);
  if (!known.place.empty()) absl::StrAppend(&name, " · ", known.place);
  if (options.ranks.empty() && rank.members.size() > 1) {
    absl::StrAppend(&name, " (x", rank.members.size(), ")");
  }
  return name;
}

}  // namespace orrery::simulator
