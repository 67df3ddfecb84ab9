#include "tools/reports/run_plots.h"

#include <algorithm>
#include <iterator>

#include "tools/reports/run_sections.h"

namespace orrery::tools {
namespace run_plots_cc {
namespace {

// Names are those of pictures.
constexpr PlotView kViews[] = {
    {"timeline", "what each rank computes when"},
    {"breakdown", "the parts of the step, a bar a rank"},
    {"critical-path", "what the step waited for"},
    {"memory", "memory over time"},
    {"memory-ranks", "the peak of each rank"},
    {"communication", "its time by kind, exposed and hidden"},
    {"links", "the use of the busiest links over time"},
    {"roofline", "kernels beside what the device can do"},
};
constexpr MakeSection kSections[] = {TimelineSection, BreakdownSection, CriticalPathSection,
                                     MemorySection,   MemorySection,    CommunicationSection,
                                     LinksSection,    RooflineSection};
static_assert(std::size(kSections) == std::size(kViews));

}  // namespace
}  // namespace run_plots_cc

std::span<const PlotView> RunPlotViews() { return run_plots_cc::kViews; }

bool NeedEveryLink(std::span<const PlotFile> files) {
  return std::ranges::any_of(files, [](const PlotFile& file) { return file.view != 0; });
}

absl::StatusOr<Plot> RunPlot(const PlayedPlan& played, size_t view) {
  return PictureOf({run_plots_cc::kSections[view](played)}, run_plots_cc::kViews[view].name);
}

}  // namespace orrery::tools
