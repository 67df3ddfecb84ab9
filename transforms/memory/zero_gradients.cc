#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/op_kind.h"
#include "transforms/memory/zero_part.h"
#include "transforms/memory/zero_plan.h"

namespace orrery::transforms {
namespace zero_gradients_cc {
namespace {

using ir::Function;
using ir::OpId;
using ir::OpKind;
using ir::ValueId;

// All values of an update from which the gradient of one parameter is summed up.
struct Sum {
  size_t stage = 0;
  Shard shard;
  bool scatters = true;                            // its parts are scattered before it is made
  std::vector<ValueId> left;                       // by backward
  std::vector<std::pair<ValueId, OpId>> received;  // from other stages
  std::vector<OpId> sends;                         // to other stages, of any of its values
};

// Finds the sum of one gradient.
class SumFinder {
 public:
  SumFinder(const PipelineStage& stage, const std::vector<std::vector<OpId>>& users,
            const absl::flat_hash_set<ValueId>& made)
      : stage_(stage), function_(stage.update.function), users_(users), made_(made) {}

  // False where there is more to it than sums.
  bool Find(const ParameterUpdate& update, Sum& sum) {
    ValueId value = update.gradient;
    OpId consumer = update.optimizer;
    const OpId maker = function_.producer(value);
    if (maker.valid() && function_.kind(maker) == OpKind::kAllReduce) {
      if (UsersOf(value).size() != 1) return false;
      consumer = maker;
      value = function_.operands(maker)[0];
    }
    return Add(value, consumer, sum);
  }

 private:
  const std::vector<OpId>& UsersOf(ValueId value) const {
    return users_[static_cast<size_t>(value.index())];
  }

  // By it alone, apart from sends.
  bool IsUsedBy(ValueId value, OpId consumer, Sum& sum) const {
    for (const OpId user : UsersOf(value)) {
      if (user.valid() && function_.kind(user) == OpKind::kSend) {
        sum.sends.push_back(user);
      } else if (user != consumer) {
        return false;
      }
    }
    return true;
  }

  bool Add(ValueId value, OpId consumer, Sum& sum) {
    if (!IsUsedBy(value, consumer, sum)) return false;
    const OpId maker = function_.producer(value);
    if (!maker.valid()) {
      sum.left.push_back(value);
      const ValueId origin = OriginOf(stage_.update, value);
      return origin.valid() && made_.contains(origin);
    }
    if (function_.kind(maker) == OpKind::kReceive) {
      sum.received.emplace_back(value, maker);
      return true;
    }
    if (function_.kind(maker) != OpKind::kAdd) return false;
    for (const ValueId operand : function_.operands(maker)) {
      if (!(function_.type(operand) == function_.type(value)) || !Add(operand, maker, sum)) {
        return false;
      }
    }
    return true;
  }

  const PipelineStage& stage_;
  const Function& function_;
  const std::vector<std::vector<OpId>>& users_;
  const absl::flat_hash_set<ValueId>& made_;  // origins
};

class GradientPlanner {
 public:
  GradientPlanner(const PipelinedStep& step, std::vector<ZeroPlan>& plans)
      : step_(step), plans_(plans) {}

  void Run() {
    for (size_t s = 0; s < step_.stages.size(); ++s) FindSums(s);
    // What is sent and what is received must be alike.
    for (bool changed = true; changed;) {
      changed = false;
      for (Sum& sum : sums_) {
        if (!sum.scatters || Agrees(sum)) continue;
        sum.scatters = false;
        changed = true;
      }
    }
    for (const Sum& sum : sums_) {
      if (sum.scatters) Plan(sum);
    }
  }

 private:
  using Message = std::tuple<int64_t, int64_t, std::string>;  // from and to a stage, tag

  const Function& UpdateOf(size_t stage) const { return step_.stages[stage].update.function; }

  Message MessageOf(size_t stage, OpId op) const {
    const Function& update = UpdateOf(stage);
    const bool sends = update.kind(op) == OpKind::kSend;
    const auto here = static_cast<int64_t>(stage);
    const int64_t other = update.attributes(op).Int(sends ? "to" : "from", 0);
    return {sends ? here : other, sends ? other : here, update.attributes(op).String("tag", "")};
  }

  // An invalid op stands for the caller.
  std::vector<std::vector<OpId>> UsersIn(const Function& function) const {
    std::vector<std::vector<OpId>> users(static_cast<size_t>(function.value_limit()));
    for (const OpId op : function.order()) {
      for (const ValueId operand : function.operands(op)) {
        users[static_cast<size_t>(operand.index())].push_back(op);
      }
    }
    for (const ir::Output& output : function.outputs()) {
      users[static_cast<size_t>(output.value.index())].emplace_back();
    }
    return users;
  }

  // Origins of what a microbatch makes.
  absl::flat_hash_set<ValueId> MadeIn(const PipelineStage& stage) const {
    absl::flat_hash_set<ValueId> made;
    for (const StageFunction* part : {&stage.backward, &stage.weights}) {
      for (const OpId op : part->function.order()) {
        for (int32_t i = 0; i < part->function.result_count(op); ++i) {
          made.insert(OriginOf(*part, part->function.result(op, i)));
        }
      }
    }
    return made;
  }

  void FindSums(size_t s) {
    const PipelineStage& stage = step_.stages[s];
    const std::vector<std::vector<OpId>> users = UsersIn(stage.update.function);
    const absl::flat_hash_set<ValueId> made = MadeIn(stage);
    SumFinder finder(stage, users, made);
    for (const ParameterUpdate& update : UpdatesOf(stage.update.function)) {
      const Shard* shard =
          ZeroPlan::Find(plans_[s].parameters, OriginOf(stage.update, update.parameter));
      if (shard == nullptr) continue;
      Sum sum{.stage = s, .shard = *shard, .left = {}, .received = {}, .sends = {}};
      if (!finder.Find(update, sum)) continue;
      for (const OpId send : sum.sends) sent_[MessageOf(s, send)] = sums_.size();
      for (const auto& [value, op] : sum.received) received_[MessageOf(s, op)] = sums_.size();
      sums_.push_back(std::move(sum));
    }
  }

  bool Agrees(const Sum& sum) const {
    const auto alike = [&](const std::map<Message, size_t>& sums, OpId op) {
      const auto found = sums.find(MessageOf(sum.stage, op));
      if (found == sums.end()) return false;
      const Sum& other = sums_[found->second];
      return other.scatters && other.shard.axes == sum.shard.axes &&
             other.shard.dim == sum.shard.dim;
    };
    for (const OpId send : sum.sends) {
      if (!alike(received_, send)) return false;
    }
    for (const auto& [value, op] : sum.received) {
      if (!alike(sent_, op)) return false;
    }
    return true;
  }

  void Plan(const Sum& sum) {
    ZeroPlan& plan = plans_[sum.stage];
    const StageFunction& update = step_.stages[sum.stage].update;
    for (const ValueId value : sum.left) plan.gradients[OriginOf(update, value)] = sum.shard;
    for (const auto& [value, op] : sum.received) plan.received[value] = sum.shard;
  }

  const PipelinedStep& step_;
  std::vector<ZeroPlan>& plans_;
  std::vector<Sum> sums_;
  std::map<Message, size_t> sent_, received_;  // the sums that messages belong to
};

}  // namespace
}  // namespace zero_gradients_cc

void PlanGradients(const PipelinedStep& step, std::vector<ZeroPlan>& plans) {
  zero_gradients_cc::GradientPlanner(step, plans).Run();
}

}  // namespace orrery::transforms
