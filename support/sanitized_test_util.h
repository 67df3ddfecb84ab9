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

#endif  // ORRERY_SUPPORT_SANITIZED_TEST_UTIL_H_
