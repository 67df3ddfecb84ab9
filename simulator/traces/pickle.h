#ifndef ORRERY_SIMULATOR_TRACES_PICKLE_H_
#define ORRERY_SIMULATOR_TRACES_PICKLE_H_

#include <cstdint>
#include <ostream>

#include "absl/strings/string_view.h"

namespace orrery::simulator {

/// Writes a value as Python's pickle (protocol 2) has it, piece by piece: numbers, texts, lists and
/// dictionaries. Only what every reader knows, that of pytorch.org/memory_viz too.
class Pickle {
 public:
  explicit Pickle(std::ostream& out);
  /// Nothing may be written after it.
  void End();

  void Number(int64_t value);
  /// Bytes that are no UTF-8 are replaced.
  void Text(absl::string_view text);

  /// Keys and values follow, one after the other.
  void BeginDictionary() { Write("}("); }
  void EndDictionary() { Write("u"); }
  /// Items follow, with NextItem before each.
  void BeginList() {
    Write("](");
    ++depth_;
    items_[depth_] = 0;
  }
  void NextItem();
  void EndList() {
    Write("e");
    --depth_;
  }

  /// A key and its value.
  void Entry(absl::string_view key, int64_t value);
  void Entry(absl::string_view key, absl::string_view value);

 private:
  static constexpr int kMostDepth = 8;

  void Write(absl::string_view bytes);
  void WriteLittle(uint64_t value, int bytes);

  std::ostream& out_;
  int depth_ = 0;
  int32_t items_[kMostDepth] = {};  // of each list that is open, since it was last taken together
};

}  // namespace orrery::simulator

#endif  // ORRERY_SIMULATOR_TRACES_PICKLE_H_
