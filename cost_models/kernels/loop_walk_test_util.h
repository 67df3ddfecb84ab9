#ifndef ORRERY_COST_MODELS_KERNELS_LOOP_WALK_TEST_UTIL_H_
#define ORRERY_COST_MODELS_KERNELS_LOOP_WALK_TEST_UTIL_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cost_models/kernels/bank_conflicts.h"
#include "cost_models/kernels/loop_nests.h"

// The loop nests themselves, walked on numbers, one element after the other: each load and store is
// counted where it happens, and the result has to be the product. No count is a formula.

namespace orrery::cost_models {

/// A matrix whose elements one loads and stores one by one.
class CountedMatrix {
 public:
  CountedMatrix(int64_t rows, int64_t columns, int64_t* loads, int64_t* stores = nullptr)
      : columns_(columns),
        loads_(loads),
        stores_(stores),
        numbers_(static_cast<size_t>(rows * columns)) {}

  int64_t Load(int64_t row, int64_t column) const {
    ++*loads_;
    return numbers_.at(static_cast<size_t>(row * columns_ + column));
  }
  void Store(int64_t row, int64_t column, int64_t number) {
    if (stores_ != nullptr) ++*stores_;
    numbers_.at(static_cast<size_t>(row * columns_ + column)) = number;
  }
  const std::vector<int64_t>& numbers() const { return numbers_; }

 private:
  int64_t columns_;
  int64_t* loads_;
  int64_t* stores_;
  std::vector<int64_t> numbers_;
};

/// One product, and what a walk has counted.
struct LoopWalk {
  LoopWalk(int64_t rows, int64_t columns, int64_t inner)
      : m(rows),
        n(columns),
        k(inner),
        a(m, k, &memory.a),
        b(k, n, &memory.b),
        c(m, n, &unused, &memory.stores) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k; ++j) a.Store(i, j, (7 * i + 3 * j) % 11 - 5);
    }
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j) b.Store(i, j, (5 * i + 2 * j) % 13 - 6);
    }
    expected.resize(static_cast<size_t>(m * n), 0);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t x = 0; x < k; ++x) {
          expected[static_cast<size_t>(i * n + j)] +=
              ((7 * i + 3 * x) % 11 - 5) * ((5 * x + 2 * j) % 13 - 6);
        }
      }
    }
  }
  LoopWalk(const LoopWalk&) = delete;

  bool IsRight() const { return c.numbers() == expected; }

  int64_t m, n, k;
  int64_t unused = 0;
  LoopTraffic memory, near;
  int64_t near_held = 0;  // the most at once
  CountedMatrix a, b, c;
  std::vector<int64_t> expected;
};

/// A thread an element.
inline void WalkNaive(LoopWalk& w) {
  for (int64_t i = 0; i < w.m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      int64_t sum = 0;
      for (int64_t k = 0; k < w.k; ++k) sum += w.a.Load(i, k) * w.b.Load(k, j);
      w.c.Store(i, j, sum);
    }
  }
}

/// A thread v x u elements: whole rows, and for each of them whole columns.
inline void WalkRegisterRows(LoopWalk& w, int64_t v, int64_t u) {
  for (int64_t i = 0; i < w.m; i += v) {
    for (int64_t j = 0; j < w.n; j += u) {
      for (int64_t x = i; x < std::min(i + v, w.m); ++x) {
        std::vector<int64_t> row;
        for (int64_t k = 0; k < w.k; ++k) row.push_back(w.a.Load(x, k));
        for (int64_t y = j; y < std::min(j + u, w.n); ++y) {
          int64_t sum = 0;
          for (int64_t k = 0; k < w.k; ++k) sum += row[static_cast<size_t>(k)] * w.b.Load(k, y);
          w.c.Store(x, y, sum);
        }
      }
    }
  }
}

/// A thread v x u elements: pieces of `depth` columns and rows.
inline void WalkRegister(LoopWalk& w, int64_t v, int64_t u, int64_t depth) {
  for (int64_t i = 0; i < w.m; i += v) {
    for (int64_t j = 0; j < w.n; j += u) {
      std::map<std::pair<int64_t, int64_t>, int64_t> sums, a, b;
      for (int64_t k = 0; k < w.k; k += depth) {
        for (int64_t z = k; z < std::min(k + depth, w.k); ++z) {
          for (int64_t x = i; x < std::min(i + v, w.m); ++x) a[{x, z}] = w.a.Load(x, z);
          for (int64_t y = j; y < std::min(j + u, w.n); ++y) b[{z, y}] = w.b.Load(z, y);
        }
        for (int64_t z = k; z < std::min(k + depth, w.k); ++z) {
          for (int64_t x = i; x < std::min(i + v, w.m); ++x) {
            for (int64_t y = j; y < std::min(j + u, w.n); ++y) {
              sums[{x, y}] += a.at({x, z}) * b.at({z, y});
            }
          }
        }
      }
      for (const auto& [place, sum] : sums) w.c.Store(place.first, place.second, sum);
    }
  }
}

/// Rows of `p` in the cache, past which columns go, `q` at a time; from there tiles of v x u in
/// registers, or, where these are 0, two elements a product.
inline void WalkCache(LoopWalk& w, int64_t p, int64_t q, int64_t v, int64_t u) {
  for (int64_t i = 0; i < w.m; i += p) {
    const int64_t rows = std::min(p, w.m - i);
    CountedMatrix a(rows, w.k, &w.near.a, &w.near.stores);
    for (int64_t x = 0; x < rows; ++x) {
      for (int64_t k = 0; k < w.k; ++k) a.Store(x, k, w.a.Load(i + x, k));
    }
    for (int64_t j = 0; j < w.n; j += q) {
      const int64_t columns = std::min(q, w.n - j);
      CountedMatrix b(w.k, columns, &w.near.b, &w.near.stores);
      for (int64_t k = 0; k < w.k; ++k) {
        for (int64_t y = 0; y < columns; ++y) b.Store(k, y, w.b.Load(k, j + y));
      }
      w.near_held =
          std::max(w.near_held, static_cast<int64_t>(a.numbers().size() + b.numbers().size()));
      const int64_t high = std::max<int64_t>(v, 1), wide = std::max<int64_t>(u, 1);
      for (int64_t x = 0; x < rows; x += high) {
        for (int64_t y = 0; y < columns; y += wide) {
          std::map<std::pair<int64_t, int64_t>, int64_t> sums;
          for (int64_t k = 0; k < w.k; ++k) {
            std::vector<int64_t> column, row;
            for (int64_t s = x; s < std::min(x + high, rows); ++s) column.push_back(a.Load(s, k));
            for (int64_t t = y; t < std::min(y + wide, columns); ++t) row.push_back(b.Load(k, t));
            for (size_t s = 0; s < column.size(); ++s) {
              for (size_t t = 0; t < row.size(); ++t) {
                sums[{x + static_cast<int64_t>(s), y + static_cast<int64_t>(t)}] +=
                    column[s] * row[t];
              }
            }
          }
          for (const auto& [place, sum] : sums) {
            w.c.Store(i + place.first, j + place.second, sum);
          }
        }
      }
    }
  }
}

/// 32 banks that give a word a cycle each: what one group of lanes wants of them.
class Banks {
 public:
  void Want(int64_t address, int64_t bytes) {
    for (int64_t byte = address; byte < address + bytes; ++byte) {
      words_[byte / 4 % 32].insert(byte / 4);
    }
  }
  int64_t Cycles() const {
    size_t most = 0;
    for (const auto& [bank, words] : words_) most = std::max(most, words.size());
    return static_cast<int64_t>(most);
  }

 private:
  std::map<int64_t, std::set<int64_t>> words_;
};

/// The kernel with shared memory, thread by thread and warp by warp.
class SharedWalk {
 public:
  SharedWalk(LoopWalk& walk, const LoopTiles& tiles, const SharedLayout& layout)
      : w_(walk), t_(tiles), layout_(layout) {}

  /// Cycles of shared memory, and instructions of warps, of all blocks.
  int64_t cycles = 0, instructions = 0;

  void Run() {
    for (int64_t i = 0; i < w_.m; i += t_.block_m) {
      for (int64_t j = 0; j < w_.n; j += t_.block_n) RunBlock(i, j);
    }
  }

 private:
  using Numbers = std::map<std::pair<int64_t, int64_t>, int64_t>;

  int64_t columns() const { return t_.block_n / t_.thread_n; }
  int64_t threads() const { return t_.block_m / t_.thread_m * columns(); }

  // Each lane that takes part, and where it goes.
  void Instruct(const std::map<int64_t, int64_t>& address_of, int64_t bytes) {
    for (int64_t warp = 0; warp < threads(); warp += 32) {
      bool any = false;
      const int64_t lanes = std::min<int64_t>(32, 128 / bytes);
      for (int64_t first = warp; first < warp + 32; first += lanes) {
        Banks banks;
        for (int64_t t = first; t < first + lanes; ++t) {
          const auto found = address_of.find(t);
          if (found == address_of.end()) continue;
          banks.Want(found->second, bytes);
          any = true;
        }
        cycles += banks.Cycles();
      }
      instructions += any ? 1 : 0;
    }
  }

  // Threads write what they fetch: the first operand's tile [depth][block_m], or the second's.
  Numbers Fetch(bool first, int64_t from, int64_t k0) {
    const int64_t width = first ? t_.block_m : t_.block_n;
    const bool along_k = first ? layout_.a_along_k : layout_.b_along_k;
    Numbers tile;
    for (int64_t e = 0; e < width * t_.depth; e += threads()) {
      std::map<int64_t, int64_t> address_of;
      for (int64_t t = 0; t < threads() && e + t < width * t_.depth; ++t) {
        const int64_t k = along_k ? (e + t) % t_.depth : (e + t) / width;
        const int64_t place = along_k ? (e + t) / t_.depth : (e + t) % width;
        address_of[t] = (k * (width + layout_.pad) + place) * layout_.element_bytes;
        if (k0 + k >= w_.k || from + place >= (first ? w_.m : w_.n)) continue;
        tile[{k, place}] =
            first ? w_.a.Load(from + place, k0 + k) : w_.b.Load(k0 + k, from + place);
        ++w_.near.stores;
      }
      Instruct(address_of, layout_.element_bytes);
    }
    return tile;
  }

  // Whether a thread of the block at (i, j) makes anything.
  bool IsActive(int64_t t) const {
    return row_ + t / columns() * t_.thread_m < w_.m &&
           column_ + t % columns() * t_.thread_n < w_.n;
  }

  // Threads load their part of row k of a tile.
  void LoadPart(bool first, int64_t k, const Numbers& tile,
                std::vector<std::vector<int64_t>>& parts) {
    const int64_t a_thread = first ? t_.thread_m : t_.thread_n;
    const int64_t width = first ? t_.block_m : t_.block_n;
    for (int64_t i = 0; i < a_thread; i += layout_.vector) {
      std::map<int64_t, int64_t> address_of;
      for (int64_t t = 0; t < threads(); ++t) {
        if (!IsActive(t)) continue;
        const int64_t begin = (first ? t / columns() : t % columns()) * a_thread + i;
        address_of[t] = (k * (width + layout_.pad) + begin) * layout_.element_bytes;
        for (int64_t x = begin; x < begin + layout_.vector; ++x) {
          const auto number = tile.find({k, x});
          if (number == tile.end()) continue;
          parts[static_cast<size_t>(t)].push_back(number->second);
          ++(first ? w_.near.a : w_.near.b);
        }
      }
      Instruct(address_of, layout_.vector * layout_.element_bytes);
    }
  }

  void RunBlock(int64_t i, int64_t j) {
    row_ = i;
    column_ = j;
    std::vector<Numbers> sums(static_cast<size_t>(threads()));
    for (int64_t k0 = 0; k0 < w_.k; k0 += t_.depth) {
      const Numbers a = Fetch(true, i, k0), b = Fetch(false, j, k0);
      for (int64_t k = 0; k < std::min(t_.depth, w_.k - k0); ++k) {
        std::vector<std::vector<int64_t>> rows(sums.size()), columns_of(sums.size());
        LoadPart(true, k, a, rows);
        LoadPart(false, k, b, columns_of);
        for (size_t t = 0; t < sums.size(); ++t) {
          for (size_t x = 0; x < rows[t].size(); ++x) {
            for (size_t y = 0; y < columns_of[t].size(); ++y) {
              sums[t][{static_cast<int64_t>(x), static_cast<int64_t>(y)}] +=
                  rows[t][x] * columns_of[t][y];
            }
          }
        }
      }
    }
    for (int64_t t = 0; t < threads(); ++t) {
      const int64_t row = i + t / columns() * t_.thread_m, column = j + t % columns() * t_.thread_n;
      for (const auto& [place, sum] : sums[static_cast<size_t>(t)]) {
        w_.c.Store(row + place.first, column + place.second, sum);
      }
    }
  }

  LoopWalk& w_;
  const LoopTiles t_;
  const SharedLayout layout_;
  int64_t row_ = 0, column_ = 0;  // of the block
};

}  // namespace orrery::cost_models

#endif  // ORRERY_COST_MODELS_KERNELS_LOOP_WALK_TEST_UTIL_H_
