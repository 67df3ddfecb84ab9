#include "transforms/stages/join_stages.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/op_kind.h"
#include "support/check.h"
#include "support/status.h"

namespace orrery::transforms {
namespace join_stages_cc {
namespace {

using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// A value that a stage sends, or receives.
struct Crossing {
  ValueId origin;
  std::string tag;
  ir::Dims dims;
};

std::vector<StageFunction*> PartsOf(PipelineStage& stage) {
  return {&stage.forward, &stage.backward, &stage.weights, &stage.update};
}

// Dimensions as one replica has them, where each has microbatches of its own.
ir::Dims DimsOf(const ir::Function& function, ValueId value, bool dealt) {
  const ir::TensorType& type = function.type(value);
  ir::Dims dims = type.dims;
  const auto dp = function.mesh().Find("dp");
  for (size_t d = 0; d < dims.size() && dealt && dp.has_value(); ++d) {
    if (type.sharding.at(d).contains(*dp)) dims[d] /= function.mesh().size(*dp);
  }
  return dims;
}

std::vector<Crossing> Crossings(const StageFunction& part, OpKind kind, int32_t peer, bool dealt) {
  const ir::Function& function = part.function;
  std::vector<Crossing> crossings;
  for (const OpId op : function.order()) {
    if (function.kind(op) != kind) continue;
    const bool sends = kind == OpKind::kSend;
    if (function.attributes(op).Int(sends ? "to" : "from", -1) != peer) continue;
    const ValueId value = sends ? function.operands(op)[0] : function.result(op);
    crossings.push_back({.origin = OriginOf(part, value),
                         .tag = std::string(function.attributes(op).String("tag", "")),
                         .dims = DimsOf(function, value, dealt)});
  }
  return crossings;
}

int32_t OriginLimit(PipelineStage& stage) {
  int32_t limit = 0;
  for (const StageFunction* part : PartsOf(stage)) {
    for (const ValueId origin : part->origins) limit = std::max(limit, origin.index() + 1);
  }
  return limit;
}

int64_t HpOf(const StagePlace& place) {
  const auto hp = place.mesh.Find("hp");
  return hp.has_value() ? place.mesh.size(*hp) : 1;
}

// Whole values always cross alike. Megatron's pattern, too, is another for another hp, and who
// plays plans has tried it by then.
absl::Status Unlike(absl::string_view which, std::pair<int64_t, int64_t> hp,
                    absl::string_view what) {
  return InfeasibleStatus(
      {.reason = InfeasibleReason::kUnsupported,
       .detail = absl::StrCat(which, ", with hp ", hp.first, " and ", hp.second,
                              ", are sharded so that ", what, "; try ",
                              hp.first == hp.second ? "hp 1" : "the same hp", " on both")});
}

class Joiner {
 public:
  // Stages at one position are of one step: what they share has one number.
  Joiner(std::vector<PipelineStage>& stages, const std::vector<int32_t>& positions,
         const UnequalStages& unequal)
      : stages_(stages),
        positions_(positions),
        unequal_(unequal),
        begins_(stages.size(), -1),
        renamed_(stages.size()) {
    int32_t begin = 0;
    for (size_t s = 0; s < stages.size(); ++s) {
      if (begins_[s] >= 0) continue;
      int32_t limit = 0;
      for (size_t other = s; other < stages.size(); ++other) {
        if (positions[other] != positions[s]) continue;
        begins_[other] = begin;
        limit = std::max(limit, OriginLimit(stages[other]));
      }
      begin += limit;
    }
  }

  absl::Status Match() {
    for (size_t from = 0; from < stages_.size(); ++from) {
      for (size_t to = 0; to < stages_.size(); ++to) {
        if (from != to) ORRERY_RETURN_IF_ERROR(MatchStages(from, to));
      }
    }
    return absl::OkStatus();
  }

  void Renumber() {
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (StageFunction* part : PartsOf(stages_[s])) {
        for (ValueId& origin : part->origins) {
          if (origin.valid()) origin = NewOrigin(s, origin);
        }
      }
    }
  }

 private:
  // Values that go on from stage to stage keep the number of who made them.
  ValueId NewOrigin(size_t stage, ValueId origin) const {
    const auto found = renamed_[stage].find(origin);
    if (found == renamed_[stage].end()) return ValueId(begins_[stage] + origin.index());
    return NewOrigin(found->second.first, found->second.second);
  }

  absl::Status UnlikeStages(size_t from, size_t to, absl::string_view what) const {
    const auto hp_of = [&](size_t stage) {
      return HpOf(unequal_.places[static_cast<size_t>(positions_[stage])]);
    };
    return Unlike(absl::StrCat("stages ", from, " and ", to), {hp_of(from), hp_of(to)}, what);
  }

  absl::Status MatchStages(size_t from, size_t to) {
    const std::vector<StageFunction*> senders = PartsOf(stages_[from]);
    const std::vector<StageFunction*> receivers = PartsOf(stages_[to]);
    for (size_t part = 0; part < senders.size(); ++part) {
      const bool update = part + 1 == senders.size();
      const auto sent = Crossings(*senders[part], OpKind::kSend, static_cast<int32_t>(to),
                                  unequal_.dealt() && !update);
      auto received = Crossings(*receivers[part], OpKind::kReceive, static_cast<int32_t>(from),
                                unequal_.dealt() && !update);
      if (sent.size() != received.size()) {
        return UnlikeStages(from, to,
                            absl::StrCat("the one sends ", sent.size(),
                                         " values and the other takes ", received.size()));
      }
      ORRERY_RETURN_IF_ERROR(MatchValues({from, to}, sent, received));
    }
    return absl::OkStatus();
  }

  absl::Status MatchValues(std::pair<size_t, size_t> stages, const std::vector<Crossing>& sent,
                           const std::vector<Crossing>& received) {
    std::vector<char> taken(received.size(), 0);
    std::vector<const Crossing*> left;
    const auto pair_up = [&](const Crossing& value, size_t i) {
      taken[i] = 1;
      renamed_[stages.second][received[i].origin] = {stages.first, value.origin};
    };
    for (const Crossing& value : sent) {
      size_t i = 0;
      while (i < received.size() &&
             (taken[i] != 0 || received[i].tag != value.tag || received[i].dims != value.dims)) {
        ++i;
      }
      if (i == received.size()) {
        left.push_back(&value);
      } else {
        pair_up(value, i);
      }
    }
    for (const Crossing* value : left) {
      const auto i = static_cast<size_t>(std::ranges::find(taken, 0) - taken.begin());
      if (received[i].dims != value->dims) {
        return UnlikeStages(stages.first, stages.second,
                            absl::StrCat("%", value->tag, " and %", received[i].tag,
                                         " that cross have other dimensions"));
      }
      pair_up(*value, i);
    }
    return absl::OkStatus();
  }

  std::vector<PipelineStage>& stages_;
  const std::vector<int32_t>& positions_;
  const UnequalStages& unequal_;
  std::vector<int32_t> begins_;  // of origins, by stage
  // By stage, origins that are those of another: of which stage, and which there.
  std::vector<absl::flat_hash_map<ValueId, std::pair<size_t, ValueId>>> renamed_;
};

}  // namespace
}  // namespace join_stages_cc

absl::StatusOr<PipelinedStep> JoinStages(const std::vector<const PipelinedStep*>& steps,
                                         UnequalStages unequal) {
  ORRERY_CHECK(steps.size() == unequal.places.size()) << steps.size() << " steps";
  const PipelinedStep& first = *steps.front();
  const bool placed = unequal.placed;
  PipelinedStep joined{.mesh = ir::Mesh({{.name = "pp", .size = std::ssize(steps)}}),
                       .microbatches = first.microbatches,
                       .stages = {},
                       .ranks = first.ranks,
                       .layers = first.layers,
                       .microbatch_size = first.microbatch_size,
                       .devices = {},
                       .gathered = first.gathered,
                       .padded = first.padded};
  for (size_t p = 0; p < steps.size(); ++p) {
    if (steps[p]->ranks != first.ranks) {
      return join_stages_cc::Unlike(
          absl::StrCat("sets 0 and ", p, " of ranks"),
          {join_stages_cc::HpOf(unequal.places[0]), join_stages_cc::HpOf(unequal.places[p])},
          "stages of the model begin elsewhere");
    }
    unequal.places[p].microbatch_size = steps[p]->microbatch_size;
  }
  ORRERY_CHECK(placed || first.stages.size() == steps.size()) << first.stages.size() << " stages";
  for (size_t s = 0; s < first.stages.size(); ++s) {
    joined.stages.push_back(steps[static_cast<size_t>(first.ranks[s])]->stages[s]);
  }
  join_stages_cc::Joiner joiner(joined.stages, first.ranks, unequal);
  ORRERY_RETURN_IF_ERROR(joiner.Match());
  joiner.Renumber();
  if (unequal.dealt()) {
    joined.microbatches = static_cast<int64_t>(unequal.replica_of.front().size());
  }
  joined.unequal = std::move(unequal);
  return joined;
}

}  // namespace orrery::transforms
