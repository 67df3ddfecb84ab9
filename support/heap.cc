#include "support/heap.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace orrery {

void TuneHeap() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  constexpr size_t kPage = size_t{2} << 20, kSize = 16 * kPage;
  void* const heap = std::malloc(kSize);
  void* begin = heap;
  size_t size = kSize;
  if (std::align(kPage, kSize - kPage, begin, size) != nullptr) {
    madvise(begin, kSize - kPage, MADV_HUGEPAGE);
  }
  std::free(heap);
}

}  // namespace orrery
