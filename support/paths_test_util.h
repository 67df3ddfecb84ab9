#ifndef ORRERY_SUPPORT_PATHS_TEST_UTIL_H_
#define ORRERY_SUPPORT_PATHS_TEST_UTIL_H_

#include <string>

// For tests only. Defined in a file that the build writes (cmake/OrreryFolder.cmake), so that what
// is compiled of a test is the same in every clone, and a compiler's cache knows it.

namespace orrery {

/// Where the sources stand: the root of the repository, without a slash behind it.
std::string SourceDir();
/// Where the programs of this build stand.
std::string BinDir();

}  // namespace orrery

#endif  // ORRERY_SUPPORT_PATHS_TEST_UTIL_H_
