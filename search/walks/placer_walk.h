#ifndef ORRERY_SEARCH_WALKS_PLACER_WALK_H_
#define ORRERY_SEARCH_WALKS_PLACER_WALK_H_

#include <memory>

#include "search/walks/walk.h"

namespace orrery::search {

/// A walk through candidates that are made of labels of things (WalkChoices): a Placer labels them,
/// beside a base that is good so far or a neighbour of one. Where all that it draws is known,
/// another one begins. Requires things, and two labels at least.
std::unique_ptr<Walk> MakePlacerWalk(WalkQuestion question);

}  // namespace orrery::search

#endif  // ORRERY_SEARCH_WALKS_PLACER_WALK_H_
