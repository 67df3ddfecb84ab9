#include "cost_models/kernels/bank_conflicts.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cluster/multiprocessor.h"

namespace orrery::cost_models {
namespace bank_conflicts_cc {
namespace {

using cluster::Multiprocessor;

constexpr int kRow = Multiprocessor::kBanks * Multiprocessor::kBankBytes;

// Groups of lanes that go one after the other.
int PhasesOf(int bytes) { return std::max(1, bytes * Multiprocessor::kWarp / kRow); }

// Of lanes that go at once.
int CyclesOfPhase(std::span<const int64_t> addresses, int bytes) {
  std::vector<int64_t> words;
  for (const int64_t address : addresses) {
    for (int64_t word = address / Multiprocessor::kBankBytes;
         word * Multiprocessor::kBankBytes < address + bytes; ++word) {
      words.push_back(word);
    }
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int, Multiprocessor::kBanks> wanted = {};
  for (const int64_t word : words) ++wanted[static_cast<size_t>(word % Multiprocessor::kBanks)];
  return *std::ranges::max_element(wanted);
}

// Cycles of instructions, of which most are those of the one before, some words further on.
class Cycles {
 public:
  explicit Cycles(int bytes) : bytes_(bytes) {}

  int Of(std::span<const int64_t> addresses) {
    const int64_t whole = addresses[0] / Multiprocessor::kBankBytes * Multiprocessor::kBankBytes;
    relative_.clear();
    for (const int64_t address : addresses) relative_.push_back(address - whole);
    if (relative_ == known_) return cycles_;
    known_ = relative_;
    return cycles_ = BankCycles(addresses, bytes_);
  }

 private:
  int bytes_;
  int cycles_ = 0;
  std::vector<int64_t> relative_, known_;
};

// Adds the instruction by which each thread of a block, warp by warp, goes to `address_of` it.
// Threads of which it is negative take no part.
template <typename AddressOf>
void Add(int64_t threads, int bytes, int64_t times, AddressOf address_of, Cycles& cycles,
         BankUse& use) {
  const int a_phase = Multiprocessor::kWarp / PhasesOf(bytes);
  std::array<int64_t, Multiprocessor::kWarp> addresses;
  for (int64_t first = 0; first < threads; first += Multiprocessor::kWarp) {
    size_t lanes = 0;
    for (int64_t t = first; t < std::min(first + Multiprocessor::kWarp, threads); ++t) {
      const int64_t address = address_of(t);
      if (address >= 0) addresses[lanes++] = address;
    }
    if (lanes == 0) continue;
    use.instructions += times;
    use.cycles += times * cycles.Of(std::span(addresses).first(lanes));
    use.least += times * ((static_cast<int>(lanes) + a_phase - 1) / a_phase);
  }
}

// A tile of one operand in shared memory.
struct Tile {
  int64_t width;      // rows of the first operand, columns of the second
  int64_t row_bytes;  // from one of k to the next
  int64_t element_bytes;
};

// All threads load their part of a row, of each of k. `first_of` is where a thread's begins. Where
// all addresses move on by whole words, conflicts are the same: what counts is where in a word the
// instruction begins.
template <typename FirstOf>
BankUse Loads(const Tile& tile, const LoopTiles& t, int64_t a_thread, int64_t vector,
              int64_t threads, FirstOf first_of) {
  std::array<int64_t, Multiprocessor::kBankBytes> times = {};
  for (int64_t k = 0; k < t.depth; ++k) {
    for (int64_t i = 0; i < a_thread; i += vector) {
      const int64_t offset = k * tile.row_bytes + i * tile.element_bytes;
      ++times[static_cast<size_t>(offset % Multiprocessor::kBankBytes)];
    }
  }
  BankUse use;
  const auto bytes = static_cast<int>(vector * tile.element_bytes);
  Cycles cycles(bytes);
  for (size_t offset = 0; offset < times.size(); ++offset) {
    if (times[offset] == 0) continue;
    const auto address_of = [&](int64_t thread) {
      return static_cast<int64_t>(offset) + first_of(thread) * tile.element_bytes;
    };
    Add(threads, bytes, times[offset], address_of, cycles, use);
  }
  return use;
}

// All threads write the elements that they have fetched, in the order of memory.
BankUse Stores(const Tile& tile, int64_t depth, bool along_k, int64_t threads) {
  BankUse use;
  const auto bytes = static_cast<int>(tile.element_bytes);
  Cycles cycles(bytes);
  const int64_t elements = tile.width * depth;
  for (int64_t first = 0; first < elements; first += threads) {
    const auto address_of = [&](int64_t thread) -> int64_t {
      const int64_t e = first + thread;
      if (e >= elements) return -1;
      const int64_t k = along_k ? e % depth : e / tile.width;
      const int64_t place = along_k ? e / depth : e % tile.width;
      return k * tile.row_bytes + place * tile.element_bytes;
    };
    Add(threads, bytes, 1, address_of, cycles, use);
  }
  return use;
}

}  // namespace
}  // namespace bank_conflicts_cc

int BankCycles(std::span<const int64_t> addresses, int bytes) {
  const int phases = bank_conflicts_cc::PhasesOf(bytes);
  const auto lanes = static_cast<size_t>(cluster::Multiprocessor::kWarp / phases);
  int cycles = 0;
  for (size_t first = 0; first < addresses.size(); first += lanes) {
    cycles += bank_conflicts_cc::CyclesOfPhase(
        addresses.subspan(first, std::min(lanes, addresses.size() - first)), bytes);
  }
  return cycles;
}

BankUse& BankUse::operator+=(const BankUse& other) {
  instructions += other.instructions;
  cycles += other.cycles;
  least += other.least;
  return *this;
}

BankUse SharedUse::Sum() const {
  BankUse sum = a_loads;
  sum += b_loads;
  sum += a_stores;
  sum += b_stores;
  return sum;
}

SharedUse SharedUseOf(const LoopTiles& t, const SharedLayout& layout) {
  namespace own = bank_conflicts_cc;
  const int64_t columns = t.block_n / t.thread_n;
  const int64_t threads = t.block_m / t.thread_m * columns;
  const int64_t bytes = layout.element_bytes;
  const own::Tile a = {t.block_m, (t.block_m + layout.pad) * bytes, bytes};
  const own::Tile b = {t.block_n, (t.block_n + layout.pad) * bytes, bytes};
  const auto row_of = [&](int64_t thread) { return thread / columns * t.thread_m; };
  const auto column_of = [&](int64_t thread) { return thread % columns * t.thread_n; };
  return {.a_loads = own::Loads(a, t, t.thread_m, layout.vector, threads, row_of),
          .b_loads = own::Loads(b, t, t.thread_n, layout.vector, threads, column_of),
          .a_stores = own::Stores(a, t.depth, layout.a_along_k, threads),
          .b_stores = own::Stores(b, t.depth, layout.b_along_k, threads)};
}

}  // namespace orrery::cost_models
