#include "lowering/blocks/batched_kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/op_info.h"
#include "ir/op_kind.h"
#include "transforms/memory/offload.h"

namespace orrery::lowering {
namespace batched_kernels_cc {
namespace {

using ir::OpId;
using ir::ValueId;

constexpr size_t kMostTried = 8;  // of kernels that a kernel could go with, the last ones
// Of a kernel's arguments: NVIDIA, CUDA C++ Programming Guide, "Function parameters". A tensor
// takes a pointer; each kernel of a launch its size, too.
constexpr int64_t kArgumentBytes = 4096, kPointerBytes = 8;

// The kernels of a function, and which of them wait for which.
class Kernels {
 public:
  Kernels(const ir::Function& function, const PointwiseGroups& groups)
      : function_(function), kernel_(function.op_limit(), -1), position_(function.op_limit(), 0) {
    absl::flat_hash_map<int32_t, int32_t> of_group;
    int32_t position = 0;
    for (const OpId op : function.order()) {
      position_[op] = position++;
      if (IsPosition(function, op)) continue;
      const int32_t group = groups.group[op];
      int32_t kernel = static_cast<int32_t>(members_.size());
      if (group != PointwiseGroups::kAlone)
        kernel = of_group.try_emplace(group, kernel).first->second;
      if (kernel == static_cast<int32_t>(members_.size())) members_.emplace_back();
      kernel_[op] = kernel;
      members_[static_cast<size_t>(kernel)].push_back(op);
    }
  }

  int32_t count() const { return static_cast<int32_t>(members_.size()); }
  const KernelOps& members(int32_t kernel) const { return members_[static_cast<size_t>(kernel)]; }
  // That the op is in by now.
  int32_t Of(OpId op) const { return kernel_[op]; }

  bool AreApart(int32_t a, int32_t b) const { return !Waits(a, b) && !Waits(b, a); }

  // `b` becomes part of `a`.
  void Join(int32_t a, int32_t b) {
    firsts_.clear();
    KernelOps &into = members_[static_cast<size_t>(a)], &from = members_[static_cast<size_t>(b)];
    for (const OpId op : from) kernel_[op] = a;
    into.insert(into.end(), from.begin(), from.end());
    InOrder(into);
    from.clear();
  }

  void InOrder(KernelOps& ops) const {
    std::ranges::sort(ops, {}, [this](OpId op) { return position_[op]; });
  }

 private:
  // The last position up to `position` that no kernel has ops on both sides of: what ends before it
  // waits for nothing behind it.
  int32_t CutBefore(int32_t position) const {
    if (firsts_.empty()) {  // of all kernels that have an op there or later, the first op
      firsts_.resize(function_.order().size());
      for (int32_t p = 0; p < static_cast<int32_t>(firsts_.size()); ++p) {
        firsts_[static_cast<size_t>(p)] = p;
      }
      for (const KernelOps& ops : members_) {
        if (ops.empty()) continue;
        int32_t& first = firsts_[static_cast<size_t>(position_[ops.back()])];
        first = std::min(first, position_[ops[0]]);
      }
      for (size_t p = firsts_.size() - 1; p > 0; --p) {
        firsts_[p - 1] = std::min(firsts_[p - 1], firsts_[p]);
      }
    }
    while (firsts_[static_cast<size_t>(position)] < position) {
      position = firsts_[static_cast<size_t>(position)];
    }
    return position;
  }

  // Whether the kernel `late` waits for `early`; where that takes long to find out, it may.
  bool Waits(int32_t late, int32_t early) const {
    const int32_t cut = CutBefore(position_[members(early)[0]]);
    std::vector<int32_t> pending = {late};
    absl::flat_hash_set<int32_t> seen = {late};
    while (!pending.empty()) {
      const int32_t kernel = pending.back();
      pending.pop_back();
      for (const OpId op : members(kernel)) {
        for (const ValueId operand : function_.operands(op)) {
          const OpId maker = function_.producer(RootOf(function_, operand));
          if (!maker.valid()) continue;
          const int32_t before = kernel_[maker];
          if (before == early) return true;
          if (position_[members(before).back()] < cut) continue;
          if (seen.insert(before).second) pending.push_back(before);
        }
      }
      if (seen.size() > PointwiseGroups::kMostLookedThrough) return true;
    }
    return false;
  }

  const ir::Function& function_;
  std::vector<KernelOps> members_;
  IdTable<OpId, int32_t> kernel_;
  IdTable<OpId, int32_t> position_;
  mutable std::vector<int32_t> firsts_;  // by position; none: to be found anew
};

// What all its members go over; nothing where one is a kernel of its own.
std::optional<PointwiseSpace> SpaceOf(const ir::Function& function, const LocalTypes& local,
                                      FusedOps fused, const KernelOps& members) {
  PointwiseSpace all;
  for (const OpId member : members) {
    const std::optional<PointwiseSpace> space = FusableSpaceOf(function, local, member, fused);
    if (!space.has_value()) return std::nullopt;
    all.elements = std::max(all.elements, space->elements);
    all.row = std::max(all.row, space->row);
  }
  return all;
}

// What an operand is: parts of a value are told apart, and views of all of it are not.
struct Source {
  ValueId value;           // the first of those views
  ValueId root;            // RootOf
  int64_t elements;        // of which so many are read, at most
  std::string views = {};  // of the value: those that go over parts of others, or repeat them
};

Source SourceOf(const ir::Function& function, const LocalTypes& local, ValueId operand) {
  const auto elements_of = [&](ValueId value) { return ir::ElementCount(local.Of(value).dims); };
  Source source = {.value = operand, .root = operand, .elements = elements_of(operand)};
  for (OpId maker = function.producer(operand); maker.valid() && IsPosition(function, maker);
       maker = function.producer(source.root)) {
    const ValueId viewed = function.operands(maker)[0];
    const bool all = elements_of(viewed) == elements_of(source.root);
    if (!all) absl::StrAppend(&source.views, function.info(maker).name, " ");
    if (all && source.views.empty()) source.value = viewed;
    source.root = viewed;
    source.elements = std::min(source.elements, elements_of(viewed));
  }
  return source;
}

// Joins siblings, one kernel after the other. So many parameters: those of JoinSiblings.
class SiblingJoiner {
 public:
  SiblingJoiner(const ir::Function& function, const LocalTypes& local, FusedOps fused,
                const KernelRoom& room, PointwiseGroups& groups)
      : function_(function),
        local_(local),
        fused_(fused),
        room_(room),
        groups_(groups),
        kernels_(function, groups) {}

  void Run() {
    for (int32_t kernel = 0; kernel < kernels_.count(); ++kernel) {
      const auto space = SpaceOf(function_, local_, fused_, kernels_.members(kernel));
      spaces_.push_back(space.value_or(PointwiseSpace{}));
      if (space.has_value()) Place(kernel);
    }
    Regroup();
  }

 private:
  // What is read from outside that is as large as what the kernel goes over.
  std::vector<ValueId> LargeInputs(int32_t kernel) const {
    std::vector<ValueId> inputs;
    for (const OpId member : kernels_.members(kernel)) {
      for (const ValueId operand : function_.operands(member)) {
        const Source source = SourceOf(function_, local_, operand);
        const OpId maker = function_.producer(source.root);
        if (maker.valid() && kernels_.Of(maker) == kernel) continue;
        const bool large = source.elements >= spaces_[static_cast<size_t>(kernel)].elements;
        if (large) inputs.push_back(source.value);
      }
    }
    return inputs;
  }

  bool GoTogether(int32_t a, int32_t b) const {
    if (!IsOneSpace(spaces_[static_cast<size_t>(a)], spaces_[static_cast<size_t>(b)])) return false;
    KernelOps both = kernels_.members(a);
    both.insert(both.end(), kernels_.members(b).begin(), kernels_.members(b).end());
    if (both.size() > PointwiseGroups::kMostMembers) return false;
    kernels_.InOrder(both);
    if (room_.bounded() && !KernelNeedsOf(both, function_, local_).Fits(room_)) return false;
    return kernels_.AreApart(a, b);
  }

  void Place(int32_t kernel) {
    for (const ValueId input : LargeInputs(kernel)) {
      const std::vector<OpId>& readers = readers_[input];
      for (size_t i = 0; i < std::min(readers.size(), kMostTried); ++i) {
        const int32_t other = kernels_.Of(readers[readers.size() - 1 - i]);
        if (other == kernel || !GoTogether(other, kernel)) continue;
        PointwiseSpace& space = spaces_[static_cast<size_t>(other)];
        space.row = std::max(space.row, spaces_[static_cast<size_t>(kernel)].row);
        const OpId member = kernels_.members(kernel)[0];
        kernels_.Join(other, kernel);
        for (const ValueId read : LargeInputs(other)) readers_[read].push_back(member);
        return;
      }
    }
    for (const ValueId input : LargeInputs(kernel)) {
      readers_[input].push_back(kernels_.members(kernel)[0]);
    }
  }

  void Regroup() {
    groups_.members.clear();
    for (const OpId op : function_.order()) groups_.group[op] = PointwiseGroups::kAlone;
    for (int32_t kernel = 0; kernel < kernels_.count(); ++kernel) {
      const KernelOps& members = kernels_.members(kernel);
      if (members.size() < 2) continue;
      for (const OpId member : members) {
        groups_.group[member] = static_cast<int32_t>(groups_.members.size());
      }
      groups_.members.push_back(members);
    }
  }

  const ir::Function& function_;
  const LocalTypes& local_;
  const FusedOps fused_;
  const KernelRoom room_;
  PointwiseGroups& groups_;
  Kernels kernels_;
  std::vector<PointwiseSpace> spaces_;  // of kernels
  absl::flat_hash_map<ValueId, std::vector<OpId>> readers_;
};

// Kernels as texts.
class KernelWords {
 public:
  KernelWords(const ir::Function& function, const LocalTypes& local, FusedOps fused,
              const PointwiseGroups& groups)
      : function_(function), local_(local), fused_(fused), groups_(groups) {}

  // What a kernel does, so that those that do the same say the same, whatever the sizes: its ops
  // with their attributes, which values each reads and makes, of which types, and which of them are
  // written. "" where it shares no launch.
  std::string Of(const KernelOps& members) const {
    std::string text;
    absl::flat_hash_map<ValueId, size_t> numbers;  // in the order of the text
    const auto number = [&](ValueId value) {
      return numbers.try_emplace(value, numbers.size()).first->second;
    };
    for (const OpId member : members) {
      if (!MayShare(member)) return "";
      absl::StrAppend(&text, function_.info(member).name, ToString(function_.attributes(member)));
      const int64_t elements = ElementsOf(function_.result(member));
      for (const ValueId operand : function_.operands(member)) {
        const Source source = SourceOf(function_, local_, operand);
        if (!source.views.empty()) {
          absl::StrAppend(&text, " ", source.views, number(source.value), " of");
        }
        absl::StrAppend(&text, " ", number(source.root), ":", ToString(local_.Of(operand).dtype),
                        ElementsOf(operand) < elements ? " fewer" : "");
      }
      absl::StrAppend(&text, " ->");
      for (int32_t i = 0; i < function_.result_count(member); ++i) {
        const ValueId result = function_.result(member, i);
        absl::StrAppend(&text, " ", number(result), ":", ToString(local_.Of(result).dtype),
                        groups_.inside[result] != 0 ? " inside" : "");
      }
      absl::StrAppend(&text, ";");
    }
    return text;
  }

  // Bytes that the arguments of a kernel take.
  int64_t ArgumentsOf(const KernelOps& members) const {
    absl::flat_hash_set<ValueId> tensors;
    for (const OpId member : members) {
      for (const ValueId operand : function_.operands(member)) {
        const ValueId root = RootOf(function_, operand);
        if (groups_.inside[root] == 0) tensors.insert(root);
      }
      for (int32_t i = 0; i < function_.result_count(member); ++i) {
        const ValueId result = function_.result(member, i);
        if (groups_.inside[result] == 0) tensors.insert(result);
      }
    }
    return (static_cast<int64_t>(tensors.size()) + 1) * kPointerBytes;
  }

 private:
  int64_t ElementsOf(ValueId value) const { return ir::ElementCount(local_.Of(value).dims); }

  bool MayShare(OpId op) const {
    const bool updates = function_.info(op).op_class == ir::OpClass::kOptimizer &&
                         transforms::HostWorkOf(function_, op) == transforms::HostWork::kNone;
    const bool fuses = FusableSpaceOf(function_, local_, op, fused_).has_value();
    return function_.result_count(op) > 0 && (updates || fuses);
  }

  const ir::Function& function_;
  const LocalTypes& local_;
  const FusedOps fused_;
  const PointwiseGroups& groups_;
};

}  // namespace
}  // namespace batched_kernels_cc

void JoinSiblings(const ir::Function& function, const LocalTypes& local, FusedOps fused,
                  const KernelRoom& room, PointwiseGroups& groups) {
  batched_kernels_cc::SiblingJoiner(function, local, fused, room, groups).Run();
}

std::vector<SharedLaunch> FindSharedLaunches(const ir::Function& function, const LocalTypes& local,
                                             FusedOps fused, const PointwiseGroups& groups) {
  namespace own = batched_kernels_cc;
  struct Launch {
    int32_t kernel;
    int64_t arguments;
    SharedLaunch parts;
  };
  own::Kernels kernels(function, groups);
  const own::KernelWords words(function, local, fused, groups);
  std::vector<Launch> launches;
  std::map<std::string, std::vector<size_t>> of_kind;
  for (int32_t kernel = 0; kernel < kernels.count(); ++kernel) {
    const KernelOps members = kernels.members(kernel);
    const std::string text = words.Of(members);
    if (text.empty()) continue;
    const int64_t arguments = words.ArgumentsOf(members);
    std::vector<size_t>& alike = of_kind[text];
    const size_t tried = std::min(alike.size(), own::kMostTried);
    const auto fits =
        std::find_if(alike.end() - static_cast<int64_t>(tried), alike.end(), [&](size_t number) {
          const Launch& launch = launches[number];
          return launch.arguments + arguments <= own::kArgumentBytes &&
                 kernels.AreApart(launch.kernel, kernel);
        });
    if (fits == alike.end()) {
      alike.push_back(launches.size());
      launches.push_back({.kernel = kernel, .arguments = arguments, .parts = {members}});
      continue;
    }
    Launch& launch = launches[*fits];
    kernels.Join(launch.kernel, kernel);
    launch.arguments += arguments;
    launch.parts.push_back(members);
  }
  std::vector<SharedLaunch> shared;
  for (Launch& launch : launches) {
    if (launch.parts.size() > 1) shared.push_back(std::move(launch.parts));
  }
  return shared;
}

}  // namespace orrery::lowering
