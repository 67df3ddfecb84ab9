#ifndef ORRERY_CMAKE_PRECOMPILED_H_
#define ORRERY_CMAKE_PRECOMPILED_H_

// What most files include, compiled once. A file names what it uses all the same: the preset `tidy`
// compiles each by itself, without this.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#endif  // ORRERY_CMAKE_PRECOMPILED_H_
