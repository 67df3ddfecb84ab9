#ifndef ORRERY_TOOLS_REPORTS_RUN_SECTIONS_H_
#define ORRERY_TOOLS_REPORTS_RUN_SECTIONS_H_

#include <string>
#include <vector>

#include "tools/reports/run_views.h"
#include "tools/reports/view.h"

// The sections of a run, one each: what RunViews puts together. A section without views says
// nothing, and is left out.

namespace orrery::tools {

/// A section in the order in which runs have them.
using MakeSection = Section (*)(const PlayedPlan& played);

/// What each rank runs when. Of many ranks and steps of the schedule some ranks, evenly chosen.
Section TimelineSection(const PlayedPlan& played);
/// The parts of the step, of each rank and on average: computing, exposed communication, bubble.
Section BreakdownSection(const PlayedPlan& played);
/// What the step waited for.
Section CriticalPathSection(const PlayedPlan& played);
/// Memory over time of the rank that needs most, and of all ranks at their peaks.
Section MemorySection(const PlayedPlan& played);
/// Communication by kind and level of the network.
Section CommunicationSection(const PlayedPlan& played);
/// The busiest links, over time.
Section LinksSection(const PlayedPlan& played);
/// Kernels by what they compute a byte, beside what the device can do.
Section RooflineSection(const PlayedPlan& played);
/// Layers, parameters, versions of weights of each stage; what hp splits.
Section StagesSection(const PlayedPlan& played);
/// What stands behind the figures: measurements, assumptions.
Section BasisSection(const PlayedPlan& played);

/// Where several batches were played, as schedules that never drain are: says so of what is shown
/// of all of them.
void AddRounds(const PlayedPlan& played, Section& section);

/// The name of the ranks of a class: "rank 3", "ranks 0-3 (4)".
std::string RankName(const simulator::Program& program, simulator::RankClassId rank);

/// At most `most` of the numbers 0 … `count` - 1, evenly: with the first and the last.
std::vector<int32_t> Evenly(int32_t count, int32_t most);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_REPORTS_RUN_SECTIONS_H_
