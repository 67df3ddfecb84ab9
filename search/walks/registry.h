#ifndef ORRERY_SEARCH_WALKS_REGISTRY_H_
#define ORRERY_SEARCH_WALKS_REGISTRY_H_

#include <memory>
#include <utility>

#include "search/walks/walk.h"

// The methods by name. A method's file includes this, so that its record has the linkage and the
// name that methods.def says.

namespace orrery::search {

#define ORRERY_WALK_METHOD(Name, file) extern const MethodInfo k##Name##Method;
#include "search/walks/methods.def"
#undef ORRERY_WALK_METHOD

/// `make` of a method whose walk is a `W`.
template <typename W>
std::unique_ptr<Walk> MakeWalk(WalkQuestion question) {
  return std::make_unique<W>(std::move(question));
}

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_REGISTRY_H_
