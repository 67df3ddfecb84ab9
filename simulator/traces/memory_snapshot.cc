#include "simulator/traces/memory_snapshot.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "simulator/report/memory.h"
#include "simulator/traces/pickle.h"

namespace orrery::simulator {
namespace memory_snapshot_cc {
namespace {

// Where devices begin to count, about.
constexpr int64_t kFirstAddress = int64_t{0x7f} << 40;

// An allocation: where it is, and who took it for what.
struct Block {
  int64_t address = 0;
  int64_t size = 0;
  MemoryKind kind = MemoryKind::kOther;
  TaskId task = {};  // invalid: resident
};

// An address space, in which each block gets the lowest place that is free.
class Space {
 public:
  int64_t Take(int64_t size) {
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      if (range->second < size) continue;
      const int64_t address = range->first, left = range->second - size;
      free_.erase(range);
      if (left > 0) free_[address + size] = left;
      return address;
    }
    const int64_t address = end_;
    end_ += size;
    return address;
  }

  void Give(int64_t address, int64_t size) {
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == address) {
        before->second += size;
        return;
      }
    }
    free_[address] = size;
  }

  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> free_;  // size by address; neighbours are one
  int64_t end_ = kFirstAddress;
};

class Writer {
 public:
  Writer(const Program& program, RankClassId rank, std::ostream& out)
      : program_(program), rank_(program.rank(rank).members.front()), pickle_(out) {}

  void Write(const Trace& trace, RankClassId rank) {
    pickle_.BeginDictionary();
    pickle_.Text("device_traces");
    pickle_.BeginList();
    pickle_.NextItem();
    pickle_.BeginList();
    bool is_first = true;
    VisitMemory(program_, trace, std::array{rank}, [&](RankClassId, const MemoryUse& use) {
      if (is_first) BeginWith(use);
      if (!is_first) Change(use);
      is_first = false;
      last_ = use;
    });
    pickle_.EndList();
    pickle_.EndList();
    pickle_.Text("segments");
    WriteSegment();
    pickle_.EndDictionary();
    pickle_.End();
  }

 private:
  void BeginWith(const MemoryUse& use) {
    for (int k = 0; k < kMemoryKindCount; ++k) {
      const MemoryKind kind = static_cast<MemoryKind>(k);
      if (use.of(kind) > Bytes(0)) Take(kind, use.of(kind).count(), TaskId(), Time(0));
    }
  }

  void Change(const MemoryUse& use) {
    for (int k = 0; k < kMemoryKindCount; ++k) {
      const MemoryKind kind = static_cast<MemoryKind>(k);
      const int64_t more = use.of(kind).count() - last_.of(kind).count();
      if (more > 0) Take(kind, more, use.task, use.time);
      if (more < 0) Give(kind, -more, use.time);
    }
  }

  void Take(MemoryKind kind, int64_t size, TaskId task, Time time) {
    const Block block = {space_.Take(size), size, kind, task};
    held_[static_cast<size_t>(kind)][size].push_back(block);
    WriteEvent("alloc", block, time);
  }

  void Give(MemoryKind kind, int64_t size, Time time) {
    std::map<int64_t, std::vector<Block>>& of_kind = held_[static_cast<size_t>(kind)];
    while (size > 0 && !of_kind.empty()) {
      // The one of that size, the next larger one, or the largest.
      auto row = of_kind.lower_bound(size);
      if (row == of_kind.end()) row = std::prev(row);
      const Block block = row->second.back();
      row->second.pop_back();
      if (row->second.empty()) of_kind.erase(row);
      space_.Give(block.address, block.size);
      WriteEvent("free_completed", block, time);
      if (block.size > size) Take(kind, block.size - size, block.task, time);
      size -= std::min(size, block.size);
    }
  }

  void WriteEvent(absl::string_view action, const Block& block, Time time) {
    pickle_.NextItem();
    pickle_.BeginDictionary();
    pickle_.Entry("action", action);
    pickle_.Entry("addr", block.address);
    pickle_.Entry("size", block.size);
    pickle_.Entry("stream", int64_t{0});
    pickle_.Entry("time_us", time.picoseconds() / 1'000'000);
    WriteFrames(block);
    pickle_.EndDictionary();
  }

  // "rank 3:17:activations: Linear h.0.mlp.up mb2", as viewers put file, line and name together.
  void WriteFrames(const Block& block) {
    std::string name(ToString(block.kind));
    if (block.task.valid()) {
      const int32_t microbatch = program_.microbatch_of(block.task);
      absl::StrAppend(&name, ": ", program_.label(program_.label_of(block.task)).name);
      if (microbatch >= 0) absl::StrAppend(&name, " mb", microbatch);
    } else {
      name += ": during the whole step";
    }
    pickle_.Text("frames");
    pickle_.BeginList();
    pickle_.NextItem();
    pickle_.BeginDictionary();
    pickle_.Entry("filename", absl::StrCat("rank ", rank_));
    pickle_.Entry("line", block.task.valid() ? int64_t{block.task.index()} : 0);
    pickle_.Entry("name", name);
    pickle_.EndDictionary();
    pickle_.EndList();
  }

  // One segment, of all that was ever taken at once, with what is left at the end.
  void WriteSegment() {
    std::map<int64_t, Block> left;  // by address
    int64_t active = 0;
    for (const auto& of_kind : held_) {
      for (const auto& [size, blocks] : of_kind) {
        for (const Block& block : blocks) {
          left[block.address] = block;
          active += size;
        }
      }
    }
    pickle_.BeginList();
    if (space_.end() > kFirstAddress) {
      pickle_.NextItem();
      pickle_.BeginDictionary();
      pickle_.Entry("device", int64_t{0});
      pickle_.Entry("address", kFirstAddress);
      pickle_.Entry("total_size", space_.end() - kFirstAddress);
      pickle_.Entry("allocated_size", active);
      pickle_.Entry("active_size", active);
      pickle_.Entry("requested_size", active);
      pickle_.Entry("stream", int64_t{0});
      pickle_.Entry("segment_type", "large");
      pickle_.Text("frames");
      pickle_.BeginList();
      pickle_.EndList();
      WriteBlocks(left);
      pickle_.EndDictionary();
    }
    pickle_.EndList();
  }

  void WriteBlocks(const std::map<int64_t, Block>& left) {
    pickle_.Text("blocks");
    pickle_.BeginList();
    int64_t at = kFirstAddress;
    for (const auto& [address, block] : left) {
      if (address > at) WriteBlock(at, address - at, nullptr);
      WriteBlock(address, block.size, &block);
      at = address + block.size;
    }
    if (space_.end() > at) WriteBlock(at, space_.end() - at, nullptr);
    pickle_.EndList();
  }

  // Null: a place that is free.
  void WriteBlock(int64_t address, int64_t size, const Block* block) {
    pickle_.NextItem();
    pickle_.BeginDictionary();
    pickle_.Entry("address", address);
    pickle_.Entry("size", size);
    pickle_.Entry("requested_size", block != nullptr ? size : 0);
    pickle_.Entry("state", block != nullptr ? "active_allocated" : "inactive");
    if (block != nullptr) WriteFrames(*block);
    pickle_.EndDictionary();
  }

  const Program& program_;
  int32_t rank_ = 0;
  Pickle pickle_;
  Space space_;
  MemoryUse last_;
  std::array<std::map<int64_t, std::vector<Block>>, kMemoryKindCount> held_;  // by size
};

}  // namespace
}  // namespace memory_snapshot_cc

void WriteMemorySnapshot(const Program& program, const Trace& trace, RankClassId rank,
                         std::ostream& out) {
  memory_snapshot_cc::Writer(program, rank, out).Write(trace, rank);
}

}  // namespace orrery::simulator
