#ifndef ORRERY_TESTS_TIDY_REPOSITORY_H_
#define ORRERY_TESTS_TIDY_REPOSITORY_H_

#include <string>
#include <vector>

#include "tests/tidy/includes.h"
#include "tests/tidy/scan.h"

// The sources of this repository.

namespace orrery::tidy {

/// The files of the repository whose names end in one of `endings`, by path.
std::vector<Source> ReadSources(const std::vector<std::string>& endings);

/// Its C++ sources, read once.
const std::vector<Source>& Sources();

/// Its folders with targets of their own, and the programs.
FolderTargets ReadTargets();

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_REPOSITORY_H_
