#ifndef ORRERY_SUPPORT_HEAP_H_
#define ORRERY_SUPPORT_HEAP_H_

namespace orrery {

/// Makes the heap of this process one that suits simulation, which allocates and frees the same
/// megabytes over and over: what was freed is kept, and the first 32 MB are in large pages where
/// the system has them, since touching memory for the first time is a large part of a short run.
/// For the start of `main`; no result depends on it.
void TuneHeap();

}  // namespace orrery

#endif  // ORRERY_SUPPORT_HEAP_H_
