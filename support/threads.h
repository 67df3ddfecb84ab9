#ifndef ORRERY_SUPPORT_THREADS_H_
#define ORRERY_SUPPORT_THREADS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery {

/// Runs `work` on this thread and on up to `more` others: on as many as can be started. Returns
/// when all have ended. What `work` throws, the first of it, is thrown then.
void RunOnThreads(const std::function<void()>& work, size_t more);

/// work(0) to work(count - 1), each once, on at most so many threads, this one among them: in no
/// order, so that what they leave must not depend on it.
void ForEachOnThreads(size_t count, size_t threads, const std::function<void(size_t)>& work);

/// How many processors this process may use: fewer than the machine has where it is bound to some,
/// as mpirun does it. At least one.
int32_t OwnProcessors();

}  // namespace orrery

#endif  // ORRERY_SUPPORT_THREADS_H_
