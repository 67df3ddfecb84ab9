#include "simulator/report/communication.h"

#include <algorithm>

#include "support/check.h"

namespace orrery::simulator {
namespace communication_cc {
namespace {

// Picoseconds over all ranks, which can leave 64 bits.
using Wide = __int128;

// Sums over ranks, and their means.
class Sums {
 public:
  void Add(const CommunicationShare& share, int64_t members) {
    bytes_ += Wide{share.bytes.count()} * members;
    total_ += Wide{share.total.picoseconds()} * members;
    exposed_ += Wide{share.exposed.picoseconds()} * members;
  }
  bool empty() const { return bytes_ == 0 && total_ == 0; }
  CommunicationReport Over(int64_t ranks) const {
    const auto mean = [&](Wide sum) {
      return static_cast<double>(sum) / static_cast<double>(ranks);
    };
    return {.kind = {},
            .level = {},
            .bytes = mean(bytes_),
            .total_s = 1e-12 * mean(total_),
            .exposed_s = 1e-12 * mean(exposed_),
            .hidden_s = 1e-12 * mean(total_ - exposed_)};
  }

 private:
  Wide bytes_ = 0, total_ = 0, exposed_ = 0;
};

}  // namespace
}  // namespace communication_cc

CommunicationShare& CommunicationShare::operator+=(const CommunicationShare& other) {
  bytes += other.bytes;
  total += other.total;
  exposed += other.exposed;
  return *this;
}

CommunicationShare& CommunicationShare::operator-=(const CommunicationShare& other) {
  bytes -= other.bytes;
  total -= other.total;
  exposed -= other.exposed;
  return *this;
}

CommunicationShares::CommunicationShares(const Program& program) {
  for (int32_t i = 0; i < program.label_count(); ++i) {
    const TaskLabel label = program.label(LabelId(i));
    if (label.kind == TaskKind::kCompute) {
      columns_.push_back(-1);
      continue;
    }
    const absl::string_view kind =
        label.communication.empty() ? ToString(label.kind) : label.communication;
    auto found = std::find_if(names_.begin(), names_.end(), [&](const Name& name) {
      return name.kind == kind && name.level == label.level;
    });
    columns_.push_back(static_cast<int32_t>(found - names_.begin()));
    if (found == names_.end()) names_.push_back({std::string(kind), std::string(label.level)});
  }
  shares_.resize(names_.size() * static_cast<size_t>(program.rank_count()));
}

void CommunicationShares::Expose(RankClassId rank) {
  for (int32_t column = 0; column < column_count(); ++column) {
    at(rank, column).exposed = at(rank, column).total;
  }
}

void CommunicationShares::Subtract(const CommunicationShares& shorter) {
  ORRERY_CHECK(shares_.size() == shorter.shares_.size()) << "the shares are of another program";
  for (size_t i = 0; i < shares_.size(); ++i) shares_[i] -= shorter.shares_[i];
}

void CommunicationShares::Extend(const CommunicationShares& longer, int64_t times) {
  ORRERY_CHECK(shares_.size() == longer.shares_.size()) << "the shares are of another program";
  for (size_t i = 0; i < shares_.size(); ++i) {
    const CommunicationShare &from = shares_[i], &to = longer.shares_[i];
    shares_[i] = {.bytes = from.bytes + Bytes((to.bytes - from.bytes).count() * times),
                  .total = from.total + (to.total - from.total) * times,
                  .exposed = from.exposed + (to.exposed - from.exposed) * times};
  }
}

void CommunicationShares::Divide(int64_t steps) {
  for (CommunicationShare& share : shares_) {
    share = {.bytes = Bytes(share.bytes.count() / steps),
             .total = Duration(share.total.picoseconds() / steps),
             .exposed = Duration(share.exposed.picoseconds() / steps)};
  }
}

std::vector<CommunicationReport> CommunicationShares::Means(const Program& program) const {
  int64_t ranks = 0;
  std::vector<communication_cc::Sums> sums(names_.size());
  for (int32_t i = 0; i < program.rank_count(); ++i) {
    const auto members = static_cast<int64_t>(program.rank(RankClassId(i)).members.size());
    ranks += members;
    for (size_t column = 0; column < sums.size(); ++column) {
      sums[column].Add(at(RankClassId(i), static_cast<int32_t>(column)), members);
    }
  }
  std::vector<CommunicationReport> means;
  for (size_t column = 0; column < sums.size(); ++column) {
    if (sums[column].empty()) continue;
    CommunicationReport& mean = means.emplace_back(sums[column].Over(ranks));
    mean.kind = names_[column].kind;
    mean.level = names_[column].level;
  }
  return means;
}

}  // namespace orrery::simulator
