#ifndef ORRERY_SUPPORT_SANITIZED_TEST_UTIL_H_
#define ORRERY_SUPPORT_SANITIZED_TEST_UTIL_H_

// For tests only: ORRERY_OTHER_HEAP is defined where a sanitizer has a heap of its own, which
// nobody tunes, and which reserves more addresses than there is memory.

#if defined(__has_feature)  // clang++
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ORRERY_OTHER_HEAP
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ORRERY_OTHER_HEAP
#endif

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace orrery {

/// How many of `all` cases that go the same lines a test walks: all of them, and under a sanitizer,
/// where each takes ten times as long, an eighth, rounded up. What counts cases asks for
/// `CasesToWalk` of what it wants of all.
template <std::integral Number>
constexpr Number CasesToWalk(Number all) {
#ifdef ORRERY_OTHER_HEAP
  return (all + 7) / 8;
#else
  return all;
#endif
}

/// The same of a list: all of it, or every eighth, from the first on.
template <typename Case>
std::vector<Case> CasesToWalk(const std::vector<Case>& all) {
  const size_t count = CasesToWalk(all.size()), step = count < all.size() ? 8 : 1;
  std::vector<Case> cases;
  for (size_t i = 0; i < count; ++i) cases.push_back(all[i * step]);
  return cases;
}
template <typename Case>
std::vector<Case> CasesToWalk(std::initializer_list<Case> all) {
  return CasesToWalk(std::vector<Case>(all));
}

}  // namespace orrery

#endif  // ORRERY_SUPPORT_SANITIZED_TEST_UTIL_H_
