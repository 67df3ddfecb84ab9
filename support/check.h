#ifndef ORRERY_SUPPORT_CHECK_H_
#define ORRERY_SUPPORT_CHECK_H_

#include <sstream>

namespace orrery::internal {

/// Collects what a failed check says, then prints it and aborts. Debian 12's Abseil has no CHECK
/// yet.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  /// Where the message goes on.
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

/// Makes a stream nothing, so that a check is an expression of no value in either case.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace orrery::internal

/// Aborts when `condition` is false: our own bug, never bad input. Stream the id's name into it.
#define ORRERY_CHECK(condition)                 \
  (condition) ? (void)0                         \
              : ::orrery::internal::Voidify() & \
                    ::orrery::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

/// A check in the loop that runs once an event: compiled out of release builds.
#ifdef NDEBUG
#define ORRERY_DCHECK(condition) \
  while (false) ORRERY_CHECK(condition)
#else
#define ORRERY_DCHECK(condition) ORRERY_CHECK(condition)
#endif

#endif  // ORRERY_SUPPORT_CHECK_H_
