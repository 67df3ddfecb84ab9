#ifndef ORRERY_SUPPORT_HEAP_H_
#define ORRERY_SUPPORT_HEAP_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace orrery {

/// Makes the heap of this process one that suits simulation, which allocates and frees the same
/// megabytes over and over: what was freed is kept, and the first 768 MB (32 where addresses or
/// data are limited) are in large pages where the system has them, since touching memory for the
/// first time is a large part of a run. Only what is touched is in memory. For the start of `main`;
/// no result depends on it.
void TuneHeap();

/// The same for the heap of a thread that begins, its first 62 MB, once `main` has one that is
/// tuned; else nothing. Heaps of threads that ended are those of later ones.
void TuneHeapOfThread();

/// Gives back to the system what was freed and is still in memory, where that is over `most` bytes.
/// For whoever goes on for long: pages that are used again then have to be touched anew.
void GiveBackFreed(size_t most);

/// From here on memory that cannot be had ends the process: one line on standard error, which
/// begins with the name of the program, and exit code 1. No exception is thrown for it: on their
/// way, destructors of Abseil's containers that were just growing free what they do not have, and a
/// thread that one leaves ends with another message. For the start of `main`; a library leaves this
/// to its host.
void EndWhereMemoryEnds(absl::string_view program);

}  // namespace orrery

#endif  // ORRERY_SUPPORT_HEAP_H_
